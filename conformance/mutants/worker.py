#!/usr/bin/python3
"""The example worker with one fault: --mutant NAME, or MUTANT in the environment. No name: no fault."""
import argparse
import asyncio
import importlib.util
import json
import os
import pathlib
import re
import sys
import time
import uuid

import websockets

import mutants

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
sys.path.append(str(EXAMPLES))
# The example has the name of this file, so it is loaded by its path.
SPEC = importlib.util.spec_from_file_location("example_worker", EXAMPLES / "worker.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

wire = sys.modules["wire"]  # the example's
End, Violation = example.End, example.Violation


class Faulty(example.Worker):
    """Each method asks has() for the faults that belong there, and is the example's otherwise."""
    mutant = None

    def __init__(self):
        super().__init__()
        self.has, self.acting, self.resumed, self.drains, self.last_acked = self.mutant.has, "", False, 0, None
        if self.has("token-in-url"):
            self.url += "?token=" + os.environ["WINDLASS_TOKEN"]
        if self.has("ids-restart"):
            self.run_id = "w"
        if self.has("new-identity"):
            self.instance = uuid.uuid4().hex
            self.me = {"role": "worker", "id": self.instance}

    # ---- what it sends

    def frame(self, kind, body, more, attachment=None, id=None):
        id, message = super().frame(kind, body, more, attachment, id)
        if not self.mutant.edits["out"] or attachment is not None:
            return id, message
        frame = json.loads(message)
        made = self.mutant.edit(frame, "out")
        if made and made[0] is frame:
            return id, message
        return (made[0]["id"], json.dumps(made[0])) if made else (id, None)

    def say(self, kind, payload, asks=False, answers=None):
        if kind == "control.handshake" and self.has("register-first"):
            super().say("control.register", {"capabilities": {"concurrency": {"max_parallel": 1}, "runtimes": ["python"]}})
        if kind == "control.drain" and payload["phase"] == "start":
            self.drains += 1
            if self.has("drain-once") and self.drains > 1:
                return "unsaid"
        if kind == "control.drain" and payload["phase"] == "complete" and self.has("completes-once") and self.resumed:
            return "unsaid"
        if kind == "control.resume" and self.has("last-seen-highest") and self.early:
            payload["last_seen_seq"] = max(self.early)
        id = super().say(kind, payload, asks, answers)
        if self.control[-1] is None:
            self.control.pop()
        if kind == "control.register" and self.has("registers-twice"):
            super().say(kind, payload, asks)
        if kind == "control.register" and self.has("early-business"):
            for sent in self.left:
                asyncio.get_running_loop().call_later(0.15, self.transmit, sent)
        if kind == "control.handshake" and self.has("register-at-once"):
            asyncio.get_running_loop().call_later(0.15, super().say, "control.register", {
                "capabilities": {"concurrency": {"max_parallel": 1}, "runtimes": ["python"]}}, True)
        return id

    def acknowledge(self, answers=None, ok=True, info=None, asks=False):
        family = self.acting.split(".")[-1 if self.acting.startswith("control.") else 0]
        if self.has("unnamed-" + family):
            answers = None
        if asks and (self.has("never-probes") or self.has("probes-once") and self.attempts > 0):
            return None
        dup, id = self.dup, super().acknowledge(answers, ok, info, asks)
        self.dup = dup if self.has("dup-keeps") else self.dup
        return id

    def send(self, kind, body, corr, attachment=None, media=None, id=None):
        if self.has("always-binary") and attachment is None:
            attachment, media = b"", "text/plain"
        super().send(kind, body, corr, attachment, media, id)

    def pump(self):
        if self.has("draining-sends-nothing") and self.draining:
            return
        edges = self.edge, self.byte_edge
        if self.has("no-frame-window"):
            self.edge = 2**53
        if self.has("no-byte-window"):
            self.byte_edge = 2**53
        waiting = next((sent for sent in self.out if sent.seq == self.next_new), None)
        if not (self.has("bytes-strict") and waiting and waiting.end > self.byte_edge):
            super().pump()
        self.edge, self.byte_edge = edges

    def transmit(self, sent):
        if sent.message is None:
            return
        if self.has("new-id-on-resend") and getattr(sent, "before", False):
            sent.message = sent.message.replace(f'"id": "{sent.id}"', f'"id": "{uuid.uuid4().hex}"', 1)
        sent.before = True
        super().transmit(sent)

    def tick(self, now):
        if self.has("draining-no-heartbeats") and self.draining:
            self.beat_at = now + 100
        if self.has("hasty") and self.beat_at > now + self.interval / 3:
            self.beat_at = now + self.interval / 3
        if self.has("patient-for-ever"):
            self.heard = now
        if self.has("impatient") and now - self.heard > 1.2 * self.interval:
            raise End(1011)
        if self.has("never-gives-up"):
            self.attempts = min(self.attempts, 4)
        if self.has("never-resends"):
            self.resend_at = None
        if self.has("resends-acknowledged") and self.last_acked:
            self.transmit(self.last_acked)
            self.last_acked = None
        if self.has("complete-early") and self.draining and not self.completed:
            self.completed = self.say("control.drain", {"phase": "complete"}, True)
        draining = self.draining
        self.draining = draining and not self.has("never-complete")
        super().tick(now)
        self.draining = draining

    def patience(self):
        if self.has("no-backoff"):
            return 0.25
        return 0.05 if self.has("impatient-timer") else super().patience()

    # ---- what it receives

    def take(self, message):
        if self.has("binary-ignored") and isinstance(message, bytes):
            return
        heard, self.raw = getattr(self, "heard", time.monotonic()), message
        try:
            if self.mutant.ignored and self.mutant.ignores(example.parse(message)[0]):
                return
            if self.has("arrays-taken") and isinstance(message, str) and message.startswith("["):
                for each in json.loads(message):
                    super().take(json.dumps(each))
                return
            super().take(message)
            if self.has("answers-only-life") and '"for"' not in message:
                self.heard = heard
        except Violation:
            super().take(message)
        except End as end:
            if not (self.has("early-violations-ignored") and self.state != "ready" and (end.says or "").startswith("E.PROTO.")):
                raise
        except (KeyError, TypeError, AttributeError):
            if not self.mutant.accepts:
                raise

    def charge(self):
        if self.has("no-budget"):
            return
        if self.has("budget-of-15") and self.budget == 16:
            self.budget = 15
        super().charge()

    def check(self, frame, place, attachment):
        if self.has("any-tenant") and isinstance(frame, dict):
            frame["tenant"] = self.tenant
        if self.has("any-sender") and self.state == "ready" and isinstance(frame, dict):
            frame["sender"] = self.peer
        if isinstance(frame, dict):
            if self.has("depth-31") and isinstance(self.raw, str) and wire.depth(self.raw) > 31:
                raise Violation("E.PROTO.JSON too deep")
            if self.has("opaque-twice") and getattr(frame.get("payload"), "twice", None):
                raise Violation("E.PROTO.SCHEMA /payload: twice")
            if self.has("reset-tenant-checked") and frame.get("type") == "control.reset" and frame.get("tenant") != self.tenant:
                raise End(1011, "E.SESSION.TENANT_MISMATCH")
        try:
            super().check(frame, place, attachment)
        except Violation as wrong:
            found = re.match(r"E\.PROTO\.SCHEMA (/\S*):", str(wrong))
            if not found or f"*:{found[1]}:*" not in self.mutant.accepts and not any(each.split(":")[1] == found[1] for each in self.mutant.accepts):
                self.broken(frame, attachment)
                raise

    def broken(self, frame, attachment):
        """What some mutants do beside refusing a frame."""
        kind = frame.get("type") if isinstance(frame, dict) else None
        if self.has("bad-drains-taken") and kind == "control.drain":
            self.draining = True
        if self.has("violation-takes-seq") and self.state == "ready" and "seq" in (frame if isinstance(frame, dict) else ()):
            self.received += 1
        if self.has("bad-work-done") and str(kind).startswith("biz."):
            asyncio.get_running_loop().call_later(0.15, self.business, frame, "{}", attachment)
        if self.has("bad-acks-answered") and kind in ("control.ack", "control.reset"):
            self.say("control.ack", {"ok": False, "info": "E.PROTO.SCHEMA wrong"})
        if self.has("bad-acks-free") and kind == "control.ack":
            self.budget += 1

    def act(self, frame, kind, payload, body, attachment):
        self.acting = kind
        asked = frame.get("ack", {}).get("request")
        if self.state == "ready":
            if kind == "control.ack" and self.has("acks-acks") and not asked:
                self.acknowledge()
            if kind == "control.ack" and self.has("ack-named") and asked:
                self.acknowledge(frame["id"])
                return
            if kind == "control.session.accept":
                self.rotation(payload)
            unknown = kind.startswith("control.") and kind not in example.PAYLOADS and kind not in example.NOT_OURS
            if unknown and self.has("unknown-silently"):
                return
            if unknown and self.has("unknown-charged"):
                self.charge()
        elif self.has("unknown-early-answered") and kind not in example.PAYLOADS:
            self.say("control.ack", {"ok": False, "for": frame["id"], "info": "E.CMD.UNKNOWN"})
        try:
            super().act(frame, kind, payload, body, attachment)
        except Violation as wrong:
            code = str(wrong).split(" ", maxsplit=1)[0]
            if self.has("token-told") and kind == "control.session.accept":
                raise Violation(f"{wrong} {payload['session_token']}") from None
            if not (code == "E.PROTO.STATE" and self.has("any-state") or code == "E.SESSION.MISMATCH" and self.has("any-session")):
                raise

    def rotation(self, payload):
        if self.has("rotation-credit"):
            self.edge, self.byte_edge = self.acked + 1 + payload["recv_window"], self.bytes_acked + payload["recv_window_bytes"]
            self.pump()
        if self.has("rotation-interval"):
            self.interval = payload["heartbeat_interval_ms"] / 1000
            self.beat_at = min(self.beat_at, time.monotonic() + self.interval)
        if self.has("rotation-positions") and payload["earliest_retained_seq"] > self.received + 1:
            raise End(1011, "E.RESULT.SEQ_GAP a hole")
        if self.has("rotation-replays"):
            for sent in self.out:
                asyncio.get_running_loop().call_later(0.06, self.transmit, sent)
        if self.has("any-session-token"):
            self.token = payload["session_token"]

    def opening(self, frame, kind, payload):
        if self.has("any-ack-answers") and kind == "control.ack":
            payload["for"] = self.asked
        try:
            super().opening(frame, kind, payload)
        except Violation:
            if not self.has("early-ignored"):
                raise

    def accepted(self, frame, payload):
        self.resumed, token, next_seq = self.state == "resume", getattr(self, "token", None), getattr(self, "next_seq", 0)
        if self.resumed:
            if self.has("resume-credit-ignored"):
                payload["recv_window"] = max(0, self.edge - self.acked - 1)
            if self.has("positions-unchecked"):
                payload["last_seen_seq"] = min(max(payload.get("last_seen_seq", -1), self.acked), self.next_new - 1)
                payload["earliest_retained_seq"] = 0
            if self.has("drain-forgotten"):
                self.draining = False
            if self.has("replays-all"):
                for sent in self.out:
                    self.transmit(sent)
            if self.has("no-replay"):
                payload["last_seen_seq"] = self.next_new - 1
        super().accepted(frame, payload)
        if self.has("first-token") and token and self.resumed:
            self.token = token
        if not self.resumed and self.has("numbers-go-on"):
            self.next_seq = self.next_new = next_seq
            self.acked = next_seq - 1
            self.edge = next_seq + payload["recv_window"]

    def acknowledged(self, payload):
        seq = payload.get("ack_seq", -1)
        bits = int(payload.get("ack_bitmap", "0"), 16)
        if self.has("nack-ignored"):
            payload["ok"] = True
        if "recv_window" in payload:
            if self.has("ack-of-nothing") and seq + bits.bit_length() >= self.next_new:
                return
            if self.has("older-ack-resets") and seq < self.acked:
                raise End(1011, "E.SESSION.ACK_INVALID older")
            if self.has("bits-ignored"):
                payload.pop("ack_bitmap", None)
            if self.has("bits-free") and bits:
                payload["ack_seq"] = seq + bits.bit_length()
                payload.pop("ack_bitmap")
            if self.has("edge-too-far"):
                asyncio.get_running_loop().call_later(0.06, self.go_too_far)
            if self.has("edge-never-moves"):
                payload["recv_window"] = payload["recv_window_bytes"] = 0
            if self.out and self.out[0].seq <= seq:
                self.last_acked = self.out[0]
        super().acknowledged(payload)

    def go_too_far(self):
        self.edge += 1
        self.pump()

    def business(self, frame, body, attachment):
        seq = frame["seq"]
        if self.has("deaf-after-resume") and self.resumed:
            return None
        again = seq <= self.received or seq in self.early
        if again and self.has("duplicates-delivered"):
            self.send("biz.result", '{"ok": true}', frame["id"])
        if not again and seq > self.received + 1:
            if self.has("early-dropped"):
                return self.acknowledge()
            if self.has("early-named") and frame.get("ack", {}).get("request"):
                self.acknowledge(frame["id"])
            if self.has("out-of-order") and seq <= self.received + 256:
                self.send("biz.result", '{"ok": true}', frame["id"])
        if seq > self.received + 256:
            if self.has("beyond-resets"):
                raise End(1011, "E.PROTO.STATE beyond")
            if self.has("beyond-free"):
                return self.acknowledge()
            if self.has("edge-unchecked"):
                self.received = seq
                return self.acknowledge()
        return super().business(frame, body, attachment)

    # ---- connections

    def leave(self, task):
        if self.has("vanishes"):
            os._exit(0)
        super().leave(task)

    def expect(self, state, asked):
        super().expect(state, asked)
        if self.has("patient"):
            self.deadline += 1000

    async def connection(self):
        if self.has("never-resumes"):
            self.session = None
        await super().connection()

    async def part(self, end):
        if self.has("early-reset-ends") and end.told and self.state == "handshake":
            self.session = None
        if self.has("own-early-reset-ends") and end.says and self.state != "ready":
            self.session = None
        if end.told and self.has("told-closes-1011"):
            end.close = 1011
        if end.says and self.has("says-closes-1000"):
            end.close = 1000
        await super().part(end)

    def forget(self, why):
        if not self.has("reset-resumes"):
            super().forget(why)


class Journal(example.Journal):
    """The same for the journal."""

    def answer(self, frame, body, attachment):
        has, frame = Faulty.mutant.has, dict(frame)
        if has("no-journal"):
            self.entries.clear()
        if has("key-without-corr"):
            frame.pop("corr", None)
        if has("content-is-payload"):
            attachment, frame["type"] = None, "biz.any"
        if has("content-unchecked") and (frame["id"], frame.get("corr")) in self.entries:
            return self.entries[frame["id"], frame.get("corr")]["result"]
        if has("known-is-refused") and (frame["id"], frame.get("corr")) in self.entries:
            return '{"ok": false, "code": "E.RESULT.DUPLICATE"}'
        return super().answer(frame, body, attachment)


class Client(example.Client):
    """And for the connection."""

    async def read_frame(self, max_size):
        has = Faulty.mutant.has
        frame = await (websockets.WebSocketClientProtocol.read_frame(self, max_size) if has("utf8-at-the-end") else super().read_frame(max_size))
        if has("no-fragments") and not frame.fin:
            raise websockets.ProtocolError("fragments")
        if has("utf8-per-fragment") and frame.opcode < 2:
            frame.data.decode()
        if has("pings-are-life") and frame.opcode == 9:
            Faulty.running.heard = time.monotonic()
        return frame

    async def read_message(self):
        if not Faulty.mutant.has("utf8-at-the-end"):
            return await super().read_message()
        frame = await websockets.WebSocketClientProtocol.read_data_frame(self, self.max_size)
        data, text = (frame.data, frame.opcode == 1) if frame else (None, False)
        while frame and not frame.fin:
            frame = await websockets.WebSocketClientProtocol.read_data_frame(self, self.max_size)
            data += frame.data if frame else b""
        return data.decode() if text else data

    def fail_connection(self, code=1006, reason=""):
        super().fail_connection(1011 if Faulty.mutant.has(f"close-{code}") else code, reason)

    async def write_close_frame(self, close, data=None):
        if Faulty.mutant.has("no-close-echo") and self.close_rcvd:
            self.transport.abort()
        await super().write_close_frame(close, data)

    async def pong(self, data=b""):
        if not Faulty.mutant.has("no-pong"):
            await super().pong(data)

    @staticmethod
    def process_extensions(headers, available_extensions):
        if Faulty.mutant.has("any-extension"):
            return []
        return websockets.WebSocketClientProtocol.process_extensions(headers, available_extensions)


class Far:
    """A random source that makes every wait long."""
    @staticmethod
    def uniform(_, high):
        return high * 1000


class Zero:
    """A number that cannot be set: a hint that is not waited for."""
    def __get__(self, *_):
        return 0

    def __set__(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutant", default=os.environ.get("MUTANT", ""))
    parser.add_argument("--list-mutants", action="store_true")
    options = parser.parse_args()
    if options.list_mutants:
        mutants.print_list("worker")
        return
    if options.mutant and not mutants.exists(options.mutant, "worker"):
        sys.exit(f"no mutant {options.mutant}; see --list-mutants")
    if os.environ.get("CASE", "serve") != "serve":
        sys.exit(127)
    Faulty.mutant = mutants.Mutant(options.mutant, "worker")
    has = Faulty.mutant.has
    example.Client, example.Journal = Client, Journal
    if has("offers-compression"):
        connect = websockets.connect
        websockets.connect = lambda url, **more: connect(url, **{**more, "compression": "deflate"})
    if has("offers-subprotocol"):
        connect_plain = websockets.connect
        websockets.connect = lambda url, **more: connect_plain(url, subprotocols=["windlass"], **more)
    if has("no-cap"):
        example.AT_CAP = "nothing"
    if has("stays-away"):
        example.random = Far
    if has("no-hint"):
        Faulty.wait_first = Zero()
    if has("comes-back"):
        Faulty.finished = Zero()
    if Faulty.mutant.accepts & {"json::*"}:
        parse = example.parse
        def lenient(message):
            try:
                return parse(message)
            except Violation:
                return wire.Object({"type": "control.ack", "id": "x", "ts": "2026-11-16T08:00:00Z", "tenant": os.environ["WINDLASS_TENANT"],
                                       "sender": getattr(Faulty.running, "peer", {"role": "scheduler", "id": "x"}),
                                       "payload": wire.Object({"ok": True})}), "{}", None
        example.parse = lenient
    Faulty.running = Faulty()
    try:
        asyncio.run(Faulty.running.run())
    except asyncio.CancelledError:
        pass


if __name__ == "__main__":
    main()
