"""An agent with a language worker and a runtime, as the scheduler sees them: what they say, on a thread of their own.

Built on the worker of revision 2, which shares nothing with the project.
"""
import hashlib
import json
import struct
import threading

from raw_peer import BINARY, CLOSE, Ended
from revision2_worker import Reset, Worker


class Peer(Worker):
    """Speaks when spoken to, and keeps every command that it got."""
    role = "worker"
    features = ()

    def __init__(self, scheduler, instance):
        super().__init__(scheduler.port, None, instance=instance, token=scheduler.token)
        self.commands = []
        self.holds_answers = False  # takes commands and says nothing
        self.thread = None

    def frame(self, kind, payload, **more):
        frame = super().frame(kind, payload, **more)
        frame["sender"]["role"] = self.role
        return frame

    def read(self):
        opcode, payload = self.peer.read_frame()
        assert opcode != CLOSE, f"closed: {payload}"
        data = b""
        if opcode == BINARY:
            size = struct.unpack(">I", payload[:4])[0]
            payload, data = payload[4:4 + size], payload[4 + size:]
        frame = json.loads(payload)
        if frame["type"] == "control.reset":
            raise Reset(frame["payload"], self.peer.read_close())
        frame["bytes"] = data
        return frame

    def register(self):
        self.next_seq, self.received = 0, -1
        self.ask(self.frame("control.register", {"capabilities": {
            "concurrency": {"max_parallel": 4}, "runtimes": ["python"], "features": list(self.features)}}))
        return self.take_accept()

    def begin(self):
        """A session from nothing, then on a thread."""
        self.start()
        self.greet()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def serve(self):
        try:
            while True:
                self.handle(self.next_business())
        except (Ended, OSError, AssertionError, Reset, AttributeError):
            pass  # the link or the scheduler is gone

    def next_business(self):
        while not self.inbox:
            self.read_until(lambda f: f.get("seq") is not None)
        return self.inbox.pop(0)

    def handle(self, frame):
        self.commands.append(frame)
        if not self.holds_answers:
            self.send("biz.result", self.answer(frame), corr=frame["id"])

    def greet(self):
        raise NotImplementedError

    def answer(self, frame):
        raise NotImplementedError


class Agent(Peer):
    def __init__(self, scheduler, instance, runtime, language="node"):
        super().__init__(scheduler, instance)
        self.language, self.runtime = language, runtime
        self.features = (f"language:{language}",)
        self.packages = {}  # digest to bytes
        self.refusal = None  # said instead of doing what it is told
        self.parts = 0

    def greet(self):
        self.status("placeholder")

    def status(self, state, application=None):
        more = {"application": application} if application else {}
        self.send("biz.worker.status", {"worker_id": f"{self.instance}.1", "language": self.language, "runtime": self.runtime,
                                        "state": state, "pid": 7, **more})

    def answer(self, frame):
        if self.refusal:
            return {"ok": False, "code": "E.PKG.INVALID", "reason": self.refusal}
        if frame["type"] == "biz.echo":
            return {"ok": True, "echo": frame["payload"]}
        if frame["type"] == "biz.worker.release":
            self.status("placeholder")
            return {"ok": True}
        order = frame["payload"]
        self.fetch(order["package"]["digest"], order["package"]["bytes"])
        self.runtime = order["runtime"]["id"]
        self.status("ready", {key: order[key] for key in ("application_id", "metadata_version", "code_version")})
        return {"ok": True, "worker_id": f"{self.instance}.1", "functions": ["greet"], "took_ms": 12}

    def fetch(self, digest, total):
        data = b""
        while len(data) < total:
            part = self.get_part(digest, len(data))
            assert part["payload"] == {"digest": digest, "offset": len(data), "total": total}, part
            assert 0 < len(part["bytes"]) <= 512 * 1024
            data += part["bytes"]
            self.parts += 1
        assert hashlib.sha256(data).hexdigest() == digest
        self.packages[digest] = data

    def get_part(self, digest, offset):
        ask = self.frame("biz.package.get", {"digest": digest, "offset": offset}, seq=self.next_seq)
        self.next_seq += 1
        self.write(ask)
        # Other orders may come in between; they keep their turn.
        while not any(f.get("corr") == ask["id"] for f in self.inbox):
            self.read_until(lambda f: f.get("seq") is not None)
        part = next(f for f in self.inbox if f.get("corr") == ask["id"])
        self.inbox.remove(part)
        return part


class Runtime(Peer):
    role = "runtime"

    def __init__(self, scheduler, instance):
        super().__init__(scheduler, instance)
        self.token = scheduler.runtime_token
        self.applications = []
        self.workers = []  # what it says of language workers
        self.result = None  # of every invocation, where it is said
        self.assigned = None  # by application: the metadata version that serves
        self.url = f"wss://{instance}.example/ws/worker"

    def greet(self):
        self.status()

    def handle(self, frame):
        if frame["type"] == "biz.runtime.applications":  # what it is to serve; is not answered
            self.assigned = {each["application_id"]: each.get("metadata_version") for each in frame["payload"]["applications"]}
            return
        super().handle(frame)

    def serve_app(self, name, functions=("greet",), ready=1, detached=0):
        self.applications = [{"application_id": name, "metadata_version": "m", "code_versions": ["v1"], "functions": list(functions),
                              "ready": ready, "detached": detached, "workers": ready + detached, "in_flight": 0, "pending": 0}]
        self.status()

    def status(self):
        self.send("biz.runtime.status", {"url": self.url, "http": "http://127.0.0.1:1", "grpc": "",
                                         "applications": self.applications, "workers": self.workers, "health": "Healthy"})

    def answer(self, frame):
        payload = frame["payload"]
        if frame["type"] != "biz.runtime.invoke":
            return {"ok": True}
        if self.result is not None:
            return self.result
        if payload.get("data") == "throw":
            return {"ok": False, "code": "E.FUNCTION.THREW", "reason": "no such city", "stack": "at greet"}
        return {"ok": True, "return": {"hello": payload.get("data", payload.get("text"))}, "outputs": {}, "took_ms": 3, "worker": "w",
                "logs": [{"level": "info", "message": "greeting"}]}
