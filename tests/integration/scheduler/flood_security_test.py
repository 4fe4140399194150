"""Ten thousand connections that never finish opening: a good worker connects and works all the same, the bounds hold, and
afterwards everything is given back."""
import errno
import os
import resource
import socket
import ssl
import time

from raw_peer import RawPeer
from revision2_worker import Reset, Worker
from security_case import SecurityCase, main, wait_until

FLOOD = 10_000
LOOPS = 2
CONNECT_SECONDS = 5  # in which a good worker has a session, whatever the others do
ACCEPTED_AT_ONCE = 64  # by a loop, before those that it drops for them are closed
OPENING_BYTES = 64 * 1024  # of memory for one that is opening, nearly all of it OpenSSL's
MIB = 2**20


def allow_descriptors(wanted):
    """For this process; children started before keep what they have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        raise RuntimeError(f"this test needs {wanted} descriptors, and this machine allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def hello_that_claims(size):
    """The beginning of a ClientHello that says how long it will be."""
    body = b"\x01" + size.to_bytes(3, "big") + b"\x03\x03" + b"r" * 32
    return b"\x16\x03\x01" + len(body).to_bytes(2, "big") + body


class Flood:
    """Half-open connections from several addresses, since one has too few ports."""

    def __init__(self, port):
        self.port = port
        self.sockets = []

    def add(self, count, first_bytes=b""):
        for i in range(count):
            each = socket.socket()
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: the port is chosen as connect knows the peer
            each.bind((f"127.0.0.{2 + i % 20}", 0))
            status = each.connect_ex(("127.0.0.1", self.port))
            if status not in (0, errno.EINPROGRESS):
                raise OSError(status, "connect")
            self.sockets.append(each)
            if first_bytes:
                try:
                    each.send(first_bytes)
                except OSError:
                    pass  # dropped already, or not connected yet

    def gone(self):
        """How many the scheduler has ended."""
        count = 0
        for each in self.sockets:
            try:
                count += each.recv(1) == b""
            except BlockingIOError:
                pass
            except OSError:
                count += 1
        return count

    def close(self):
        for each in self.sockets:
            each.close()
        self.sockets.clear()


class FloodCase(SecurityCase):
    @classmethod
    def setUpClass(cls):
        # What most machines give a process that does not ask for more.
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        super().setUpClass()
        allow_descriptors(FLOOD + 500)

    def setUp(self):
        self.flood = Flood(self.scheduler.port)
        self.addCleanup(self.flood.close)
        self.good = self.ready_worker("i-good")
        self.assert_works(self.good, f"{self.id()}-before")
        self.descriptors, self.memory = self.scheduler.descriptors(), self.scheduler.resident_bytes()

    def assert_others_work(self, name):
        """One that has a session works, and one that has none gets it, both in time."""
        begun = time.monotonic()
        self.assert_works(self.good, f"{self.id()}-{name}")
        worker = Worker(self.scheduler.port, self.tls, instance=f"i-{name}", token=self.scheduler.token)
        with worker.start():
            self.assert_works(worker, f"{self.id()}-{name}-new")
        self.assertLess(time.monotonic() - begun, CONNECT_SECONDS)

    def assert_given_back(self, memory=16 * MIB):
        self.flood.close()
        wait_until(lambda: self.scheduler.descriptors() <= self.descriptors + 2, "the descriptors are given back", 20)
        self.assert_memory(self.memory, memory)


class WithDefaultLimits(FloodCase):
    """At most 1024 connections of each loop are opening."""

    @classmethod
    def options(cls):
        return {"server": f"loops = {LOOPS}"}

    def test_ten_thousand_half_open_connections_stop_nobody(self):
        before = self.scheduler.unopened("displaced")
        for part in range(10):
            self.flood.add(FLOOD // 10, (b"", b"\x16\x03", hello_that_claims(500))[part % 3])
            if part in (3, 6, 9):
                self.assert_others_work(f"part-{part}")
        self.assertLessEqual(self.scheduler.descriptors() - self.descriptors, LOOPS * (1024 + ACCEPTED_AT_ONCE) + 10)
        wait_until(lambda: self.scheduler.unopened("displaced") - before >= FLOOD - LOOPS * 1024 - 10, "the displaced are counted")
        self.assert_memory(self.memory, LOOPS * 1024 * OPENING_BYTES)
        self.assert_given_back()

    def test_a_hello_that_claims_to_be_long_takes_no_memory(self):
        self.flood.add(1500, hello_that_claims(130_000))
        self.assert_others_work("claims")
        self.assert_memory(self.memory, 1500 * OPENING_BYTES)
        self.assert_given_back()


class WithRoomForAFew(FloodCase):
    """Whoever fills the last place displaces nobody; the next one does, and only one."""

    PLACES = 8

    @classmethod
    def options(cls):
        return {"server": f"loops = 1\nopening_max = {cls.PLACES}"}

    def test_a_full_house_displaces_one_for_each_that_comes(self):
        self.flood.add(self.PLACES)
        self.assert_works(self.good, "full")  # on the same loop, so that it has seen them
        self.assertEqual(self.flood.gone(), 0)
        self.flood.add(1)
        wait_until(lambda: self.flood.gone() > 0, "one has made room")
        self.assert_works(self.good, "more-than-full")
        self.assertEqual(self.flood.gone(), 1)


class WithRoomForAll(FloodCase):
    """Nothing is displaced: all ten thousand are there at the same time, until their deadline."""

    # A sanitizer makes accepting them take longer than that.
    DEADLINE_SECONDS = 25 if os.environ.get("WINDLASS_SANITIZE") else 4

    @classmethod
    def options(cls):
        return {"server": f'loops = {LOOPS}\nopening_max = {FLOOD}\ntls_deadline = "{cls.DEADLINE_SECONDS}s"'}

    def test_ten_thousand_half_open_connections_at_the_same_time_stop_nobody(self):
        self.flood.add(FLOOD, b"\x16\x03")
        wait_until(lambda: self.scheduler.descriptors() - self.descriptors > FLOOD * 0.9, "they are all there", 20)
        self.assert_others_work("among-all")
        self.assert_memory(self.memory, FLOOD * OPENING_BYTES)
        wait_until(lambda: self.scheduler.descriptors() - self.descriptors < 10, "the deadline has taken all of them", 2 * self.DEADLINE_SECONDS + 12)
        self.assert_given_back(memory=96 * MIB)  # of 450: what the allocator cannot give back, and does not grow


class WithFewDescriptors(FloodCase):
    """The process may hold only a few, and strangers want all of them."""

    @classmethod
    def options(cls):
        return {"server": f"loops = {LOOPS}", "descriptors_max": 400}

    def test_a_few_descriptors_do_for_a_good_worker_and_the_operator(self):
        for part in range(4):
            self.flood.add(500)
            self.assert_others_work(f"part-{part}")
        self.assert_given_back()

    def test_a_process_that_has_run_out_recovers_by_itself(self):
        """The limit falls while it runs: what was kept back for others is gone too."""
        pid = self.scheduler.process.pid
        displaced = self.scheduler.unopened("displaced")
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (self.descriptors + 20, 400))
        self.flood.add(500)
        begun = time.monotonic()
        with self.worker("i-new") as worker:
            worker.start()
        self.assertLess(time.monotonic() - begun, CONNECT_SECONDS)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        self.flood.close()
        self.assert_others_work("afterwards")
        self.assertGreater(self.scheduler.unopened("displaced"), displaced, "it had run out")


class WaitingForHandshakes(FloodCase):
    """Those that have opened and say nothing: the oldest makes room."""

    PENDING = 32

    @classmethod
    def options(cls):
        return {"server": f"loops = {LOOPS}", "session": f"pending_handshakes_max = {cls.PENDING}"}

    def test_silent_connections_after_their_upgrade_stop_nobody(self):
        before = self.scheduler.refused("E.LIMIT.CAPACITY")
        silent = []
        for i in range(200):
            silent.append(RawPeer(self.scheduler.port, self.tls, f"127.0.0.{2 + i % 20}"))
            self.assertEqual(silent[-1].upgrade(), 101)
            self.addCleanup(silent[-1].socket.close)
            if i % 60 == 59:
                self.assert_others_work(f"after-{i}")
        least = len(silent) - LOOPS * self.PENDING
        wait_until(lambda: self.scheduler.refused("E.LIMIT.CAPACITY") - before >= least, "the limit holds")
        first = Worker(self.scheduler.port, self.tls)
        first.peer = silent[0]
        with self.assertRaises(Reset) as caught:
            first.read()
        self.assertEqual(caught.exception.code, "E.LIMIT.CAPACITY")
        self.assertGreater(caught.exception.retry_after_ms, 0)
        for each in silent:
            each.socket.close()
        self.assert_given_back()


class TlsHandshakes(FloodCase):
    """Whole TLS handshakes are what costs the scheduler most: those that hang up after theirs stop nobody."""

    def test_tls_handshakes_without_an_upgrade_stop_nobody(self):
        context = ssl.create_default_context(cafile=self.certificates.authority)
        before = self.scheduler.unopened("peer_left")
        for i in range(300):
            RawPeer(self.scheduler.port, context, f"127.0.0.{2 + i % 20}").socket.close()
            if i == 150:
                self.assert_others_work("among-handshakes")
        wait_until(lambda: self.scheduler.unopened("peer_left") - before >= 300, "they are counted")
        self.assert_given_back()


if __name__ == "__main__":
    main()
