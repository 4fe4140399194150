"""Commands for a fleet under faults, and the ledger that says afterwards whether every promise was kept.

A submitter per agent hands in biz.exec and biz.echo through the admin REST. Each command has an id of our choice, so
that when an answer was lost the submission can be repeated, or left as a `maybe`. The ledger knows for every id what
the scheduler said; check() compares that with records, results and effects.
"""
import collections
import http.client
import threading

from world import TENANT, Failure, check, wait_until

PACE = 0.01  # between two submissions of one agent: a rate, not a synchronisation
REFUSALS = ("E.LIMIT.CAPACITY", "E.STORE.FULL", "E.STORE.FAILED", "E.SESSION.DRAINING")  # nothing was stored


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.accepted = {}  # id -> (agent, body)
        self.maybe = {}  # no answer came: it may be stored or not
        self.refused = {}  # id -> problem of the last answer


class Submitter(threading.Thread):
    def __init__(self, load, agent, number, random):
        super().__init__(daemon=True)
        self.load, self.agent, self.number, self.random = load, agent, number, random
        self.problem = None

    def run(self):
        try:
            count = 0
            while not self.load.stopping.wait(PACE):
                count += 1
                self.submit(f"c{self.number}-{count}")
        except Failure as problem:
            self.problem = problem

    def submit(self, command):
        if self.random.random() < 0.4:
            body = {"id": command, "type": "biz.exec", "payload": {"name": "append", "args": [command]}}
        else:
            body = {"id": command, "type": "biz.echo", "payload": {"text": command, "fill": "x" * self.random.randrange(600)}}
        body["timeout_ms"] = 120_000
        gives_up = self.random.random() < 0.3
        path = f"/v1/workers/{TENANT}/{self.agent.id}/commands"
        ledger = self.load.ledger
        while True:
            try:
                answer = self.load.world.admin.request("POST", path, body)
            except (OSError, http.client.HTTPException):
                if gives_up or self.load.abandoning.wait(0.05):
                    with ledger.lock:
                        ledger.maybe[command] = (self.agent, body)
                    return
                continue
            break
        with ledger.lock:
            if answer.status == 202:
                ledger.accepted[command] = (self.agent, body)
            elif answer.status >= 400 and answer.body.get("code") in REFUSALS:
                ledger.refused[command] = answer
            else:
                raise Failure(f"{command} was answered with {answer.status} {answer.body}")


class Load:
    def __init__(self, world, agents=None):
        self.world, self.agents = world, agents or list(world.agents)
        self.ledger = Ledger()
        self.bursts = 0
        self.stopping, self.abandoning = threading.Event(), threading.Event()
        # Drawn in this order from the world's seed, so that a seed gives the same commands to the same agents.
        self.submitters = []
        for number, agent in enumerate(self.agents, 1):
            self.submitters.append(Submitter(self, agent, number, type(world.random)(world.random.random())))

    def __enter__(self):
        for submitter in self.submitters:
            submitter.start()
        return self

    def __exit__(self, kind, *_):
        self.stop()

    def stop(self):
        """The scheduler must be up, or soon be: whoever repeats a submission is given a moment."""
        self.stopping.set()
        for submitter in self.submitters:
            submitter.join(5)
        self.abandoning.set()
        for submitter in self.submitters:
            submitter.join(40)
            check(not submitter.is_alive(), "a submission hangs")
            if submitter.problem:
                raise submitter.problem

    def accepted(self):
        with self.ledger.lock:
            return len(self.ledger.accepted)

    def wait_accepted(self, more, seconds=30.0):
        """Until that many more are accepted: the measure of `under load`."""
        goal = self.accepted() + more
        wait_until(lambda: self.accepted() >= goal, f"{more} more commands are accepted", seconds)

    def burst(self, agent, count):
        """That many at once, from the calling thread, so that a fault can follow at their heels."""
        hasty = next(each for each in self.submitters if each.agent is agent)
        for _ in range(count):
            self.bursts += 1
            hasty.submit(f"b{self.bursts}")

    # ---- afterwards

    def settle(self, seconds=40.0):
        """Every command that the scheduler accepted has an outcome."""
        for state in ("waiting", "sent"):
            wait_until(lambda s=state: not self.world.admin.get(f"/v1/commands?tenant={TENANT}&state={s}&limit=1")["commands"],
                       f"no command is {state} any more", seconds)

    def records(self):
        """id -> (state, result) of everything the scheduler knows."""
        found = {}
        for command in [*self.ledger.accepted, *self.ledger.maybe, *self.ledger.refused]:
            answer = self.world.admin.request("GET", f"/v1/commands/{TENANT}/{command}")
            if answer.status == 200:
                found[command] = (answer.body["state"], (answer.body.get("result") or {}).get("payload"))
            else:
                check(answer.status == 404, f"GET of {command}: {answer.status} {answer.body}")
        return found

    def check(self):
        """Zero lost, each effect once, each result the right one. Returns the records for a later look."""
        records = self.records()
        effects = collections.Counter()
        where = {}
        for agent in self.agents:
            lines = agent.effect_lines()
            effects.update(lines)
            where.update({line: agent.name for line in lines})
        known = {**self.ledger.accepted, **self.ledger.maybe}
        for command in effects:
            check(command in known, f"{command} took effect at {where[command]} and was never accepted")
        for command, (agent, body) in known.items():
            self._check_one(command, agent, body, records.get(command), effects[command])
        for command in self.ledger.refused:
            check(command not in records, f"{command} was refused and is known all the same")
        return records

    def _check_one(self, command, agent, body, record, effects):
        is_exec = body["type"] == "biz.exec"
        if record is None:
            check(command in self.ledger.maybe, f"{command} was accepted and is lost")
            check(effects == 0, f"{command} took effect {effects} times and is not known")
            return
        state, result = record
        check(state == "done", f"{command} of {agent.name} ended as {state}: {result}")
        if is_exec:
            check(effects == 1, f"{command} of {agent.name} took effect {effects} times")
            check(result.get("ok") is True and result.get("stdout") == command + "\n", f"{command}: the result is {result}")
        else:
            check(effects == 0 and result == body["payload"], f"{command}: the result is {str(result)[:200]}")

    def summary(self):
        ledger = self.ledger
        return f"{len(ledger.accepted)} accepted, {len(ledger.maybe)} unanswered, {len(ledger.refused)} refused"
