#!/usr/bin/env python3
"""A fleet on this machine: a scheduler, a runtime and some agents with TLS between them, two applications, and work that is answered.

  ./dev up                 runs until Ctrl-C
  ./dev up --rate 500      with more than the few commands and invocations a second that it sends by itself
  ./dev up --once          shows it once, as fast as it goes; exit 0 only if every command was answered
  fleet.py --programs DIR  with programs from somewhere else

Everything lives in one folder (build/up): certificates, tokens, settings, logs, the scheduler's database. No process
outlives this one.
"""
import argparse
import ctypes
import fcntl
import hashlib
import http.client
import json
import os
import secrets
import shlex
import signal
import statistics
import subprocess
import sys
import threading
import time

TENANT = "dev"
ONCE_COMMANDS = 300
RATE = 5  # commands and invocations a second, all together: something to look at, and nothing that anybody feels
RUNTIME = "runtime-1"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Application: the language of its workers, its folder, and one of its functions with what it is called with.
APPLICATIONS = {
    "orders": ("native", "{programs}/examples/native-app", "orders", {"id": "A7", "lines": [{"price": 2.5, "count": 4}]}),
    "shop": ("node", os.path.join(ROOT, "docs/examples/node-app"), "processOrder", {"id": "A7", "items": [{"price": 2, "quantity": 3}]}),
}


class Failure(Exception):
    pass


def die_with_parent():
    """Linux: a child is told to stop when this process dies, however it dies."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def own_environment():
    """Without what was exported for windlass: to a runtime or an agent these would be settings that it does not know."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_ADMIN_")}


class Lock:
    """One fleet per folder: whoever comes second learns what runs and changes nothing."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o711)  # user code has a user of its own, and must get through to its package
        self.file = open(os.path.join(folder, "lock"), "a+", encoding="utf-8")  # pylint: disable=consider-using-with
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.seek(0)
            facts = json.loads(self.file.read() or "{}")
            raise Failure(f"a fleet is up already in {folder}, started by process {facts.get('pid', '?')} at {facts.get('since', '?')} "
                          f"({facts.get('places', 'it is still starting')}); end it with Ctrl-C or kill {facts.get('pid', '?')}, "
                          "or give --folder") from None
        self.facts = {"pid": os.getpid(), "since": time.strftime("%H:%M:%S")}
        self.write()

    def write(self, **more):
        self.facts.update(more)
        self.file.truncate(0)
        self.file.write(json.dumps(self.facts))
        self.file.flush()


class Fleet:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.folder)
        self.processes = []
        self.admin_token = secrets.token_urlsafe(32)
        self.port = self.admin_port = 0
        self.scheduler = None
        self.runtime = {}  # the ports it told
        self.lock = Lock(self.folder)
        self.http_settings = ""  # lines of [http]

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def program(self, name):
        for part in ("", "scheduler/shell", "scheduler/cli", "worker-agent/shell", "runtime/shell"):
            found = os.path.join(self.options.programs, part, name)
            if os.path.isfile(found):
                return os.path.abspath(found)
        raise Failure(f"{name} is not in {self.options.programs}; build it with ./dev build")

    def write(self, name, text, mode=0o600):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def spawn(self, name, *command):
        log = open(self.path(f"{name}.log"), "a", encoding="utf-8")  # pylint: disable=consider-using-with
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,  # pylint: disable=consider-using-with
                                   env=own_environment(), preexec_fn=die_with_parent)
        log.close()
        self.processes.append((name, process))
        return process

    # ---- set-up

    def prepare(self):
        if not os.path.exists(self.path("tls", "scheduler.pem")) or not os.path.exists(self.path("tls", "ca.pem")):
            subprocess.run([self.program("windlass"), "cert", "new", "--out", self.path("tls"), "--name", "scheduler", "--force",
                            "--san", "DNS:localhost", "--san", "IP:127.0.0.1"], check=True, stdout=subprocess.DEVNULL)
        token = secrets.token_urlsafe(32)
        self.write("agent-token", token)
        self.write("admin-token", self.admin_token)
        runtime_token = secrets.token_urlsafe(32)
        self.write("runtime-token", runtime_token)
        entries = [f'[[token]]\ntenant = "{TENANT}"\nname = "development"\nrole = "{role}"\nsha256 = "{hashlib.sha256(each.encode()).hexdigest()}"\n'
                   for role, each in (("worker", token), ("runtime", runtime_token))]
        self.write("credentials.toml", "".join(entries))

    def write_settings(self, port, admin_port):
        self.write("scheduler.toml", f"""[server]
listen = "127.0.0.1:{port}"
[tls]
certificate = "{self.path('tls', 'scheduler.pem')}"
key = "{self.path('tls', 'scheduler.key')}"
[session]
credentials_file = "{self.path('credentials.toml')}"
[runtimes]
addresses = ["127.0.0.1"]
[store]
path = "{self.path('scheduler.db')}"
[admin]
listen = "127.0.0.1:{admin_port}"
token_file = "{self.path('admin-token')}"
""")

    def start(self, name, program):
        """Until it listens; the ports are what it says."""
        self.write(f"{name}.log", "")
        process = self.spawn(name, self.program(program), "--config", self.path(f"{name}.toml"))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            with open(self.path(f"{name}.log"), encoding="utf-8") as log:
                for line in log:
                    if '"event":"listening"' in line and line.endswith("\n"):
                        return process, json.loads(line)
            time.sleep(0.05)
        with open(self.path(f"{name}.log"), encoding="utf-8") as log:
            raise Failure(f"the {name} did not start:\n" + log.read())

    def start_scheduler(self):
        self.write_settings(self.options.port, self.options.admin_port)
        self.scheduler, facts = self.start("scheduler", "windlass-scheduler")
        self.port, self.admin_port = facts["port"], facts["admin_port"]
        self.write_settings(self.port, self.admin_port)  # whoever starts it again finds the fleet waiting there

    def start_runtime(self):
        port = 0
        if os.path.exists(self.path("runtime-port")):  # agents that were here before look for it there
            with open(self.path("runtime-port"), encoding="utf-8") as file:
                port = int(file.read())
        self.write("runtime.toml", f"""[runtime]
id = "{RUNTIME}"
[server]
listen = "127.0.0.1:{port}"
[tls]
certificate = "{self.path('tls', 'scheduler.pem')}"
key = "{self.path('tls', 'scheduler.key')}"
[session]
credentials_file = "{self.path('credentials.toml')}"
[http]
listen = "127.0.0.1:{self.options.http_port}"
{self.http_settings}
[admin]
listen = "127.0.0.1:0"
[scheduler]
url = "wss://127.0.0.1:{self.port}/ws/worker"
authority = "{self.path('tls', 'ca.pem')}"
tenant = "{TENANT}"
token_file = "{self.path('runtime-token')}"
""")
        _, self.runtime = self.start("runtime", "windlass-runtime")
        self.write("runtime-port", str(self.runtime["port"]))

    def start_agent(self, number):
        name = f"agent-{number}"
        # One of each language in turn.
        language = os.path.join(os.path.abspath(self.options.programs), "worker-agent/native") if number % 2 else os.path.join(ROOT, "worker-agent/node")
        self.write(f"{name}/agent.toml", f"""[scheduler]
url = "wss://127.0.0.1:{self.port}/ws/worker"
[tls]
authority = "{self.path('tls', 'ca.pem')}"
[auth]
token_file = "{self.path('agent-token')}"
[worker]
tenant = "{TENANT}"
name = "{name}"
state_folder = "{self.path(name, 'var')}"
[language_worker]
folder = "{language}"
readable = ["{os.path.join(ROOT, 'schema')}"]
[runtime]
id = "{RUNTIME}"
url = "wss://127.0.0.1:{self.runtime['port']}/ws/worker"
""")
        self.spawn(name, self.program("windlass-agent"), "--config", self.path(name, "agent.toml"))

    def wait_for_agents(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            ready = [w["id"] for w in self.ask("GET", f"/v1/workers?tenant={TENANT}")["workers"] if w["state"] == "READY" and w["id"] != RUNTIME]
            if len(ready) >= self.options.agents:
                return sorted(ready)
            for name, process in self.processes:
                if process.poll() is not None:
                    raise Failure(f"{name} ended with {process.returncode}; see {self.path(name)}.log")
            time.sleep(0.1)
        raise Failure(f"not all agents are ready; see the logs in {self.folder}")

    def windlass(self, *arguments):
        done = subprocess.run([self.program("windlass"), *arguments], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**os.environ, "WINDLASS_ADMIN_URL": f"http://127.0.0.1:{self.admin_port}", "WINDLASS_ADMIN_TOKEN": self.admin_token})
        if done.returncode != 0:
            raise Failure(f"windlass {shlex.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def deploy(self):
        """Every application whose language an agent has, on one worker each."""
        deployed = []
        for name, (language, folder, *_) in APPLICATIONS.items():
            if language == "node" and self.options.agents < 2:
                continue
            print(f"deploying {name} ({language})", flush=True)
            self.windlass("deploy", folder.format(programs=os.path.abspath(self.options.programs)), "--app", name, "--tenant", TENANT)
            self.wait_assigned(name)
            deployed.append(name)
        return deployed

    def wait_assigned(self, name, seconds=60):
        """A fleet that was here before has its assignments still; a new one's placeholders take a moment."""
        deadline = time.monotonic() + seconds
        while True:
            apps = [app for app in json.loads(self.windlass("apps", "--json"))["apps"] if app["application_id"] == name]
            if any(runtime["ready"] for app in apps for runtime in app["runtimes"]):
                return
            if time.monotonic() > deadline:
                raise Failure(f"no worker of {name} is ready; see the logs in {self.folder}")
            try:
                if not any(app["workers"]["wanted"] for app in apps):
                    self.windlass("assign", name, "--tenant", TENANT)
            except Failure:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def scheduler_command(self):
        return shlex.join([self.program("windlass-scheduler"), "--config", self.path("scheduler.toml")])

    def stop(self):
        for _, process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + 5
        for _, process in self.processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # ---- work

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=60)

    def ask(self, method, path, body=None, connection=None):
        connection = connection or self.connect()
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise Failure(f"{method} {path}: {response.status} {text.decode()}")
        return json.loads(text or b"{}")


class Load:
    """Sends commands to one worker, one after the other, and keeps how long each took. While the scheduler is away it asks again with
    the same id, which is done once however often it is sent."""

    def __init__(self, fleet, worker, stop, commands=None, application=None):
        self.fleet, self.worker, self.stop, self.commands = fleet, worker, stop, commands
        self.pause = 0.0  # from the beginning of one to that of the next, at least
        self.name, self.type = worker, "biz.echo"
        self.payload = None  # an echo counts
        if application:
            _, _, function, data = APPLICATIONS[application]
            self.name, self.type = f"{application}/{function}", "biz.runtime.invoke"
            self.payload = {"application_id": application, "function": function, "data": data}
        self.sent = self.answered = 0
        self.latencies = []
        self.problem = None
        self.run_id = secrets.token_hex(8)
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        connection = self.fleet.connect()
        while not self.stop.is_set() and self.problem is None and (self.commands is None or self.sent < self.commands):
            begun = time.monotonic()
            self.sent += 1
            command = f"up-{self.run_id}-{self.sent}"
            while not self.stop.is_set() and self.problem is None:
                try:
                    if self.do(command, connection):
                        self.latencies.append(time.monotonic() - begun)
                        self.stop.wait(max(0.0, begun + self.pause - time.monotonic()))
                        break
                except Failure as problem:
                    self.problem = str(problem)
                except (OSError, http.client.HTTPException) as problem:
                    if self.commands is not None:  # a demonstration ends with what went wrong
                        self.problem = str(problem)
                    connection.close()
                    connection = self.fleet.connect()
                time.sleep(0.2)

    def do(self, command, connection):
        """Whether it is done; one that takes longer is asked for again."""
        self.fleet.ask("POST", f"/v1/workers/{TENANT}/{self.worker}/commands",
                       {"id": command, "type": self.type, "payload": self.payload or {"n": self.sent}}, connection)
        record = self.fleet.ask("GET", f"/v1/commands/{TENANT}/{command}?wait_ms=20000", None, connection)
        state = record["state"].upper()
        if state == "FAILED":
            raise Failure(f"command {command} failed: {json.dumps(record.get('failure'))}")
        if state == "DONE" and self.type != "biz.echo" and not record["result"]["payload"].get("ok"):
            raise Failure(f"{self.name} failed: {json.dumps(record['result']['payload'])}")
        self.answered += state == "DONE"
        return state == "DONE"


def quantile(values, part):
    return statistics.quantiles(values, n=100)[part - 1] * 1000 if len(values) > 1 else 0.0


def show(fleet, loads, previous, interval):
    try:
        states = {w["id"]: w for w in fleet.ask("GET", f"/v1/workers?tenant={TENANT}")["workers"]}
    except (Failure, OSError, http.client.HTTPException):
        return [f"the scheduler is away; start it again:  {fleet.scheduler_command()}"]
    lines = [f"{'worker or function':38} {'state':9} {'sent':>7} {'answered':>9} {'per s':>7} {'p50 ms':>8} {'p99 ms':>8}"]
    for load in loads:
        rate = (load.answered - previous.get(load.name, 0)) / interval
        previous[load.name] = load.answered
        recent = load.latencies[-1000:]
        state = states.get(load.worker, {}).get("state", "gone")
        lines.append(f"{load.name:38} {state:9} {load.sent:7} {load.answered:9} {rate:7.1f} {quantile(recent, 50):8.2f} {quantile(recent, 99):8.2f}")
    return lines


def next_steps(fleet):
    windlass = fleet.program("windlass")
    print(f"""
scheduler   wss://127.0.0.1:{fleet.port}/ws/worker
admin       http://127.0.0.1:{fleet.admin_port}   token in {fleet.path('admin-token')}
functions   http://127.0.0.1:{fleet.runtime['http_port']}/api/...   health and metrics: http://127.0.0.1:{fleet.runtime['admin_port']}
logs        {fleet.folder}/*.log

Try, in another terminal:
  export WINDLASS_ADMIN_URL=http://127.0.0.1:{fleet.admin_port} WINDLASS_ADMIN_TOKEN=$(cat {fleet.path('admin-token')})
  {windlass} top
  {windlass} workers
  {windlass} apps
  {windlass} invoke shop processOrder --data '{{"id":"A7","items":[{{"price":2,"quantity":3}}]}}'
  curl http://127.0.0.1:{fleet.runtime['http_port']}/api/greet/Ada
  {windlass} send {TENANT}/ID biz.echo '{{"hello":"fleet"}}' --wait
  {windlass} drain {TENANT}/ID
  kill -9 {fleet.scheduler.pid}; {fleet.scheduler_command()}
""", flush=True)


def run(options):
    fleet = Fleet(options)
    try:
        fleet.prepare()
        fleet.start_scheduler()
        fleet.start_runtime()
        for number in range(1, options.agents + 1):
            fleet.start_agent(number)
        workers = fleet.wait_for_agents()
        applications = fleet.deploy()
        fleet.lock.write(places=f"admin http://127.0.0.1:{fleet.admin_port}, functions http://127.0.0.1:{fleet.runtime['http_port']}")
        next_steps(fleet)
        stop = threading.Event()
        commands = max(1, ONCE_COMMANDS // (len(workers) + len(applications))) if options.once else None
        loads = [Load(fleet, worker, stop, commands) for worker in workers]
        loads += [Load(fleet, RUNTIME, stop, commands, application) for application in applications]
        if not options.once:
            print(f"sending {options.rate} commands and invocations a second, all together; --rate N sends more or fewer", flush=True)
            for load in loads:
                load.pause = len(loads) / options.rate
        for load in loads:
            load.thread.start()
        previous, is_terminal, drawn = {}, sys.stdout.isatty(), 0
        while any(load.thread.is_alive() for load in loads):
            time.sleep(1 if is_terminal or options.once else 5)
            lines = show(fleet, loads, previous, 1 if is_terminal or options.once else 5)
            if is_terminal and drawn:
                print(f"\033[{drawn}A\033[J", end="")
            print("\n".join(lines), flush=True)
            drawn = len(lines)
        problems = [f"{load.name}: {load.problem}" for load in loads if load.problem]
        sent, answered = sum(load.sent for load in loads), sum(load.answered for load in loads)
        print(f"{answered} of {sent} commands and invocations answered by {len(workers)} agents and {len(applications)} applications")
        for problem in problems:
            print(problem, file=sys.stderr)
        return 0 if answered == sent and not problems else 1
    finally:
        fleet.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="end after the demonstration")
    parser.add_argument("--agents", type=int, default=3, choices=range(1, 33), metavar="N", help="how many agents (3)")
    parser.add_argument("--rate", type=int, default=RATE, choices=range(1, 100001), metavar="N",
                        help=f"commands and invocations a second, all together ({RATE}); --once sends as fast as it goes")
    parser.add_argument("--port", type=int, default=0, help="of the scheduler; the system chooses one if not given")
    parser.add_argument("--admin-port", type=int, default=0, help="of the admin listener")
    parser.add_argument("--http-port", type=int, default=0, help="of the runtime's functions")
    parser.add_argument("--programs", default="build/release", help="where the programs are (build/release)")
    parser.add_argument("--folder", default="build/up", help="what it keeps (build/up)")
    parser.add_argument("--is-free", action="store_true", help="only say whether a fleet is up already, by the exit code")
    options = parser.parse_args()

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        if options.is_free:
            return 0 if Lock(os.path.abspath(options.folder)) else 1
        return run(options)
    except KeyboardInterrupt:
        print("\nstopped")
        return 0 if not options.once else 1
    except (Failure, subprocess.CalledProcessError) as failure:
        print(f"up: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
