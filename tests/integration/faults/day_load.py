"""Work on a bad day, and its ledger: invocations by HTTP and by the scheduler, commands to single agents.

An error is somebody's own only if a fault explains it: an invocation may be lost with its worker, refused while nobody can take it,
broken with the runtime's connection. The ledger counts what each fault may cost, and effects are counted outside.
"""
import collections
import dataclasses
import http.client
import json
import threading
import time

from callers import BROKEN, LOST, OK, REFUSED
from day_world import QUIET_APPLICATION
from function_world import APPLICATION
from world import TENANT, Failure, check, wait_until

PACE = 0.05
LOST_CODES = ("E.INVOCATION.WORKER_LOST",)
REFUSAL_CODES = ("E.APP.NO_WORKERS", "E.LIMIT.CAPACITY", "E.HTTP.NO_APPLICATION", "E.SESSION.DRAINING", "E.INVOCATION.NO_WORKER", "E.APP.STARTING")
RESULTS = (OK, LOST, REFUSED, BROKEN)


@dataclasses.dataclass
class Try:
    began: float
    by_order: bool
    ended: float = 0.0
    result: str = ""
    said: str = ""


class Caller(threading.Thread):
    def __init__(self, load, name, by_order, random, is_quiet=False):
        super().__init__(daemon=True)
        self.load, self.world, self.name, self.by_order, self.random = load, load.world, name, by_order, random
        self.is_quiet = is_quiet  # of the application that no fault is meant for
        self.connection = None
        self.problem = None

    def run(self):
        count = 0
        try:
            while not self.load.stopping.wait(PACE):
                count += 1
                key = f"{self.name}-{count}"
                one = Try(time.monotonic(), self.by_order)
                self.load.tries[key] = one
                order = {"key": key, "wait_ms": self.random.randrange(5, 120)}
                result, one.said = self.by_scheduler(order) if self.by_order else self.by_http(order)
                one.ended = time.monotonic()
                one.result = result
                took = one.ended - one.began
                check(not self.is_quiet or (result == OK and took < 10), f"{key}, to workers that nothing happened to, took {took:.1f} s: {result} {one.said}")
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem if isinstance(problem, Failure) else Failure(f"{self.name}-{count}: {problem!r}")

    def by_http(self, order):
        port = (self.world.quiet_runtime if self.is_quiet else self.world.runtime).http_port
        if self.connection is None or self.connection.port != port:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            # By name: a place may move to where the other application is, and both have this path.
            application = QUIET_APPLICATION if self.is_quiet else APPLICATION
            self.connection.request("POST", f"/{application}/api/append", json.dumps(order), {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            text = response.read().decode()
        except TimeoutError:
            raise Failure(f"{order['key']} hangs: no answer in 120 s") from None
        except (OSError, http.client.HTTPException) as broken:
            self.connection.close()
            return BROKEN, repr(broken)
        if response.status == 200:
            check(text == order["key"], f"{order['key']} was answered with {text}")
            return OK, ""
        try:
            code = json.loads(text).get("code", "")
        except ValueError:
            code = ""
        said = f"{response.status} {text}"
        if code in LOST_CODES and response.status == 502:
            return LOST, said
        check(code in REFUSAL_CODES and response.status in (429, 503), f"{order['key']} was answered with {said}")
        check(response.headers.get("Retry-After"), f"{order['key']} was refused without Retry-After: {said}")
        return REFUSED, said

    def by_scheduler(self, order):
        """The same id until the scheduler has said something: a repetition is done once."""
        path = f"/v1/apps/{TENANT}/{APPLICATION}/invoke"
        answer = self.load.insist("POST", path, {"function": "append_order", "data": order, "id": order["key"]})
        if answer.status >= 400:
            check(answer.body.get("code") in REFUSAL_CODES, f"{order['key']} was answered with {answer.status} {answer.body}")
            return REFUSED, str(answer.body)
        return self.load.outcome(order["key"])


class Submitter(threading.Thread):
    """Commands to agents by their names, the dead too: each that is accepted ends in one way."""

    def __init__(self, load, name, random):
        super().__init__(daemon=True)
        self.load, self.world, self.name, self.random = load, load.world, name, random
        self.problem = None

    def run(self):
        count = 0
        try:
            while not self.load.stopping.wait(4 * PACE):
                agent = self.random.choice(self.world.named())
                count += 1
                key = f"{self.name}-{count}"
                body = {"id": key, "type": "biz.exec", "payload": {"name": "append", "args": [key]}, "timeout_ms": 120_000}
                answer = self.load.insist("POST", f"/v1/workers/{TENANT}/{agent.id}/commands", body)
                if answer.status == 202:
                    self.load.commands[key] = agent
                else:
                    self.load.refused[key] = agent
                    check(answer.status in (404, 409, 429, 503), f"{key} to {agent.name} was answered with {answer.status} {answer.body}")
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem if isinstance(problem, Failure) else Failure(f"{self.name}-{count}: {problem!r}")


class DayLoad:
    def __init__(self, world, by_http=4, by_order=2, submitters=2):
        self.world = world
        self.stopping = threading.Event()
        self.tries = {}  # key -> Try
        self.commands, self.refused = {}, {}  # key -> agent
        self.ended = {}  # key -> record of a command that has its outcome
        new = type(world.random)
        self.threads = [Caller(self, f"h{i}", False, new(world.random.random())) for i in range(by_http)]
        self.threads += [Caller(self, f"o{i}", True, new(world.random.random())) for i in range(by_order)]
        self.threads += [Caller(self, "q0", False, new(world.random.random()), is_quiet=True)]
        self.threads += [Submitter(self, f"c{i}", new(world.random.random())) for i in range(submitters)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()

    def insist(self, method, path, body=None):
        """Until somebody answers; the scheduler may be away for a while."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.world.admin.request(method, path, body)
            except (OSError, http.client.HTTPException):
                check(time.monotonic() < deadline, f"{method} {path}: nobody answers for 60 s")
                time.sleep(0.1)

    def outcome(self, key):
        """Of an invocation by the scheduler."""
        deadline = time.monotonic() + 120
        while True:
            answer = self.insist("GET", f"/v1/commands/{TENANT}/{key}?wait_ms=5000")
            check(answer.status == 200, f"{key} was accepted, and now: {answer.status} {answer.body}")
            record = answer.body
            if record["state"] not in ("waiting", "sent"):
                break
            check(time.monotonic() < deadline, f"{key} has no outcome after 120 s: {record}")
        if record["state"] == "done":
            result = record["result"]["payload"]
            if result["ok"]:
                check(result["return"] == key, f"{key} was answered with {result['return']}")
                return OK, ""
            if result.get("cause") == "worker_lost":
                return LOST, str(result)
            check(result.get("code") in REFUSAL_CODES or result.get("cause") in ("no_worker", "no_workers"), f"{key} ended as {record}")
            return REFUSED, str(result)
        raise Failure(f"{key} ended as {record}")

    def check_well(self):
        for thread in self.threads:
            if thread.problem:
                raise thread.problem

    def finish(self, seconds):
        self.stopping.set()
        wait_until(lambda: not any(thread.is_alive() for thread in self.threads), "every caller has its answer", seconds)
        self.check_well()

    # ---- the ledger

    def judge(self, round_):
        """The invocations that ended in a round: who may have been hurt by its faults was, nobody else."""
        mine = [(key, one) for key, one in self.tries.copy().items() if one.result and round_.began <= one.ended]
        lost = [(key, one) for key, one in self.tries.copy().items() if one.result == LOST]
        check(len(lost) <= round_.may_lose, f"{len(lost)} invocations were lost and {round_.may_lose} may have been: {lost[:3]}; {round_.story()}")
        for result, by_order, may in ((REFUSED, False, round_.may_refuse), (REFUSED, True, round_.may_refuse_orders), (BROKEN, False, round_.may_break)):
            wrong = [(key, one.said) for key, one in mine if one.result == result and one.by_order == by_order]
            check(may or not wrong, f"{len(wrong)} invocations were {result} though workers were there: {wrong[:2]}; {round_.story()}")

    def check(self, runtime_kills):
        """At the end of the day: one outcome each, effects as the outcome says, nothing twice unless the runtime was killed on the way."""
        runs = collections.Counter(self.world.effect_lines())
        unknown = [key for key in runs if key not in self.tries]
        check(not unknown, f"{len(unknown)} effects belong to nobody, among them {unknown[:3]}")
        for key, one in self.tries.items():
            check(one.result in RESULTS, f"{key} has no outcome")
            count = runs[key]
            most = 1 + runtime_kills if one.by_order else 1
            least, most = {OK: (1, most), LOST: (0, most), BROKEN: (0, 1), REFUSED: (0, 1 if one.by_order else 0)}[one.result]
            check(least <= count <= most, f"{key}, which is {one.result}, ran {count} times")
        return collections.Counter(one.result for one in self.tries.values())

    def command_outcome(self, key, agent, deadline):
        while True:
            record = self.insist("GET", f"/v1/commands/{TENANT}/{key}?wait_ms=5000").body
            if record.get("state") not in ("waiting", "sent"):
                break
            check(time.monotonic() < deadline, f"{key} to {agent.name} has no outcome: {record}")
        check("state" in record, f"{key} to {agent.name} was accepted and is lost: {record}")
        return record

    def check_commands(self, seconds):
        """Each command that was accepted has one outcome; one to an agent that nobody touched is done; effects are once at most."""
        deadline = time.monotonic() + seconds
        records = {key: self.command_outcome(key, agent, deadline) for key, agent in self.commands.items()}
        effects = collections.Counter(line for agent in self.world.agents for line in agent.effect_lines())
        failed = 0
        for key, agent in self.commands.items():
            record = records[key]
            if record["state"] == "done" and record["result"]["payload"].get("ok"):
                check(effects[key] == 1, f"{key} of {agent.name} is done and took effect {effects[key]} times")
                continue
            failed += 1
            check(effects[key] <= 1, f"{key} of {agent.name} failed and took effect {effects[key]} times")
            check(self.world.lives[agent].was_hit, f"{key} to {agent.name}, which nobody touched, ended as {record}")
        for key, agent in self.refused.items():
            check(effects[key] == 0, f"{key} to {agent.name} was refused and took effect")
        return f"{len(self.commands)} commands accepted, {failed} ended as failed, {len(self.refused)} refused"
