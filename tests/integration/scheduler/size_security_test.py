"""Sizes: what is too large is refused from its header, and costs the scheduler no memory, before authentication and after."""
import json

from raw_peer import BINARY, PING, TEXT
from security_case import SecurityCase, main, wait_until

KIB = 1024
BEFORE = 16 * KIB  # the largest message before authentication (HSK-12)
AFTER = 64 * KIB  # after it, in this test


class Sizes(SecurityCase):
    @classmethod
    def options(cls):
        return {"session": f'frame_bytes_max = "{AFTER // KIB}KiB"'}

    def padded(self, frame, size):
        """The frame as JSON text of exactly this many bytes."""
        text = json.dumps(frame).encode()
        return text + b" " * (size - len(text))

    def assert_closes(self, code, peer, send):
        before = self.scheduler.closes(code)
        send(peer)
        self.assertEqual(peer.read_close(), code)
        wait_until(lambda: self.scheduler.closes(code) == before + 1, f"one more close {code} in the metrics")

    def test_a_handshake_of_16_kib_is_taken_and_of_one_byte_more_refused(self):
        worker = self.worker("i-exact").connect()
        worker.peer.send_frame(TEXT, self.padded(worker.handshake_frame(), BEFORE))
        worker.read_until(lambda f: f["type"] == "control.ack")
        worker.connect()
        self.assert_closes(1009, worker.peer, lambda peer: peer.send_frame(TEXT, self.padded(worker.handshake_frame(), BEFORE + 1)))

    def test_a_large_message_before_authentication_is_refused_from_its_header(self):
        for opcode in (TEXT, BINARY):
            for claimed in (BEFORE + 1, 2**20, 2**32, 2**62):
                with self.subTest(opcode=opcode, claimed=claimed):
                    self.assert_closes(1009, self.upgraded_peer(), lambda peer, c=claimed, o=opcode: peer.send_frame(o, claimed=c))

    def test_fragments_that_add_up_before_authentication_are_refused(self):
        def send(peer):
            peer.send_frame(TEXT, b"{" + b" " * (BEFORE // 2), final=False)
            peer.send_frame(0, b" " * (BEFORE // 2 - 1), final=False)
            peer.send_frame(0, b" ", final=False)

        self.assert_closes(1009, self.upgraded_peer(), send)

    def test_what_strangers_send_is_not_kept(self):
        """Each of fifty claims a gibibyte and sends as much of it as the scheduler takes."""
        before = self.scheduler.resident_bytes()
        for _ in range(50):
            peer = self.upgraded_peer()
            try:
                peer.send_frame(TEXT, b"[" * 2**20, claimed=2**30)
            except OSError:
                pass  # it was closed meanwhile
        self.assert_memory(before, 4 * 2**20)

    def test_strangers_hold_no_more_than_they_may(self):
        """Each of two hundred begins a message of almost 16 KiB and does not end it."""
        before = self.scheduler.resident_bytes()
        peers = [self.upgraded_peer() for _ in range(200)]
        for peer in peers:
            peer.send_frame(TEXT, b" " * (BEFORE - 1), final=False)
            peer.send_frame(PING)
        for peer in peers:
            peer.read_frame()  # the pong says that all before it was read
        self.assert_memory(before, len(peers) * 96 * KIB)  # TLS included

    def test_a_large_message_after_authentication_is_refused_from_its_header(self):
        for claimed in (AFTER + 1, 2**20 + 1, 2**40, 2**62):
            with self.subTest(claimed=claimed):
                worker = self.ready_worker("i-large")
                self.assert_closes(1009, worker.peer, lambda peer, c=claimed: peer.send_frame(TEXT, claimed=c))

    def test_a_message_of_the_size_that_the_accept_says_is_taken(self):
        worker = self.worker("i-full").connect()
        worker.handshake()
        self.assertEqual(worker.register()["frame_bytes_max"], AFTER)
        frame = worker.frame("biz.note", {"text": "x" * 1000}, seq=0, ack={"request": True})
        worker.peer.send_frame(TEXT, self.padded(frame, AFTER))
        ack = worker.read_until(lambda f: f["type"] == "control.ack" and f["payload"].get("for") == frame["id"])
        self.assertEqual(ack["payload"]["ack_seq"], 0)

    def test_a_session_survives_the_close_of_an_oversize_message(self):
        worker = self.ready_worker("i-again")
        worker.peer.send_frame(TEXT, claimed=AFTER + 1)
        self.assertEqual(worker.peer.read_close(), 1009)
        worker.connect()
        worker.handshake()
        self.assertTrue(worker.resume()["resumed"])
        self.assert_works(worker, "resumed")

    def test_the_limit_rises_with_the_handshake_and_not_before(self):
        """A large message behind a handshake that fails is no message of an authenticated peer."""
        worker = self.worker("i-behind", token="wrong").connect()
        worker.write(worker.handshake_frame())
        worker.peer.send_frame(TEXT, b" " * (BEFORE + 1))
        self.assertIn(worker.peer.read_close(), (1009, 1011), "whichever was judged first")


if __name__ == "__main__":
    main()
