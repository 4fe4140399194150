"""Real windlass-scheduler and windlass-agent processes for one test: a folder, certificates and tokens of their own, ports
chosen by the system, everything ended with the test.

  with Fleet(programs) as fleet: fleet.start(); agent = fleet.agent("a"); fleet.ready("a")
"""
import ctypes
import hashlib
import http.client
import json
import os
import secrets
import signal
import ssl
import subprocess
import tempfile
import time

PATIENCE_S = 30
PLAIN_USER = 65520  # nobody's: neither an agent nor systemd gives it out


def wait_until(what, condition, patience=PATIENCE_S):
    """The first true answer; a test fails after a while."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.03)
    raise AssertionError(f"in vain: {what}")


def die_with_parent():
    """Linux: no process outlives the test, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def as_user(user):
    """What to put before a command."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def can_make_namespaces(user):
    return subprocess.run([*as_user(user), "unshare", "-Ur", "true"], check=False, capture_output=True).returncode == 0


def write_atomically(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


class Process:
    """One program whose log lines are read as JSON."""

    def __init__(self, log, command, **more):
        self.log = log
        with open(log, "a", encoding="utf-8") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file, preexec_fn=die_with_parent, **more)  # pylint: disable=consider-using-with

    def lines(self):
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.startswith("{") and line.endswith("}\n")]

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def said(self, event, **fields):
        """The lines of that event whose fields are these."""
        return [line for line in self.lines() if line["event"] == event and all(line.get(k) == v for k, v in fields.items())]

    def wait_for(self, event, **fields):
        try:
            return wait_until(f"log line '{event}' {fields}", lambda: self.said(event, **fields))[-1]
        except AssertionError as error:
            raise AssertionError(f"{error}; the log is:\n{self.text()}") from None

    def is_running(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, patience=PATIENCE_S):
        return self.process.wait(timeout=patience)

    def end(self):
        if self.is_running():
            self.process.kill()
        self.process.wait()


class Fleet:
    def __init__(self, programs, tls=True):
        self.programs, self.tls = programs, tls
        self.folder = tempfile.TemporaryDirectory(prefix="windlass-")
        self.admin_token = secrets.token_urlsafe(24)
        self.secrets = {self.admin_token}  # everything that no log may show
        self.tokens = {}  # name -> token of the tenant acme
        self.roles = {}  # name -> role of that token, where it is no worker's
        self.port = self.admin_port = 0
        self.scheduler = None
        self.agents = {}
        self.state_folders = {}  # by agent, where it is not its own folder
        self.admin_tls = None  # ssl.SSLContext for https

    def __enter__(self):
        if self.tls:
            self.certificate("scheduler")
        write_atomically(self.path("admin-token"), self.admin_token + "\n")
        self.credentials()
        return self

    def __exit__(self, *_):
        for process in [*self.agents.values(), self.scheduler]:
            if process is not None:
                process.end()
        self.folder.cleanup()

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def program(self, name):
        for part in ("scheduler/shell", "scheduler/cli", "worker-agent/shell", "runtime/shell"):
            if os.path.isfile(found := os.path.join(self.programs, part, name)):
                return found
        raise RuntimeError(f"{name} is not in {self.programs}")

    def windlass(self, *arguments, check=True, **environment):
        done = subprocess.run([self.program("windlass"), *arguments], capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "WINDLASS_ADMIN_TOKEN": self.admin_token, **environment})
        assert not check or done.returncode == 0, f"windlass {arguments}: {done.returncode} {done.stderr}"
        return done

    def certificate(self, name, *sans, folder="tls", **more):
        """Writes NAME.pem and NAME.key, signed by the folder's authority, and gives their paths."""
        names = sans or ("DNS:localhost", "IP:127.0.0.1")
        days = more.get("days", 30)
        self.windlass("cert", "new", "--out", self.path(folder), "--name", name, "--force", "--days", str(days),
                      *(f"--san={each}" for each in names))
        return self.path(folder, f"{name}.pem"), self.path(folder, f"{name}.key")

    def new_token(self, name):
        self.tokens[name] = secrets.token_urlsafe(24)
        self.secrets.add(self.tokens[name])
        return self.tokens[name]

    def credentials(self, more="", names=None):
        """Tokens by their names, all if not given, and whatever is given besides."""
        entries = [f'[[token]]\ntenant = "acme"\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
                   + (f'role = "{self.roles[name]}"\n' if name in self.roles else "")
                   for name, token in self.tokens.items() if names is None or name in names]
        write_atomically(self.path("credentials.toml"), "\n".join(entries) + more)

    def start(self, settings="", tls_settings="", session_settings="", admin_settings="", drain_window="1s"):
        """The ports of the first start are kept by later ones."""
        tls = f'[tls]\ncertificate = "{self.path("tls", "scheduler.pem")}"\nkey = "{self.path("tls", "scheduler.key")}"\n{tls_settings}'
        write_atomically(self.path("scheduler.toml"), f"""
[server]
listen = "127.0.0.1:{self.port}"
drain_window = "{drain_window}"
{tls if self.tls else ""}
[session]
credentials_file = "{self.path('credentials.toml')}"
{session_settings}
[store]
path = "{self.path('scheduler.db')}"
[admin]
listen = "127.0.0.1:{self.admin_port}"
token_file = "{self.path('admin-token')}"
{admin_settings}
{settings}""")
        starts = len(self.scheduler.said("listening")) if self.scheduler else 0  # earlier ones are in the same log
        self.scheduler = Process(self.path("scheduler.log"), [self.program("windlass-scheduler"), "--config", self.path("scheduler.toml")])
        wait_until("the scheduler listens", lambda: len(self.scheduler.said("listening")) > starts or not self.scheduler.is_running())
        assert self.scheduler.is_running(), self.scheduler.text()
        facts = self.scheduler.said("listening")[-1]
        self.port, self.admin_port = facts["port"], facts["admin_port"]
        return self.scheduler

    def agent(self, name, token=None, settings="", tls_settings="", tenant="acme", user=None):
        """Starts windlass-agent with the token of that name, of its own name if none is given; "" for no token. As that user, if any."""
        os.makedirs(self.path(name), exist_ok=True)
        authority = f'[tls]\nauthority = "{self.path("tls", "ca.pem")}"\n{tls_settings}'
        auth = f'[auth]\ntoken_file = "{self.path(name, "token")}"'
        if token != "":
            write_atomically(self.path(name, "token"), self.tokens[token or name] + "\n")
        write_atomically(self.path(name, "agent.toml"), f"""
[scheduler]
url = "{'wss' if self.tls else 'ws'}://127.0.0.1:{self.port}/ws/worker"
{authority if self.tls else ""}
{auth if token != "" else ""}
[worker]
tenant = "{tenant}"
name = "{name}"
state_folder = "{self.state_folder(name)}"
{settings}""")
        command = [self.program("windlass-agent"), "--config", self.path(name, "agent.toml")]
        if user is not None:
            subprocess.run(["chown", "-R", f"{user}:{user}", self.path(name)], check=True)
            for each in (self.path(), *([self.path("tls"), self.path("tls", "ca.pem")] if self.tls else [])):
                os.chmod(each, 0o755)
            subprocess.run(["chmod", "-R", "o-rwx", self.path(name)], check=True)
            command = [*as_user(user), *command]
        self.agents[name] = Process(self.path(f"{name}.log"), command)
        return self.agents[name]

    def state_folder(self, name):
        return self.state_folders.get(name) or self.path(name, "var")

    def instance(self, name):
        with open(os.path.join(self.state_folder(name), "worker_instance_id"), encoding="utf-8") as file:
            return file.read().strip()

    # ---- the admin listener

    def ask(self, method, path, body=None, token=None, raw=None):
        """Status and text. The body is sent as JSON, unless it is given as it is."""
        if self.admin_tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.admin_port, timeout=60, context=self.admin_tls)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=60)
        connection.request(method, path, raw if body is None else json.dumps(body),
                           {"Authorization": f"Bearer {token or self.admin_token}", "Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def json(self, method, path, body=None):
        status, text = self.ask(method, path, body)
        assert status < 300, f"{method} {path}: {status} {text}"
        return json.loads(text or "{}")

    def worker(self, name):
        """What the scheduler knows of the agent, if anything."""
        for worker in self.json("GET", "/v1/workers")["workers"]:
            if worker.get("name") == name or worker.get("worker_name") == name:
                return worker
        return None

    def ready(self, name):
        try:
            return wait_until(f"{name} is READY", lambda: (w := self.worker(name)) and w["state"] == "READY" and w)
        except AssertionError as error:
            raise AssertionError(f"{error}; its log is:\n{self.agents[name].text()}\n{self.scheduler.text()}") from None

    def run_command(self, name, kind="biz.echo", payload=None):
        worker = self.ready(name)
        accepted = self.json("POST", f"/v1/workers/{worker['tenant']}/{worker['id']}/commands", {"type": kind, "payload": payload or {}})
        return self.json("GET", f"/v1/commands/{worker['tenant']}/{accepted['id']}?wait_ms=20000")

    def served_certificate(self, port=None):
        return ssl.get_server_certificate(("127.0.0.1", port or self.port))


def run_tests(tests, arguments):
    """Runs each with a fleet of its own; the arguments are the folder of programs and names of tests, all if none."""
    programs, names = arguments[0], arguments[1:]
    for test in tests:
        if names and test.__name__ not in names:
            continue
        begun = time.monotonic()
        test(programs)
        print(f"ok {test.__name__} {time.monotonic() - begun:.1f} s", flush=True)

