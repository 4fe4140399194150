"""Who shows a wrong bearer or session token gets no session, is told the code of docs/protocol.md, and is counted."""
import os
import time

from revision2_worker import Reset
from security_case import SecurityCase, main, wait_until
from session_tokens import SigningKey, claims_of, milliseconds, sign


class BearerTokens(SecurityCase):
    @classmethod
    def options(cls):
        cls.foreign, foreign = cls.new_token("globex")
        cls.bound, bound = cls.new_token("acme", 'instance = "i-bound"')
        cls.expired, expired = cls.new_token("acme", 'expires = "2020-01-31"')
        cls.leaving, cls.leaving_entry = cls.new_token("acme")
        return {"entries": foreign + bound + expired + cls.leaving_entry}

    def refused(self, code, **how):
        worker = self.worker("i-bearer", **how).connect()
        return self.assert_refused(code, worker.handshake)

    def test_a_wrong_token_is_refused(self):
        self.refused("E.AUTH.INVALID_TOKEN", token=self.scheduler.token + "x")

    def test_a_token_cut_short_is_refused(self):
        self.refused("E.AUTH.INVALID_TOKEN", token=self.scheduler.token[:-1])

    def test_an_expired_token_is_refused_like_a_wrong_one(self):
        wrong = self.refused("E.AUTH.INVALID_TOKEN", token="no such token")
        expired = self.refused("E.AUTH.INVALID_TOKEN", token=self.expired)
        self.assertEqual(expired.reason, wrong.reason)

    def test_a_token_of_another_tenant_is_refused(self):
        self.refused("E.SESSION.TENANT_MISMATCH", token=self.foreign)
        self.refused("E.SESSION.TENANT_MISMATCH", tenant="globex")

    def test_a_token_of_another_worker_is_refused(self):
        self.refused("E.SESSION.DENIED", token=self.bound)
        self.ready_worker("i-bound", token=self.bound)

    def test_no_token_is_refused(self):
        worker = self.worker("i-none").connect()
        self.assert_refused("E.AUTH.MISSING_TOKEN", lambda: worker.handshake(auth={"mode": "token"}))

    def test_a_client_certificate_that_nobody_asked_for_does_not_stand_for_a_token(self):
        worker = self.worker("i-mtls").connect()
        #= HSK-4
        self.assert_refused("E.AUTH.MODE_UNSUPPORTED", lambda: worker.handshake(auth={"mode": "mtls"}))

    def test_a_token_in_the_url_or_in_a_header_is_ignored(self):
        worker = self.worker("i-url")
        worker.connect(target=f"/ws/worker?token={self.scheduler.token}",
                       headers=[("Authorization", f"Bearer {self.scheduler.token}"), ("Cookie", f"token={self.scheduler.token}")])
        self.assert_refused("E.AUTH.MISSING_TOKEN", lambda: worker.handshake(auth={"mode": "token"}))

    def test_a_removed_token_lets_nobody_in_and_drops_nobody(self):
        worker = self.ready_worker("i-leaving", token=self.leaving)
        text = self.scheduler.credentials()
        self.scheduler.write("credentials.toml", text.replace(self.leaving_entry, ""))
        self.scheduler.reload()

        def is_let_in():
            with self.worker("i-probe", token=self.leaving).connect() as probe:
                try:
                    return bool(probe.handshake())
                except Reset:
                    return False

        wait_until(lambda: not is_let_in(), "the token is no longer taken")
        self.assert_works(worker, "after-removal")
        self.refused("E.AUTH.INVALID_TOKEN", token=self.leaving)
        worker.connect()
        self.assert_refused("E.AUTH.INVALID_TOKEN", worker.handshake)


class Resuming(SecurityCase):
    """Workers that lost their connection, and a scheduler whose signing keys the test knows."""

    @classmethod
    def key_file(cls, *keys):
        """Writes it, and returns the setting that names it."""
        cls.secrets += [key.line().split()[1] for key in keys]
        path = cls.certificates.path("signing-keys")
        with open(path + ".new", "w", encoding="ascii") as file:
            file.writelines(key.line() for key in keys)
        os.rename(path + ".new", path)
        return f'keys_file = "{path}"'

    def cut_worker(self, instance, **how):
        """One with a session and without a connection."""
        worker = self.ready_worker(instance, **how)
        worker.cut()
        return worker

    def assert_resume_refused(self, worker, token, code="E.SESSION.INVALID_TOKEN", **how):
        if len(token) > 40:  # shorter garbage may stand anywhere
            self.secrets.append(token)
        worker.connect()
        worker.handshake()
        self.assert_refused(code, lambda: worker.resume(token, **how))

    def assert_still_resumes(self, worker):
        """RES-3: a refused token leaves the session as it was."""
        worker.connect()
        worker.handshake()
        self.assertTrue(worker.resume()["resumed"])
        self.secrets.append(worker.session_token)


class SessionTokens(Resuming):
    @classmethod
    def options(cls):
        cls.key, cls.old_key = SigningKey("new-1"), SigningKey("old-1")
        cls.foreign, entry = cls.new_token("globex")
        return {"entries": entry, "session": cls.key_file(cls.key, cls.old_key)}

    def spoil(self, worker, key=None, **claims):
        return sign({**claims_of(worker.session_token), **claims}, key or self.key)

    def test_a_token_made_by_the_book_resumes(self):
        worker = self.cut_worker("i-book")
        worker.session_token = self.spoil(worker, iat=milliseconds())
        self.assert_still_resumes(worker)

    def test_a_token_that_is_none_is_refused(self):
        worker = self.cut_worker("i-garbage")
        for token in ("x", ".", "a.b", "A" * 4000 + "." + "B" * 43):
            self.assert_resume_refused(worker, token)
        self.assert_still_resumes(worker)

    def test_a_token_changed_in_either_part_is_refused(self):
        worker = self.cut_worker("i-tampered")
        text, signature = worker.session_token.split(".")
        for at in (0, len(text) // 2, len(text) - 1):
            other = "A" if text[at] != "A" else "B"
            self.assert_resume_refused(worker, f"{text[:at]}{other}{text[at + 1:]}.{signature}")
        for at in (0, len(signature) // 2):
            other = "A" if signature[at] != "A" else "B"
            self.assert_resume_refused(worker, f"{text}.{signature[:at]}{other}{signature[at + 1:]}")
        self.assert_resume_refused(worker, text + ".")
        self.assert_resume_refused(worker, text)
        self.assert_still_resumes(worker)

    def test_a_payload_under_the_signature_of_another_is_refused(self):
        worker = self.cut_worker("i-mixed")
        forged = self.spoil(worker, exp=milliseconds() + 10**9)
        self.assert_resume_refused(worker, forged.split(".")[0] + "." + worker.session_token.split(".")[1])
        self.assert_still_resumes(worker)

    def test_an_expired_token_is_refused(self):
        worker = self.cut_worker("i-expired")
        self.assert_resume_refused(worker, self.spoil(worker, exp=milliseconds() - 1))
        self.assert_still_resumes(worker)

    def test_a_token_signed_with_another_key_is_refused(self):
        worker = self.cut_worker("i-key")
        self.assert_resume_refused(worker, self.spoil(worker, key=SigningKey(self.key.kid)))
        self.assert_resume_refused(worker, self.spoil(worker, key=SigningKey("unknown"), kid="unknown"))
        self.assert_still_resumes(worker)

    def test_a_kid_that_names_another_key_than_the_one_that_signed_is_refused(self):
        worker = self.cut_worker("i-kid")
        self.assert_resume_refused(worker, self.spoil(worker, kid=self.old_key.kid))
        self.assert_resume_refused(worker, self.spoil(worker, kid="unknown"))
        self.assert_still_resumes(worker)

    def test_a_token_of_another_session_worker_or_tenant_is_refused(self):
        worker = self.cut_worker("i-mine")
        other = self.cut_worker("i-other")
        stranger = self.cut_worker("i-mine", tenant="globex", token=self.foreign)
        self.assert_resume_refused(worker, other.session_token)
        self.assert_resume_refused(worker, other.session_token, session_id=other.session_id)
        self.assert_resume_refused(worker, stranger.session_token, session_id=stranger.session_id)
        for each in (worker, other, stranger):
            self.assert_still_resumes(each)

    def test_nobody_speaks_for_another_tenant_or_worker_after_the_handshake(self):
        for code, change in (("E.SESSION.TENANT_MISMATCH", {"tenant": "globex"}), ("E.SESSION.MISMATCH", {"instance": "i-b"})):
            worker = self.worker("i-a").connect()
            worker.handshake()
            for name, value in change.items():
                setattr(worker, name, value)
            self.assert_refused(code, worker.register)

    def test_a_token_replayed_after_it_was_replaced_is_refused_and_reported_as_a_twin(self):
        worker = self.cut_worker("i-replay")
        stolen = worker.session_token
        self.assert_still_resumes(worker)
        twins = self.scheduler.metric("windlass_twins_suspected_total")
        thief = self.worker("i-replay").connect()
        thief.handshake()
        self.assert_refused("E.SESSION.INVALID_TOKEN", lambda: thief.resume(stolen, worker.session_id))
        wait_until(lambda: self.scheduler.metric("windlass_twins_suspected_total") == twins + 1, "the twin is counted")
        self.assert_works(worker, "after-replay")

    def test_a_token_replayed_after_a_rotation_is_refused(self):
        worker = self.ready_worker("i-rotated")
        before = worker.session_token
        self.scheduler.post("/v1/workers/acme/i-rotated/rotate", {})
        worker.take_accept()
        self.assertNotEqual(worker.session_token, before)
        self.assert_works(worker, "after-rotation")  # so the proof has arrived
        thief = self.worker("i-rotated").connect()
        thief.handshake()
        self.assert_refused("E.SESSION.INVALID_TOKEN", lambda: thief.resume(before, worker.session_id))

    def test_a_revoked_worker_is_thrown_out_and_its_tokens_are_dead(self):
        worker = self.ready_worker("i-revoked")
        token, session = worker.session_token, worker.session_id
        self.scheduler.post("/v1/workers/acme/i-revoked/revoke", {})
        with self.assertRaises(Reset) as caught:
            worker.read_until(lambda _: False)
        self.assertEqual(caught.exception.code, "E.AUTH.INVALID_TOKEN")
        # Its bearer token is as good as ever, and lets nobody of this name in, also after a restart.
        worker.connect()
        self.assert_refused("E.SESSION.DENIED", worker.handshake)
        self.scheduler.kill()
        self.scheduler.start()
        worker = self.worker("i-revoked").connect()
        self.assert_refused("E.SESSION.DENIED", worker.handshake)
        self.ready_worker("i-other")
        self.scheduler.post("/v1/workers/acme/i-revoked/allow", {})
        worker.connect()
        worker.handshake()
        self.assert_refused("E.SESSION.INVALID_TOKEN", lambda: worker.resume(token, session))
        self.assert_works(self.ready_worker("i-revoked"), "allowed-again")

    def test_wrong_guesses_take_nothing_from_others(self):
        """A hundred wrong tokens are each answered, and a good worker's command is as quick as ever."""
        worker = self.ready_worker("i-good")
        before = self.scheduler.refused("E.AUTH.INVALID_TOKEN")
        for i in range(100):
            guesser = self.worker("i-guess", token=f"guess-{i}").connect()
            with self.assertRaises(Reset):
                guesser.handshake()
        begun = time.monotonic()
        self.assert_works(worker, "meanwhile")
        self.assertLess(time.monotonic() - begun, 2)
        wait_until(lambda: self.scheduler.refused("E.AUTH.INVALID_TOKEN") == before + 100, "all guesses are counted")


class RemovedKeys(Resuming):
    """On one loop, so that what one worker sees of a reload holds for all."""

    @classmethod
    def options(cls):
        cls.key, cls.leaving = SigningKey("staying"), SigningKey("leaving")
        return {"server": "loops = 1", "session": cls.key_file(cls.leaving, cls.key)}

    def test_a_token_of_a_removed_key_is_refused(self):
        worker = self.cut_worker("i-removed")
        self.assertEqual(claims_of(worker.session_token)["kid"], "leaving")
        self.key_file(self.key)
        self.scheduler.reload()
        wait_until(lambda: claims_of(self.ready_worker("i-probe").session_token)["kid"] == "staying", "the new key signs")
        self.assert_resume_refused(worker, worker.session_token)


if __name__ == "__main__":
    main()
