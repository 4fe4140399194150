"""A world with a runtime: agents with native language workers that hold one application, all behind one proxy of the runtime.

The application is counted_app: its functions add their key to one file of effects, which only this test reads.
"""
import http.client
import json
import os
import random
import subprocess

from fault_proxy import FaultProxy
from world import TENANT, Failure, Process, World, check, wait_until

RUNTIME = "runtime-1"
APPLICATION = "counted"


class Runtime(Process):
    http_port = admin_port = 0
    has_proxy = True  # agents reach it through the world's

    def start(self, seconds=20.0):
        """Until it listens; the ports are new each time, and the proxy is told."""
        super().start()
        wait_until(self._is_listening, "the runtime listens", seconds)

    def _is_listening(self):
        is_running = self.is_running  # asked before the log is read, so that its last words are
        for line in self.said().splitlines(keepends=True):
            if '"event":"listening"' in line and line.endswith("\n"):
                facts = json.loads(line)
                self.http_port, self.admin_port = facts["http_port"], facts["admin_port"]
                if self.has_proxy:
                    self.world.proxy.upstream = facts["port"]
                return True
        check(is_running, f"the runtime ended at its start: {self.said()}")
        return False

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=20)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            text = response.read().decode()
            check(response.status == 200, f"GET {path} of the runtime: {response.status} {text}")
            return text
        finally:
            connection.close()

    def status(self):
        return json.loads(self.ask("/status"))

    def application(self):
        """What it says of the application; nothing while no worker holds it."""
        found = [app for app in json.loads(self.ask("/status"))["applications"] if app["application_id"] == APPLICATION]
        return found[0] if found else None

    def in_flight(self):
        return (self.application() or {"in_flight": 0})["in_flight"]

    def worker_of(self, agent):
        """The agent's language worker as the runtime knows it; nothing while it knows none."""
        found = [each for each in json.loads(self.ask("/status"))["workers"] if each["worker"].startswith(agent.id + ".")]
        return found[0] if found else None

    def sessions(self, result):
        name = f'windlass_runtime_sessions_total{{result="{result}"}} '
        return sum(float(line[len(name):]) for line in self.ask("/metrics").splitlines() if line.startswith(name))


class FunctionWorld(World):
    def __init__(self, options):
        super().__init__(options)
        self.proxy = FaultProxy(random.Random(self.random.random()))
        self.runtime = None
        self.effects = self.path("effects")
        self.runtime_core_settings = self.runtime_session_settings = ""  # more of the runtime's [runtime] and [session]
        programs = os.path.abspath(options.programs)
        self.app_folder = os.path.join(programs, "tests/integration/faults/counted-app")
        self.url = f"wss://127.0.0.1:{self.proxy.port}/ws/worker"
        self.agent_settings = f"""
[language_worker]
folder = "{os.path.join(programs, "worker-agent/native")}"
arguments = ["--threads", "12"]
confine = "off"  # its functions write to a file of this test
restart_first = "20ms"
restart_cap = "200ms"
[runtime]
id = "{RUNTIME}"
url = "{self.url}"
"""

    def processes(self):
        return [*super().processes(), *([self.runtime] if self.runtime else [])]

    def end(self, is_good):
        super().end(is_good)
        self.proxy.close()

    def add_agent(self, plan=None, state=None):
        agent = super().add_agent(plan, state)
        with open(agent.config, encoding="utf-8") as file:
            text = file.read()
        self.write(f"{agent.name}.toml", text.replace('"20ms"', '"5ms"', 1).replace('"400ms"', '"50ms"', 1))
        return agent

    def start(self, agents=2, plan=None, settings=None):
        """Agents whose workers all hold the application, with these settings too, and are Ready at the runtime."""
        self.scheduler.start()
        self.start_runtime()
        for _ in range(agents):
            self.add_agent(plan).start()
        self.wait_ready()
        for agent in self.agents:
            wait_until(lambda a=agent: a.facts().get("language_worker", {}).get("state") == "placeholder",
                       f"the worker of {agent.name} is a placeholder", 30)
        pairs = {"COUNTED_EFFECTS": self.effects, **(settings or {})}
        self.deploy(*(part for name, value in pairs.items() for part in ("--setting", f"{name}={value}")))
        wait_until(lambda: self.admin.get("/v1/runtimes")["runtimes"], "the scheduler knows the runtime")
        self.windlass("assign", APPLICATION, "--tenant", TENANT, "--workers", str(agents))
        self.wait_whole()

    def scheduler_port(self):
        """Where runtimes dial the scheduler."""
        return self.port

    def deploy(self, *arguments):
        self.windlass("deploy", self.app_folder, "--app", APPLICATION, "--tenant", TENANT, *arguments)

    def start_runtime(self):
        self.runtime = self.new_runtime("runtime", RUNTIME, f'url = "{self.url}"')
        self.runtime.start()

    def new_runtime(self, name, runtime_id, address=""):
        """Not started yet. Without an address agents reach it without a proxy."""
        config = self.write(f"{name}.toml", f"""[runtime]
id = "{runtime_id}"
{self.runtime_core_settings}
[server]
listen = "127.0.0.1:0"
{address}
[tls]
certificate = "{self.path('tls', 'scheduler.pem')}"
key = "{self.path('tls', 'scheduler.key')}"
[session]
credentials_file = "{self.path('credentials.toml')}"
{self.runtime_session_settings}
backoff_first = "20ms"
backoff_cap = "400ms"
[http]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[scheduler]
url = "wss://127.0.0.1:{self.scheduler_port()}/ws/worker"
authority = "{self.path('tls', 'ca.pem')}"
tenant = "{TENANT}"
token_file = "{self.path('runtime-token')}"
[log]
level = "debug"
""")
        runtime = Runtime(self, name, self.program("windlass-runtime"), config)
        runtime.has_proxy = bool(address)
        return runtime

    def windlass(self, *arguments):
        done = subprocess.run([self.program("windlass"), *arguments], capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "WINDLASS_ADMIN_URL": f"http://127.0.0.1:{self.admin.port}",
                                   "WINDLASS_ADMIN_TOKEN": self.admin.token})
        check(done.returncode == 0, f"windlass {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def wait_whole(self, seconds=30.0):
        """Everybody is READY, at the scheduler and at the runtime, and the scheduler knows it of the runtime."""
        self.wait_ready(seconds)
        self.runtime.check_alive()
        for agent in self.agents:
            wait_until(lambda a=agent: self.has_ready_worker(a), f"the worker of {agent.name} is Ready at the runtime", seconds)
        wait_until(self._is_served, "the scheduler knows that every worker is ready", seconds)

    def has_ready_worker(self, agent):
        worker = self.runtime.worker_of(agent)
        return bool(worker) and worker["state"] == "Ready" and not worker["detached"]

    def _is_served(self):
        served = [app for runtime in self.admin.get("/v1/runtimes")["runtimes"] for app in runtime.get("applications", [])
                  if runtime["state"] == "READY" and app["application_id"] == APPLICATION]
        return bool(served) and served[0]["ready"] == len(self.agents)

    def effect_lines(self):
        if not os.path.exists(self.effects):
            return []
        with open(self.effects, encoding="utf-8") as file:
            return file.read().splitlines()


def children_of(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as file:
                found += file.read().split()
    except OSError:  # it has ended
        pass
    return found


def worker_pid(agent):
    """Of the agent's language worker, as the kernel knows it: a child of the agent's, or of the process that watches it."""
    waiting = children_of(agent.process.pid)
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                name = file.read().strip()
        except OSError:
            continue
        if name and "windlass-native".startswith(name):
            return int(pid)
        waiting += children_of(pid)
    raise Failure(f"{agent.name} has no language worker")
