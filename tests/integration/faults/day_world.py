"""The fleet of a bad day: agents that may be left dead for good, newcomers that take their places, and who was alive when.

Each agent has a `Life`: the times at which it went and came, was cut off or stood still. What the views say is judged by it.
"""
import http.client
import json
import os
import random
import threading
import time

from fault_proxy import FaultProxy
from function_world import APPLICATION, RUNTIME, FunctionWorld, Runtime
from world import TENANT, Failure, Scheduler, check, wait_until

QUIET_RUNTIME, QUIET_APPLICATION = "runtime-2", "quiet"
HEARTBEAT = 1
NOTICE = 5.0  # within this every view says that somebody is gone


def knows_lost_after(program):
    """Of an older tree the day shows what it lacks rather than that it does not know the setting."""
    with open(program, "rb") as file:
        return b"lost_after" in file.read()


class Life:
    """Of one agent: `gone_since` while it cannot be reached, and when something last happened to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.gone_since = None
        self.touched = time.monotonic()
        self.is_left = False  # dead for good
        self.was_hit = False  # ever

    def goes(self):
        self.was_hit = True
        with self.lock:
            self.touched = time.monotonic()
            self.gone_since = self.gone_since or self.touched

    def comes(self):
        with self.lock:
            self.touched = time.monotonic()
            self.gone_since = None

    def touch(self):
        self.was_hit = True
        with self.lock:
            self.touched = time.monotonic()

    def gone_for(self, now):
        with self.lock:
            return 0.0 if self.gone_since is None else now - self.gone_since


class QuietRuntime(Runtime):
    """Of the application that no fault is meant for."""
    port = 0

    def _is_listening(self):
        found = [json.loads(line) for line in self.said().splitlines() if '"event":"listening"' in line and line.endswith("}")]
        check(found or self.is_running, f"the quiet runtime ended at its start: {self.said()}")
        if found:
            self.port, self.http_port, self.admin_port = found[0]["port"], found[0]["http_port"], found[0]["admin_port"]
        return bool(found)


class DayScheduler(Scheduler):
    def start(self, seconds=30.0):
        super().start(seconds)
        self.world.link.upstream = self.world.port
        self.world.scheduler_life.comes()


class DayWorld(FunctionWorld):
    def __init__(self, options):
        super().__init__(options)
        self.link = FaultProxy(random.Random(self.random.random()))  # between the runtime and the scheduler
        self.lives = {}  # agent -> Life
        self.scheduler_life, self.runtime_life = Life(), Life()
        self.workers = options.workers  # that the application shall have
        lost_after = f'lost_after = "{round(options.lost_after * 1000)}ms"\n'
        self.session_settings = f'heartbeat = "{HEARTBEAT}s"\n' + lost_after
        self.runtime_session_settings = f'heartbeat = "{HEARTBEAT}s"\n'
        self.runtime_core_settings = lost_after
        if not knows_lost_after(self.program("windlass-scheduler")):
            self.session_settings = f'heartbeat = "{HEARTBEAT}s"\n'
        if not knows_lost_after(self.program("windlass-runtime")):
            self.runtime_core_settings = ""
        self.agents_lock = threading.Lock()
        self.quiet_runtime = self.quiet_agent = None

    def __enter__(self):
        super().__enter__()
        self.scheduler = DayScheduler(self, "scheduler", self.scheduler.program, self.scheduler.config)
        return self

    def end(self, is_good):
        super().end(is_good)
        self.link.close()

    def scheduler_port(self):
        return self.link.port

    def add_agent(self, plan=None, state=None):
        with self.agents_lock:
            agent = super().add_agent(plan, state)
            self.lives[agent] = Life()
            self.lives[agent].goes()
        return agent

    def processes(self):
        return [*super().processes(), *([self.quiet_runtime] if self.quiet_runtime else [])]

    def begin_quiet(self):
        """A second runtime with an agent and an application of its own, whom nothing happens to all day."""
        with open(self.runtime.config, encoding="utf-8") as file:
            settings = file.read().replace(f'id = "{RUNTIME}"', f'id = "{QUIET_RUNTIME}"')
        # An address that the scheduler does not vouch for, so that no place of the other application moves there while its runtime is away.
        settings = settings.replace(f'url = "{self.url}"\n', 'url = "wss://elsewhere.example:1/ws/worker"\n')
        self.quiet_runtime = QuietRuntime(self, "quiet-runtime", self.runtime.program, self.write("quiet-runtime.toml", settings))
        self.quiet_runtime.start()
        self.quiet_agent = self.add_agent()
        with open(self.quiet_agent.config, encoding="utf-8") as file:
            settings = file.read().replace(f'id = "{RUNTIME}"', f'id = "{QUIET_RUNTIME}"')
        self.write(f"{self.quiet_agent.name}.toml", settings.replace(self.url, f"wss://127.0.0.1:{self.quiet_runtime.port}/ws/worker"))
        self.bring(self.quiet_agent)
        self.wait_placeholder(self.quiet_agent)
        self.deploy(QUIET_APPLICATION)
        wait_until(lambda: any(each["id"] == QUIET_RUNTIME for each in self.admin.get("/v1/runtimes")["runtimes"]), "the scheduler knows it", 30)
        self.windlass("assign", QUIET_APPLICATION, "--tenant", TENANT, "--runtime", QUIET_RUNTIME)

    def deploy(self, application):
        self.windlass("deploy", os.path.join(self.options.programs, "tests/integration/faults/counted-app"), "--app", application,
                      "--tenant", TENANT, "--setting", f"COUNTED_EFFECTS={self.effects}")

    def wait_placeholder(self, agent):
        wait_until(lambda: (self.facts(agent) or {}).get("language_worker", {}).get("state") == "placeholder",
                   f"the worker of {agent.name} is a placeholder", 60)

    def begin(self):
        """A scheduler, a runtime, workers of the application and one placeholder, and the quiet ones."""
        self.scheduler.start()
        self.start_runtime()
        self.begin_quiet()
        for _ in range(self.workers + 1):
            self.bring(self.add_agent())
        for agent in self.agents:
            if agent is not self.quiet_agent:
                self.wait_placeholder(agent)
        self.deploy(APPLICATION)
        wait_until(lambda: any(each["id"] == RUNTIME for each in self.admin.get("/v1/runtimes")["runtimes"]), "the scheduler knows the runtime", 30)
        self.windlass("assign", APPLICATION, "--tenant", TENANT, "--runtime", RUNTIME, "--workers", str(self.workers))
        self.wait_served(60)

    # ---- who is there

    def bring(self, agent):
        """Starts it, again or for the first time."""
        self.lives[agent].touch()
        agent.start()
        wait_until(lambda: os.path.exists(os.path.join(agent.state, "worker_instance_id")), f"{agent.name} has a name", 30)
        self.lives[agent].comes()

    def named(self):
        """Those that were ever there: they have an id."""
        with self.agents_lock:
            return [agent for agent in self.agents if os.path.exists(os.path.join(agent.state, "worker_instance_id"))]

    def living(self):
        return [agent for agent in self.named() if agent.is_wanted and agent.is_running and agent is not self.quiet_agent]

    def facts(self, agent):
        """What the scheduler says of it; nothing while it says nothing."""
        return next((each for each in self.worker_list() or [] if each["id"] == agent.id), None)

    def worker_list(self):
        try:
            return self.admin.get(f"/v1/workers?tenant={TENANT}")["workers"]
        except (OSError, http.client.HTTPException, Failure):
            return None

    def app(self):
        try:
            found = [app for app in self.admin.get("/v1/apps")["apps"] if app["application_id"] == APPLICATION]
        except (OSError, http.client.HTTPException, Failure):
            return None
        return found[0] if found else None

    def runtime_status(self):
        try:
            return json.loads(self.runtime.ask("/status"))
        except (OSError, http.client.HTTPException, Failure):
            return None

    def runtime_health(self):
        """Of either verdict."""
        connection = http.client.HTTPConnection("127.0.0.1", self.runtime.admin_port, timeout=20)
        try:
            connection.request("GET", "/health")
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def serving(self):
        """Agents whose workers can take an invocation, by the runtime's word."""
        status = self.runtime_status()
        if status is None:
            return []
        ready = [each["worker"] for each in status["workers"] if each["state"] == "Ready" and not each["detached"]]
        return [agent for agent in self.living() if any(worker.startswith(agent.id + ".") for worker in ready)]

    def wait_served(self, seconds):
        """As many workers as were asked for, by the runtime's word and by the scheduler's."""
        def is_served():
            for process in (self.scheduler, self.runtime, *self.agents):
                process.check_alive()
            app = self.app()
            return len(self.serving()) >= self.workers and app is not None and app["workers"]["ready"] >= self.workers and \
                any(each["ready"] >= self.workers for each in app["runtimes"] if each["id"] == RUNTIME)
        try:
            wait_until(is_served, f"{self.workers} workers serve the application", seconds)
        except Failure as failure:
            app = self.app() or {}
            raise Failure(f"{failure}; {len(self.living())} agents live, the runtime serves with {[a.name for a in self.serving()]}, the scheduler "
                          f"says {app.get('workers')} {app.get('assignments')} {app.get('runtimes')} of "
                          f"{[(each['id'], each['state'], each.get('liveness'), each.get('language_worker', {}).get('state')) for each in self.worker_list() or []]}"
                          ) from None

    def workers_able(self, asked_at):
        """How many agents may truthfully be counted as able to work: those that were there within NOTICE."""
        return sum(1 for agent in self.named() if agent is not self.quiet_agent and self.lives[agent].gone_for(asked_at) <= NOTICE + 2.0)
