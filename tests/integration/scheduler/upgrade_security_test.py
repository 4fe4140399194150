"""The HTTP upgrade: whose Origin is not on the list, whose head is too large or who asks for something else is refused."""
from raw_peer import upgrade_head
from security_case import SecurityCase, main, wait_until

ALLOWED = "https://console.example"


class Upgrades(SecurityCase):
    @classmethod
    def options(cls):
        return {"server": f'origins = ["{ALLOWED}"]'}

    def assert_refused_with(self, status, send):
        """`send` is answered with this status, nothing else and the end; one more is counted."""
        before = self.scheduler.unopened(f"http_{status}")
        peer = self.peer()
        send(peer)
        self.assertEqual(peer.read_status(), status)
        peer.seconds_to_the_end()
        wait_until(lambda: self.scheduler.unopened(f"http_{status}") == before + 1, f"one more {status} in the metrics")

    def test_an_origin_that_is_not_on_the_list_is_refused(self):
        for origin in ("https://evil.example", "null", "", ALLOWED + ".evil.example", "http://console.example",
                       ALLOWED + ":8443", "https://evil.example, " + ALLOWED):
            with self.subTest(origin):
                self.assert_refused_with(403, lambda peer, o=origin: peer.send(upgrade_head(headers=[("Origin", o)])))

    def test_two_origins_are_refused_although_one_is_on_the_list(self):
        headers = [("Origin", ALLOWED), ("Origin", "https://evil.example")]
        for order in (headers, headers[::-1]):
            peer = self.peer()
            self.assertIn(peer.upgrade(headers=order), (400, 403))

    def test_an_origin_on_the_list_and_none_at_all_are_let_through(self):
        self.assertEqual(self.peer().upgrade(headers=[("Origin", ALLOWED)]), 101)
        self.assertEqual(self.peer().upgrade(), 101)

    def test_another_path_is_refused(self):
        for target in ("/", "/ws/worker/", "/ws/worker/../admin", "//ws/worker", "/v1/workers", "/metrics"):
            with self.subTest(target):
                self.assert_refused_with(404, lambda peer, t=target: peer.send(upgrade_head(t)))

    def test_a_head_larger_than_eight_kib_is_refused_before_its_end(self):
        endless = b"GET /ws/worker HTTP/1.1\r\nX: " + b"a" * 8192
        self.assert_refused_with(431, lambda peer: peer.send(endless))

    def test_a_head_that_goes_on_for_ever_is_not_kept(self):
        before = self.scheduler.resident_bytes()
        peer = self.peer()
        sent = 0
        try:
            while sent < 2**25:
                peer.send(b"GET /ws/worker HTTP/1.1\r\nX: " + b"a" * 2**18)
                sent += 2**18
        except OSError:
            pass  # the server has hung up long ago
        self.assert_memory(before, 2**21)

    def test_what_is_no_upgrade_is_refused(self):
        head = upgrade_head()
        self.assert_refused_with(400, lambda peer: peer.send(head.replace(b"GET", b"POST", 1)))
        self.assert_refused_with(400, lambda peer: peer.send(b"\x16\x03\x01\x00\x05hello" + head))
        self.assert_refused_with(400, lambda peer: peer.send(head.replace(b"Host: localhost\r\n", b"")))
        self.assert_refused_with(426, lambda peer: peer.send(head.replace(b"Version: 13", b"Version: 8")))

    def test_a_body_behind_the_head_is_no_smuggled_request(self):
        self.assert_refused_with(400, lambda peer: peer.send(upgrade_head(headers=[("Content-Length", "5")]) + b"hello"))
        self.assert_refused_with(400, lambda peer: peer.send(upgrade_head(headers=[("Transfer-Encoding", "chunked")])))

    def test_clear_text_on_a_tls_port_is_refused(self):
        before = self.scheduler.unopened("tls")
        peer = self.peer(tls=None)
        peer.send(upgrade_head())
        peer.seconds_to_the_end()
        wait_until(lambda: self.scheduler.unopened("tls") == before + 1, "the failed TLS handshake is counted")


if __name__ == "__main__":
    main()
