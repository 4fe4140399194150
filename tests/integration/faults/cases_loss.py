"""What is left dead: an agent or a runtime that is killed and not started again, and what everybody says of it meanwhile.

Also what must not depend on who comes back first: the version that serves, and the settings that workers run with.
"""
import http.client
import json
import random
import signal
import threading
import time

from day_world import knows_lost_after
from fault_proxy import FaultProxy
from function_world import APPLICATION, FunctionWorld
from world import TENANT, check, wait_until

LOST_AFTER = 3  # seconds; 45 in production
NOTICED = 5  # seconds from a cut until every view says so
SESSION = f'heartbeat = "1s"\nlost_after = "{LOST_AFTER}s"'
RUNTIME = f'lost_after = "{LOST_AFTER}s"'


class LossWorld(FunctionWorld):
    """With a scheduler that may be started again elsewhere, and runtimes that find it."""

    def __init__(self, options, is_hasty=False):
        super().__init__(options)
        self.link = FaultProxy(random.Random(self.random.random()))  # from runtimes to the scheduler
        self.others = []  # runtimes that were `runtime` before
        if is_hasty and knows_lost_after(self.program("windlass-scheduler")):
            self.session_settings, self.runtime_core_settings = SESSION, RUNTIME

    def scheduler_port(self):
        self.link.upstream = self.port
        return self.link.port

    def restart_scheduler(self):
        self.scheduler.start()
        self.link.upstream = self.port

    def start_other_runtime(self, runtime_id):
        """It is `runtime` from now on."""
        self.others.append(self.runtime)
        self.runtime = self.new_runtime(runtime_id, runtime_id)
        self.runtime.start()

    def processes(self):
        return [*super().processes(), *self.others]

    def end(self, is_good):
        super().end(is_good)
        self.link.close()


class Asker(threading.Thread):
    """Asks one path of the runtime again and again and keeps every answer as (status, text)."""

    def __init__(self, world, path):
        super().__init__(daemon=True)
        self.world, self.path = world, path
        self.answers, self.stopping = [], threading.Event()

    def run(self):
        while not self.stopping.wait(0.01):
            connection = http.client.HTTPConnection("127.0.0.1", self.world.runtime.http_port, timeout=60)
            try:
                connection.request("GET", self.path)
                response = connection.getresponse()
                self.answers.append((response.status, response.read().decode(), response.headers.get("Retry-After")))
            except (OSError, http.client.HTTPException):
                pass  # the runtime is being killed
            finally:
                connection.close()

    def end(self):
        self.stopping.set()
        self.join(70)
        check(not self.is_alive(), f"GET {self.path} has no answer")

    def texts(self):
        return [text for status, text, _ in list(self.answers) if status == 200]


def app(world):
    return world.admin.get(f"/v1/apps/{TENANT}/{APPLICATION}")


def assignment(world, agent):
    return next((each for each in app(world)["assignments"] if each["worker"] == agent.id), {"state": "none"})


def views_of_cut_off(world, agent):
    """Every view that still says that the agent's worker is there; none: all of them know."""
    health, status = json.loads(world.runtime.ask("/health")), json.loads(world.runtime.ask("/status"))
    runtime = world.admin.get("/v1/runtimes")["runtimes"][0]
    served = [each for each in runtime["applications"] if each["application_id"] == APPLICATION]
    metrics = dict(line.rpartition(" ")[::2] for line in world.runtime.ask("/metrics").splitlines() if not line.startswith("#"))
    said = {
        "worker": (agent.facts() or {}).get("state") not in ("DETACHED", "LOST", "GONE"),
        "language worker": (agent.facts() or {}).get("language_worker", {}).get("state") == "ready",
        "windlass workers": "DETACHED" not in world.windlass("workers") and "LOST" not in world.windlass("workers"),
        "windlass apps": "1 ready" not in world.windlass("apps"),
        "apps ready": app(world)["workers"]["ready"] != 1,
        "runtimes ready": not served or served[0]["ready"] != 1,
        "/health": health["ready_workers"] != 1 or health["detached_workers"] < 1,
        "/status": not any(each["worker"].startswith(agent.id) and each["detached"] for each in status["workers"]),
        "/metrics": float(metrics.get("windlass_runtime_detached_workers", 0)) < 1,
    }
    return [name for name, is_wrong in said.items() if is_wrong]


def agent_left_dead(options):
    """kill -9 of an agent that nobody starts again: every view knows within 5 s, what it had fails when it is lost, its place goes to
    a placeholder, and when it comes back it is a placeholder itself."""
    with LossWorld(options, True) as world:
        world.start(2)
        spare = world.add_agent()
        spare.start()
        world.wait_ready()
        wait_until(lambda: (spare.facts() or {}).get("language_worker", {}).get("state") == "placeholder", "there is a placeholder", 30)
        victim = world.agents[0]
        answers = []

        def hang(number):
            connection = http.client.HTTPConnection("127.0.0.1", world.runtime.http_port, timeout=60)
            try:
                connection.request("POST", "/api/append", json.dumps({"key": f"k{number}", "wait_ms": 30000}))
                answers.append(connection.getresponse().status)
            except (OSError, http.client.HTTPException):
                pass  # the test is over before the function is
            finally:
                connection.close()
        callers = [threading.Thread(target=hang, args=(number,), daemon=True) for number in range(2)]
        for caller in callers:
            caller.start()
        wait_until(lambda: (world.runtime.worker_of(victim) or {}).get("in_flight"), "it is at work")
        victim.kill()
        cut = time.monotonic()
        wait_until(lambda: not views_of_cut_off(world, victim), f"all know that it is cut off: {views_of_cut_off(world, victim)}", NOTICED)
        noticed = time.monotonic() - cut
        wait_until(lambda: 502 in answers, "what it had is settled", LOST_AFTER + 20)
        settled = time.monotonic() - cut
        check(settled >= LOST_AFTER * 0.9, f"it was given up after {settled:.1f} s; a shorter cut costs nothing")
        wait_until(lambda: assignment(world, spare)["state"] == "ready", "the placeholder has its place", 30)
        moved = time.monotonic() - cut
        check(assignment(world, victim)["state"] == "lost", f"the dead one is {assignment(world, victim)}")
        check((victim.facts() or {}).get("state") == "LOST", f"the dead one is {victim.facts()}")
        victim.start()
        wait_until(lambda: (victim.facts() or {}).get("language_worker", {}).get("state") == "placeholder",
                   "it comes back as a placeholder", 40)
        check(app(world)["workers"]["ready"] == 2, f"there are {app(world)['workers']}")
        return f"all views knew after {noticed:.1f} s, callers after {settled:.1f} s, another had its place after {moved:.1f} s"


def runtime_left_dead(options):
    """kill -9 of a runtime that nobody starts again: its workers go to the other one."""
    with LossWorld(options, True) as world:
        world.start(1)
        dead = world.runtime
        world.start_other_runtime("runtime-2")
        wait_until(lambda: len([each for each in world.admin.get("/v1/runtimes")["runtimes"] if each.get("url")]) == 2, "both are known")
        dead.kill()
        wait_until(lambda: app(world)["workers"]["ready"] == 0, "apps knows that nobody is ready", NOTICED)
        wait_until(lambda: assignment(world, world.agents[0]).get("runtime") == "runtime-2", "it is to go to the other runtime", LOST_AFTER + 20)
        wait_until(lambda: app(world)["workers"]["ready"] == 1, "it is ready there", 40)
        asker = Asker(world, "/api/setting?name=COUNTED_EFFECTS")
        asker.start()
        wait_until(asker.texts, "it is served there")
        asker.end()
        return f"moved; {len(asker.answers)} answers"


def version_that_serves(options):
    """Two metadata versions hold workers while runtime and scheduler are killed: never 404, and never the old one once the new one
    served."""
    with LossWorld(options) as world:
        world.start(1)
        for number in range(2):
            world.add_agent().start()
        world.wait_ready()
        for agent in world.agents[1:]:
            wait_until(lambda a=agent: (a.facts() or {}).get("language_worker", {}).get("state") == "placeholder", "placeholders", 30)
        world.deploy("--code-version", "new", "--metadata-version", "m-new", "--setting", "VERSION=new")
        asker = Asker(world, "/api/setting?name=VERSION")
        asker.start()
        wait_until(asker.texts, "the old version serves")
        world.windlass("assign", APPLICATION, "--tenant", TENANT, "--code-version", "new")
        wait_until(lambda: "new" in asker.texts(), "the new version serves", 30)
        switched = len(asker.answers)
        new = next(agent for agent in world.agents if assignment(world, agent).get("code_version") == "new")
        for fault in ("runtime", "scheduler", "both"):
            before = len(asker.texts())
            if fault != "scheduler":
                new.signal(signal.SIGSTOP)  # so that the old version is back first
                world.runtime.kill()
            if fault != "runtime":
                world.scheduler.kill()
                world.restart_scheduler()
            if fault != "scheduler":
                world.runtime.start()
                wait_until(lambda: world.runtime.worker_of(world.agents[0]), "the old version is back", 30)
                seen = len(asker.answers)
                wait_until(lambda s=seen: len(asker.answers) > s + 20, "callers are answered", 30)
                new.signal(signal.SIGCONT)
            wait_until(lambda b=before: len(asker.texts()) > b + 20, f"it serves again after the end of {fault}", 60)
        asker.end()
        statuses = {status for status, _, _ in asker.answers}
        check(404 not in statuses and statuses <= {200, 502, 503}, f"callers saw {statuses}")
        check(all(retry for status, _, retry in asker.answers if status == 503), "a 503 without Retry-After")
        old = [text for status, text, _ in asker.answers[switched + 20:] if status == 200 and text != "new"]
        check(not old, f"{len(old)} answers of the old version after the new one served")
        return f"{len(asker.answers)} answers, {sum(1 for status, _, _ in asker.answers if status == 503)} of them 503"


def settings_reach_all(options):
    """A changed setting with the same code reaches all workers, one after another, though the scheduler is killed meanwhile; callers
    do not notice, and what was not repeated stays."""
    with LossWorld(options) as world:
        world.start(3)
        world.deploy("--setting", "CITY=Paris")
        wait_until(lambda: app(world)["versions"][0]["settings_version"] == 2, "there is a new version")
        wait_until(lambda: sum(1 for each in app(world)["assignments"] if each["settings_version"] == 2 and each["state"] == "ready") >= 1,
                   "one has it", 40)
        world.scheduler.kill()
        world.restart_scheduler()
        world.wait_ready()
        asker = Asker(world, "/api/setting?name=CITY")
        asker.start()
        least = 3

        def is_through():
            nonlocal least
            facts = app(world)
            least = min(least, facts["workers"]["wanted"] - facts["workers"]["pending"])
            return all(each["settings_version"] == 2 and each["state"] == "ready" for each in facts["assignments"])
        wait_until(is_through, "all have it", 60)
        asker.end()
        check(least >= 2, f"at one time only {least} of 3 kept serving")
        check({status for status, _, _ in asker.answers} == {200}, f"callers saw {set(asker.answers)}")
        after, kept = Asker(world, "/api/setting?name=CITY"), Asker(world, "/api/setting?name=COUNTED_EFFECTS")
        for each in (after, kept):
            each.start()
            wait_until(lambda e=each: len(e.texts()) >= 60, "answers")
            each.end()
        check(set(after.texts()) == {"Paris"}, f"workers have {set(after.texts())}")
        check(set(kept.texts()) == {world.effects}, f"what was not repeated is {set(kept.texts())}")
        shown = world.windlass("apps", "show", APPLICATION, "--tenant", TENANT)
        check("CITY" in shown and "Paris" not in shown and "(old)" not in shown, f"windlass apps show says {shown}")
        world.deploy("--unset", "CITY")
        wait_until(is_through_version(world, 3), "it is removed everywhere", 60)
        return f"{len(asker.answers)} answers meanwhile, at least {least} of 3 workers serving"


def is_through_version(world, version):
    return lambda: all(each["settings_version"] == version and each["state"] == "ready" for each in app(world)["assignments"])


def settings_that_fail(options):
    """Settings with which nobody can start cost no place: a spare takes that of the worker that fell, with the settings that work, the
    others keep them, and everybody can see that. The next deployment goes on, and so does the same one again."""
    with LossWorld(options) as world:
        world.start(3)
        spare = world.add_agent()
        spare.start()
        wait_until(lambda: (spare.facts() or {}).get("language_worker", {}).get("state") == "placeholder", "there is a placeholder", 30)

        def stopped():
            return app(world)["versions"][0].get("rollout_stopped", "")

        def has_all(version):
            held = [each for each in app(world)["assignments"] if each["wanted"]]
            return len(held) == 3 and all((each["state"], each["settings_version"]) == ("ready", version) for each in held)
        asker = Asker(world, "/api/setting?name=CITY")
        asker.start()
        world.deploy("--setting", "CITY=Paris", "--setting", "COUNTED_BROKEN=yes")
        wait_until(stopped, "the rollout stops", 60)
        check("these settings do not do" in stopped(), f"it stopped because {stopped()}")
        check(app(world)["workers"]["wanted"] == 3, f"a place is lost: {app(world)}")
        wait_until(lambda: has_all(1) and assignment(world, spare)["state"] == "ready", "the spare has the place, with what works", 60)
        shown = world.windlass("apps", "show", APPLICATION, "--tenant", TENANT)
        check(f"settings rollout stopped: {stopped()}; deploy again\n" in shown, f"windlass apps show says {shown}")
        said = [line for line in world.scheduler.said().splitlines() if '"event":"settings rollout stopped; deploy again"' in line]
        check(len(said) == 1, f"the log says {said}")
        asker.end()
        check({(status, text) for status, text, _ in asker.answers} == {(200, "(none)")}, f"callers saw {set(asker.answers)}")

        world.deploy("--unset", "COUNTED_BROKEN")
        wait_until(lambda: has_all(3), "all have the settings that were mended", 60)
        check(not stopped(), f"it says still {stopped()}")
        world.deploy("--setting", f"COUNTED_FALLS={world.path('falls')}")
        wait_until(lambda: stopped() and has_all(3), "one fell, and its place is filled", 60)
        world.deploy()
        wait_until(lambda: has_all(5), "the same again goes on", 60)
        return f"{len(asker.answers)} answers with the old settings, three workers at all times"


CASES = {"agent_left_dead": agent_left_dead, "runtime_left_dead": runtime_left_dead, "version_that_serves": version_that_serves,
         "settings_reach_all": settings_reach_all, "settings_that_fail": settings_that_fail}
