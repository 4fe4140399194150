#!/usr/bin/python3
"""A Windlass worker of wire revision 2, from docs/protocol.md alone: it answers every biz.* frame with what that frame said.

Python 3.11 and `websockets` 10; every duty cites its clause. Where: WINDLASS_URL, WINDLASS_CA. Who: WINDLASS_TENANT,
WINDLASS_INSTANCE, WINDLASS_TOKEN. WINDLASS_STATE is a folder that survives a restart. CASE is what it is asked to be.
"""
import asyncio, collections, datetime, itertools, json, os, random, re, signal, socket, ssl, sys, time, uuid
import websockets
from journal import Journal
from strict_websocket import Strict
from wire import ENVELOPE, ID, NOT_OURS, PAYLOADS, Violation, flaw, parse

WINDOW, WINDOW_BYTES, CAP = 256, 8 << 20, 30.0
AT_CAP = r"E\.AUTH\..*|E\.SESSION\.(DENIED|TENANT_MISMATCH|SUPERSEDED)|E\.PROTO\.VERSION"  # RST-7, schema/errors.json

class Client(Strict, websockets.WebSocketClientProtocol): pass  # TRN-3 and TRN-4, where the library is lax

class End(Exception):
    """The connection ends with this close code: after a reset that we say, after one that we were told, or without any."""
    def __init__(self, close, says=None, told=None): self.close, self.says, self.told = close, says, told

class Sent:
    """A frame of ours that ack_seq does not cover yet (WIN-8)."""
    def __init__(self, seq, content, id, message, end):
        self.seq, self.content, self.id, self.message, self.end, self.held, self.at = seq, content, id, message, end, False, None

class Worker:
    def __init__(self):
        self.url, self.tenant, self.instance = (os.environ["WINDLASS_" + name] for name in ("URL", "TENANT", "INSTANCE"))
        self.me, self.run_id, self.ids = {"role": "worker", "id": self.instance}, uuid.uuid4().hex[:16], itertools.count()
        self.journal = Journal(os.path.join(os.environ["WINDLASS_STATE"], "journal"))
        self.session, self.left, self.leaving, self.finished, self.failures = None, [], False, False, 0

    # ---- Connections
    async def run(self):
        for sign in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(sign, self.leave, asyncio.current_task())
        while not self.finished:
            self.state, self.wait_first, self.at_cap, self.ready_since = "dialling", 0, False, None
            try:
                await self.connection()
            except websockets.InvalidStatusCode as refused:  # RST-9
                seconds = refused.headers.get("Retry-After", "") if refused.status_code == 503 else ""
                if seconds.isdigit(): self.wait_first = min(600, int(seconds)) + random.uniform(0, min(CAP, int(seconds)))
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException) as broken:
                print("connection lost:", type(broken).__name__, file=sys.stderr)
            self.broke_at = time.monotonic()
            if self.ready_since and self.broke_at - self.ready_since > CAP: self.failures = 0  # RST-6
            pause = random.uniform(0, min(CAP, 2 * 2**min(self.failures, 9)))  # RST-4
            self.failures += 1
            if not self.finished: await asyncio.sleep(self.wait_first + (random.uniform(CAP, 2 * CAP) if self.at_cap else pause))
            if self.session and time.monotonic() - self.broke_at > self.resume_ttl: self.forget("resume window")  # RES-1

    def leave(self, task):
        """SIGTERM drains (DRN-1); a second one, or one without a session, ends at once (RST-8)."""
        if self.leaving or not self.session: self.finished = task.cancel()
        else: asyncio.get_running_loop().call_later(CAP, self.leave, task)
        self.leaving = True

    async def connection(self):
        tls = ssl.create_default_context(cafile=os.environ.get("WINDLASS_CA")) if self.url.startswith("wss") else None
        async with websockets.connect(self.url, ssl=tls, create_protocol=Client, compression=None, max_size=1 << 20,
                                      ping_interval=None, close_timeout=0.5) as ws:
            self.ws, self.control, self.data, self.wake = ws, collections.deque(), collections.deque(), asyncio.Event()
            self.expect("handshake", self.say("control.handshake", {
                "protocol": 2, "auth": {"mode": "token", "token": os.environ["WINDLASS_TOKEN"]}, "worker": {
                    "worker_name": self.instance, "worker_instance_id": self.instance, "version": "1",
                    "hostname": socket.gethostname()}}, True))
            tasks = [asyncio.ensure_future(duty()) for duty in (self.read, self.write, self.clock)]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                end = next((task.exception() for task in tasks if task.done() and isinstance(task.exception(), End)), None)
            except asyncio.CancelledError:
                end = End(1011, "E.SESSION.DRAINING leaving")
            for task in tasks: task.cancel()
            if end: await self.part(end)
            elif ws.close_code == 1000 and self.state == "ready" and self.completed: self.finished = True  # DRN-4

    async def part(self, end):
        """RST-1: says why, and closes; or does as it was told."""
        code = end.says.split(" ")[0] if end.says else end.told["code"] if end.told else ""
        if end.told: self.wait_first = min(600000, end.told.get("retry_after_ms", 0)) / 1000  # RST-5
        self.at_cap = bool(re.fullmatch(AT_CAP, code))  # RST-7, FEN-5
        drained = self.session and end.told and (code == "E.SESSION.STALE_BINDING" and self.completed)  # DRN-4
        self.finished = self.finished or bool(drained)
        if code and (self.state in ("accepted", "ready") or end.told and self.state != "handshake"): self.forget(code)  # RST-1, RST-2
        if end.says: self.say("control.reset", {"code": code, "reason": end.says.partition(" ")[2][:1024]})
        for message in self.control if end.says else ():
            await asyncio.wait_for(self.ws.send(message), 2)
        await self.ws.close(end.close)

    def forget(self, why):
        """The session is over: what nobody acknowledged goes back to its owner (RTX-5), who gives it to the next session."""
        if self.session:
            self.left = list(self.out)
            print(f"session over: {why}; {len(self.out)} frames unacknowledged", file=sys.stderr)
        self.session = None
        self.finished = self.finished or self.leaving

    async def read(self):
        async for message in self.ws:
            self.take(message)
            await asyncio.sleep(0)

    async def write(self):
        while await self.wake.wait():
            while self.control or self.data:
                await self.ws.send((self.control or self.data).popleft())  # ACK-10: control goes ahead
            self.wake.clear()

    async def clock(self):
        last = time.monotonic(), time.time()
        while True:
            await asyncio.sleep(0.02)
            now, wall = time.monotonic(), time.time()
            ready = self.state == "ready"
            late = max(now - last[0], wall - last[1])
            if late > min(10, self.interval if ready else 10):  # LIV-6: we slept, the peer is not to blame
                self.heard, self.deadline = now, now + 10
                if ready: self.acknowledge(asks=True)
            last = now, wall
            if not ready and now > self.deadline or ready and now - self.heard > 3 * self.interval: raise End(1011)  # HSK-10, LIV-5
            if len(self.control) > 4096: raise End(1008)  # LIM-7
            if ready: self.tick(now)

    # ---- Sending
    def frame(self, kind, body, more, attachment=None, id=None):
        """One message: `body` is the payload's text, `more` the optional members of the envelope. Returns its id, too."""
        head = {"type": kind, "id": id or f"{self.run_id}-{next(self.ids)}",  # ENV-5
                "ts": datetime.datetime.now(datetime.timezone.utc).isoformat(),
                "tenant": self.tenant, "sender": self.me, **more}
        envelope = f'{json.dumps(head)[:-1]}, "payload": {body}}}'
        return head["id"], envelope if attachment is None else len(envelope.encode()).to_bytes(4, "big") + envelope.encode() + attachment

    def say(self, kind, payload, asks=False, answers=None):
        ack = {name: value for name, value in (("request", asks), ("for", answers)) if value}
        id, message = self.frame(kind, json.dumps(payload), {"ack": ack} if ack else {})
        self.control.append(message)
        self.wake.set()
        return id

    def acknowledge(self, answers=None, ok=True, info=None, asks=False):
        """ACK-1, ACK-2, ACK-7, ACK-9: everything that came in order is owned, for it is in the journal."""
        bits = sum(1 << (seq - self.received - 1) for seq in self.early)
        state = {"ok": ok, "for": answers, "info": info, "ack_seq": self.received if self.received >= 0 else None,
                 "ack_bitmap": f"{bits:x}" if bits else None, "recv_window": WINDOW, "recv_window_bytes": WINDOW_BYTES, "dup": self.dup or None}
        self.dup = 0
        return self.say("control.ack", {name: value for name, value in state.items() if value is not None}, asks, answers)

    def send(self, kind, body, corr, attachment=None, media=None, id=None):
        """WIN-1. Queued until there is credit."""
        more = {"corr": corr, "seq": self.next_seq}
        if attachment is not None: more["attachment"] = {"bytes": len(attachment), "type": media}  # ATT-1
        content = kind, body, corr, attachment, media
        id, message = self.frame(kind, body, more, attachment, id)
        size = len(message.encode() if isinstance(message, str) else message)
        if size > self.limit: return self.send(kind, '{"ok": true}', corr)  # LIM-1
        self.bytes_queued += len(body.encode()) + len(attachment or b"")
        self.out.append(Sent(self.next_seq, content, id, message, self.bytes_queued))
        self.next_seq += 1
        self.pump()

    def pump(self):
        for sent in itertools.islice(self.out, self.next_new - self.acked - 1, None):
            if sent.seq >= self.edge or sent.end > self.byte_edge and sent.seq > self.acked + 1: break  # WIN-2, WIN-3
            sent.at, self.next_new = time.monotonic(), sent.seq + 1
            self.transmit(sent)

    def transmit(self, sent):
        self.data.append(sent.message)
        self.wake.set()

    def tick(self, now):
        if now >= self.beat_at:  # LIV-1, LIV-5
            self.say("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}, asks=True)
            self.beat_at = now + self.interval * random.uniform(5 / 6, 1)
        lost = next((sent for sent in self.out if sent.seq < self.next_new and not sent.held), None)  # RTX-3
        if not self.out or not lost and self.next_new == self.next_seq: self.attempts, self.resend_at = 0, None
        elif self.resend_at is None: self.resend_at = now + self.patience()
        elif now >= self.resend_at and not self.data and self.ws.open and not self.ws.transport.get_write_buffer_size():  # RTX-2
            if lost and self.attempts >= 6: raise End(1011, "E.TIMEOUT no acknowledgement")  # RTX-4
            if lost: self.transmit(lost)
            if self.next_new < self.next_seq: self.acknowledge(asks=True)  # WIN-11: a probe
            if lost: lost.at = None
            self.attempts += 1
            self.resend_at = now + self.patience()
        if self.leaving and not self.drain_id:  # DRN-1
            self.drain_id = self.say("control.drain", {"phase": "start", "reason": "leaving", "deadline_ms": 30000}, True)
        if self.draining and not self.out and not self.completed:  # DRN-4
            self.completed = self.say("control.drain", {"phase": "complete"}, True)

    def patience(self):
        """RTX-1."""
        return min(5, max(0.2, self.trip + 4 * self.deviation) * 2**self.attempts) * random.uniform(1, 1.25)

    # ---- Receiving
    def take(self, message):
        self.heard, frame = time.monotonic(), {}  # LIV-2
        if self.state == "ready" and len(message if isinstance(message, bytes) else message.encode()) > self.limit: raise End(1009)  # LIM-1
        try:
            frame, body, attachment = parse(message)
            self.check(frame, flaw(frame, ENVELOPE), attachment)
            self.act(frame, frame["type"], frame["payload"], body, attachment)
        except Violation as wrong:
            known = frame if isinstance(frame, dict) else {}
            if self.state != "ready": raise End(1011, str(wrong)) from None  # LIM-3
            self.charge()
            if known.get("type") not in ("control.ack", "control.reset"):  # LIM-2
                answers = {"for": known["id"]} if ID(known.get("id")) else {}
                self.say("control.ack", {"ok": False, "info": str(wrong), **answers}, answers=answers.get("for"))

    def check(self, frame, place, attachment):
        """ENV-2: envelope, then whose it is, then payload."""
        control = place is None and frame["type"].startswith("control.")
        if place is None and control == ("seq" in frame): place = "/seq"  # ENV-4
        if place is None and ("attachment" in frame) != (attachment is not None) or control and "attachment" in frame:
            place = "/attachment"  # ATT-2
        elif place is None and attachment is not None and frame["attachment"]["bytes"] != len(attachment): place = "/attachment/bytes"
        if place is None and not (frame["type"] == "control.reset" and self.state != "ready"):  # ENV-12
            if frame["tenant"] != self.tenant: raise End(1011, "E.SESSION.TENANT_MISMATCH")
            if self.state == "ready" and frame["sender"] != self.peer: raise End(1011, "E.SESSION.MISMATCH another sender")
        if place is None and frame["type"] in PAYLOADS: place = flaw(frame["payload"], PAYLOADS[frame["type"]], "/payload")
        if place is None and frame["type"] == "control.ack":
            said = set(frame["payload"]) & {"ack_seq", "ack_bitmap", "recv_window_bytes", "dup"}
            if "recv_window" not in frame["payload"] and said: place = "/payload/" + min(said)
            elif "recv_window" in frame["payload"] and "recv_window_bytes" not in said: place = "/payload/recv_window_bytes"
        if place is not None: raise Violation(f"E.PROTO.SCHEMA {place}{':' if place else ''} breaks its schema"[:1024])

    def charge(self):
        """LIM-2: 16 units, one comes back every minute."""
        now = time.monotonic()
        self.budget, self.budget_at = min(16, self.budget + (now - self.budget_at) / 60), now
        if self.budget < 1: raise End(1011, "E.LIMIT.ERRORS too many violations")
        self.budget -= 1

    def act(self, frame, kind, payload, body, attachment):
        asked = frame["id"] if frame.get("ack", {}).get("request") else None
        if kind == "control.reset": raise End(1000, told=payload)
        if self.state != "ready": self.opening(frame, kind, payload)
        elif not kind.startswith("control."): self.business(frame, body, attachment)
        elif kind == "control.ack":
            self.acknowledged(payload)
            if asked: self.acknowledge()  # ACK-8
        elif kind == "control.session.accept":  # TOK-6: a new token, nothing else
            if payload["session_id"] != self.session or not payload["resumed"]: raise Violation("E.SESSION.MISMATCH another session")
            self.token = payload["session_token"]
            self.acknowledge(frame["id"])  # HSK-11
        elif kind == "control.drain" and payload["phase"] == "start":
            if asked: self.acknowledge(asked)
            self.draining = True
        elif kind in NOT_OURS or kind == "control.drain": raise Violation("E.PROTO.STATE not yours to say")  # HSK-13
        else: self.say("control.ack", {"ok": False, "for": frame["id"], "info": "E.CMD.UNKNOWN"}, answers=frame["id"])  # ENV-11

    def expect(self, state, asked):
        self.state, self.asked, self.heard, self.deadline = state, asked, time.monotonic(), time.monotonic() + 10  # HSK-10

    def opening(self, frame, kind, payload):
        """HSK-6, HSK-7: handshake, ack, then register, ack, accept; or resume, accept."""
        if kind == "control.ack" and payload.get("for") == self.asked and self.state in ("handshake", "register"):
            if not payload["ok"]: raise End(1011)
            if self.state == "register": self.expect("registered", None)
            elif self.session:  # RES-2
                position = {"last_seen_seq": self.received} if self.received >= 0 else {}
                self.expect("resume", self.say("control.resume", {
                    "session_id": self.session, "session_token": self.token, "earliest_retained_seq": self.acked + 1,
                    "recv_window": WINDOW, "recv_window_bytes": WINDOW_BYTES, **position}))
            else: self.expect("register", self.say("control.register", {
                "capabilities": {"concurrency": {"max_parallel": 1}, "runtimes": ["python"]}}, True))
        elif kind == "control.session.accept" and self.state in ("registered", "resume"): self.accepted(frame, payload)
        elif kind in PAYLOADS or kind in NOT_OURS or not kind.startswith("control."):
            if kind != "control.ack": raise Violation("E.PROTO.STATE not now")  # HSK-13; an unknown one is ignored (ENV-11)

    def accepted(self, frame, payload):
        resuming, seen, now = self.state == "resume", payload.get("last_seen_seq", -1), time.monotonic()
        self.state = "accepted"  # by the scheduler: a reset from here on ends the session (RST-1)
        if payload["resumed"] != resuming or payload["worker_instance_id"] != self.instance or resuming and (
                payload["session_id"] != self.session or frame["sender"] != self.peer):
            raise Violation("E.SESSION.MISMATCH not what was asked")
        if not resuming:
            self.session, self.peer = payload["session_id"], frame["sender"]
            self.out, self.early, self.received, self.dup = collections.deque(), {}, -1, 0
            self.next_seq = self.next_new = self.bytes_queued = self.bytes_acked = self.trip = self.deviation = 0
            self.acked, self.budget, self.budget_at, self.draining = -1, 16, now, False
        elif seen >= self.next_new: raise Violation("E.SESSION.ACK_INVALID never sent")  # RES-6
        elif seen < self.acked or payload["earliest_retained_seq"] > self.received + 1: raise Violation("E.RESULT.SEQ_GAP a hole")
        self.state, self.ready_since, self.token = "ready", now, payload["session_token"]
        self.interval, self.resume_ttl = payload["heartbeat_interval_ms"] / 1000, payload["resume_ttl_ms"] / 1000
        self.limit = self.ws.max_size = min(1 << 20, payload["frame_bytes_max"])  # LIM-1; the library closes with 1009 (TRN-5)
        self.beat_at, self.attempts, self.resend_at = now + self.interval * random.uniform(5 / 6, 1), 0, None
        self.drain_id = self.completed = None  # RES-11: said again
        self.edge, self.byte_edge = self.acked + 1 + payload["recv_window"], self.bytes_acked + payload["recv_window_bytes"]  # RES-9
        self.acknowledge(frame["id"])  # HSK-11
        for sent in self.out:  # RES-4: all that the other has not seen, in order
            sent.held = sent.held or sent.seq <= seen
            if sent.seq < self.next_new and not sent.held: self.transmit(sent)
        for sent in self.left: self.send(*sent.content, sent.id)  # the same messages, so the same ids
        self.left = []
        self.pump()

    def acknowledged(self, payload):
        if not payload["ok"] and any(sent.id == payload.get("for") for sent in self.out):
            raise End(1011, payload.get("info") or "E.INTERNAL")  # LIM-4
        if payload["ok"] and payload.get("for") == self.drain_id and self.drain_id: self.draining = True
        if "recv_window" not in payload: return
        seq, bits = payload.get("ack_seq", -1), int(payload.get("ack_bitmap", "0"), 16)
        if seq + bits.bit_length() >= self.next_new: raise End(1011, "E.SESSION.ACK_INVALID never sent")  # ACK-4
        if seq < self.acked: return  # ACK-5
        while self.out and self.out[0].seq <= seq:  # WIN-8
            sent = self.out.popleft()
            self.bytes_acked, self.attempts, self.resend_at = sent.end, 0, None
            if sent.at:  # RTX-1: never measured on a frame sent twice
                trip = time.monotonic() - sent.at
                self.deviation += (abs(trip - self.trip) - self.deviation) / 4
                self.trip += (trip - self.trip) / 8
        self.acked = seq
        for sent in self.out: sent.held = sent.held or bool(bits >> (sent.seq - seq - 1) & 1)  # ACK-3
        self.edge = max(self.edge, seq + 1 + payload["recv_window"])
        self.byte_edge = max(self.byte_edge, self.bytes_acked + payload["recv_window_bytes"])
        self.pump()

    def business(self, frame, body, attachment):
        seq, size = frame["seq"], len(body.encode()) + len(attachment or b"")
        if seq <= self.received or seq in self.early:  # WIN-6
            self.dup += 1
            return self.acknowledge(frame["id"] if seq <= self.received and frame.get("ack", {}).get("request") else None)  # ACK-7
        if seq > self.received + WINDOW or size + sum(early[3] for early in self.early.values()) > WINDOW_BYTES:  # WIN-7
            self.charge()
            return self.acknowledge()
        self.early[seq] = frame, body, attachment, size
        asked = []
        while self.received + 1 in self.early:  # WIN-4, WIN-5
            frame, body, attachment, _ = self.early.pop(self.received + 1)
            self.received += 1
            if frame["type"].startswith("biz."):
                result = self.journal.answer(frame, body, attachment)
                self.send("biz.result", result, frame["id"], attachment, frame.get("attachment", {}).get("type"))
            if frame.get("ack", {}).get("request"): asked.append(frame["id"])
        for answers in asked or [None]: self.acknowledge(answers)  # ACK-6, ACK-7

if __name__ == "__main__":
    if os.environ.get("CASE", "serve") != "serve": sys.exit(127)
    try: asyncio.run(Worker().run())
    except asyncio.CancelledError: pass
