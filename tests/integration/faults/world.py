"""A scheduler and agents as real processes over TLS, each agent behind its own fault proxy, in one folder.

Every process is started by its path, on ports that the system chooses, and ended with the world. Waiting is always for
a condition with a deadline; nothing here sleeps for a guessed time.
"""
import ctypes
import hashlib
import http.client
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from fault_proxy import FaultProxy

TENANT = "acme"
POLL = 0.02


class Failure(Exception):
    """A promise that was not kept, in one sentence."""


def check(condition, sentence):
    if not condition:
        raise Failure(sentence)


def wait_until(condition, what, seconds=20.0):
    """The first truth that `condition` gives."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds:g} s in vain until {what}")
        time.sleep(POLL)


def die_with_parent():
    """Linux: a child is ended with this process, however that one ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Answer:
    def __init__(self, status, content_type, body):
        self.status, self.content_type, self.body = status, content_type, body


class Admin:
    """The scheduler's REST, one connection per thread, dialled again whenever it broke."""

    def __init__(self, token):
        self.token, self.port = token, 0
        self.local = threading.local()

    def request(self, method, path, body=None, timeout=30):
        """What was answered; OSError or HTTPException when nobody can tell."""
        connection = getattr(self.local, "connection", None)
        if connection is None or connection.port != self.port:
            connection = self.local.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        connection.timeout = timeout
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        kind = response.headers.get("Content-Type", "")
        return Answer(response.status, kind, json.loads(text) if "json" in kind else text.decode())

    def get(self, path):
        answer = self.request("GET", path)
        check(answer.status == 200, f"GET {path}: {answer.status} {answer.body}")
        return answer.body

    def metric(self, name, **labels):
        """The sum over all series of that name that have these labels."""
        total = 0.0
        for line in self.get("/metrics").splitlines():
            series, _, value = line.rpartition(" ")
            found, _, rest = series.partition("{")
            if found == name and all(f'{key}="{text}"' in rest for key, text in labels.items()):
                total += float(value)
        return total


class Process:
    """One program, started again and again with the same settings."""

    def __init__(self, world, name, program, config):
        self.world, self.name, self.program, self.config = world, name, program, config
        self.environment = {}
        self.process = None
        self.starts = 0
        self.is_wanted = False  # nobody ended it yet

    @property
    def log(self):
        return self.world.path(f"{self.name}.{self.starts}.log")

    def events(self, *names):
        """The lines of these events over all of its starts."""
        found = []
        for number in range(1, self.starts + 1):
            with open(self.world.path(f"{self.name}.{number}.log"), encoding="utf-8", errors="replace") as log:
                lines = [line for line in log if line.endswith("}\n") and any(f'"event":"{name}"' in line for name in names)]
            found += [json.loads(line) for line in lines]
        return found

    def start(self):
        self.starts += 1
        self.is_wanted = True
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [self.program, "--config", self.config], stdout=log, stderr=log, cwd=self.world.folder,
                env={**os.environ, **self.environment}, preexec_fn=die_with_parent)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.is_wanted = False
        self.process.kill()
        self.process.wait()

    def wait(self, seconds):
        """For an end that is expected; its exit code."""
        self.is_wanted = False
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {seconds} s") from None

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def check_alive(self):
        if self.is_wanted and not self.is_running:
            raise Failure(f"{self.name} ended by itself with {self.process.returncode}: {self.said()[-1000:]}")

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()


class Scheduler(Process):
    def start(self, seconds=20.0):
        """Until it listens; the ports are new each time, and the proxies and the admin client are told."""
        super().start()
        wait_until(self._is_listening, "the scheduler listens", seconds)

    def _is_listening(self):
        is_running = self.is_running  # asked before the log is read, so that its last words are
        for line in self.said().splitlines(keepends=True):
            if '"event":"listening"' in line and line.endswith("\n"):
                facts = json.loads(line)
                self.world.admin.port = facts["admin_port"]
                for agent in self.world.agents:
                    agent.proxy.upstream = facts["port"]
                self.world.port = facts["port"]
                return True
        check(is_running, f"the scheduler ended at its start: {self.said()}")
        return False


class Agent(Process):
    def __init__(self, world, name, program, config, proxy):
        super().__init__(world, name, program, config)
        self.proxy = proxy
        self.state = world.path(name)
        self.effects = world.path(f"{name}.effects")

    @property
    def id(self):
        with open(os.path.join(self.state, "worker_instance_id"), encoding="utf-8") as file:
            return file.read().strip()

    def facts(self):
        """What the scheduler knows of it; nothing before it came."""
        try:
            answer = self.world.admin.request("GET", f"/v1/workers/{TENANT}/{self.id}")
        except (OSError, http.client.HTTPException):
            return None
        return answer.body if answer.status == 200 else None

    def is_ready(self):
        facts = self.facts()
        return facts is not None and facts["state"] == "READY" and facts["liveness"] == "HEALTHY"

    def effect_lines(self):
        if not os.path.exists(self.effects):
            return []
        with open(self.effects, encoding="utf-8") as file:
            return file.read().splitlines()


class World:
    def __init__(self, options, session="", agent="", store=None):
        """`session` and `agent` are more lines of settings: of the scheduler's [session], of an agent's file."""
        self.options, self.session_settings, self.agent_settings = options, session, agent
        self.runtimes_settings = ""  # more of the scheduler's [runtimes]
        self.random = random.Random(options.seed)
        self.folder = tempfile.mkdtemp(prefix="windlass-faults-")
        self.store = store or self.path("scheduler.db")
        self.port = 0
        self.agents = []
        self.token, self.admin = secrets.token_urlsafe(24), Admin(secrets.token_urlsafe(24))
        self.scheduler = None

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o600):
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def program(self, name):
        for part in ("scheduler/shell", "scheduler/cli", "worker-agent/shell", "worker-agent/run", "runtime/shell"):
            found = os.path.join(self.options.programs, part, name)
            if os.path.isfile(found):
                return os.path.abspath(found)
        raise Failure(f"{name} is not in {self.options.programs}; build it with ./dev build")

    def __enter__(self):
        made = subprocess.run([self.program("windlass"), "cert", "new", "--out", self.path("tls"), "--name", "scheduler",
                               "--san", "IP:127.0.0.1"], capture_output=True, text=True, check=False)
        check(made.returncode == 0, f"no certificate could be made: {made.stderr}")
        self.write("admin-token", self.admin.token)
        self.write("agent-token", self.token)
        runtime_token = secrets.token_urlsafe(24)
        self.write("runtime-token", runtime_token)
        self.write("credentials.toml", "".join(
            f'[[token]]\ntenant = "{TENANT}"\nrole = "{role}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
            for role, token in (("worker", self.token), ("runtime", runtime_token))))
        config = self.write("scheduler.toml", f"""[server]
listen = "127.0.0.1:0"
loops = 2
drain_window = "1s"
[tls]
certificate = "{self.path('tls', 'scheduler.pem')}"
key = "{self.path('tls', 'scheduler.key')}"
[session]
credentials_file = "{self.path('credentials.toml')}"
{self.session_settings}
[runtimes]
addresses = ["127.0.0.1"]
{self.runtimes_settings}
[store]
path = "{self.store}"
[commands]
finished_per_tenant_max = 1000000
[admin]
listen = "127.0.0.1:0"
token_file = "{self.path('admin-token')}"
""")
        self.scheduler = Scheduler(self, "scheduler", self.program("windlass-scheduler"), config)
        return self

    def __exit__(self, kind, problem, trace):
        try:
            if kind is None:
                for process in self.processes():
                    process.check_alive()
        except Failure as failure:
            kind = failure
            raise
        finally:
            self.end(kind is None)

    def processes(self):
        return [*self.agents, self.scheduler]

    def end(self, is_good):
        for process in self.processes():
            if process.is_running:
                process.signal(signal.SIGCONT)
                process.kill()
        for agent in self.agents:
            agent.proxy.close()
        if is_good:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print(f"logs and state are kept in {self.folder}", flush=True)

    def add_agent(self, plan=None, state=None):
        """Not started yet. Its biz.exec rule `append` adds its argument as a line to the agent's file of effects."""
        name = f"agent-{len(self.agents) + 1}"
        proxy = FaultProxy(random.Random(self.random.random()), plan)
        proxy.upstream = self.port or None
        state = state or self.path(name)
        script = self.write(f"{name}.sh", f'#!/bin/sh\necho "$1" >> {self.path(name + ".effects")} && echo "$1"\n', 0o700)
        config = self.write(f"{name}.toml", f"""[scheduler]
url = "wss://127.0.0.1:{proxy.port}/ws/worker"
[tls]
authority = "{self.path('tls', 'ca.pem')}"
[auth]
token_file = "{self.path('agent-token')}"
[worker]
tenant = "{TENANT}"
name = "{name}"
state_folder = "{state}"
[session]
backoff_first = "20ms"
backoff_cap = "400ms"
[exec.append]
program = "{script}"
arg_patterns = ["[a-z0-9-]{{1,64}}"]
output_max = "1KiB"
{self.agent_settings}
""")
        agent = Agent(self, name, self.program("windlass-agent"), config, proxy)
        agent.state = state
        self.agents.append(agent)
        return agent

    def start(self, agents=3, plan=None):
        """A scheduler and agents that are all READY."""
        self.scheduler.start()
        for _ in range(agents):
            self.add_agent(plan).start()
        self.wait_ready()

    def wait_ready(self, seconds=20.0):
        for agent in self.agents:
            agent.check_alive()
            if agent.is_wanted:
                wait_until(lambda a=agent: os.path.exists(os.path.join(a.state, "worker_instance_id")) and a.is_ready(),
                           f"{agent.name} is READY", seconds)
