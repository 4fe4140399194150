"""A worker of wire revision 2, written from docs/protocol.md alone, over a connection that a test may also misuse.

Blocking and small: it answers what it must, keeps what it is told, and does nothing by itself. Shares nothing with the project.
"""
import datetime
import json

from raw_peer import CLOSE, TEXT, RawPeer


class Reset(Exception):
    """The scheduler said control.reset."""

    def __init__(self, payload, close_code):
        super().__init__(f"{payload['code']}: {payload['reason']} (close {close_code})")
        self.code, self.reason, self.close_code = payload["code"], payload["reason"], close_code
        self.retry_after_ms = payload.get("retry_after_ms")


class Worker:
    def __init__(self, port, tls, tenant="acme", instance="i-1", token=None):
        self.port, self.tls = port, tls
        self.tenant, self.instance, self.token = tenant, instance, token
        self.peer = None
        self.counter = 0
        self.session_id = self.session_token = None
        self.next_seq = 0  # of what it sends
        self.received = -1  # highest contiguous seq that came
        self.inbox = []  # business frames, in order

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    # ---- connection

    def connect(self, target="/ws/worker", headers=(), source="127.0.0.1"):
        self.cut()
        self.peer = RawPeer(self.port, self.tls, source)
        status = self.peer.upgrade(target, headers)
        assert status == 101, f"the upgrade was refused with {status}"
        return self

    def cut(self):
        """The link breaks without a word."""
        if self.peer is not None:
            self.peer.socket.close()
        self.peer = None

    # ---- frames

    def frame(self, kind, payload, **more):
        self.counter += 1
        return {"type": kind, "id": f"{kind}-{self.counter}",
                "ts": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"),
                "tenant": self.tenant, "sender": {"role": "worker", "id": self.instance}, "payload": payload, **more}

    def write(self, frame):
        self.peer.send_frame(TEXT, json.dumps(frame).encode())

    def read(self):
        """The next frame; raises Reset, with the close code that followed, when it is one."""
        opcode, payload = self.peer.read_frame()
        assert opcode != CLOSE, f"closed without a reset: {payload[:2].hex()} {payload[2:]}"
        assert opcode == TEXT, f"opcode {opcode}"
        frame = json.loads(payload)
        if frame["type"] == "control.reset":
            raise Reset(frame["payload"], self.peer.read_close())
        return frame

    def read_until(self, wanted):
        while True:
            frame = self.read()
            if frame.get("seq") is not None:
                self.take_business(frame)
            if wanted(frame):
                return frame

    def ask(self, frame):
        """Sends a control frame and returns the payload of its ack."""
        frame["ack"] = {"request": True}
        self.write(frame)
        return self.read_until(lambda f: f["type"] == "control.ack" and f["payload"].get("for") == frame["id"])["payload"]

    # ---- session

    def handshake_frame(self, auth=None, protocol=2):
        if auth is None:
            auth = {"mode": "token", "token": self.token}
        return self.frame("control.handshake", {
            "protocol": protocol, "auth": auth,
            "worker": {"worker_name": "w", "worker_instance_id": self.instance, "version": "1", "hostname": "h"}})

    def handshake(self, auth=None, protocol=2):
        return self.ask(self.handshake_frame(auth, protocol))

    def register(self):
        self.next_seq, self.received = 0, -1
        self.ask(self.frame("control.register", {
            "capabilities": {"concurrency": {"max_parallel": 4}, "runtimes": ["python"]}}))
        return self.take_accept()

    def resume(self, token=None, session_id=None):
        position = {} if self.received < 0 else {"last_seen_seq": self.received}
        self.write(self.frame("control.resume", {
            "session_id": session_id or self.session_id, "session_token": token or self.session_token,
            "earliest_retained_seq": self.next_seq, "recv_window": 256, "recv_window_bytes": 8388608, **position}))
        return self.take_accept()

    def take_accept(self, acknowledge=True):
        """Waits for control.session.accept, keeps what it gives and proves that it came."""
        frame = self.read_until(lambda f: f["type"] == "control.session.accept")
        accept = frame["payload"]
        self.session_id, self.session_token = accept["session_id"], accept["session_token"]
        if acknowledge:
            self.acknowledge(frame, recv_window=256, recv_window_bytes=8388608)
        return accept

    def start(self):
        """A session from nothing."""
        self.connect()
        self.handshake()
        self.register()
        return self

    # ---- business

    def acknowledge(self, frame, **state):
        self.write(self.frame("control.ack", {"ok": True, "for": frame["id"], **state}, ack={"for": frame["id"]}))

    def take_business(self, frame):
        assert frame["seq"] == self.received + 1, frame
        self.received = frame["seq"]
        self.inbox.append(frame)
        self.acknowledge(frame, ack_seq=self.received, recv_window=256, recv_window_bytes=8388608)

    def send(self, kind, payload, **more):
        self.write(self.frame(kind, payload, seq=self.next_seq, **more))
        self.next_seq += 1

    def answer_one(self):
        """Waits for a command and answers it with what it asked."""
        while not self.inbox:
            self.read_until(lambda f: f.get("seq") is not None)
        command = self.inbox.pop(0)
        self.send("biz.result", {"echo": command["payload"]}, corr=command["id"])
