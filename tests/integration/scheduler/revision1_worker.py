"""A worker of wire revision 1, written from its description alone: handshake, register, acks, resume, drain.

Shares nothing with the project. Frames are dictionaries; session_seq counts from 1; every sequenced frame is acked at once.
"""
import asyncio
import datetime
import json

import websockets


class Reset(Exception):
    pass


class Worker:
    def __init__(self, url, tenant, instance, token):
        self.url, self.tenant, self.instance, self.token = url, tenant, instance, token
        self.counter = 0
        self.session = None  # id and token of the session
        self.sent = {}  # session_seq -> frame that is not acknowledged
        self.next_seq = 1
        self.received = 0  # highest contiguous session_seq
        self.early = {}
        self.inbox = asyncio.Queue()  # business frames in order
        self.window = 64
        self.acked = 0
        self.moved = asyncio.Condition()
        self.waiting = {}  # frame id -> future of its ack
        self.accepted = None
        self.drain_asked = asyncio.Event()
        self.closed = asyncio.Event()
        self.close_code = None
        self.duplicates = 0
        self.socket = None
        self.problem = None  # what the scheduler did wrong

    # ---- frames

    def frame(self, kind, payload, **more):
        self.counter += 1
        return {
            "type": kind,
            "id": f"{kind}-{self.counter}",
            "ts": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds"),
            "corr": None,
            "seq": None,
            "session_seq": None,
            "tenant": self.tenant,
            "sender": {"role": "worker", "id": self.instance},
            "payload": payload,
            **more,
        }

    async def write(self, frame):
        await self.socket.send(json.dumps(frame))

    async def ask(self, frame):
        """Sends a control frame until it is acknowledged, as revision 1 does."""
        frame["ack"] = {"for": None, "request": True}
        answer = self.waiting[frame["id"]] = asyncio.get_running_loop().create_future()
        delay = 0.2
        for _ in range(6):
            await self.write(frame)
            done, _ = await asyncio.wait([answer], timeout=delay)
            if done:
                return answer.result()
            delay = min(5, delay * 2)
        raise TimeoutError(f"no ack of {frame['id']}")

    # ---- connection

    async def connect(self):
        self.socket = await websockets.connect(self.url, compression=None, max_size=2**21)
        self.accepted = asyncio.get_running_loop().create_future()
        self.closed.clear()
        self.reader = asyncio.create_task(self.read())

    async def cut(self):
        """The link breaks without a word."""
        self.reader.cancel()
        self.socket.transport.abort()

    async def handshake(self):
        await self.ask(self.frame("control.handshake", {
            "protocol": 1,
            "auth": {"mode": "token", "token": self.token},
            "worker": {"worker_name": "old", "worker_instance_id": self.instance, "version": "0.9", "hostname": "museum"},
        }))

    async def register(self):
        await self.ask(self.frame("control.register", {
            "capabilities": {"concurrency": {"max_parallel": 4}, "runtimes": ["python"], "features": []},
            "payload_types": ["json"], "packages": [], "channels": [], "manifests": [],
        }))
        accept = await asyncio.wait_for(self.accepted, 10)
        assert accept["worker_instance_id"] == self.instance and not accept.get("resumed"), accept
        self.session = accept["session_id"], accept["session_token"]

    async def resume(self):
        await self.ask(self.frame("control.resume", {
            "session_id": self.session[0], "session_token": self.session[1], "last_seen_seq": self.received,
        }))
        accept = await asyncio.wait_for(self.accepted, 10)
        assert accept["resumed"] is True and accept["session_id"] == self.session[0], accept
        self.session = accept["session_id"], accept["session_token"]
        # Revision 1 does not replay at once: its timer does.
        asyncio.get_running_loop().call_later(0.3, lambda: asyncio.ensure_future(self.resend()))

    async def resend(self):
        for seq in sorted(self.sent):
            await self.write(self.sent[seq])

    async def heartbeat(self, inflight):
        await self.write(self.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": inflight, "cpu_pct": 1.5}}))

    # ---- business

    async def send(self, kind, payload, corr=None):
        async with self.moved:
            await self.moved.wait_for(lambda: self.next_seq <= self.acked + self.window)
            frame = self.frame(kind, payload, session_seq=self.next_seq, corr=corr)
            self.sent[self.next_seq] = frame
            self.next_seq += 1
        try:
            await self.write(frame)
        except websockets.ConnectionClosed:
            pass  # it is kept, and goes out again

    async def all_acked(self):
        async with self.moved:
            await self.moved.wait_for(lambda: not self.sent)

    async def read(self):
        try:
            async for text in self.socket:
                await self.take(json.loads(text))
        except websockets.ConnectionClosed:
            pass
        except (AssertionError, Reset) as problem:
            self.problem = problem
            await self.socket.close(1002)
        self.close_code = self.socket.close_code
        self.closed.set()

    async def take(self, frame):
        allowed = {"type", "id", "ts", "corr", "seq", "session_seq", "tenant", "sender", "ack", "flags", "payload"}
        assert set(frame) <= allowed, f"revision 1 does not know {set(frame) - allowed}"
        assert frame["sender"]["role"] == "scheduler" and frame["ts"].endswith("+00:00"), frame
        kind, payload = frame["type"], frame["payload"]
        if kind == "control.ack":
            return await self.take_ack(frame, payload)
        if kind == "control.session.accept":
            assert set(payload) <= {"session_id", "session_token", "expires_at", "resumed", "worker_instance_id"}, payload
            if not self.accepted.done():
                self.accepted.set_result(payload)
            else:
                self.session = payload["session_id"], payload["session_token"]
        elif kind == "control.drain":
            self.drain_asked.set()
        elif kind == "control.reset":
            raise Reset(f"{payload['code']} {payload['reason']}")
        elif not kind.startswith("control."):
            return await self.take_business(frame)
        if (frame.get("ack") or {}).get("request"):
            await self.write(self.frame("control.ack", {"ok": True, "for": frame["id"]}, ack={"for": frame["id"]}))

    async def take_ack(self, frame, payload):
        assert set(payload) <= {"ok", "for", "info", "ack_seq", "ack_bitmap", "recv_window"}, payload
        assert payload["ok"], payload
        waiting = self.waiting.pop(payload.get("for"), None)
        if waiting and not waiting.done():
            waiting.set_result(payload)
        if payload.get("ack_seq") is None:
            return
        assert payload["ack_seq"] < self.next_seq, "an ack of what was never sent"
        assert 1 <= payload["recv_window"] <= 64, payload
        async with self.moved:
            self.acked = max(self.acked, payload["ack_seq"])
            self.window = payload["recv_window"]
            for seq in [s for s in self.sent if s <= self.acked]:
                del self.sent[seq]
            self.moved.notify_all()

    async def take_business(self, frame):
        seq = frame["session_seq"]
        if seq <= self.received or seq in self.early:
            self.duplicates += 1
        else:
            assert seq <= self.received + 64, "beyond the window"
            self.early[seq] = frame
        while self.received + 1 in self.early:
            self.received += 1
            self.inbox.put_nowait(self.early.pop(self.received))
        bitmap = sum(1 << (s - self.received - 1) for s in self.early)
        await self.write(self.frame("control.ack", {"ok": True, "for": frame["id"], "ack_seq": self.received,
                                                    "ack_bitmap": bitmap, "recv_window": 64}, ack={"for": frame["id"]}))
