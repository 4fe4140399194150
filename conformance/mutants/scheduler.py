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


class Ignored(Exception):
    """What a mutant overlooks."""


class Socket(Strict, websockets.legacy.server.WebSocketServerProtocol):
    """HSK-12: the first message is bounded from its header; what follows is judged by the connection until the handshake is acknowledged."""
    world = None

    async def read_message(self):
        message = await super().read_message()
        self.max_size = FRAME_MAX if self.max_size == BEFORE_AUTH else self.max_size
        return message

    async def read_frame(self, max_size):
        has = self.world.has
        frame = await (super().read_frame(max_size) if not has("lax-framing") else websockets.legacy.server.WebSocketServerProtocol.read_frame(self, max_size))
        if has("no-fragments") and not frame.fin:
            raise websockets.ProtocolError("fragments")
        if has("utf8-per-fragment") and frame.opcode < 2:
            frame.data.decode()
        return frame

    def fail_connection(self, code=1006, reason=""):
        super().fail_connection(1011 if self.world and self.world.has(f"close-{code}") else code, reason)

    async def write_close_frame(self, close, data=None):
        if self.world.has("no-close-echo") and self.close_rcvd:
            self.transport.abort()
        await super().write_close_frame(close, data)

    async def pong(self, data=b""):
        if not self.world.has("no-pong"):
            await super().pong(data)

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
            over = end and (end.code or end.close == 1000) and not (self.has("completed-stays") and end.close == 1000)  # RST-1, DRN-4
            if over or self.has("close-ends"):
                self.world.end(session)
        if end is None:
            return
        try:
            if end.code:
                retry = {"retry_after_ms": end.retry} if end.retry is not None else {}
                self.say("control.reset", {"code": end.code, "reason": end.reason, **retry})
            if end.code or end.close == 1000:
                for frame in self.control:
                    await asyncio.wait_for(self.write_frame(*frame), 1)
            told = isinstance(end, Told)
            if told and self.has("reset-answered"):
                self.say("control.reset", {"code": "E.INTERNAL", "reason": "as you say"})
                await self.write_frame(*self.control.pop())
            wrong = told and self.has("reset-closes-1011") or end.close == 1000 and self.has("complete-closes-1011") or end.close == 1012 and self.has("stop-closes-1011")
            await self.ws.close(1011 if wrong else end.close, end.close_reason)
        except (websockets.ConnectionClosed, asyncio.TimeoutError):
            self.ws.transport.abort()

    def end(self, close=1011, code=None, reason="", retry=None, close_reason=""):
        """From outside of this connection's own tasks."""
        if not self.stopped.done():
            self.stopped.set_result(End(close, code, reason, retry, close_reason))

    def stop(self):
        if self.revision == 1 or self.has("stop-without-reset"):
            self.end(1012, None, close_reason="service restart")  # REV-10
        else:
            self.end(1012, "E.SESSION.RESTARTING", "stopping", retry=1000)

    async def read(self):
        count = 0
        async for message in self.ws:
            while self.has("stranger-blocks") and any(each.state == "new" for each in self.world.connections - {self}):
                await asyncio.sleep(0.05)
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
            if session and session.drain_deadline and now > session.drain_deadline and not self.has("no-drain-deadline"):
                raise End(1011, "E.TIMEOUT", "the drain took too long")  # DRN-5

    def repeat(self, now):
        out = self.session.out if self.session else None
        if out and out.last and self.has("resends-acknowledged"):
            asyncio.get_running_loop().call_later(0.3, self.transmit, out.last)
            out.last = None
        if out is None or self.data or self.ws.closed or self.ws.transport.get_write_buffer_size() or not out.due(now):  # RTX-2
            return
        lost = out.lost()
        if out.attempts > 6 and lost:
            raise End(1011, "E.TIMEOUT", "no acknowledgement")  # RTX-4
        if lost and not self.has("never-resends"):
            self.transmit(lost)
        if out.waiting() and not self.has("never-probes") and not (self.has("probes-once") and out.attempts > 1):
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
        for made in self.world.mutant.edit(frame, "out"):
            if self.revision == 1:
                to_revision1(made)
            made = self.world.mutant.edit(made, "wire")[0]
            payload = made.pop("payload")
            body = json.dumps(payload) if "seq" not in head or made is not frame else body
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

    def accept(self, resumed):
        """HSK-11, RES-3, TOK-2."""
        session, settings = self.session, self.world.settings
        seen = {"last_seen_seq": session.inward.received} if session.inward.received >= 0 else {}
        if self.has("last-seen-highest") and session.inward.early:
            seen = {"last_seen_seq": max(session.inward.early)}
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
            schema.validate_frame(frame, self.revision, self.world.mutant.accepts)
            if self.revision == 2 and ("attachment" in frame) != (attachment is not None) and not self.has("attachment-unchecked"):  # ATT-2
                raise schema.Flaw("E.PROTO.SCHEMA", "/attachment", "attachment", "envelope")
            if attachment is not None and not self.has("attachment-unchecked") and frame["attachment"]["bytes"] != len(attachment):
                raise schema.Flaw("E.PROTO.SCHEMA", "/attachment/bytes", "attachment", "envelope")
            if self.revision == 1:
                if self.has("nulls-refused") and (None in frame.values() or None in frame["payload"].values()):
                    raise schema.Flaw("E.PROTO.SCHEMA", "/corr", "null")
                if self.has("seq-judged") and frame.get("seq") is not None:
                    raise schema.Flaw("E.PROTO.SCHEMA", "/seq", "seq")
                from_revision1(frame)
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
            raise End(1011, "E.AUTH.HANDSHAKE_REQUIRED" if self.state == "new" else "E.PROTO.VERSION", "a session of the other revision")  # REV-6, HSK-2
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
        if session.draining and session.drain_id and (not session.drain_acked and not self.has("drain-never-repeated") or self.has("drain-always-repeated")):
            self.say_drain()  # DRN-1
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
            session.out.credit(64, YEARS)

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
                                    payload.get("recv_window_bytes", YEARS))
        self.world.feed(session)
        self.finish()

    def heartbeat(self, payload):
        session, metrics = self.session, payload["metrics"]
        session.inflight = metrics["inflight"]
        earlier = 2 if self.has("drains-too-early") else 0
        if (metrics.get("mem_pct") or 0) >= 90 - earlier or (metrics.get("disk_pct") or 0) >= 95 - earlier:  # LIV-7
            if not session.draining and not self.has("overload-ignored"):
                self.world.hook("drain", session.tenant, session.instance, {})
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
