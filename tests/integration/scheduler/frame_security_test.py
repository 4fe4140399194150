"""Hostile frames: each ends with the code that docs/protocol.md defines, is counted, and takes nothing from a good worker."""
import json
import threading
import time

from raw_peer import BINARY, CLOSE, PING, TEXT, Ended, frame_bytes, upgrade_head
from revision2_worker import Reset
from security_case import SecurityCase, main, wait_until


class Hostile(SecurityCase):
    """With a good worker at work: after every test it still is."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = None
        cls.commands = 0

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.good.cut()

    def setUp(self):
        if self.good is None:
            type(self).good = self.ready_worker("i-good")
            self._cleanups.pop()  # it stays for the next test

    def tearDown(self):
        type(self).commands += 1
        self.assert_works(self.good, f"command-{self.commands}")

    def assert_closes(self, code, *frames):
        """A stranger that sends these bytes after its upgrade sees this close code, and one more is counted."""
        before = self.scheduler.closes(code)
        peer = self.upgraded_peer()
        for each in frames:
            peer.send(each)
        self.assertEqual(peer.read_close(), code)
        wait_until(lambda: self.scheduler.closes(code) == before + 1, f"one more close {code} in the metrics")


class WebSocketFrames(Hostile):
    def test_a_reserved_bit_is_1002(self):
        for bit in (1, 2, 4):  # 4 is what compression sets
            self.assert_closes(1002, frame_bytes(TEXT, b"{}", reserved=bit))

    def test_compression_is_never_agreed_to(self):
        peer = self.peer()
        peer.send(upgrade_head(headers=[("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")]))
        while b"\r\n\r\n" not in peer.input:
            peer.read_more()
        self.assertTrue(peer.input.startswith(b"HTTP/1.1 101 "))
        self.assertNotIn(b"sec-websocket-extensions", peer.input.lower())

    def test_a_frame_without_mask_is_1002(self):
        self.assert_closes(1002, frame_bytes(TEXT, b"{}", mask=None))

    def test_a_reserved_opcode_is_1002(self):
        for opcode in (3, 7, 11, 15):
            self.assert_closes(1002, frame_bytes(opcode, b"{}"))

    def test_a_control_frame_that_is_long_or_in_fragments_is_1002(self):
        self.assert_closes(1002, frame_bytes(PING, b"x" * 126))
        self.assert_closes(1002, frame_bytes(PING, b"x", final=False))

    def test_fragments_out_of_order_are_1002(self):
        self.assert_closes(1002, frame_bytes(0, b"{}"))
        self.assert_closes(1002, frame_bytes(TEXT, b"{", final=False), frame_bytes(TEXT, b"}"))

    def test_a_length_with_its_top_bit_or_in_a_longer_form_is_1002(self):
        self.assert_closes(1002, frame_bytes(TEXT, claimed=2**63))
        self.assert_closes(1002, b"\x81\xfe\x00\x05\x11\x22\x33\x44")
        self.assert_closes(1002, b"\x81\xff" + b"\x00" * 7 + b"\x05\x11\x22\x33\x44")

    def test_a_close_with_a_forbidden_code_is_1002(self):
        for code in (0, 999, 1005, 1006, 5000):
            self.assert_closes(1002, frame_bytes(CLOSE, code.to_bytes(2, "big")))
        self.assert_closes(1002, frame_bytes(CLOSE, b"x"))

    def test_text_that_is_not_utf8_is_1007_at_the_first_wrong_byte(self):
        for wrong in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"):
            self.assert_closes(1007, frame_bytes(TEXT, b'{"a":"' + wrong + b'"}'))
        self.assert_closes(1007, frame_bytes(TEXT, b"ab\xff", claimed=1000))
        self.assert_closes(1007, frame_bytes(TEXT, b"\xc3", final=False), frame_bytes(0, b"\x28"))

    def test_fragments_for_ever_are_1009(self):
        self.assert_closes(1009, frame_bytes(TEXT, b"", final=False), frame_bytes(0, b"", final=False) * 5000)

    def test_a_ping_flood_from_a_peer_that_does_not_read_is_1008(self):
        before = self.scheduler.closes(1008)
        memory = self.scheduler.resident_bytes()
        peer = self.upgraded_peer()
        flood = frame_bytes(PING, b"x" * 125) * 500
        with self.assertRaises(OSError):  # no close frame reaches it: it would not read it
            for _ in range(1000):
                peer.send(flood)
        wait_until(lambda: self.scheduler.closes(1008) == before + 1, "one more close 1008 in the metrics")
        self.assert_memory(memory, 24 * 2**20)

    def test_a_ping_flood_from_a_peer_that_reads_takes_nothing_from_others(self):
        peer = self.upgraded_peer()
        over = threading.Event()

        def flood():
            pings = frame_bytes(PING, b"x" * 125) * 100
            try:
                while not over.is_set():
                    peer.send(pings)
                    while peer.read_within(0.0001):
                        peer.input = b""
            except (Ended, OSError):
                pass

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            begun = time.monotonic()
            for i in range(5):
                self.assert_works(self.good, f"in-the-flood-{i}")
            self.assertLess(time.monotonic() - begun, 5)
        finally:
            over.set()
            thread.join()


class SessionFrames(Hostile):
    @classmethod
    def options(cls):
        return {"session": "frames_per_second_max = 500"}

    def assert_answered(self, code, *messages, kind=TEXT):
        """A stranger whose messages are these is reset with this code."""
        worker = self.worker("i-stranger").connect()

        def step():
            for each in messages:
                worker.peer.send_frame(kind, each if isinstance(each, bytes) else json.dumps(each).encode())
            worker.read_until(lambda _: False)

        self.assert_refused(code, step)

    def test_anything_before_the_handshake_asks_for_one(self):
        worker = self.worker("i-early")
        session = {"session_id": "s", "session_token": "a.b", "earliest_retained_seq": 0, "recv_window": 1,
                   "recv_window_bytes": 1048576}
        for frame in (worker.frame("biz.note", {}, seq=0), worker.frame("control.resume", session),
                      worker.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}),
                      worker.frame("control.ack", {"ok": True})):
            self.assert_answered("E.AUTH.HANDSHAKE_REQUIRED", frame)

    def test_a_handshake_for_somebody_else_is_a_mismatch(self):
        other = self.worker("i-1").handshake_frame()
        other["sender"]["id"] = "i-2"
        self.assert_answered("E.SESSION.MISMATCH", other)
        scheduler = self.worker("i-1").handshake_frame()
        scheduler["sender"]["role"] = "scheduler"
        self.assert_answered("E.SESSION.MISMATCH", scheduler)

    def test_an_unknown_revision_is_refused(self):
        self.assert_answered("E.PROTO.VERSION", self.worker("i-3").handshake_frame(protocol=3))

    def test_frames_out_of_state_are_refused(self):
        worker = self.worker("i-stranger")
        hello = worker.handshake_frame()
        self.assert_answered("E.SESSION.NOT_REGISTERED", hello, worker.frame("biz.note", {}, seq=0))
        self.assert_answered("E.PROTO.STATE", hello, worker.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}))
        self.assert_answered("E.PROTO.STATE", hello, worker.handshake_frame())

    def test_text_that_is_no_json_is_refused(self):
        deep = b'{"payload":' + b"[" * 33 + b"]" * 33 + b"}"
        for text in (b"", b"hello", b"{", b"{}{}", b'{"a":NaN}', deep, b"[" * 16000):
            self.assert_answered("E.PROTO.JSON", text)

    def test_json_that_breaks_a_schema_is_refused(self):
        hello = self.worker("i-s").handshake_frame()
        wrong = [b"{}", b"[]", b"null", {**hello, "extra": 1}, {**hello, "seq": 0}, {**hello, "tenant": "a" * 65},
                 {**hello, "tenant": "a\nb"}, {**hello, "payload": {}}, {**hello, "id": ""}, {**hello, "ts": "yesterday"}]
        twice = json.dumps(hello).encode()
        wrong.append(twice[:-1] + b',"tenant":"globex"}')
        unknown = json.loads(twice)
        unknown["payload"]["auth"] = {"mode": "password", "token": "x"}
        wrong.append(unknown)
        for message in wrong:
            self.assert_answered("E.PROTO.SCHEMA", message)

    def test_a_binary_message_whose_length_lies_is_refused(self):
        for message in (b"", b"\x00", b"\xff\xff\xff\xff{}", b"\x00\x00\x00\x02{}rest"):
            worker = self.worker("i-binary").connect()
            worker.peer.send_frame(BINARY, message)
            with self.assertRaises(Reset) as caught:
                worker.read_until(lambda _: False)
            self.assertIn(caught.exception.code, ("E.PROTO.JSON", "E.PROTO.SCHEMA"))

    def test_a_session_pays_for_its_violations_and_ends_when_it_has_spent_its_budget(self):
        worker = self.ready_worker("i-spender")
        series = 'windlass_refused_frames_total{code="E.PROTO.JSON"}'
        before, ends = self.scheduler.metric(series), 'windlass_session_ends_total{code="E.LIMIT.ERRORS"}'
        ended = self.scheduler.metric(ends)
        for _ in range(16):
            worker.peer.send_frame(TEXT, b"nonsense")
            ack = worker.read_until(lambda f: f["type"] == "control.ack" and not f["payload"]["ok"])
            self.assertTrue(ack["payload"]["info"].startswith("E.PROTO.JSON"), ack)
        worker.peer.send_frame(TEXT, b"nonsense")
        with self.assertRaises(Reset) as caught:
            worker.read_until(lambda _: False)
        self.assertEqual((caught.exception.code, caught.exception.close_code), ("E.LIMIT.ERRORS", 1011))
        wait_until(lambda: self.scheduler.metric(series) >= before + 16, "the refused frames are counted")
        wait_until(lambda: self.scheduler.metric(ends) == ended + 1, "the session's end is counted")

    def test_a_session_that_names_another_tenant_or_sender_is_reset(self):
        for code, change in (("E.SESSION.TENANT_MISMATCH", {"tenant": "globex"}),
                             ("E.SESSION.MISMATCH", {"sender": {"role": "worker", "id": "i-good"}})):
            worker = self.ready_worker("i-liar")
            worker.write({**worker.frame("biz.note", {}, seq=0), **change})
            with self.assertRaises(Reset) as caught:
                worker.read_until(lambda _: False)
            self.assertEqual(caught.exception.code, code)

    def test_an_ack_of_what_was_never_sent_is_fatal(self):
        worker = self.ready_worker("i-acker")
        worker.write(worker.frame("control.ack", {"ok": True, "ack_seq": 2**53 - 1, "recv_window": 1, "recv_window_bytes": 1}))
        with self.assertRaises(Reset) as caught:
            worker.read_until(lambda _: False)
        self.assertEqual(caught.exception.code, "E.SESSION.ACK_INVALID")

    def test_more_frames_per_second_than_allowed_end_the_session(self):
        worker = self.ready_worker("i-fast")
        frame = json.dumps(worker.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}})).encode()
        with self.assertRaises((Reset, OSError)) as caught:
            worker.peer.send(frame_bytes(TEXT, frame) * 5000)
            worker.read_until(lambda _: False)
        if isinstance(caught.exception, Reset):
            self.assertEqual(caught.exception.code, "E.LIMIT.RATE")
        ends = 'windlass_session_ends_total{code="E.LIMIT.RATE"}'
        wait_until(lambda: self.scheduler.metric(ends) == 1, "the session's end is counted")


if __name__ == "__main__":
    main()
