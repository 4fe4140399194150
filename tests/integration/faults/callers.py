"""Invocations under way all the time, and the ledger that says afterwards whether every promise was kept.

Each caller invokes one function again and again, by HTTP at the runtime or by the scheduler's `invoke`. An invocation
that was not answered with success is tried again under a new id, as a client would; every try is in the ledger.
"""
import collections
import dataclasses
import http.client
import json
import threading

from function_world import APPLICATION
from world import TENANT, Failure, check, wait_until

OK = "ok"
LOST = "lost"  # taken, and settled as a failure that may be tried again: the function ran or did not
REFUSED = "refused"  # not taken: it certainly did not run
BROKEN = "broken"  # the connection was gone before the answer: nobody can tell
LOST_CAUSES = ("worker_lost",)
REFUSALS = ("E.APP.NO_WORKERS", "E.LIMIT.CAPACITY", "E.HTTP.NO_APPLICATION")
RETRY_PACE = 0.05  # before a refused one is tried again: a rate, not a synchronisation


@dataclasses.dataclass
class Try:
    key: str  # of all tries of one invocation
    result: str = ""
    said: str = ""  # why, if it was refused
    record: dict = dataclasses.field(default_factory=dict)  # what the scheduler said first, of those that went that way


class Caller(threading.Thread):
    def __init__(self, callers, name, random):
        super().__init__(daemon=True)
        self.callers, self.world, self.name, self.random = callers, callers.world, name, random
        self.connection = None
        self.problem = None
        self.current = None

    def run(self):
        try:
            count = 0
            while not self.callers.stopping.is_set():
                count += 1
                self.invoke(f"{self.name}-{count}")
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem if isinstance(problem, Failure) else Failure(f"{self.current}: {problem!r}")

    def invoke(self, key):
        """Until it succeeds."""
        tries = 0
        while True:
            tries += 1
            self.current = f"{key}-{tries}"
            order = {"key": self.current, "wait_ms": self.random.randrange(20, 80)}
            one = Try(key)
            self.callers.begin(self.current, one)
            one.result = self.call(order, one)
            self.callers.end()
            if one.result == OK:
                return
            if one.result in (REFUSED, BROKEN):
                self.callers.abandoning.wait(RETRY_PACE)
            check(not self.callers.abandoning.is_set(), f"{key} did not succeed in {tries} tries")

    def call(self, order, one):
        raise NotImplementedError


class HttpCaller(Caller):
    def call(self, order, one):
        port = self.world.runtime.http_port
        if self.connection is None or self.connection.port != port:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            self.connection.request("POST", "/api/append", json.dumps(order), {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            text = response.read().decode()
        except (ConnectionError, http.client.HTTPException):
            self.connection.close()
            return BROKEN
        if response.status == 200:
            check(text == order["key"], f"{order['key']} was answered with {text}")
            return OK
        code = json.loads(text).get("code", "")
        if code in [f"E.INVOCATION.{cause.upper()}" for cause in LOST_CAUSES] and response.status == 502:
            return LOST
        check(code in REFUSALS, f"{order['key']} was answered with {response.status} {text}")
        one.said = text
        return REFUSED


class OrderCaller(Caller):
    """By the scheduler: `windlass invoke` without the process."""

    def call(self, order, one):
        path = f"/v1/apps/{TENANT}/{APPLICATION}/invoke"
        answer = self.world.admin.request("POST", path, {"function": "append_order", "data": order, "id": order["key"]})
        if answer.status >= 400 and answer.body.get("code") in REFUSALS:
            one.said = str(answer.body)
            return REFUSED
        check(answer.status == 202, f"{order['key']} was answered with {answer.status} {answer.body}")
        while True:
            record = self.world.admin.get(f"/v1/commands/{TENANT}/{order['key']}?wait_ms=10000")
            if record["state"] not in ("waiting", "sent"):
                break
            check(not self.callers.abandoning.is_set(), f"{order['key']} has no outcome: {record}")
        one.record = record
        check(record["state"] == "done", f"{order['key']} ended as {record['state']}: {record}")
        result = record["result"]["payload"]
        if result["ok"]:
            check(result["return"] == order["key"], f"{order['key']} was answered with {result['return']}")
            return OK
        check(result.get("cause") in LOST_CAUSES, f"{order['key']} was answered with {result}")
        return LOST


class Callers:
    def __init__(self, world, by_http, by_order):
        self.world = world
        self.lock = threading.Lock()
        self.tries = {}  # id -> Try
        self.answered = 0
        self.stopping, self.abandoning = threading.Event(), threading.Event()
        # Drawn in this order from the world's seed.
        kinds = [(HttpCaller, f"h{number}") for number in range(by_http)] + [(OrderCaller, f"o{number}") for number in range(by_order)]
        self.callers = [kind(self, name, type(world.random)(world.random.random())) for kind, name in kinds]

    def __enter__(self):
        for caller in self.callers:
            caller.start()
        return self

    def __exit__(self, kind, *_):
        self.stopping.set()
        self.abandoning.set()

    def begin(self, command, one):
        with self.lock:
            self.tries[command] = one

    def end(self):
        with self.lock:
            self.answered += 1

    def check_well(self):
        for caller in self.callers:
            if caller.problem:
                raise caller.problem

    def wait_answered(self, more, seconds=30.0):
        """Until that many more have an outcome: the measure of `under load`."""
        goal = self.answered + more

        def is_reached():
            self.check_well()
            return self.answered >= goal
        wait_until(is_reached, f"{more} more invocations are answered", seconds)

    def finish(self, seconds=40.0):
        """No new ones; each that was begun goes on until it succeeded."""
        self.stopping.set()
        wait_until(lambda: not any(caller.is_alive() for caller in self.callers), "every invocation is answered", seconds)
        self.check_well()

    # ---- afterwards

    def count(self, result):
        return sum(1 for one in self.tries.values() if one.result == result)

    def check(self, runs_max=1):
        """Each invocation succeeded once, each try has one outcome, and none ran more often than it may."""
        effects = collections.Counter(self.world.effect_lines())
        unknown = [line for line in effects if line not in self.tries]
        check(not unknown, f"{len(unknown)} effects belong to nobody, among them {unknown[:3]}")
        successes = collections.Counter(one.key for one in self.tries.values() if one.result == OK)
        for command, one in self.tries.items():
            runs = effects[command]
            check(one.result, f"{command} has no outcome")
            check(successes[one.key] == 1, f"{one.key} succeeded {successes[one.key]} times")
            # Whoever asked by HTTP and was answered has nobody that would ask again for him.
            most_done = runs_max if one.record else 1
            least, most = {OK: (1, most_done), LOST: (0, most_done), BROKEN: (0, 1), REFUSED: (0, 0)}[one.result]
            check(least <= runs <= most, f"{command}, which is {one.result}, ran {runs} times")
            if one.record:
                now = self.world.admin.get(f"/v1/commands/{TENANT}/{command}")
                check(now == one.record, f"{command} had the outcome {one.record} and has {now}")
        self._check_settlements()

    def runs_beyond_one(self):
        lines = self.world.effect_lines()
        return len(lines) - len(set(lines))

    def _check_settlements(self):
        """The runtime's own log: it settled each invocation once, and no worker answered what was settled before."""
        ended = self.world.runtime.events("an invocation ended")
        failed = self.world.runtime.events("an invocation failed")
        twice = [id for id, count in collections.Counter(line["invocation"] for line in ended + failed).items() if count > 1]
        check(not twice, f"{len(twice)} invocations were settled twice, among them {twice[:3]}")
        stray = self.world.runtime.events("an answer to nothing that is under way")
        check(not stray, f"{len(stray)} answers came that nobody waited for, such as {stray[:1]}")
        if self.world.runtime.starts == 1:
            check((len(ended), len(failed)) == (self.count(OK), self.count(LOST)),
                  f"the runtime settled {len(ended)} as done and {len(failed)} as failed; callers were told {self.summary()}")

    def refusal(self):
        """One of the reasons, for whoever wonders."""
        return next((one.said for one in self.tries.values() if one.said), "")

    def summary(self):
        counts = {result: self.count(result) for result in (LOST, BROKEN, REFUSED)}
        return f"{self.count(OK)} done" + "".join(f", {count} {result}" for result, count in counts.items() if count)
