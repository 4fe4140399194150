"""Workers that die, hang, cannot load or are drained, and callers that do not wait: each costs only itself.

Every case has a world of its own, and most keep a worker from coming back, which is what shows who notices.
"""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

from fault_proxy import FaultProxy
from function_world import APPLICATION, RUNTIME, FunctionWorld, worker_pid
from world import TENANT, check, wait_until

NATIVE_WORKER = "windlass-native-worker"


def post(world, path, order, seconds=60):
    """Status, text and how long it took."""
    begun = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", world.runtime.http_port, timeout=seconds)
    try:
        connection.request("POST", path, json.dumps(order), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode(), time.monotonic() - begun
    finally:
        connection.close()


def post_together(world, path, orders):
    """One connection each, all at once; call the result for the answers, in order."""
    answers = [None] * len(orders)

    def ask(number):
        answers[number] = post(world, path, orders[number])

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(len(orders))]
    for thread in threads:
        thread.start()

    def join():
        for thread in threads:
            thread.join(90)
        check(all(answers), "somebody who asked was never answered")
        return answers

    return join


def order(world, instance, kind, payload):
    """A command to an agent or a runtime, and what came of it."""
    answer = world.admin.request("POST", f"/v1/workers/{TENANT}/{instance}/commands", {"type": kind, "payload": payload})
    check(answer.status == 202, f"{kind} was not taken: {answer.status} {answer.body}")
    done = world.admin.request("GET", f"/v1/commands/{TENANT}/{answer.body['id']}?wait_ms=20000", timeout=60).body
    check(done["state"] == "done", f"{kind} came to {done}")
    return done["result"]["payload"]


def own_native_worker(world):
    """The agents' language worker from a folder of this world, whose program can be taken away."""
    folder = world.path("native")
    shutil.copytree(os.path.join(os.path.abspath(world.options.programs), "worker-agent/native"), folder,
                    ignore=lambda _, names: [name for name in names if name not in (NATIVE_WORKER, "worker.config.json")])
    world.agent_settings = world.agent_settings.replace(
        os.path.join(os.path.abspath(world.options.programs), "worker-agent/native"), folder)
    return os.path.join(folder, NATIVE_WORKER)


class LinkedWorld(FunctionWorld):
    """The runtime finds a scheduler that was started again, whose port is another."""

    def __init__(self, options):
        super().__init__(options)
        self.link = FaultProxy(random.Random(self.random.random()))

    def end(self, is_good):
        super().end(is_good)
        self.link.close()

    def scheduler_port(self):
        self.link.upstream = self.port
        return self.link.port

    def start_scheduler(self):
        self.scheduler.start()
        self.link.upstream = self.port


def worker_name(world, agent):
    return (world.runtime.worker_of(agent) or {}).get("worker")


def inflight_tasks(agent):
    """As the agent's own metrics have it."""
    port = next(json.loads(line)["port"] for line in agent.said().splitlines() if '"metrics are served"' in line)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("inflight_tasks "))
    finally:
        connection.close()


def caller_patience(options):
    """`windlass invoke --timeout` ends its own wait; five others on the same worker do not notice."""
    world = FunctionWorld(options)
    world.session_settings = 'heartbeat = "2s"'
    world.agent_settings += '[metrics]\nlisten = "127.0.0.1:0"\n'
    with world:
        world.start(1)
        agent = world.agents[0]
        before = worker_name(world, agent)
        others = post_together(world, "/api/append", [{"key": f"other-{i}", "wait_ms": 8000} for i in range(5)])
        wait_until(lambda: world.runtime.in_flight() >= 5, "five invocations are under way")
        wait_until(lambda: inflight_tasks(agent) >= 5, "inflight_tasks counts the invocations", 5)
        wait_until(lambda: agent.facts().get("load", {}).get("inflight", 0) >= 5, "the heartbeat counts the invocations", 8)
        runtime = lambda: world.admin.get(f"/v1/workers/{TENANT}/{RUNTIME}").get("load", {}).get("inflight")  # pylint: disable=unnecessary-lambda-assignment
        wait_until(lambda: runtime() == 5, "the runtime's heartbeat counts them too", 8)
        invoked = subprocess.run([world.program("windlass"), "invoke", APPLICATION, "append_order", "--timeout", "0.2",
                                  "--data", json.dumps({"key": "impatient", "wait_ms": 30000})],
                                 capture_output=True, text=True, check=False, timeout=60,
                                 env={**os.environ, "WINDLASS_ADMIN_URL": f"http://127.0.0.1:{world.admin.port}",
                                      "WINDLASS_ADMIN_TOKEN": world.admin.token})
        check(invoked.returncode == 1 and "E.TIMEOUT" in invoked.stderr, f"the impatient caller heard {invoked}")
        statuses = [status for status, _, _ in others()]
        check(statuses == [200] * 5, f"five patient callers got {statuses}")
        check(worker_name(world, agent) == before, f"{before} was recycled for {worker_name(world, agent)}")
        wait_until(lambda: world.runtime.worker_of(agent)["in_flight"] == 0, "the function was asked to stop, and did", 20)
        wait_until(lambda: inflight_tasks(agent) == 0, "inflight_tasks counts nothing", 5)
        wait_until(lambda: runtime() == 0, "the runtime's heartbeat counts nothing", 8)
        check(not world.runtime.events("a worker is given up"), "a worker was given up")
        return "one caller left, five were answered by the same worker"


def broken_load_of_one(options):
    """A function that one worker could not load is served by the other, and the first is replaced."""
    world = FunctionWorld(options)
    world.runtime_core_settings = 'load_retry_first = "2s"\n'
    with world:
        lone = world.path("lone")
        # The first worker has the function and so registers it; the second cannot load it.
        world.start(1, settings={"COUNTED_LONE": lone})
        second = world.add_agent()
        second.start()
        world.wait_ready()
        wait_until(lambda: (second.facts() or {}).get("language_worker", {}).get("state") == "placeholder", "the second is a placeholder", 30)
        world.windlass("assign", APPLICATION, "--tenant", TENANT, "--workers", "1")
        world.wait_whole()
        names = {worker_name(world, agent) for agent in world.agents}
        for i in range(20):
            status, text, _ = post(world, "/api/lone", {"key": f"lone-{i}"})
            check(status == 200, f"call {i} of a function that a healthy worker has: {status} {text}")
        failures = {each["worker"]: each["load_failures"] for each in world.runtime.status()["workers"] if each.get("load_failures")}
        check(len(failures) <= 1, f"more than one worker could not load it: {failures}")
        os.rmdir(lone)  # the next process can
        wait_until(lambda: len({worker_name(world, agent) for agent in world.agents} - names - {None}) == 1,
                   "the worker that could not load it is replaced", 30)
        world.wait_whole()
        wait_until(lambda: not any(each["load_failures"] for each in world.runtime.status()["workers"]), "all functions are loaded", 30)
        drains = world.runtime.events("a worker drains")
        check(len(drains) == 1 and "could not load 'lone'" in drains[0]["reason"], f"drains: {drains}")
        return f"{drains[0]['worker']} was replaced, and nobody got an error"


def broken_index_of_first(options):
    """A function that the first worker does not register is served by the second, and the first is replaced."""
    world = FunctionWorld(options)
    world.runtime_core_settings = 'load_retry_first = "2s"\n'
    with world:
        world.start(1, settings={"COUNTED_LATE": world.path("late")})
        status, text, _ = post(world, "/api/late", {"key": "early"})
        check(status == 404, f"a function that no worker has yet: {status} {text}")
        second = world.add_agent()
        second.start()
        world.wait_ready()
        wait_until(lambda: (second.facts() or {}).get("language_worker", {}).get("state") == "placeholder", "the second is a placeholder", 30)
        broken = worker_name(world, world.agents[0])
        world.windlass("assign", APPLICATION, "--tenant", TENANT, "--workers", "1")
        wait_until(lambda: world.has_ready_worker(second), "the second worker is ready", 30)
        not_loaded = f'windlass_runtime_functions_not_loaded{{application="{APPLICATION}"}} '
        check(not_loaded + "1\n" in world.runtime.ask("/metrics"), "one function of one worker is not loaded")
        for i in range(20):
            status, text, _ = post(world, "/api/late", {"key": f"late-{i}"})
            check(status == 200, f"call {i} of a function that a healthy worker has: {status} {text}")
        wait_until(lambda: worker_name(world, world.agents[0]) not in (None, broken), "the worker that lacks it is replaced", 30)
        world.wait_whole()
        failures = {each["worker"]: each["load_failures"] for each in world.runtime.status()["workers"] if each.get("load_failures")}
        check(not_loaded + "0\n" in world.runtime.ask("/metrics"), "all functions are loaded")
        check(not failures, f"after the replacement a worker lacks {failures}")
        drains = world.runtime.events("a worker drains")
        check(len(drains) == 1 and drains[0]["worker"] == broken and "'late'" in drains[0]["reason"], f"drains: {drains}")
        return f"{broken} did not register a function and was replaced; nobody got an error"


def worker_cannot_start(options):
    """A language worker dies and cannot start again: its agent says so at once, others get its requests; where there is no
    other, callers are told in seconds. The scheduler hears of it though it was away, and again after it was restarted."""
    world = LinkedWorld(options)
    program = own_native_worker(world)
    with world:
        world.start(2)
        first, second = world.agents
        os.rename(program, program + ".gone")
        os.kill(worker_pid(first), signal.SIGKILL)
        # What was on its way to the worker as it died is lost, and its caller is told; nobody else notices.
        lost = [(status, text) for status, text, _ in post_together(world, "/api/append", [{"key": f"d-{i}", "wait_ms": 5} for i in range(60)])()
                if status != 200]
        check(all(status == 502 and "E.INVOCATION.WORKER_LOST" in text for status, text in lost), f"as the worker died callers got {lost}")
        wait_until(lambda: world.runtime.worker_of(first) is None, "the runtime has no worker of the first agent", 5)
        answers = post_together(world, "/api/append", [{"key": f"k-{i}", "wait_ms": 5} for i in range(60)])()
        check({status for status, _, _ in answers} == {200}, f"a healthy worker was there, and callers got {answers}")

        world.scheduler.kill()
        os.kill(worker_pid(second), signal.SIGKILL)
        wait_until(lambda: world.runtime.worker_of(second) is None, "the runtime has no worker at all", 5)
        status, text, took = post(world, "/api/append", {"key": "nobody", "wait_ms": 5})
        check(status == 503 and took < 10, f"without a worker a caller waited {took:.1f} s for {status} {text}")
        health = json.loads(world.runtime.ask("/health"))
        check(health["status"] == "Degraded" and health["ready_workers"] == 0, f"/health says {health}")
        for _ in range(2):  # one that was away, and one that was restarted and forgot
            world.start_scheduler()
            wait_until(lambda: is_missed(world, second), "the scheduler hears that the second agent's worker is missing", 30)
            world.scheduler.kill()
        world.start_scheduler()
        os.rename(program + ".gone", program)
        world.wait_whole(60)
        status, text, _ = post(world, "/api/append", {"key": "again", "wait_ms": 5})
        check(status == 200, f"with workers again: {status} {text}")
        return f"60 requests beside a dead worker; without any, 503 after {took:.2f} s"


def is_missed(world, agent):
    runtimes = world.admin.get("/v1/runtimes")["runtimes"]
    signals = [each for runtime in runtimes for each in runtime.get("signals", [])]
    return any(each["kind"] == "Replace" and each["worker"].startswith(agent.id + ".") and each.get("urgency") == "high"
               for each in signals)


def drained_stays_drained(options):
    """A worker that the scheduler had drained stays away, over restarts of its agent too, until it is told otherwise."""
    with FunctionWorld(options) as world:
        world.start(2)
        first = world.agents[0]
        answers = post_together(world, "/api/append", [{"key": f"busy-{i}", "wait_ms": 6000} for i in range(8)])
        wait_until(lambda: (world.runtime.worker_of(first) or {}).get("in_flight", 0) >= 1, "it is at work")
        taken = world.admin.request("POST", f"/v1/workers/{TENANT}/{RUNTIME}/commands",
                                    {"type": "biz.runtime.drain_worker", "payload": {"worker": worker_name(world, first)}})
        check(taken.status == 202, f"the order was not taken: {taken.status} {taken.body}")
        # While it finishes what it has it can take nothing, and nobody counts it as ready.
        wait_until(lambda: world.admin.get(f"/v1/apps/{TENANT}/{APPLICATION}")["workers"]["ready"] == 1, "one is ready", 4)
        workers = world.admin.get(f"/v1/apps/{TENANT}/{APPLICATION}")["workers"]
        check(world.runtime.worker_of(first)["state"] == "Draining" and workers["draining"] == 1, f"it drains still, and apps says {workers}")
        check("1 draining, 1 ready" in world.windlass("apps"), f"windlass apps says {world.windlass('apps')}")
        check(first.facts()["language_worker"]["state"] == "draining", f"the worker is shown as {first.facts()['language_worker']}")
        statuses = [status for status, _, _ in answers()]
        check(statuses == [200] * 8, f"callers of a worker that drains got {statuses}")
        wait_until(lambda: world.runtime.worker_of(first) is None, "the drained worker is gone")
        wait_until(lambda: first.facts()["language_worker"]["state"] == "drained", "its agent says that it is drained")
        first.kill()
        first.start()
        wait_until(first.is_ready, "the agent is back")
        wait_until(lambda: first.facts()["language_worker"]["state"] == "drained", "it is drained still")
        for i in range(40):
            status, text, _ = post(world, "/api/append", {"key": f"k-{i}", "wait_ms": 10})
            check(status == 200, f"the other worker answered {status} {text}")
        check(world.runtime.worker_of(first) is None, "a drained worker came back by itself")
        done = world.runtime.events("an order of the scheduler is done")
        check([(each["tenant"], each["type"]) for each in done] == [(TENANT, "biz.runtime.drain_worker")] and done[0]["id"],
              f"the log tells of the order as {done}")
        check("accepted: resume" in world.windlass("resume", f"{TENANT}/{first.id}"), "windlass resume was not accepted")
        world.wait_whole()
        refused = world.admin.request("POST", f"/v1/workers/{TENANT}/{first.id}/resume")
        check(refused.status == 409 and "is not drained" in refused.body["detail"], f"one that works was resumed: {refused.status} {refused.body}")
        return "away over a restart, back when told"


def unable_is_replaced(options):
    """A worker that is drained or cannot start is not counted as ready, and a placeholder gets its place, once; the drained one stays so."""
    world = FunctionWorld(options)
    program = own_native_worker(world)
    with world:
        world.start(2)
        first, second = world.agents

        def app():
            return world.admin.get(f"/v1/apps/{TENANT}/{APPLICATION}")

        def state(agent):
            return next((each["state"] for each in app()["assignments"] if each["worker"] == agent.id), "none")

        def add_spare():
            spare = world.add_agent()
            spare.start()
            wait_until(lambda: (spare.facts() or {}).get("language_worker", {}).get("state") in ("placeholder", "ready", "specializing"),
                       "there is a placeholder", 30)
            return spare

        order(world, RUNTIME, "biz.runtime.drain_worker", {"worker": worker_name(world, first)})
        wait_until(lambda: state(first) == "drained" and app()["workers"]["ready"] == 1, "the drained worker is not ready")
        check("1 ready" in world.windlass("apps"), "windlass apps counts a drained worker as ready")
        spares = [add_spare(), add_spare()]
        wait_until(lambda: app()["workers"]["ready"] == 2, "another has the place of the drained one", 30)
        taker = next(each for each in spares if state(each) == "ready")
        other = next(each for each in spares if each is not taker)
        check(first.facts()["language_worker"]["state"] == "drained", f"the drained one is {first.facts()['language_worker']}")
        check(app()["workers"]["wanted"] == 2 and state(other) == "none", f"a place was filled twice: {app()}")

        os.rename(program, program + ".gone")
        os.kill(worker_pid(second), signal.SIGKILL)
        wait_until(lambda: app()["workers"]["ready"] == 1, "the dead worker is not ready", 5)
        wait_until(lambda: state(other) == "ready" and app()["workers"]["ready"] == 2, "another has the place of the dead one", 60)
        check(app()["workers"]["wanted"] == 2, f"there are {app()}")
        os.rename(program + ".gone", program)
        order(world, first.id, "biz.worker.resume", {})
        for agent in (first, second):
            wait_until(lambda a=agent: a.facts()["language_worker"]["state"] == "placeholder", f"{agent.name} is a placeholder again", 60)
        for i in range(20):
            status, text, _ = post(world, "/api/append", {"key": f"k-{i}", "wait_ms": 5})
            check(status == 200, f"a caller got {status} {text}")
        return "two places, two successors, and both who had them are placeholders"


def idempotent_is_retried(options):
    """What an application calls idempotent is tried on another worker when its own is killed; nobody is told of the loss."""
    world = FunctionWorld(options)
    world.runtime_core_settings = 'lost_after = "3s"\n'
    with world:
        folder = world.path("idempotent-app")
        shutil.copytree(world.app_folder, folder)
        with open(os.path.join(folder, "host.json"), "w", encoding="utf-8") as file:
            json.dump({"version": "2.0", "idempotent": True}, file)
        world.app_folder = folder
        world.start(2)
        first = world.agents[0]
        keys = [f"k-{i}" for i in range(8)]
        answers = post_together(world, "/api/append", [{"key": key, "wait_ms": 1500} for key in keys])
        wait_until(lambda: (world.runtime.worker_of(first) or {}).get("in_flight", 0) >= 2 and
                   len(set(world.effect_lines())) == 8, "all run, some of them there")
        os.kill(worker_pid(first), signal.SIGKILL)
        statuses = [status for status, _, _ in answers()]
        check(statuses == [200] * 8, f"callers of an idempotent function got {statuses}")
        runs = world.effect_lines()
        check(set(runs) == set(keys) and len(runs) > 8, f"what ran: {runs}")
        # Likewise when the whole agent is lost, once that is sure.
        world.wait_whole()
        keys = [f"a-{i}" for i in range(8)]
        answers = post_together(world, "/api/append", [{"key": key, "wait_ms": 1500} for key in keys])
        wait_until(lambda: (world.runtime.worker_of(first) or {}).get("in_flight", 0) >= 2 and
                   set(keys) <= set(world.effect_lines()), "all run, some of them there")
        first.kill()
        statuses = [status for status, _, _ in answers()]
        check(statuses == [200] * 8, f"callers of an idempotent function whose agent was lost got {statuses}")
        again = world.effect_lines()[len(runs):]
        check(set(again) == set(keys) and len(again) > 8, f"what ran: {again}")
        return f"16 callers were answered, {len(runs) + len(again) - 16} functions ran again"


def unwritten_is_routed_again(options):
    """A language worker hangs and is killed: what was too much for its stream never reached it, and another worker runs it."""
    world = FunctionWorld(options)
    with world:
        world.start(2)
        first = world.agents[0]
        os.kill(worker_pid(first), signal.SIGSTOP)
        # Larger than the window of a gRPC stream: one is on its way, perhaps a second, and the others wait in the agent. They last, so
        # that the worker that is well has as many and does not get all of them.
        keys = [f"k-{i}" for i in range(12)]
        pad = "x" * (2 * 1024 * 1024)
        answers = post_together(world, "/api/append", [{"key": key, "wait_ms": 3000, "pad": pad} for key in keys])
        wait_until(lambda: (world.runtime.worker_of(first) or {}).get("in_flight", 0) >= 4 and
                   len(world.effect_lines()) + world.runtime.worker_of(first)["in_flight"] == 12, "some wait for the hung worker")
        stuck = world.runtime.worker_of(first)["in_flight"]
        os.kill(worker_pid(first), signal.SIGKILL)
        results = answers()
        lost = [(status, text) for status, text, _ in results if status != 200]
        check(len(lost) <= 2 and all(status == 502 and "E.INVOCATION.WORKER_LOST" in text for status, text in lost),
              f"of {stuck} that waited for a worker that died {len(lost)} were lost: {lost}")
        runs = world.effect_lines()
        good = [key for key, result in zip(keys, results) if result[0] == 200]
        check(sorted(runs) == sorted(good), f"what ran: {runs}; whose caller heard of it: {good}")
        return f"{stuck} were with a worker that died, {len(lost)} had reached it"


CASES = {"caller_patience": caller_patience, "broken_load_of_one": broken_load_of_one,
         "broken_index_of_first": broken_index_of_first, "worker_cannot_start": worker_cannot_start,
         "drained_stays_drained": drained_stays_drained, "unable_is_replaced": unable_is_replaced,
         "idempotent_is_retried": idempotent_is_retried, "unwritten_is_routed_again": unwritten_is_routed_again}
