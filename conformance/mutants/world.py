"""One scheduler: its sessions, what it remembers over a restart, and what operators may ask of it."""
import asyncio
import collections
import hashlib
import json
import random
import sys
import time
import uuid

import stream
import tokens

HOOKS = {"send", "drain", "revoke", "rotate", "restart", "stop"}


class Session:
    def __init__(self, world, connection):
        self.id, self.world, self.opened = "s-" + uuid.uuid4().hex, world, time.monotonic()
        self.tenant, self.instance, self.role, self.revision = connection.tenant, connection.instance, connection.role, connection.revision
        window = 64 if self.revision == 1 else world.settings.window
        self.out = stream.Outgoing(world.has)
        self.inward = stream.Incoming(window, world.settings.window_bytes, world.has)
        if self.revision == 1 and not world.has("revision-1-no-credit") or world.has("credit-before-ack"):
            self.out.credit(64, 2**53)  # REV-11
        self.gen = self.proven = 0
        self.accepts = {}  # id of an accept that is not acknowledged yet: its gen
        self.connection, self.detached = connection, None
        self.budget, self.budget_at = 15.0 if world.has("budget-of-15") else 16.0, time.monotonic()
        self.short = False  # of memory or disk
        self.draining, self.drain_id, self.drain_acked, self.drain_deadline, self.inflight = False, None, True, None, None

    def expired(self):
        """RES-1."""
        return self.connection is None and time.monotonic() - self.detached > self.world.settings.resume_ttl


class World:
    def __init__(self, settings, mutant):
        self.settings, self.mutant, self.has = settings, mutant, mutant.has
        self.signer, self.scheduler_id = tokens.Signer(), "scheduler-1"
        self.commands = collections.defaultdict(list)  # the outbox, by (tenant, instance): survives a restart
        self.journal, self.revoked = {}, {}
        self.sessions, self.newest, self.connections, self.stopped = {}, {}, set(), False
        self.barred = set()  # used by a mutant

    # ---- sessions

    def find(self, tenant, instance):
        return self.sessions.get(self.newest.get((tenant, instance)))

    def open(self, connection):
        """A new registration ends the session that was (FEN-2, FEN-3)."""
        old = self.find(connection.tenant, connection.instance)
        for each in list(self.sessions.values()) if self.has("replaces-everybody") else [old] if old else []:
            self.supersede(each)
            self.end(each)
        session = Session(self, connection)
        if old and self.has("stream-survives-registration"):
            session.inward = old.inward
        self.sessions[session.id] = session
        self.newest[session.tenant, session.instance] = session.id
        return session

    def supersede(self, session):
        if session.connection:
            if time.monotonic() - session.opened < self.settings.resume_ttl:
                self.tell("taken over", session)
            connection, session.connection = session.connection, None
            session.detached = time.monotonic()
            if self.has("old-connection-ends-new"):
                asyncio.get_running_loop().call_later(0.05, self.disturb, session)
            if not self.has("old-connection-stays"):
                connection.session = None  # FEN-1
                silent = session.revision == 1 and not self.has("revision-1-reset")  # REV-9
                connection.end(1011, None if silent else "E.SESSION.SUPERSEDED", "a newer connection",
                               close_reason="" if self.has("superseded-without-reason") else "superseded session")

    def disturb(self, session):
        if session.connection:
            session.connection.end(1011, "E.INTERNAL", "the old connection is gone")

    def end(self, session):
        """The session is over; what its worker has not answered goes out with the next one (RTX-5)."""
        if self.sessions.pop(session.id, None):
            self.tell(f"ended with {len(session.out.kept)} frames unacknowledged", session)
        kept = {sent.head["id"] for sent in session.out.kept}
        for command in self.commands[session.tenant, session.instance] if self.has("acknowledged-is-done") else ():
            command["done"] = command["done"] or command["session"] == session.id and command["id"] not in kept
        self.unsend(session.tenant, session.instance)

    def unsend(self, *worker):
        for command in self.commands[worker]:
            command["session"] = None

    def token(self, session):
        if session.gen and self.has("same-token"):
            return session.token
        session.gen += 1
        if self.has("token-dies-at-once"):
            session.proven = session.gen
        session.token = self.sign(session)
        return session.token

    def sign(self, session):
        return self.signer.sign(session.id, session.instance, session.tenant, session.gen)

    def tell(self, text, session):
        print(f"{self.mutant.name or 'reference'}: {session.tenant}/{session.instance} {session.id}: {text}", file=sys.stderr, flush=True)

    # ---- work

    def feed(self, session):
        """Sends what waits for this worker; nothing new in DRAINING (DRN-2) or while it is short (LIV-7)."""
        for command in self.commands[session.tenant, session.instance]:
            if not command["done"] and command["session"] is None:
                if session.draining and "corr" not in command and not self.has("work-while-draining"):
                    continue
                if session.short and "corr" not in command:  # LIV-7
                    continue
                command["session"] = session.id
                more = {"corr": command["corr"]} if "corr" in command else {}
                session.out.push({"type": command["type"], "id": command["id"], **more}, command["body"], None)
        if session.connection:
            session.connection.pump()

    def begin_drain(self, session, seconds):
        """DRN-2: new work that credit did not let out yet goes back to the outbox."""
        session.draining, session.drain_deadline = True, time.monotonic() + seconds
        if not self.has("work-while-draining"):
            back = {sent.head["id"] for sent in session.out.take_back()}
            for command in self.commands[session.tenant, session.instance]:
                command["session"] = None if command["id"] in back else command["session"]

    def deliver(self, session, frame):
        """A frame is owned: a result ends its command; nothing takes effect twice (IDM-1, IDM-2)."""
        corr, attachment = frame.get("corr"), frame["_bytes"] or b""
        key = (session.tenant, session.role, session.instance, session.id if session.revision == 1 else "", frame["id"], corr)
        content = hashlib.sha256(json.dumps([frame["type"], frame["_body"]]).encode() + attachment).digest()
        known = key in self.journal
        if known and self.has("same-id-refused") or corr and self.has("second-result-refused") and corr in {key[-1] for key in self.journal}:
            session.connection.known_is_refused()
        if self.journal.setdefault(key, content) != content:
            if self.has("duplicate-in-ack"):
                session.connection.violated(frame, "E.RESULT.DUPLICATE known")
            self.answer(session, frame, "E.RESULT.DUPLICATE")
            return
        for command in self.commands[session.tenant, session.instance]:
            if command["id"] == corr:
                command["done"] = True

    def answer(self, session, frame, code):
        self.submit(session.tenant, session.instance, {"id": uuid.uuid4().hex, "corr": frame["id"], "type": "biz.error", "body": json.dumps({"code": code})})

    def submit(self, tenant, instance, command):
        self.commands[tenant, instance].append({**command, "done": False, "session": None})
        session = self.find(tenant, instance)
        if session and self.has("no-byte-window"):
            asyncio.get_running_loop().call_later(0.3, self.feed, session)
        elif session:
            self.feed(session)

    def forget_drain(self, session):
        session.draining = False
        self.feed(session)

    # ---- hooks

    def hook(self, name, tenant, instance, env):
        session = self.find(tenant, instance)
        connection = session.connection if session else None
        if name == "send":
            self.submit(tenant, instance, {"id": "c-" + uuid.uuid4().hex, "type": env.get("TYPE") or "biz.command.run",
                                           "body": env.get("PAYLOAD") or '{"do": "something"}'})
        elif name == "drain" and session:
            self.begin_drain(session, int(env.get("DEADLINE_MS") or 300000) / 1000)
            session.drain_acked = False
            if connection:
                connection.say_drain()
        elif name == "rotate" and connection:
            if self.has("rotation-restarts"):
                session.inward.__init__(session.inward.window, session.inward.window_bytes, self.has)
            connection.accept(resumed=not self.has("rotation-not-resumed"))
        elif name == "revoke":
            self.revoked[tenant, instance] = tokens.milliseconds()
            time.sleep(0.002)  # so that a token issued from now on is younger
            if connection:
                connection.end(1011, "E.AUTH.INVALID_TOKEN", "revoked")
            if session:
                self.end(session)
        elif name == "restart":
            self.restart()
        elif name == "stop":
            self.stop()
        else:
            return f"{name}: no such hook, or no such worker"
        return None

    def restart(self):
        """As after kill -9: connections break, sessions are gone, the store is there."""
        for connection in list(self.connections):
            connection.session = None
            try:
                connection.ws.transport.abort()
            except Exception as error:  # pylint: disable=broad-except
                print(f"abort: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # it ends at this moment: good enough
        self.sessions, self.newest, self.stopped = {}, {}, False
        if self.has("keys-lost"):
            self.signer = tokens.Signer()
        for worker in list(self.commands):
            self.unsend(*worker)

    def stop(self):
        """DRN-6: each at its own time."""
        self.stopped = True
        for connection in list(self.connections):
            asyncio.get_running_loop().call_later(random.uniform(0, self.settings.drain_window), connection.stop)
