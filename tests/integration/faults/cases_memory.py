"""Runtimes that are short of memory: who is drained, who counts as ready, where the work goes, and what comes back."""
import json
import time

from cases_workers import order, post, worker_name
from function_world import APPLICATION, RUNTIME, FunctionWorld
from world import TENANT, check, wait_until


def memory_drains_once(options):
    """Memory that stays short drains each worker once; no agent brings it straight back."""
    world = FunctionWorld(options)
    world.runtime_core_settings = 'memory_interval = "100ms"\nmemory_elevated = 0.000005\nmemory_critical = 0.00001\nmemory_drain = 0.00001\n'
    with world:
        world.scheduler.start()
        world.start_runtime()
        for _ in range(2):
            world.add_agent().start()
        drains = lambda: world.runtime.events("a worker drains")  # pylint: disable=unnecessary-lambda-assignment
        wait_until(lambda: len(drains()) >= 2, "both workers are drained", 30)
        samples = len(world.runtime.events("memory pressure changed"))
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:  # a rate is what is asked about: thirty looks at the memory
            check(len(drains()) == 2, f"{len(drains())} drains of two workers")
            time.sleep(0.1)
        check(samples >= 1, "memory was not looked at")
        for agent in world.agents:
            check(agent.facts()["language_worker"]["state"] == "drained", f"{agent.name} is {agent.facts()['language_worker']}")
        return "two workers, two drains"


class TwoRuntimes(FunctionWorld):
    second = None

    def processes(self):
        return [*super().processes(), *([self.second] if self.second else [])]

    def start_second(self):
        """Agents that are added from now on are connected to it."""
        self.second = self.new_runtime("runtime-2", "runtime-2")
        self.second.start()

        def url():
            return next((each.get("url") for each in self.admin.get("/v1/runtimes")["runtimes"] if each["id"] == "runtime-2"), None)
        known = wait_until(url, "the scheduler knows where the second runtime is")
        self.agent_settings = self.agent_settings.replace(f'id = "{RUNTIME}"', 'id = "runtime-2"').replace(self.url, known)


def ready_counts(world):
    """Of the first runtime's workers, in every view of the runtime and the scheduler."""
    metrics = dict(line.rpartition(" ")[::2] for line in world.runtime.ask("/metrics").splitlines() if not line.startswith("#"))
    first = next(each for each in world.admin.get("/v1/runtimes")["runtimes"] if each["id"] == RUNTIME)
    return {"/health": json.loads(world.runtime.ask("/health"))["ready_workers"],
            "/status": world.runtime.status()["workers_ready"],
            "/status of the application": (world.runtime.application() or {}).get("ready"),
            "ready_workers": float(metrics["windlass_runtime_ready_workers"]),
            "application_ready_workers": float(metrics.get(f'windlass_runtime_application_ready_workers{{application="{APPLICATION}"}}', -1)),
            "/v1/runtimes": sum(each["ready"] for each in first["applications"]),
            "/v1/apps": world.admin.get(f"/v1/apps/{TENANT}/{APPLICATION}")["workers"]["ready"]}


def memory_moves_work(options):
    """A runtime whose memory stays critical is given nobody: the other one serves the application, with one of the spares. Meanwhile
    nobody at the first counts as ready."""
    world = TwoRuntimes(options)
    short = 'memory_interval = "5s"\nmemory_elevated = 0.000005\nmemory_critical = 0.00001\nmemory_drain = 0.00001\n'
    world.runtime_core_settings = plenty = 'memory_interval = "5s"\nmemory_elevated = 1.0\nmemory_critical = 1.0\n'
    with world:
        world.start(1)
        check(set(ready_counts(world).values()) == {1}, f"one worker is ready, and the views say {ready_counts(world)}")
        world.start_second()
        spares = [world.add_agent() for _ in range(3)]
        for spare in spares:
            spare.start()

        def worker(agent):
            return (agent.facts() or {}).get("language_worker", {}).get("state")

        def assignments():
            return world.admin.get(f"/v1/apps/{TENANT}/{APPLICATION}")["assignments"]
        for spare in spares:
            wait_until(lambda a=spare: worker(a) == "placeholder", f"{spare.name} is a placeholder", 30)
        with open(world.path("runtime.toml"), encoding="utf-8") as file:
            text = file.read()
        world.runtime.kill()
        world.write("runtime.toml", text.replace(plenty, short))
        world.runtime.start()
        wait_until(lambda: world.has_ready_worker(world.agents[0]), "its worker is back", 4)
        wait_until(lambda: set(ready_counts(world).values()) == {0}, f"nobody is ready: {ready_counts(world)}", 3)
        check([each["state"] for each in assignments()] == ["paused"], f"the worker is shown as {assignments()}")
        check("1 paused" in world.windlass("apps"), f"windlass apps says {world.windlass('apps')}")
        status, answer, _ = post(world, "/api/append", {"key": "early", "wait_ms": 5})
        check(status == 429, f"a runtime whose memory is critical answers {status} {answer}")

        wait_until(lambda: [each["runtime"] for each in assignments() if each["state"] == "ready"] == ["runtime-2"], "the other runtime serves it", 40)
        drains = lambda: len(world.runtime.events("a worker drains"))  # pylint: disable=unnecessary-lambda-assignment
        deadline = time.monotonic() + 7
        while time.monotonic() < deadline:  # longer than the memory takes to be looked at again
            check(drains() <= 1, f"{drains()} workers were drained at the runtime that is short of memory")
            check(sum(1 for spare in spares if worker(spare) == "placeholder") == 2, f"the spares are {[worker(spare) for spare in spares]}")
            time.sleep(0.2)
        world.runtime, world.second = world.second, world.runtime
        for i in range(10):
            status, answer, _ = post(world, "/api/append", {"key": f"k-{i}", "wait_ms": 5})
            check(status == 200, f"a caller got {status} {answer}")
        return f"one drain, {len(spares) - 1} of {len(spares)} spares left"


def memory_comes_back(options):
    """What was drained for want of memory is resumed by itself, one after another, when there is enough again; what was ordered is not."""
    world = FunctionWorld(options)
    world.runtimes_settings = 'resume_after = "1s"'
    short = 'memory_interval = "100ms"\nmemory_elevated = 0.000005\nmemory_critical = 0.00001\nmemory_drain = 0.00001\n'
    world.runtime_core_settings = plenty = 'memory_interval = "100ms"\nmemory_elevated = 1.0\nmemory_critical = 1.0\n'
    with world:
        world.start(3)
        *pressed, ordered = world.agents

        def restart_runtime(before, after):
            with open(world.path("runtime.toml"), encoding="utf-8") as file:
                text = file.read()
            world.runtime.kill()
            world.write("runtime.toml", text.replace(before, after))
            world.runtime.start()

        def worker(agent):
            return (agent.facts() or {}).get("language_worker", {})

        def resumed():
            return world.scheduler.events("a worker that was drained for want of memory is resumed")

        order(world, RUNTIME, "biz.runtime.drain_worker", {"worker": worker_name(world, ordered)})
        wait_until(lambda: worker(ordered).get("state") == "drained", "one is drained by order")
        restart_runtime(plenty, short)
        for agent in pressed:
            wait_until(lambda a=agent: worker(a).get("state") == "drained", f"{agent.name} is drained", 30)
            check(worker(agent).get("drained_for") == "memory", f"{agent.name} says {worker(agent)}")
        agent = pressed[0]
        agent.kill()
        agent.start()
        wait_until(lambda: worker(agent).get("state") == "drained", "it is drained over a restart of its agent too", 30)
        check(worker(agent).get("drained_for") == "memory", f"it forgot why: {worker(agent)}")
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:  # longer than resume_after, and the memory is short all the time
            check(not resumed(), f"resumed while the memory is short: {resumed()}")
            time.sleep(0.1)
        restart_runtime(short, plenty)
        for agent in pressed:
            wait_until(lambda a=agent: worker(a).get("state") == "ready", f"{agent.name} works again", 30)
        check(sorted(each["sender.id"] for each in resumed()) == sorted(agent.id for agent in pressed), f"resumed: {resumed()}")
        check(worker(ordered).get("state") == "drained" and "drained_for" not in worker(ordered), f"what was ordered is {worker(ordered)}")
        world.windlass("resume", f"{TENANT}/{ordered.id}")
        world.wait_whole()
        return "two came back by themselves, one when told"


CASES = {"memory_drains_once": memory_drains_once, "memory_moves_work": memory_moves_work, "memory_comes_back": memory_comes_back}
