#!/usr/bin/python3
"""A scheduler of both wire revisions, from docs/protocol.md alone, and its mutants: each breaks exactly one rule.

One process serves them all: /ws/worker is the one named with --mutant (the correct one if none is), and
/mutant/<name, with ~ for />/ws/worker any other, each with a state of its own.
"""
import argparse
import asyncio
import collections
import datetime
import http
import json
import os
import ssl
import sys
import time
import urllib.parse
import uuid

import websockets
import websockets.legacy.server

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples"))
from strict_websocket import Strict

import mutants
import schema
import stream
import world as worlds

BEFORE_AUTH, FRAME_MAX, YEARS = 16384, 1 << 20, 2**53
STATE = (None, None, None)  # an ack of the state as it is when it is sent
REVISION1_ACCEPT = ("session_id", "session_token", "expires_at", "resumed", "worker_instance_id")


class End(Exception):
    """The connection ends: after control.reset if there is a code."""

    def __init__(self, close=1011, code=None, reason="", retry=None, close_reason=""):
        super().__init__(code)
        self.close, self.code, self.reason, self.retry, self.close_reason = close, code, reason, retry, close_reason


class Socket(Strict, websockets.legacy.server.WebSocketServerProtocol):
    """HSK-12: the first message is bounded from its header; what follows is judged by the connection until the handshake is acknowledged."""

    async def read_message(self):
        message = await super().read_message()
        self.max_size = FRAME_MAX if self.max_size == BEFORE_AUTH else self.max_size
        return message

    async def process_request(self, path, headers):
        self.world = self.ws_server.find(path)
        if self.world is None:
            return http.HTTPStatus(404), [], b"no such place\n"
        if self.world.stopped:
            return http.HTTPStatus(503), [("Retry-After", "1")], b"stopping\n"
        if "Origin" in headers and not self.world.has("any-origin"):  # TRN-2
            return http.HTTPStatus(403), [], b"no browsers\n"
        if self.world.has("no-early-limit"):
            self.max_size = FRAME_MAX
        if self.world.has("no-limit"):
            self.max_size = None
        return None


class Connection:
    def __init__(self, world, ws):
        self.world, self.ws, self.has = world, ws, world.has
        self.control, self.data, self.wake = collections.deque(), collections.deque(), asyncio.Event()
        self.stopped = asyncio.get_running_loop().create_future()
        self.tenant, self.instance, self.role, self.revision = "unknown", None, None, 2
        self.state, self.session, self.handshake_id = "new", None, None  # then greeted, ready
        self.heard = time.monotonic()
        self.deadline = self.heard + world.settings.stage_deadline
        self.allowance, self.allowance_at = world.settings.rate, self.heard

    # ---- life

    async def run(self):
        self.world.connections.add(self)
        waiting = [each for each in self.world.connections if each.state == "new"]
        if len(waiting) > self.world.settings.pending_max:  # LIM-5
            min(waiting, key=lambda each: each.heard).end(1011, "E.LIMIT.CAPACITY", "too many wait", retry=1000)
        tasks = [asyncio.ensure_future(duty()) for duty in (self.read, self.write, self.clock)]
        try:
            await asyncio.wait([*tasks, self.stopped], return_when=asyncio.FIRST_COMPLETED)
            ends = [task.exception() for task in tasks if task.done()] + ([self.stopped.result()] if self.stopped.done() else [])
            for each in ends:
                if each is not None and not isinstance(each, (End, websockets.ConnectionClosed)):
                    print(f"{self.world.mutant.name}: {type(each).__name__}: {each}", file=sys.stderr, flush=True)
            for task in tasks:
                task.cancel()
            await self.part(next((each for each in ends if isinstance(each, End)), None))
        finally:
            self.world.connections.discard(self)

    async def part(self, end):
        session, self.session = self.session, None
        if session:
            session.connection, session.detached = None, time.monotonic()
            if end and (end.code or end.close == 1000):  # RST-1, DRN-4
                self.world.end(session)
        if end is None:
            return
        try:
            if end.code and not self.has("no-reset"):
                retry = {"retry_after_ms": end.retry} if end.retry is not None else {}
                self.say("control.reset", {"code": end.code, "reason": end.reason, **retry})
            if end.code or end.close == 1000:
                for frame in self.control:
                    await asyncio.wait_for(self.write_frame(*frame), 1)
            if self.has("no-close") and end.close == 1011:
                await asyncio.sleep(5)
            await self.ws.close(end.close, end.close_reason)
        except (websockets.ConnectionClosed, asyncio.TimeoutError):
            self.ws.transport.abort()

    def end(self, close=1011, code=None, reason="", retry=None, close_reason=""):
        """From outside of this connection's own tasks."""
        if not self.stopped.done():
            self.stopped.set_result(End(close, code, reason, retry, close_reason))

    def stop(self):
        if self.revision == 1:
            self.end(1012, None, close_reason="service restart")  # REV-10
        else:
            self.end(1012, "E.SESSION.RESTARTING", "stopping", retry=1000)

    async def read(self):
        count = 0
        async for message in self.ws:
            if not self.stopped.done():
                self.take(message)
            count += 1
            if count % 32 == 0 or not self.ws.messages:
                await asyncio.sleep(0)

    async def write(self):
        while await self.wake.wait():
            self.wake.clear()
            while self.control or self.data:
                await self.write_frame(*(self.control or self.data).popleft())  # ACK-10

    async def clock(self):
        while True:
            await asyncio.sleep(0.02)
            now, settings = time.monotonic(), self.world.settings
            if self.state != "ready":
                if now > self.deadline and not self.has("no-deadline"):
                    raise End(1011, "E.TIMEOUT", "too slow")  # HSK-10
                continue
            interval = settings.heartbeat * (7 / 6 if self.revision == 1 else 1)
            if now - self.heard > 3 * interval:
                raise End(1011)  # LIV-4
            if len(self.control) > 4096:
                raise End(1008)  # LIM-7
            self.repeat(now)
            session = self.session
            if session and session.drain_deadline and now > session.drain_deadline:
                raise End(1011, "E.TIMEOUT", "the drain took too long")  # DRN-5

    def repeat(self, now):
        out = self.session.out if self.session else None
        if out is None or self.data or self.ws.closed or self.ws.transport.get_write_buffer_size() or not out.due(now):  # RTX-2
            return
        lost = out.lost()
        if out.attempts > 6 and lost:
            raise End(1011, "E.TIMEOUT", "no acknowledgement")  # RTX-4
        if lost and not self.has("never-resends"):
            self.transmit(lost)
        if out.waiting() and not self.has("never-probes"):
            self.acknowledge(asks=True)  # WIN-11

    # ---- sending

    async def write_frame(self, head, body, attachment):
        if head is None:
            if self.session is None:
                return
            head, body = {"type": "control.ack"}, json.dumps({"ok": True, **self.session.inward.state()})
        frame = {"id": uuid.uuid4().hex, "ts": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds"), "tenant": self.tenant,
                 "sender": {"role": "scheduler", "id": self.world.scheduler_id}, **head}
        frame["payload"] = json.loads(body)
        if attachment is not None:
            frame["attachment"] = {"bytes": len(attachment), "type": "application/octet-stream"}
        if self.revision == 1:
            to_revision1(frame)
        for made in self.world.mutant.edit(frame):
            body = json.dumps(made.pop("payload")) if "seq" not in head or made is not frame else (made.pop("payload"), body)[1]
            text = f'{json.dumps(made)[:-1]}, "payload": {body}}}'
            await self.ws.send(text if attachment is None else len(text.encode()).to_bytes(4, "big") + text.encode() + attachment)

    def say(self, kind, payload, asks=False, answers=None):
        ack = {name: value for name, value in (("request", asks), ("for", answers)) if value}
        head = {"type": kind, "id": uuid.uuid4().hex, **({"ack": ack} if ack else {})}
        self.control.append((head, json.dumps(payload), None))
        self.wake.set()
        return head["id"]

    def acknowledge(self, answers=None, ok=True, info=None, asks=False, state=True):
        """ACK-7. The state goes with it once there is a session. Of acks that say nothing else one is enough."""
        if self.session and state and ok and not answers and not asks:
            if not self.control or self.control[-1] is not STATE:
                self.control.append(STATE)
                self.wake.set()
            return
        payload = {"ok": ok, "for": answers, "info": info, **(self.session.inward.state() if self.session and state else {})}
        self.say("control.ack", {name: value for name, value in payload.items() if value is not None}, asks, answers)

    def transmit(self, sent):
        """A frame keeps its id and ts (ENV-5)."""
        sent.head.setdefault("ts", datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds"))
        head = {**sent.head, "id": uuid.uuid4().hex} if self.has("new-id-on-resend") and "_sent" in sent.__dict__ else dict(sent.head)
        sent._sent = True
        self.data.append((head, sent.body, sent.attachment))
        self.wake.set()

    def pump(self):
        for sent in self.session.out.sendable():
            self.transmit(sent)

    def say_drain(self):
        session = self.session
        session.drain_id = self.say("control.drain", {"phase": "start", "reason": "asked for", "deadline_ms": max(0, int(
            (session.drain_deadline - time.monotonic()) * 1000))}, asks=True)

    def accept(self, resumed, rotation=False):
        """HSK-11, RES-3, TOK-2."""
        session, settings = self.session, self.world.settings
        seen = {"last_seen_seq": session.inward.received} if session.inward.received >= 0 else {}
        payload = {"session_id": session.id, "session_token": self.world.token(session), "worker_instance_id": session.instance, "resumed": resumed, **seen,
                   "earliest_retained_seq": session.out.acked + 1, "recv_window": session.inward.window, "recv_window_bytes": session.inward.window_bytes,
                   "heartbeat_interval_ms": int(settings.heartbeat * 1000), "resume_ttl_ms": int(settings.resume_ttl * 1000), "frame_bytes_max": FRAME_MAX}
        session.accepts[self.say("control.session.accept", payload, asks=self.revision == 2)] = session.gen

    # ---- receiving

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
            frame = schema.parse(text, self.world.mutant.accepts)
            if self.world.mutant.ignores(frame):
                return
            if self.state == "new":
                self.first(frame)
            if attachment is not None and self.revision == 1:
                raise schema.Flaw("E.PROTO.SCHEMA", "", "binary", "envelope.revision1")
            schema.validate_frame(frame, self.revision, self.world.mutant.accepts)
            if self.revision == 2 and ("attachment" in frame) != (attachment is not None) and not self.has("attachment-unchecked"):  # ATT-2
                raise schema.Flaw("E.PROTO.SCHEMA", "/attachment", "attachment", "envelope")
            if attachment is not None and not self.has("attachment-unchecked") and frame["attachment"]["bytes"] != len(attachment):
                raise schema.Flaw("E.PROTO.SCHEMA", "/attachment/bytes", "attachment", "envelope")
            if self.revision == 1:
                from_revision1(frame)
            frame["_body"], frame["_bytes"] = schema.payload_text(text), attachment
            self.whose(frame)
            self.act(frame, frame["type"], frame["payload"])
        except schema.Flaw as flaw:
            self.violated(frame, str(flaw))
        except stream.AckOfNothing:
            raise End(1011, "E.SESSION.ACK_INVALID", "never sent") from None

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
        elif kind == "control.resume" and isinstance(payload, dict) and "earliest_retained_seq" not in payload:
            self.revision = 1
        elif isinstance(kind, str) and not self.has("any-first"):
            raise End(1011, "E.AUTH.HANDSHAKE_REQUIRED", "say control.handshake first")

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
            raise End(1011, code, reason[:1024])  # LIM-3
        self.charge()
        known = frame if isinstance(frame, dict) else {}
        answers = known.get("id")
        good = isinstance(answers, str) and 0 < len(answers) <= 128 and answers.isascii() and answers.isprintable()
        if known.get("type") not in ("control.ack", "control.reset") or self.has("answers-bad-acks"):  # LIM-2
            self.acknowledge(answers if good else None, ok=False, info=info[:1024], state=False)

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
            if asked:
                self.acknowledge()  # ACK-8
        elif kind == "control.heartbeat":
            if asked:
                self.acknowledge(frame["id"])
            self.heartbeat(payload)
        elif kind == "control.register" or self.revision == 1 and kind in ("control.handshake", "control.resume"):
            self.acknowledge(frame["id"])  # HSK-8, REV-12
            if self.has("second-accept"):
                self.accept(resumed=False)
        elif kind == "control.drain":
            self.drained(frame, payload, asked)
        else:
            raise schema.Flaw("E.PROTO.STATE", keyword="not now", schema=kind)  # HSK-13

    def unknown(self, frame, asked):
        """ENV-11, REV-13."""
        if self.state != "ready":
            return
        if self.revision == 1:
            if asked:
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
        instance = payload["worker"].get("worker_instance_id") or (frame["sender"]["id"] if self.revision == 1 else None)  # REV-15
        if (instance != frame["sender"]["id"] or frame["sender"]["role"] == "scheduler") and not self.has("any-identity"):  # HSK-3
            raise End(1011, "E.SESSION.MISMATCH", "sender and worker_instance_id differ")
        self.role, self.instance, self.state, self.handshake_id = frame["sender"]["role"], frame["sender"]["id"], "greeted", frame["id"]
        self.deadline = time.monotonic() + self.world.settings.stage_deadline
        self.acknowledge(frame["id"])  # HSK-6

    def authenticate(self, frame, auth):
        """HSK-4, HSK-5."""
        settings, certificate = self.world.settings, None
        tls = self.ws.transport.get_extra_info("ssl_object")
        if tls is not None and settings.client_authority:
            certificate = tls.getpeercert()
        if settings.certificate_required and not certificate or auth["mode"] == "mtls" and settings.client_authority and not certificate:
            raise End(1011, "E.AUTH.MTLS_REQUIRED", "a client certificate is needed")
        if auth["mode"] == "mtls" and not certificate:
            raise End(1011, "E.AUTH.MODE_UNSUPPORTED", "tokens only")
        tenant = settings.tenant
        if auth["mode"] == "token":
            if not auth.get("token"):
                raise End(1011, "E.AUTH.MISSING_TOKEN", "no token")
            tenant = settings.tokens.get(auth["token"])
            if tenant is None and self.has("any-token"):
                tenant = frame["tenant"]
            if tenant is None:
                raise End(1011, "E.AUTH.INVALID_TOKEN", "wrong token")
        if frame["tenant"] != tenant and not self.has("tenant-unbound"):
            raise End(1011, "E.SESSION.TENANT_MISMATCH", "the token is another tenant's")
        self.tenant = frame["tenant"]

    def opening(self, frame, kind, payload):
        if kind == "control.register":
            if len(self.world.sessions) >= self.world.settings.sessions_max:
                raise End(1011, "E.LIMIT.CAPACITY", "full", retry=1000)
            self.acknowledge(frame["id"])  # HSK-7
            self.session, self.state = self.world.open(self), "ready"
            self.accept(resumed=False)
            if self.revision == 1:
                self.world.feed(self.session)
        elif kind == "control.resume":
            self.resume(frame, payload)
        elif not kind.startswith("control."):
            if not self.has("early-business"):
                raise End(1011, "E.SESSION.NOT_REGISTERED", "register first")  # HSK-9
        elif kind == "control.handshake" and self.revision == 1:
            self.acknowledge(frame["id"])  # REV-12
        elif not self.has("any-state"):
            raise End(1011, "E.PROTO.STATE", "not now")  # HSK-13

    def resume(self, frame, payload):
        """RES, FEN."""
        world, stale = self.world, "E.SESSION.UNKNOWN" if self.revision == 1 else "E.SESSION.STALE_BINDING"
        reason = "Unknown session" if self.revision == 1 else "register afresh"
        claims = world.signer.verify(payload["session_token"], self.has)
        mine = claims and (claims["sid"], claims["wid"], claims["tenant"]) == (payload["session_id"], self.instance, self.tenant)
        if not mine and not (self.has("any-session-token") and payload["session_id"] in world.sessions):
            raise End(1011, "E.SESSION.INVALID_TOKEN", "the token does not verify")  # RES-8
        if mine and claims["iat"] <= world.revoked.get((self.tenant, self.instance), 0) and not self.has("revoked-resumes"):
            raise End(1011, "E.SESSION.INVALID_TOKEN", "revoked")  # TOK-7
        session, newest = world.sessions.get(payload["session_id"]), world.find(self.tenant, self.instance)
        if newest and newest is not session:
            world.tell("twin", newest)
            raise End(1011, *((stale, reason) if self.revision == 1 else ("E.SESSION.SUPERSEDED", "registered since")))  # FEN-4, REV-10
        if session and session.revision != self.revision:
            raise End(1011, "E.AUTH.HANDSHAKE_REQUIRED" if self.state == "new" else "E.PROTO.VERSION", "a session of the other revision")  # REV-6, HSK-2
        if session is None or session.expired():
            raise End(1011, stale, reason)  # RES-7
        if mine and claims["gen"] < session.proven and not self.has("old-token"):
            world.tell("twin", session)
            raise End(1011, "E.SESSION.INVALID_TOKEN", "an older token")  # FEN-4
        seen, out = payload.get("last_seen_seq", -1), session.out
        earliest = payload.get("earliest_retained_seq", 0) if self.revision == 2 else 0
        if seen >= out.next_new and not self.has("resume-ack-unchecked"):  # RES-6
            self.fail_resume(session, "E.SESSION.ACK_INVALID", "never sent")
        if (seen < out.acked or earliest > session.inward.received + 1) and not self.has("gap-unchecked"):
            self.fail_resume(session, "E.RESULT.SEQ_GAP", "a hole")
        session.proven = max(session.proven, claims["gen"] if mine else 0)  # TOK-2
        world.supersede(session)
        self.session, self.state, session.connection = session, "ready", self
        if self.revision == 1:
            self.acknowledge(frame["id"])  # REV-6
        else:
            out.credit(payload["recv_window"], payload["recv_window_bytes"])  # RES-9
        self.accept(resumed=True)
        self.acknowledge()  # RES-9, REV-7
        for sent in [] if self.has("no-replay") else out.seen(seen):
            self.transmit(sent)
        out.attempts, out.resend_at = 0, None
        if not session.drain_acked and session.draining:
            self.say_drain()  # DRN-1
        world.feed(session)

    def fail_resume(self, session, code, reason):
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
        if not payload["ok"] and any(sent.head["id"] == answers for sent in session.out.kept) and not self.has("nack-ignored"):
            raise End(1011, (payload.get("info") or "E.INTERNAL").split(" ")[0], "a frame of ours was refused")  # LIM-4
        if "recv_window" in payload:
            bits = payload.get("ack_bitmap", "0")
            session.out.acknowledge(payload.get("ack_seq", -1), bits if isinstance(bits, int) else int(bits, 16), payload["recv_window"],
                                    payload.get("recv_window_bytes", YEARS))
        self.world.feed(session)
        self.finish()

    def heartbeat(self, payload):
        session, metrics = self.session, payload["metrics"]
        session.inflight = metrics["inflight"]
        if (metrics.get("mem_pct") or 0) >= 90 or (metrics.get("disk_pct") or 0) >= 95:  # LIV-7
            if not session.draining and not self.has("overload-ignored"):
                self.world.hook("drain", session.tenant, session.instance, {})
        self.finish()

    def finish(self):
        """REV-8: revision 1 says no completion."""
        session = self.session
        if self.revision == 1 and session.draining and session.inflight == 0 and not session.out.kept:
            raise End(1000)

    def drained(self, frame, payload, asked):
        session = self.session
        if payload.get("phase") == "complete" and not session.draining:
            raise schema.Flaw("E.PROTO.STATE", keyword="no drain", schema="drain")
        if asked and not self.has("drain-unacked"):
            self.acknowledge(frame["id"])
        if payload.get("phase") == "complete":
            if not self.has("complete-ignored"):
                raise End(1000)  # DRN-4
        elif not session.draining:
            self.world.begin_drain(session, payload.get("deadline_ms", 300000) / 1000)

    def business(self, frame, asked):
        session, inward = self.session, self.session.inward
        what = inward.take(frame, len(frame["_body"].encode()) + len(frame["_bytes"] or b""))
        if what == "beyond":
            self.charge()  # WIN-7
        answered = False
        if what == "duplicate" and asked and frame["seq"] <= inward.received:
            self.acknowledge(frame["id"])  # ACK-7
            answered = True
        for ready in inward.ready() if what == "new" else ():
            self.world.deliver(session, ready)
            if (ready.get("ack") or {}).get("request"):  # ACK-7
                self.acknowledge(ready["id"])
                answered = True
        if not answered and not self.has("no-acks"):
            self.acknowledge()  # ACK-6


class Told(End):
    """RST-1: the worker reset the session."""

    def __init__(self, connection):
        super().__init__(1000)
        connection.control.clear()


# ---- revision 1 on the wire (REV-1 to REV-4)

def to_revision1(frame):
    payload, kind = frame["payload"], frame["type"]
    if "seq" in frame:
        frame["session_seq"] = frame.pop("seq") + 1
    for name in ("ext", "attachment"):
        frame.pop(name, None)
    if kind == "control.ack":
        if "recv_window" in payload:
            payload["ack_seq"] = payload.get("ack_seq", -1) + 1
            payload["ack_bitmap"] = int(payload.get("ack_bitmap", "0"), 16)
        for name in ("recv_window_bytes", "dup"):
            payload.pop(name, None)
    if kind == "control.drain":
        payload.pop("phase")
    if kind == "control.session.accept":
        frame["payload"] = {name: payload[name] for name in REVISION1_ACCEPT if name in payload}


def from_revision1(frame):
    def strip(value):
        for name in [name for name, member in value.items() if member is None]:
            del value[name]
    strip(frame)
    payload = frame["payload"]
    frame.pop("seq", None)
    if "session_seq" in frame:
        frame["seq"] = frame.pop("session_seq") - 1
    if frame["type"].startswith("control."):
        strip(payload)
    if frame["type"] == "control.ack" and "ack_seq" in payload:
        payload["ack_seq"] -= 1
        payload.setdefault("recv_window", 64)
    elif frame["type"] == "control.ack":
        payload.pop("recv_window", None)
    if frame["type"] == "control.resume":
        payload["last_seen_seq"] = payload.get("last_seen_seq", 0) - 1


# ---- the process

class Server:
    def __init__(self, settings):
        self.settings, self.worlds, self.default = settings, {}, settings.mutant

    def world(self, name):
        name = name or ""
        if name not in self.worlds:
            if name and not mutants.exists(name):
                return None
            self.worlds[name] = worlds.World(self.settings, mutants.Mutant(name))
        return self.worlds[name]

    def find(self, path):
        """The world that a request is for."""
        path = urllib.parse.unquote(path.split("?")[0])
        name = self.default
        if path.startswith("/mutant/"):
            name, _, path = path[len("/mutant/"):].partition("/")
            name, path = name.replace("~", "/"), "/" + path
        return self.world(name) if path == "/ws/worker" else None

    async def control(self, reader, writer):
        try:
            asked = json.loads(await reader.readline())
            world = self.world(asked.get("mutant") or self.default)
            answer = world.hook(asked["hook"], asked["tenant"], asked["instance"], asked.get("env", {})) if world else "no such mutant"
        except (ValueError, KeyError) as error:
            answer = f"bad request: {error}"
        writer.write(json.dumps({"error": answer}).encode() + b"\n")
        await writer.drain()
        writer.close()

    async def run(self):
        tls = None
        if self.settings.certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.settings.certificate, self.settings.key)
            if self.settings.client_authority:
                tls.load_verify_locations(self.settings.client_authority)
                tls.verify_mode = ssl.CERT_OPTIONAL
        if self.settings.control:
            if os.path.exists(self.settings.control):
                os.unlink(self.settings.control)
            await asyncio.start_unix_server(self.control, self.settings.control)
        async def handle(ws):
            await Connection(ws.world, ws).run()
        server = await websockets.serve(handle, self.settings.host, self.settings.port, ssl=tls, create_protocol=Socket, compression=None,
                                        max_size=BEFORE_AUTH, ping_interval=None, close_timeout=2, max_queue=None)
        server.find = self.find
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutant", default=os.environ.get("MUTANT", ""), help="which rule /ws/worker breaks; none if not given")
    parser.add_argument("--list-mutants", action="store_true")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any; the port is printed")
    parser.add_argument("--control", help="path of the unix socket for hook.py")
    parser.add_argument("--token", default="token", help="bearer token of --tenant")
    parser.add_argument("--tenant", default="acme")
    parser.add_argument("--other-token", help="bearer token of --other-tenant")
    parser.add_argument("--other-tenant", default="other")
    parser.add_argument("--certificate", help="PEM; without it there is no TLS")
    parser.add_argument("--key")
    parser.add_argument("--client-authority", help="PEM: asks for client certificates")
    parser.add_argument("--certificate-required", action="store_true")
    for name, value in (("heartbeat", 30.0), ("resume-ttl", 300.0), ("stage-deadline", 10.0), ("drain-window", 0.5)):
        parser.add_argument("--" + name, type=float, default=value, help="seconds")
    for name, value in (("window", 256), ("window-bytes", 8 << 20), ("rate", 100000), ("pending-max", 1024), ("sessions-max", 65536)):
        parser.add_argument("--" + name, type=int, default=value)
    settings = parser.parse_args()
    if settings.list_mutants:
        mutants.print_list("scheduler")
        return
    settings.tokens = {settings.token: settings.tenant, **({settings.other_token: settings.other_tenant} if settings.other_token else {})}
    if settings.mutant and not mutants.exists(settings.mutant):
        sys.exit(f"no mutant {settings.mutant}; see --list-mutants")
    asyncio.run(Server(settings).run())


if __name__ == "__main__":
    main()
