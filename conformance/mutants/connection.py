"""What the scheduler does with what it receives: handshake, registration, resume, and the session's frames."""
import asyncio
import hashlib
import time

import revision1
import schema
import stream
from link import BEFORE_AUTH, End, Link, Told

UNBOUNDED = 2**53


class Ignored(Exception):
    """What a mutant overlooks."""


class Connection(Link):
    # ---- any frame

    def take(self, message):
        self.heard, frame = time.monotonic(), {}
        size = len(message if isinstance(message, bytes) else message.encode())
        try:
            if self.state == "new" and size > BEFORE_AUTH and not self.has("no-early-limit"):
                raise End(1011, "E.LIMIT.FRAME", "too much before the handshake")  # HSK-12
            self.allowance = min(self.world.settings.rate, self.allowance + (self.heard - self.allowance_at) * self.world.settings.rate)
            self.allowance, self.allowance_at = self.allowance - 1, self.heard
            if self.state == "ready" and self.allowance < 0:
                raise End(1011, "E.LIMIT.RATE", "too many frames", retry=1000)  # LIM-6
            text, attachment = self.split(message)
            if attachment is not None and self.has("binary-ignored"):
                return
            if self.has("limit-8k") and size > 8192:
                raise End(1009)
            if self.has("early-limit-8k") and size > 8192 and self.state == "new":
                raise End(1011, "E.LIMIT.FRAME", "too much before the handshake")
            frame = schema.parse(text, self.world.mutant.accepts, deepest=31 if self.has("depth-31") else 32)
            if self.world.mutant.ignores(frame):
                return
            if self.state == "new":
                self.first(frame)
            if attachment is not None and self.revision == 1:
                raise schema.Flaw("E.PROTO.SCHEMA", "", "binary", "envelope.revision1")
            unspoken = self.state == "new" and self.unspoken(frame)
            schema.validate_frame(frame, self.revision, self.world.mutant.accepts, envelope_only=unspoken)
            if self.revision == 2 and ("attachment" in frame) != (attachment is not None) and not self.has("attachment-unchecked"):  # ATT-2
                raise schema.Flaw("E.PROTO.SCHEMA", "/attachment", "attachment", "envelope")
            if attachment is not None and not self.has("attachment-unchecked") and frame["attachment"]["bytes"] != len(attachment):
                raise schema.Flaw("E.PROTO.SCHEMA", "/attachment/bytes", "attachment", "envelope")
            if self.revision == 1:
                if self.has("nulls-refused") and (None in frame.values() or None in frame["payload"].values()):
                    raise schema.Flaw("E.PROTO.SCHEMA", "/corr", "null")
                if self.has("seq-judged") and frame.get("seq") is not None:
                    raise schema.Flaw("E.PROTO.SCHEMA", "/seq", "seq")
                revision1.from_wire(frame)
                if self.has("revision-1-from-zero") and "seq" in frame:
                    frame["seq"] += 1
            frame["_body"], frame["_bytes"] = schema.payload_text(text), attachment
            self.extra_rules(frame)
            self.whose(frame)
            self.act(frame, frame["type"], frame["payload"])
        except Ignored:
            return
        except schema.Flaw as flaw:
            if flaw.name not in self.world.mutant.accepts:
                self.violated(frame, str(flaw))
        except (KeyError, TypeError, AttributeError):
            if not self.world.mutant.accepts:
                raise
        except stream.AckOfNothing:
            raise End(1011, "E.SESSION.ACK_INVALID", "never sent") from None

    def extra_rules(self, frame):
        """Rules of some mutants that the protocol does not know."""
        if self.has("flags-refused") and "flags" in frame:
            raise schema.Flaw("E.PROTO.SCHEMA", "/flags", "flags")
        if self.has("opaque-twice") and getattr(frame["payload"], "twice", ()):
            raise schema.Flaw("E.PROTO.SCHEMA", "/payload", "twice")
        if self.has("strict-metrics") and set(frame["payload"].get("metrics", ())) - {"inflight", "cpu_pct", "mem_pct", "disk_pct", "latency_ms"}:
            raise schema.Flaw("E.PROTO.SCHEMA", "/payload/metrics", "unknown")

    def split(self, message):
        """ATT-1."""
        if isinstance(message, str):
            return message, None
        length = int.from_bytes(message[:4], "big")
        if len(message) < 4 or len(message) < 4 + length:
            raise schema.Flaw("E.PROTO.JSON", keyword="length")
        try:
            return message[4:4 + length].decode(), message[4 + length:]
        except UnicodeDecodeError:
            raise schema.Flaw("E.PROTO.JSON", keyword="utf-8") from None

    def first(self, frame):
        """HSK-1, REV-6: which revision this connection speaks."""
        if not isinstance(frame, dict):
            return
        kind, payload = frame.get("type"), frame.get("payload")
        if isinstance(frame.get("tenant"), str) and 0 < len(frame["tenant"]) <= 64 and frame["tenant"].isascii() and frame["tenant"].isprintable():
            self.tenant = frame["tenant"]
        if kind == "control.handshake":
            self.revision = 1 if isinstance(payload, dict) and payload.get("protocol") == 1 and payload.get("protocol") is not True else 2
        elif kind == "control.resume" and isinstance(payload, dict) and "earliest_retained_seq" not in payload and not self.has("no-resume-first"):
            self.revision = 1
        elif isinstance(kind, str):
            if self.has("any-first"):
                raise Ignored
            raise End(1011, "E.AUTH.HANDSHAKE_REQUIRED", "say control.handshake first")

    def unspoken(self, frame):
        """HSK-2: whether the first frame is a handshake of a revision whose rules are not known here."""
        payload = frame.get("payload") if isinstance(frame, dict) and frame.get("type") == "control.handshake" else None
        protocol = payload.get("protocol") if isinstance(payload, dict) else None
        return type(protocol) is int and 0 <= protocol < 2**53 and protocol not in (1, 2) and not self.has("unspoken-judged")

    def whose(self, frame):
        """ENV-12."""
        if self.state == "new":
            return
        if frame["tenant"] != self.tenant and not self.has("any-tenant"):
            raise End(1011, "E.SESSION.TENANT_MISMATCH", "another tenant")
        if frame["sender"] != {"role": self.role, "id": self.instance} and not self.has("any-sender"):
            raise End(1011, "E.SESSION.MISMATCH", "another sender")

    def violated(self, frame, info):
        code, _, reason = info.partition(" ")
        if self.state != "ready":
            self.refuse()
            raise End(1011, code, reason[:1024])  # LIM-3
        known = frame if isinstance(frame, dict) else {}
        if not (self.has("bad-acks-free") and known.get("type") == "control.ack"):
            self.charge()
        if self.has("violation-takes-seq") and ("seq" in known or "session_seq" in known):
            self.session.inward.received += 1
        answers = known.get("id")
        good = isinstance(answers, str) and 0 < len(answers) <= 128 and answers.isascii() and answers.isprintable()
        if known.get("type") not in ("control.ack", "control.reset") or self.has("answers-bad-acks"):  # LIM-2
            self.acknowledge(answers if good else None, ok=False, info=info[:1024], state=False)

    def known_is_refused(self):
        self.control.clear()
        raise End(1011, "E.RESULT.DUPLICATE", "known")

    def refuse(self):
        """What a mutant does beside refusing a connection."""
        session = self.world.find(self.tenant, self.instance)
        if session and self.has("refusal-ends-session"):
            if session.connection:
                session.connection.end(1011, "E.INTERNAL", "somebody was refused")
            self.world.end(session)

    def charge(self):
        session, now = self.session, time.monotonic()
        if self.has("no-budget"):
            return
        session.budget, session.budget_at = min(16, session.budget + (now - session.budget_at) / 60), now
        if session.budget < 1:
            raise End(1011, "E.LIMIT.ERRORS", "too many violations")
        session.budget -= 1

    def act(self, frame, kind, payload):
        known, asked = kind in schema.names(self.revision), (frame.get("ack") or {}).get("request")
        if kind == "control.reset" and self.state != "new":
            session = self.world.find(self.tenant, self.instance)
            if self.state == "greeted" and self.has("early-reset-forgets") and session and session.connection:
                session.connection.end(1011, "E.INTERNAL", "its worker reset another connection")
            raise Told(self)
        if self.state == "new":
            self.greet(frame, kind, payload)
        elif kind.startswith("control.") and not known:
            self.unknown(frame, asked)
        elif self.state == "greeted":
            self.opening(frame, kind, payload)
        elif self.session is None:
            return  # FEN-1
        elif not kind.startswith("control."):
            self.business(frame, asked)
        elif kind == "control.ack":
            self.acknowledged(payload)
            if self.has("acks-charged"):
                self.charge()
            if asked or self.has("acks-acks"):
                self.acknowledge(frame["id"] if self.has("ack-named") else None)  # ACK-8
        elif kind == "control.heartbeat":
            quiet = self.has("draining-heartbeats-unacked") and self.session.draining or self.has("control-waits") and self.session.out.waiting()
            if asked and not quiet:
                self.acknowledge(None if self.has("heartbeat-unnamed") else frame["id"])
            self.heartbeat(payload)
        elif kind == "control.register" or self.revision == 1 and kind in ("control.handshake", "control.resume"):
            if self.has("repetition-refused") and kind != "control.register":
                raise End(1011, "E.PROTO.STATE", "said before")
            if not self.has("register-again-unacked"):
                self.acknowledge(frame["id"])  # HSK-8, REV-12
            if self.has("register-again-new-stream"):
                self.session.inward.received = -1
            if self.has("second-accept"):
                asyncio.get_running_loop().call_later(0.15, self.accept, False)
        elif kind == "control.drain":
            self.drained(frame, payload, asked)
        else:
            raise schema.Flaw("E.PROTO.STATE", keyword="not now", schema=kind)  # HSK-13

    def unknown(self, frame, asked):
        """ENV-11, REV-13."""
        if self.state != "ready":
            if self.has("unknown-early-reset"):
                raise End(1011, "E.CMD.UNKNOWN", "unknown")
            return
        if self.revision == 1:
            if asked and not self.has("unknown-silently") or self.has("unknown-always-acked"):
                self.acknowledge(frame["id"])
        elif not self.has("unknown-silently"):
            self.acknowledge(frame["id"], ok=False, info="E.CMD.UNKNOWN", state=False)
            if self.has("unknown-charged"):
                self.charge()

    def greet(self, frame, kind, payload):
        if kind == "control.resume":  # REV-6
            self.role, self.instance = frame["sender"]["role"], frame["sender"]["id"]
            self.resume(frame, payload)
            return
        if payload["protocol"] not in (1, 2) and not self.has("any-version"):
            raise End(1011, "E.PROTO.VERSION", "not spoken here")  # HSK-2
        self.authenticate(frame, payload["auth"])
        instance = payload["worker"].get("worker_instance_id") or (frame["sender"]["id"] if self.revision == 1 and not self.has("instance-needed") else None)  # REV-15
        if self.has("no-runtimes") and frame["sender"]["role"] == "runtime":
            raise End(1011, "E.SESSION.DENIED", "workers only")
        if (instance != frame["sender"]["id"] or frame["sender"]["role"] == "scheduler") and not self.has("any-identity"):  # HSK-3
            raise End(1011, "E.SESSION.MISMATCH", "sender and worker_instance_id differ")
        self.role, self.instance, self.state, self.handshake_id = frame["sender"]["role"], frame["sender"]["id"], "greeted", frame["id"]
        self.deadline = time.monotonic() + self.world.settings.stage_deadline
        self.acknowledge(None if self.has("handshake-unnamed") else frame["id"])  # HSK-6
        if self.has("accept-at-once"):
            self.session, self.state = self.world.open(self), "ready"
            self.accept(resumed=False)

    def authenticate(self, frame, auth):
        """HSK-4, HSK-5."""
        settings, certificate = self.world.settings, None
        tls = self.ws.transport.get_extra_info("ssl_object")
        if tls is not None and settings.client_authority:
            certificate = tls.getpeercert()
        if self.has("fingerprint-believed"):
            certificate = certificate or auth.get("fingerprint")
        if self.has("mtls-unchecked") and auth["mode"] == "mtls":
            certificate = "any"
        if self.has("no-mtls"):
            certificate = None
        self.instance = frame["sender"]["id"]
        if settings.certificate_required and not certificate or auth["mode"] == "mtls" and settings.client_authority and not certificate:
            raise End(1011, "E.AUTH.MTLS_REQUIRED", "a client certificate is needed")
        if auth["mode"] == "mtls" and not certificate:
            raise End(1011, "E.AUTH.MODE_UNSUPPORTED", "tokens only")
        claimed, shown = auth.get("fingerprint"), tls.getpeercert(True) if certificate and tls is not None else None
        if claimed and shown and claimed != hashlib.sha256(shown).hexdigest() and not self.has("fingerprint-unchecked"):
            raise End(1011, "E.AUTH.UNAUTHENTICATED", "another certificate's fingerprint")  # HSK-14
        tenant = settings.tenant
        if auth["mode"] == "token":
            if not auth.get("token") and not self.has("any-token"):
                raise End(1011, "E.AUTH.MISSING_TOKEN", "no token")
            tenant = settings.tokens.get(auth.get("token"))
            near = [good for good in settings.tokens if self.has("token-prefix") and auth["token"].startswith(good)]
            if tenant is None and (self.has("any-token") or near or certificate and self.has("certificate-is-enough")):
                tenant = frame["tenant"]
            if tenant is None:
                self.refuse()
                raise End(1011, "E.AUTH.INVALID_TOKEN", f"wrong token {auth['token']}" if self.has("reason-tells-token") else "wrong token")
        if frame["tenant"] != tenant and not self.has("tenant-unbound"):
            raise End(1011, "E.SESSION.TENANT_MISMATCH", "the token is another tenant's")
        self.tenant = frame["tenant"]

    def opening(self, frame, kind, payload):
        if kind == "control.register":
            if len(self.world.sessions) >= self.world.settings.sessions_max:
                raise End(1011, "E.LIMIT.CAPACITY", "full", retry=1000)
            known = self.world.find(self.tenant, self.instance)
            if known and (self.has("instance-once") or self.has("first-wins") and known.connection) or self.instance in self.world.barred:
                raise End(1011, "E.LIMIT.CAPACITY", "already here", retry=1000)
            if not self.has("accept-then-ack"):
                self.acknowledge(frame["id"])  # HSK-7
            self.session, self.state = self.world.open(self), "ready"
            self.accept(resumed=False)
            if self.has("accept-then-ack"):
                self.acknowledge(frame["id"])
            if self.revision == 1 or self.has("credit-before-ack"):
                self.world.feed(self.session)
        elif kind == "control.resume":
            self.resume(frame, payload)
        elif not kind.startswith("control."):
            if not self.has("early-business"):
                raise End(1011, "E.SESSION.NOT_REGISTERED", "register first")  # HSK-9
        elif kind == "control.handshake" and self.revision == 1 and not self.has("repetition-refused"):
            self.acknowledge(frame["id"])  # REV-12
        elif not self.has("any-state"):
            raise End(1011, "E.PROTO.STATE", "not now")  # HSK-13

    def resume(self, frame, payload):
        """RES, FEN."""
        world, stale = self.world, "E.SESSION.UNKNOWN" if self.revision == 1 else "E.SESSION.STALE_BINDING"
        reason = "Unknown session" if self.revision == 1 else "register afresh"
        claims = world.signer.verify(payload["session_token"], self.has)
        if self.has("resume-after-handshake-refused") and self.state == "greeted":
            raise End(1011, "E.PROTO.STATE", "say resume first")
        if claims and self.has("claims-unchecked"):
            self.instance, self.tenant, payload["session_id"] = claims["wid"], claims["tenant"], claims["sid"]
        mine = claims and (claims["sid"], claims["wid"], claims["tenant"]) == (payload["session_id"], self.instance, self.tenant)
        if not mine and not (self.has("any-session-token") and payload["session_id"] in world.sessions):
            named = world.sessions.get(payload["session_id"])
            if named and self.has("wrong-token-ends"):
                if named.connection:
                    named.connection.end(1011, "E.INTERNAL", "somebody had a wrong token")
                world.end(named)
            if self.has("reason-tells-token"):
                raise End(1011, "E.SESSION.INVALID_TOKEN", payload["session_token"])
            raise End(1011, "E.SESSION.INVALID_TOKEN", "the token does not verify")  # RES-8
        if mine and claims["iat"] <= world.revoked.get((self.tenant, self.instance), 0) and not self.has("revoked-resumes"):
            raise End(1011, "E.SESSION.INVALID_TOKEN", "revoked")  # TOK-7
        session, newest = world.sessions.get(payload["session_id"]), world.find(self.tenant, self.instance)
        if newest and newest is not session:
            world.tell("twin", newest)
            raise End(1011, *((stale, reason) if self.revision == 1 else ("E.SESSION.SUPERSEDED", "registered since")))  # FEN-4, REV-10
        if session and session.revision != self.revision:
            raise End(1011, *(("E.AUTH.HANDSHAKE_REQUIRED", "a session of revision 2") if self.state == "new" else (stale, reason)))  # REV-6, RES-7
        if session is None or session.expired():
            if self.has("stale-bars"):
                world.barred.add(self.instance)
            raise End(1011, stale, reason)  # RES-7
        if session.connection and self.has("old-owner-wins"):
            raise End(1011, "E.LIMIT.CAPACITY", "already here")
        if mine and claims["gen"] < session.proven and not self.has("old-token"):
            world.tell("twin", session)
            raise End(1011, "E.SESSION.INVALID_TOKEN", "an older token")  # FEN-4
        seen, out = payload.get("last_seen_seq", -1), session.out
        earliest = payload.get("earliest_retained_seq", 0) if self.revision == 2 else 0
        if seen >= out.next_new and not self.has("resume-ack-unchecked"):  # RES-6
            self.fail_resume(session, "E.SESSION.ACK_INVALID", "never sent")
        if (seen < out.acked or earliest > session.inward.received + 1) and not self.has("gap-unchecked"):
            self.fail_resume(session, "E.RESULT.SEQ_GAP", "a hole")
        session.proven = max(session.proven, claims["gen"] if mine and not self.has("use-proves-nothing") else 0)  # TOK-2
        world.supersede(session)
        self.session, self.state, session.connection = session, "ready", self
        self.resume_faults(session)
        out = session.out
        if self.revision == 1 or self.has("resume-acked"):
            self.acknowledge(frame["id"], state=not self.has("no-state-after-resume"))  # REV-6
        if self.revision == 2 and not self.has("resume-credit-ignored"):
            out.credit(payload["recv_window"], payload["recv_window_bytes"])  # RES-9
        self.accept(resumed=True)
        if not self.has("no-state-after-resume"):
            self.acknowledge()  # RES-9, REV-7
        for sent in [] if self.has("no-replay") else out.seen(seen):
            if sent.held:  # only of a mutant
                asyncio.get_running_loop().call_later(0.15, self.transmit, sent)
            else:
                self.transmit(sent)
        out.attempts, out.resend_at = 0, None
        if session.draining and session.drain_id and not session.drain_acked and not self.has("drain-never-repeated"):
            self.say_drain()  # DRN-1
        elif session.draining and self.has("drain-always-repeated"):
            asyncio.get_running_loop().call_later(0.15, self.say_drain)
        world.feed(session)

    def resume_faults(self, session):
        """What some mutants lose over a resume."""
        if self.has("budget-per-connection"):
            session.budget = 16
        if self.has("early-lost-on-resume"):
            session.inward.early.clear()
        if self.has("drain-forgotten"):
            session.drain_deadline = None
            asyncio.get_running_loop().call_later(0.2, self.world.forget_drain, session)
        if self.has("numbers-restart"):
            session.out = stream.Outgoing(self.has)
            session.out.credit(64, UNBOUNDED)

    def fail_resume(self, session, code, reason):
        if self.has("lie-keeps"):
            raise End(1011, code, reason)
        self.world.end(session)
        if session.connection:
            session.connection.end(1011, code, reason)
        raise End(1011, code, reason)

    # ---- in READY and DRAINING

    def acknowledged(self, payload):
        session, answers = self.session, payload.get("for")
        if answers in session.accepts:
            session.proven = max(session.proven, session.accepts.pop(answers))  # TOK-2
        if answers is not None and answers == session.drain_id:
            session.drain_acked = True
        ours = any(sent.head["id"] == answers for sent in session.out.kept)
        if not payload["ok"] and (ours and not self.has("nack-ignored") or self.has("nack-resets")):
            raise End(1011, (payload.get("info") or "E.INTERNAL").split(" ")[0], "a frame of ours was refused")  # LIM-4
        if "recv_window" in payload:
            bits = payload.get("ack_bitmap", "0")
            session.out.acknowledge(payload.get("ack_seq", -1), bits if isinstance(bits, int) else int(bits, 16), payload["recv_window"],
                                    payload.get("recv_window_bytes", UNBOUNDED))
        self.world.feed(session)
        self.finish()

    def heartbeat(self, payload):
        session, metrics = self.session, payload["metrics"]
        session.inflight = metrics["inflight"]
        earlier = 2 if self.has("drains-too-early") else 0
        if (metrics.get("mem_pct") or 0) >= 90 - earlier or (metrics.get("disk_pct") or 0) >= 95 - earlier:  # LIV-7
            session.short = not self.has("overload-ignored")
            if self.has("overload-drains") and not session.draining:
                self.world.hook("drain", session.tenant, session.instance, {})
        elif (metrics.get("mem_pct") or 0) < 85 and (metrics.get("disk_pct") or 0) < 90:
            session.short = session.short and self.has("short-for-ever")
        self.world.feed(session)
        self.finish()

    def finish(self):
        """REV-8: revision 1 says no completion."""
        session = self.session
        idle = session.inflight == 0 or self.has("closes-busy") and session.inflight is not None
        if self.revision == 1 and session.draining and idle and (not session.out.kept or self.has("closes-unacknowledged")) and not self.has("never-closes"):
            raise End(1000)

    def drained(self, frame, payload, asked):
        session = self.session
        if payload.get("phase") == "complete" and not session.draining:
            raise schema.Flaw("E.PROTO.STATE", keyword="no drain", schema="drain")
        if asked and not self.has("drain-unacked") and not (self.has("complete-unacked") and payload.get("phase") == "complete"):
            self.acknowledge(frame["id"])
        if payload.get("phase") == "complete":
            raise End(1000)  # DRN-4
        if not session.draining or self.has("deadline-anew"):
            self.world.begin_drain(session, payload.get("deadline_ms", 300000) / 1000)

    def business(self, frame, asked):
        session, inward = self.session, self.session.inward
        what = inward.take(frame, len(frame["_body"].encode()) + len(frame["_bytes"] or b""))
        if what == "beyond":
            if not self.has("beyond-free"):
                self.charge()  # WIN-7
            if self.has("beyond-silently"):
                return
        if what == "duplicate" and self.has("duplicates-refused"):
            raise schema.Flaw("E.PROTO.STATE", keyword="seen before")
        answered = False
        if what == "duplicate" and asked and frame["seq"] <= inward.received and not self.has("duplicate-unnamed"):
            self.acknowledge(frame["id"])  # ACK-7
            answered = True
        if asked and self.has("early-named"):
            self.acknowledge(frame["id"])
        if self.has("draining-results-unacked") and session.draining:
            return
        for ready in inward.ready() if what == "new" else ():
            self.world.deliver(session, ready)
            if (ready.get("ack") or {}).get("request") and not self.has("business-unnamed"):  # ACK-7
                self.acknowledge(ready["id"])
                answered = True
        if not answered and not (self.has("lazy-acks") and inward.received % 4 != 3):
            self.acknowledge()  # ACK-6
