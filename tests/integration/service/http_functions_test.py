"""Functions over HTTP, on a real scheduler, runtime, agent and Node worker: bodies that stream from the client's socket to the worker's
port and back, and who may call what.

  http_functions_test.py BUILD_FOLDER [test...]
"""
import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "docs", "examples"))

from fleet import Fleet, TENANT  # noqa: E402  pylint: disable=wrong-import-position
from fleet_processes import wait_until  # noqa: E402  pylint: disable=wrong-import-position

APPLICATION = "streams"


class StreamFleet(Fleet):
    """A scheduler, a runtime and one agent with a Node worker that holds the application."""

    def __init__(self, programs, folder):
        super().__init__(argparse.Namespace(folder=folder, programs=programs, port=0, admin_port=0, http_port=0, agents=1))
        self.http_settings = f"""body_bytes_max = "1MiB"
keys_file = "{os.path.join(folder, 'http-keys.toml')}"
hosts = ["functions.example"]
origins = ["https://shop.example"]
"""
        self.keys = {}

    def up(self):
        self.prepare()
        self.start_scheduler()
        self.keys = {"function": self.new_key("k1", "--app", APPLICATION, "--function", "locked"),
                     "host": self.new_key("k2", "--app", APPLICATION), "admin": self.new_key("k3", "--app", APPLICATION, "--admin"),
                     "other": self.new_key("k4", "--app", "another"), "sibling": self.new_key("k5", "--app", APPLICATION, "--function", "about")}
        self.start_runtime()
        self.start_agent(2)
        self.wait_for_agents()
        source = self.path("app")
        shutil.copytree(os.path.join(HERE, "stream_app"), source)
        shutil.copytree(os.path.join(ROOT, "docs/examples/node-app/node_modules"), os.path.join(source, "node_modules"))
        self.windlass("deploy", source, "--app", APPLICATION, "--tenant", TENANT)
        self.wait_assigned(APPLICATION)

    def notes(self):
        """What the functions felt so far, as their worker remembers it: it is confined and writes no file of this test."""
        status, _, body = self.get("notes")
        assert status == 200, (status, body)
        return json.loads(body)

    def open(self, request):
        client = socket.create_connection(("127.0.0.1", self.runtime["http_port"]), timeout=60)
        client.sendall(request.encode())
        return client

    def get(self, path, headers="", host="localhost", method="GET"):
        with self.open(f"{method} /api/{path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n") as client:
            return read_all(client)

    def new_key(self, name, *arguments):
        """The key; the runtime gets its hash."""
        stanza = self.windlass("key", "new", "--out", self.path(name), *arguments)
        with open(self.path("http-keys.toml"), "a", encoding="utf-8") as file:
            file.write(stanza)
        with open(self.path(name), encoding="utf-8") as file:
            key = file.read().strip()
        assert key not in stanza
        return key

    def in_flight(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.runtime['admin_port']}/status", timeout=10) as answer:
            return sum(each["in_flight"] for each in json.load(answer)["applications"])

    def worker_pid(self):
        workers = json.loads(self.windlass("--json", "workers"))["workers"]
        return next(each["language_worker"]["pid"] for each in workers if "language_worker" in each)

    def resident_bytes(self, name):
        process = dict(self.processes)[name]
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def read_until(client, end, have=b""):
    while end not in have:
        more = client.recv(65536)
        assert more, f"the connection ended before {end}: {have[-200:]}"
        have += more
    return have


def read_all(client):
    """Status, head and body, chunks joined."""
    have = read_until(client, b"\r\n\r\n")
    head, body = have.split(b"\r\n\r\n", 1)
    while True:
        more = client.recv(65536)
        if not more:
            break
        body += more
    if b"transfer-encoding: chunked" in head.lower():
        body = unchunked(body)
    return int(head.split()[1]), head.decode(), body


def unchunked(body):
    whole = b""
    while True:
        line, body = body.split(b"\r\n", 1)
        size = int(line, 16)
        if size == 0:
            return whole
        whole, body = whole + body[:size], body[size + 2:]


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


POST = "POST /api/{} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def bodies_flow_both_ways_at_once(fleet):
    with fleet.open(POST.format("echo")) as client:
        client.sendall(chunk(b"first"))
        have = read_until(client, b"first")  # before the request has ended
        assert b"201" in have.split(b"\r\n", 1)[0] and b"x-echo: yes" in have.lower(), have
        client.sendall(chunk(b"second"))
        read_until(client, b"second", have)
        client.sendall(b"0\r\n\r\n")
        assert read_until(client, b"0\r\n\r\n", have).endswith(b"0\r\n\r\n")


def a_body_larger_than_any_bound_passes_and_is_not_held(fleet):
    size, piece = 96 << 20, b"x" * 65536
    before = {name: fleet.resident_bytes(name) for name in ("runtime", "agent-2")}
    with fleet.open(f"POST /api/count HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n") as client:
        for _ in range(size // len(piece)):
            client.sendall(piece)
        status, _, body = read_all(client)
    assert status == 200 and json.loads(body) == {"bytes": size}, (status, body)
    for name, bytes_before in before.items():
        grown = fleet.resident_bytes(name) - bytes_before
        assert grown < 40 << 20, f"{name} grew by {grown >> 20} MiB while {size >> 20} MiB passed"


def a_slow_reader_sets_the_pace(fleet):
    before = fleet.resident_bytes("runtime")
    with fleet.open("GET /api/flood HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        total = len(read_until(client, b"\r\n\r\n"))
        time.sleep(1)  # it reads nothing; what is sent meanwhile is bounded
        grown = fleet.resident_bytes("runtime") - before
        assert grown < 16 << 20, f"the runtime holds {grown >> 20} MiB for a reader that sleeps"
        while True:
            more = client.recv(1 << 20)
            if not more:
                break
            total += len(more)
    assert total > 512 * 65536, total


def a_client_that_leaves_is_felt_by_the_function(fleet):
    with fleet.open(POST.format("count")) as client:
        client.sendall(chunk(b"y" * 1000))
        time.sleep(0.5)
    wait_until("the function feels it", lambda: any(each.startswith("left after") for each in fleet.notes()))
    assert fleet.get("about/1")[0] == 200


def a_client_that_leaves_during_the_answer_is_felt_too(fleet):
    with fleet.open("GET /api/drip HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        read_until(client, b"drop\n")
    wait_until("its worker feels it", lambda: any(each.startswith("cut ") and "drip" in each for each in fleet.notes()))


def an_answer_whose_worker_is_killed_is_seen_to_be_broken(fleet):
    with fleet.open("GET /api/drip HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        have = read_until(client, b"drop\n")
        assert have.startswith(b"HTTP/1.1 200 ") and b"transfer-encoding: chunked" in have.lower(), have
        os.kill(fleet.worker_pid(), signal.SIGKILL)
        try:
            while more := client.recv(65536):
                have = have[-100:] + more
        except ConnectionResetError:
            pass
    assert not have.endswith(b"0\r\n\r\n"), "a broken answer looks whole"
    wait_until("another worker serves", lambda: fleet.get("about/1")[0] == 200)


def what_the_request_says_reaches_the_function(fleet):
    status, head, body = fleet.get("about/42?q=a%20b", "X-Sent: yes\r\nX-Empty:\r\n")
    about = json.loads(body)
    assert status == 200 and "\r\ndate: " in head.lower(), head
    assert about == {"id": "42", "asked": "a b", "sent": "yes", "empty": "", "url": "http://localhost/api/about/42?q=a%20b"}, about


def a_redirect_is_the_clients_and_a_failure_is_tried_once(fleet):
    status, head, _ = fleet.get("redirect")
    assert status == 302 and "location: http://127.0.0.1:1/nowhere" in head.lower(), head
    begun = time.monotonic()
    status, _, body = fleet.get("fail")
    assert status == 500 and time.monotonic() - begun < 20, (status, body)
    assert fleet.notes().count("fail") == 1, fleet.notes()


def nobody_else_reaches_the_worker(fleet):
    """The worker's port is on the loopback, and the agent has opened none for it."""
    pid = dict(fleet.processes)["agent-2"].pid
    inodes = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if os.path.exists(f"/proc/{pid}/fd/{fd}")}
    open_to_all = []
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/net/{table}", encoding="utf-8").read().splitlines()[1:]:
            columns = line.split()
            is_listening = columns[3] == "0A" and f"socket:[{columns[9]}]" in inodes
            if is_listening and not columns[1].startswith(("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")):
                open_to_all.append(columns[1])
    assert not open_to_all, open_to_all


def each_key_opens_what_it_is_for(fleet):
    good = {"locked": {"function", "host", "admin"}, "chief": {"admin"}}
    for path, opening in good.items():
        assert fleet.get(path)[0] == 401, f"{path} without a key"
        for name, key in fleet.keys.items():
            want = 200 if name in opening else 401
            for shown in (fleet.get(path, f"x-functions-key: {key}\r\n"), fleet.get(f"{path}?code={key}")):
                assert shown[0] == want, (path, name, shown)
                assert key.encode() not in shown[2], "the function saw the key"
    for name in ("runtime.log", "agent-2.log"):
        text = open(fleet.path(name), encoding="utf-8").read()
        assert not any(key in text for key in fleet.keys.values()), f"{name} has a key"
    late = fleet.new_key("k6", "--app", APPLICATION, "--function", "locked")
    wait_until("a new key is good", lambda: fleet.get("locked", f"x-functions-key: {late}\r\n")[0] == 200)


def a_strangers_name_and_pages_are_refused(fleet):
    assert fleet.get("about/1", host="evil.example")[0] == 421  # a name that was made to lead here
    for host in ("127.0.0.1", "[::1]:80", "streams.localhost:1", "functions.example", "Functions.Example:8080"):
        assert fleet.get("about/1", host=host)[0] == 200, host
    assert fleet.get("about/1", "Origin: https://evil.example\r\n")[0] == 403
    assert fleet.get("about/1", "Origin: null\r\n")[0] == 403
    assert fleet.get("about/1", "Origin: http://localhost\r\n")[0] == 200
    status, head, _ = fleet.get("about/1", "Origin: https://shop.example\r\n")
    assert status == 200 and "access-control-allow-origin: https://shop.example" in head.lower(), head
    asks = "Origin: https://shop.example\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-a\r\n"
    status, head, _ = fleet.get("locked", asks, method="OPTIONS")
    assert status == 204 and "access-control-allow-headers: x-a" in head.lower(), head


def a_path_is_what_it_means(fleet):
    about = json.loads(fleet.get("../api/x/%2e%2E/about/7")[2])
    assert about["id"] == "7" and about["url"] == "http://localhost/api/about/7", about
    assert fleet.get("about/../locked")[0] == 401
    about = json.loads(fleet.get("about/7", "X-Forwarded-Proto: javascript\r\n")[2])
    assert about["url"].startswith("http://"), about
    assert json.loads(fleet.get("about/7", "X-Forwarded-Proto: https\r\n")[2])["url"].startswith("https://")


def bad_framing_is_refused(fleet):
    with fleet.open("GET /api/about/1 HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n folded\r\n\r\n") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 400")
    with fleet.open(POST.format("echo") + "1;" + "e" * 1000 + "\r\nx\r\n0\r\n\r\n") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 400")


def an_old_client_gets_no_chunks(fleet):
    with fleet.open("POST /api/echo HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello") as client:
        status, head, body = read_all(client)  # of unknown length, so it ends with the connection
    assert status == 201 and body == b"hello", (head, body)
    assert "transfer-encoding" not in head.lower() and "connection: close" in head.lower(), head


def clients_that_leave_at_once_hold_no_slot(fleet):
    """Some leave before the worker has their request, which its function waits for."""
    for number in range(60):
        with fleet.open("GET /api/notes HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            time.sleep(number * 0.0001)  # each a little further on its way
        time.sleep(0.02)
    wait_until("no invocation of those who left goes on", lambda: fleet.in_flight() == 0)
    assert fleet.get("notes")[0] == 200


def a_head_that_the_worker_would_refuse_reaches_nobody(fleet):
    """Its server would answer, and the function would wait for its request."""
    status, head, _ = fleet.get("notes", "X-Large: " + "x" * 17000 + "\r\n")
    assert status == 431, head
    wait_until("nobody waits for it", lambda: fleet.in_flight() == 0)
    assert fleet.get("notes", "X-Large: " + "x" * 14000 + "\r\n")[0] == 200


def invoke_reaches_a_function_that_streams(fleet):
    result = json.loads(fleet.windlass("invoke", APPLICATION, "count", "--text", "12345", "--json"))
    assert result["status"] == "200" and '"bytes":5' in json.dumps(result).replace(" ", "").replace("\\", ""), result


TESTS = [each_key_opens_what_it_is_for, a_strangers_name_and_pages_are_refused, a_path_is_what_it_means, bad_framing_is_refused, an_old_client_gets_no_chunks,
         invoke_reaches_a_function_that_streams, clients_that_leave_at_once_hold_no_slot, a_head_that_the_worker_would_refuse_reaches_nobody,
         bodies_flow_both_ways_at_once, a_body_larger_than_any_bound_passes_and_is_not_held, a_slow_reader_sets_the_pace,
         a_client_that_leaves_is_felt_by_the_function, a_client_that_leaves_during_the_answer_is_felt_too, what_the_request_says_reaches_the_function,
         a_redirect_is_the_clients_and_a_failure_is_tried_once, nobody_else_reaches_the_worker,
         an_answer_whose_worker_is_killed_is_seen_to_be_broken]


def main(programs, *names):
    with tempfile.TemporaryDirectory() as folder:
        fleet = StreamFleet(programs, folder)
        try:
            fleet.up()
            for test in TESTS:
                if names and test.__name__ not in names:
                    continue
                begun = time.monotonic()
                test(fleet)
                print(f"ok {test.__name__} {time.monotonic() - begun:.1f} s", flush=True)
        except BaseException:
            for name in ("runtime.log", "agent-2.log"):
                if os.path.exists(fleet.path(name)):
                    print(f"---- {name}\n" + open(fleet.path(name), encoding="utf-8").read()[-6000:], file=sys.stderr)
            raise
        finally:
            fleet.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
