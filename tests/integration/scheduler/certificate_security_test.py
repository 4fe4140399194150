"""Client certificates: whose authority, whose time or whose binding is wrong does not get in, and where policy asks for one
nobody gets in without.

In TLS 1.3 a client has finished its handshake before the server judges its certificate: the alert comes with the first read.
"""
import ssl

from certificates import Certificates
from raw_peer import Ended, RawPeer
from security_case import SecurityCase, main, wait_until


class ClientCertificates(SecurityCase):
    @classmethod
    def options(cls):
        ours = cls.certificates
        for name in ("by-name", "by-fingerprint", "of-instance", "of-globex", "unbound"):
            ours.issue(name, f"DNS:{name}.example")
        ours.issue_between("expired", "20200101", "20200201")
        ours.issue_between("early", "20900101", "20910101")
        cls.strangers = Certificates(ours.windlass)
        cls.strangers.issue("by-name", "DNS:by-name.example")
        cls.strict_token, strict = cls.new_token("strict")
        bindings = strict + f"""
[[certificate]]
tenant = "acme"
san = "DNS:by-name.example"
[[certificate]]
tenant = "acme"
fingerprint = "{ours.fingerprint('by-fingerprint')}"
[[certificate]]
tenant = "acme"
san = "DNS:of-instance.example"
instance = "i-bound"
[[certificate]]
tenant = "globex"
san = "DNS:of-globex.example"
[[certificate]]
tenant = "acme"
san = "DNS:expired.example"
[[certificate]]
tenant = "acme"
san = "DNS:early.example"
[[certificate]]
tenant = "strict"
san = "DNS:by-name.example"
[tenant.strict]
certificate_required = true
"""
        return {"entries": bindings,
                "tls": f'client_certificates = "optional"\nclient_authority = "{ours.authority}"'}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.strangers.folder.cleanup()

    def shown(self, name, instance="i-cert", **how):
        return self.worker(instance, tls=self.certificates.client(name), **how).connect()

    def refused(self, code, name, auth=None, **how):
        worker = self.shown(name, **how)
        return self.assert_refused(code, lambda: worker.handshake(auth or {"mode": "mtls"}))

    def assert_tls_refuses(self, context, alert):
        """The upgrade is never answered, and what the client reads instead is this alert."""
        before = self.scheduler.unopened("tls")
        with self.assertRaises((ssl.SSLError, Ended, OSError)) as caught:
            with RawPeer(self.scheduler.port, context) as peer:
                peer.upgrade()
        self.assertIn(alert, str(caught.exception).lower().replace("_", " "))
        wait_until(lambda: self.scheduler.unopened("tls") == before + 1, "the failed TLS handshake is counted")

    def test_a_certificate_bound_by_name_or_by_fingerprint_lets_in_without_a_token(self):
        for name in ("by-name", "by-fingerprint"):
            worker = self.shown(name, "i-" + name)
            worker.handshake({"mode": "mtls"})
            worker.register()
            self.assert_works(worker, "with-" + name)

    def test_a_certificate_of_another_authority_is_refused_even_with_the_right_name(self):
        context = self.certificates.client("by-name", of=self.strangers)
        self.assert_tls_refuses(context, "unknown ca")

    def test_an_expired_certificate_is_refused(self):
        self.assert_tls_refuses(self.certificates.client("expired"), "certificate expired")

    def test_a_certificate_that_is_not_valid_yet_is_refused(self):
        self.assert_tls_refuses(self.certificates.client("early"), "bad certificate")

    def test_a_certificate_bound_to_nobody_is_refused(self):
        self.refused("E.AUTH.UNAUTHENTICATED", "unbound")

    def test_a_certificate_of_another_tenant_is_refused(self):
        self.refused("E.SESSION.TENANT_MISMATCH", "of-globex")

    def test_a_certificate_of_another_worker_is_refused(self):
        self.refused("E.SESSION.DENIED", "of-instance")
        worker = self.shown("of-instance", "i-bound")
        worker.handshake({"mode": "mtls"})

    def test_a_claimed_fingerprint_of_somebody_else_is_refused(self):
        auth = {"mode": "mtls", "fingerprint": self.certificates.fingerprint("by-fingerprint")}
        self.refused("E.AUTH.UNAUTHENTICATED", "by-name", auth)

    def test_no_certificate_is_refused_in_mode_mtls(self):
        self.refused("E.AUTH.MTLS_REQUIRED", None)

    def test_where_policy_asks_for_a_certificate_a_token_alone_is_refused(self):
        how = {"tenant": "strict", "token": self.strict_token, "auth": {"mode": "token", "token": self.strict_token}}
        self.refused("E.AUTH.MTLS_REQUIRED", None, **how)
        self.refused("E.AUTH.UNAUTHENTICATED", "unbound", **how)
        self.refused("E.SESSION.TENANT_MISMATCH", "of-globex", **how)

    def test_where_policy_asks_for_a_certificate_a_certificate_does_not_make_a_wrong_token_good(self):
        auth = {"mode": "token", "token": self.scheduler.token}
        self.refused("E.SESSION.TENANT_MISMATCH", "by-name", auth, tenant="strict")
        worker = self.shown("by-name", tenant="strict", token=self.strict_token)
        worker.handshake()

    def test_where_policy_asks_for_a_certificate_a_session_token_alone_resumes_nothing(self):
        """In revision 1 a resume may come first, and its token stands for the handshake; not for the certificate."""
        worker = self.shown("by-name", "i-strict", tenant="strict", token=self.strict_token)
        worker.handshake(protocol=1)
        worker.write(worker.frame("control.register", {
            "capabilities": {"concurrency": {"max_parallel": 4}, "runtimes": ["python"]}}))
        accept = worker.take_accept(acknowledge=False)
        self.secrets.append(accept["session_token"])
        thief = self.shown(None, "i-strict", tenant="strict")
        resume = thief.frame("control.resume", {
            "session_id": accept["session_id"], "session_token": accept["session_token"], "last_seen_seq": 0})

        def steal():
            thief.write(resume)
            thief.read_until(lambda _: False)

        self.assert_refused("E.AUTH.MTLS_REQUIRED", steal)


class RequiredCertificates(SecurityCase):
    @classmethod
    def options(cls):
        cls.certificates.issue("known", "DNS:known.example")
        return {"tls": f'client_certificates = "required"\nclient_authority = "{cls.certificates.authority}"\nversion_min = "1.3"'}

    def test_an_older_tls_than_the_least_is_refused(self):
        before = self.scheduler.unopened("tls")
        old = self.certificates.client("known")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises(ssl.SSLError):
            self.peer(tls=old)
        wait_until(lambda: self.scheduler.unopened("tls") == before + 1, "the failed TLS handshake is counted")

    def test_without_a_certificate_nobody_gets_past_tls(self):
        before = self.scheduler.unopened("tls")
        with self.assertRaises((ssl.SSLError, Ended, OSError)) as caught:
            self.peer().upgrade()
        self.assertIn("certificate required", str(caught.exception).lower().replace("_", " "))
        wait_until(lambda: self.scheduler.unopened("tls") == before + 1, "the failed TLS handshake is counted")

    def test_with_a_certificate_of_the_authority_a_token_still_has_to_be_right(self):
        tls = self.certificates.client("known")
        worker = self.worker("i-known", tls=tls, token="wrong").connect()
        self.assert_refused("E.AUTH.INVALID_TOKEN", worker.handshake)
        self.assert_works(self.worker("i-known", tls=tls).start(), "known")


if __name__ == "__main__":
    main()
