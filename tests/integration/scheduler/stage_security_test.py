"""Slow peers: whoever stops or dribbles at a stage of opening is gone once that stage's deadline has passed, whatever it sends
meanwhile, and leaves nothing behind."""
import json
import ssl
import time

from raw_peer import CLOSE, PING, TEXT, Ended, frame_bytes, upgrade_head
from security_case import SecurityCase, main, wait_until

DEADLINE = 0.4  # of every stage
SLACK = 4.0  # for a busy machine; far less than the ten seconds that a stage has by default


def client_hello():
    """The first flight of a TLS client."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Stages(SecurityCase):
    @classmethod
    def options(cls):
        return {"server": f'tls_deadline = "{int(DEADLINE * 1000)}ms"\nupgrade_deadline = "{int(DEADLINE * 1000)}ms"',
                "session": f'handshake_deadline = "{int(DEADLINE * 1000)}ms"'}

    def setUp(self):
        self.descriptors = self.scheduler.descriptors()

    def tearDown(self):
        wait_until(lambda: self.scheduler.descriptors() <= self.descriptors, "the descriptors are given back")

    def seconds_until_ended(self, peer, dribbled=b""):
        """From its beginning. Sends byte after byte, so that it is never idle, until the server ends it or closes."""
        try:
            for byte in dribbled:
                peer.send(bytes([byte]))
                if peer.read_within(0.02) and peer.has_frame(CLOSE):
                    return time.monotonic() - peer.begun
            while not peer.has_frame(CLOSE):
                peer.read_more()
        except (Ended, OSError):
            pass
        return time.monotonic() - peer.begun

    def assert_gone_in_time(self, peer, dribbled=b""):
        took = self.seconds_until_ended(peer, dribbled)
        self.assertGreaterEqual(took, DEADLINE, "it was not the deadline that ended it")
        self.assertLess(took, DEADLINE + SLACK)
        peer.socket.close()

    def assert_not_opened(self, cause, peer, dribbled=b""):
        before = self.scheduler.unopened(cause)
        self.assert_gone_in_time(peer, dribbled)
        wait_until(lambda: self.scheduler.unopened(cause) == before + 1, f"one more {cause} in the metrics")

    def test_silence_after_tcp(self):
        self.assert_not_opened("tls_deadline", self.peer(tls=None))

    def test_half_a_client_hello(self):
        peer = self.peer(tls=None)
        hello = client_hello()
        peer.send(hello[:len(hello) // 2])
        self.assert_not_opened("tls_deadline", peer)

    def test_a_client_hello_one_byte_at_a_time(self):
        self.assert_not_opened("tls_deadline", self.peer(tls=None), client_hello())

    def test_silence_after_tls(self):
        self.assert_not_opened("http_deadline", self.peer())

    def test_headers_one_byte_at_a_time(self):
        self.assert_not_opened("http_deadline", self.peer(), upgrade_head(headers=[("X", "a" * 1000)]))

    def assert_timed_out(self, dribbled=b""):
        refused, closes = self.scheduler.refused("E.TIMEOUT"), self.scheduler.closes(1011)
        self.assert_gone_in_time(self.upgraded_peer(), dribbled)
        wait_until(lambda: self.scheduler.refused("E.TIMEOUT") == refused + 1, "E.TIMEOUT is counted")
        wait_until(lambda: self.scheduler.closes(1011) == closes + 1, "the close is counted")

    def test_silence_after_the_upgrade(self):
        self.assert_timed_out()

    def test_pings_instead_of_a_handshake(self):
        self.assert_timed_out(frame_bytes(PING) * 200)

    def test_a_handshake_one_byte_at_a_time(self):
        frame = self.worker("i-slow").handshake_frame()
        self.assert_timed_out(frame_bytes(TEXT, json.dumps(frame).encode()))

    def test_a_handshake_in_fragments_of_one_byte(self):
        text = json.dumps(self.worker("i-slow").handshake_frame()).encode()
        first, *rest = [bytes([byte]) for byte in text]
        frames = frame_bytes(TEXT, first, final=False) + b"".join(frame_bytes(0, byte, final=False) for byte in rest)
        self.assert_timed_out(frames)

    def test_silence_after_the_handshake(self):
        worker = self.worker("i-unregistered").connect()
        worker.handshake()
        self.assert_refused("E.TIMEOUT", lambda: worker.read_until(lambda _: False))
        worker.cut()

    def test_a_reset_peer_that_never_closes_is_not_waited_for(self):
        """The close has a deadline of its own, five seconds, and after it the connection is gone."""
        peer = self.upgraded_peer()
        peer.send_frame(1, b"{}")
        self.assertEqual(peer.read_close(), 1011)
        begun = time.monotonic()
        peer.seconds_to_the_end(5 + SLACK)
        self.assertGreater(time.monotonic() - begun, 1)

    def test_a_good_worker_is_not_hurried(self):
        """Stages are for opening: a session that says nothing for longer than any of them stays."""
        worker = self.ready_worker("i-calm")
        time.sleep(2 * DEADLINE)  # the claim is about time that passes
        self.assert_works(worker, "after-a-while")
        worker.cut()


if __name__ == "__main__":
    main()
