"""Peers that flood, hang, promise a gigabyte or leave in the middle of a frame: the runner gives each case a verdict in its time, and
ends. bad_peer_test.py PATH_OF_WINDLASS_CONFORMANCE PATH_OF_WINDLASS
"""
import base64
import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CONFORMANCE, WINDLASS = "", ""
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CASE = "HSK-6/"  # cases that only want an ack
SECONDS_MAX = 40  # for the few of them, each with its deadline of ten seconds at most


class Server:
    """Accepts, and does to each connection what it is told."""

    def __init__(self, behave, context=None):
        self.behave, self.context = behave, context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        try:
            if self.context:
                peer = self.context.wrap_socket(peer, server_side=True)
            self.behave(peer)
        except OSError:
            pass
        finally:
            peer.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def upgrade(peer):
    head = b""
    while b"\r\n\r\n" not in head:
        part = peer.recv(4096)
        if not part:
            raise OSError("left")
        head += part
    key = next(line.split(b":", 1)[1].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    accept = base64.b64encode(hashlib.sha1(key + GUID.encode()).digest())
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")


def says_nothing(_peer):
    time.sleep(60)


def says_nothing_after_the_upgrade(peer):
    upgrade(peer)
    time.sleep(60)


def floods(peer):
    upgrade(peer)
    text = b'{"type":"control.heartbeat","id":"x","ts":"2026-11-16T08:00:00Z","tenant":"acme","sender":{"role":"scheduler","id":"s"},"payload":{"healthy":true,"metrics":{"inflight":0}}}'
    frame = b"\x81\x7e" + len(text).to_bytes(2, "big") + text
    while True:
        peer.sendall(frame * 200)


def promises_a_gigabyte(peer):
    upgrade(peer)
    peer.sendall(b"\x81\x7f" + (1 << 30).to_bytes(8, "big"))
    while True:
        peer.sendall(b"x" * 65536)


def leaves_in_the_middle_of_a_frame(peer):
    upgrade(peer)
    peer.sendall(b"\x81\x7e\x10\x00{\"type\":")


def sends_a_head_without_end(peer):
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        peer.sendall(b"X-More: " + b"y" * 1000 + b"\r\n")


def sends_garbage(peer):
    upgrade(peer)
    peer.sendall(os.urandom(4096))
    time.sleep(60)


def run(url, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        token, report = os.path.join(folder, "token"), os.path.join(folder, "report.json")
        with open(token, "w", encoding="utf-8") as file:
            file.write("secret-token")
        begun = time.monotonic()
        done = subprocess.run([CONFORMANCE, "--url", url, "--token-file", token, "--id", CASE, "--jobs", "8", "--json", report, *arguments],
                              capture_output=True, text=True, timeout=120, check=False)
        spent = time.monotonic() - begun
        cases = None
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                text = file.read()
            assert "secret-token" not in text and "secret-token" not in done.stdout + done.stderr
            cases = json.loads(text)["cases"]
        return done, cases, spent


class BadPeers(unittest.TestCase):
    def assert_judged(self, url, *arguments):
        done, cases, spent = run(url, *arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertGreater(len(cases), 0)
        for case in cases:
            self.assertNotIn(case["behaviour"], ("OK", "HARNESS-ERROR"), case["id"])
            self.assertTrue(case["came"], case["id"])
        self.assertLess(spent, SECONDS_MAX)
        return cases

    def test_each_kind_of_bad_peer_gets_a_verdict(self):
        for behave in (says_nothing, says_nothing_after_the_upgrade, floods, promises_a_gigabyte, leaves_in_the_middle_of_a_frame,
                       sends_a_head_without_end, sends_garbage):
            with self.subTest(behave.__name__), Server(behave) as server:
                self.assert_judged(f"ws://127.0.0.1:{server.port}/ws/worker")

    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        cases = self.assert_judged(f"ws://127.0.0.1:{port}/ws/worker")
        self.assertTrue(all("refused" in case["came"].lower() for case in cases), cases[0]["came"])

    def test_a_certificate_of_somebody_else_is_not_trusted(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "two"):
                subprocess.run([WINDLASS, "cert", "new", "--out", os.path.join(folder, name), "--name", "scheduler", "--san", "IP:127.0.0.1"],
                               check=True, stdout=subprocess.DEVNULL)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(folder, "one", "scheduler.pem"), os.path.join(folder, "one", "scheduler.key"))
            with Server(says_nothing_after_the_upgrade, context) as server:
                cases = self.assert_judged(f"wss://127.0.0.1:{server.port}/ws/worker", "--ca", os.path.join(folder, "two", "ca.pem"))
        self.assertTrue(all("certificate" in case["came"] for case in cases), cases[0]["came"])

    def test_wrong_use_is_one_sentence_and_exit_code_2(self):
        for arguments, word in ((["--url", "http://x"], "wss://"), (["--url", "wss://no-such-host.invalid:1/"], "cannot be found"),
                                (["--url", "ws://127.0.0.1:1/", "--token-file", "/nowhere/token"], "/nowhere/token"),
                                (["--url", "ws://127.0.0.1:1/", "--id", "NOPE-1"], "no case is chosen"), ([], "--url"),
                                (["--url", "ws://127.0.0.1:1/", "--jobs", "0"], "jobs")):
            with self.subTest(arguments):
                done = subprocess.run([CONFORMANCE, *arguments], capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)

    def test_a_worker_that_knows_every_case_is_refused(self):
        done = subprocess.run([CONFORMANCE, "--command", "exit 0", "--id", "HSK-1/"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("127", done.stderr)

    def test_a_worker_that_never_dials_gets_a_verdict(self):
        command = 'test "$CASE" = serve || exit 127; exec sleep 60'
        done = subprocess.run([CONFORMANCE, "--command", command, "--id", "HSK-1/", "--jobs", "8"], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the worker dials", done.stdout)


if __name__ == "__main__":
    CONFORMANCE, WINDLASS = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
