"""One connection: its life, and what it sends. What it does with what it receives is in connection.py."""
import asyncio
import collections
import datetime
import json
import sys
import time
import uuid

import websockets

import revision1

BEFORE_AUTH, FRAME_MAX = 16384, 1 << 20
STATE = (None, None, None)  # an ack of the state as it is when it is sent


class End(Exception):
    """The connection ends: after control.reset if there is a code."""

    def __init__(self, close=1011, code=None, reason="", retry=None, close_reason=""):
        super().__init__(code)
        self.close, self.code, self.reason, self.retry, self.close_reason = close, code, reason, retry, close_reason


class Told(End):
    """RST-1: the worker reset the session."""

    def __init__(self, connection):
        super().__init__(1000)
        connection.control.clear()


class Link:
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
                revision1.to_wire(made)
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
