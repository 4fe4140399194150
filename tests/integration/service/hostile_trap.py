"""An agent with a language worker that means ill, for confine_test.py: what it attacks is a folder of its own."""
import ctypes
import json
import os
import shutil
import subprocess

from fleet_processes import Process, as_user, wait_until, write_atomically

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "ab" * 32
CREATE_RULESET = 444  # landlock_create_ruleset
# None of these is an ephemeral port but the last.
FIXED_PORT, LISTED_PORT, EPHEMERAL_PORT = 21763, 21764, 45763


def has_port_rules():
    """Whether this kernel's Landlock knows the network."""
    version = 1
    return ctypes.CDLL(None).syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_long(0), ctypes.c_long(version)) >= 4


class Trap:
    """An agent with a hostile language worker, in a folder of its own; no scheduler answers it, which it does not mind."""

    def __init__(self, fleet, name, user=None, settings="", task=None, before=(), **more):
        """With a task, the worker is an untidy one. What stands before the agent's command line starts it. More: `folder` instead of
        one in the fleet's, `file` of the settings in it, `auth` instead of a token file."""
        self.fleet, self.name, self.user, self.settings, self.before = fleet, name, user, settings, before
        self.home, self.file = more.get("folder", fleet.path(name)), more.get("file", "agent.toml")
        # Where this is not the home, only what is known to be secret is hidden.
        self.user_home = "/nonexistent" if "folder" in more else self.home
        os.makedirs(self.path("worker"), exist_ok=True)
        os.makedirs(self.path("var", "packages", PACKAGE), exist_ok=True)
        for file, text in (("token", "own-secret"), ("other/token", "secret-of-another-tenant"),
                           (f"var/packages/{PACKAGE}/index.js", "// of another application")):
            os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
            write_atomically(self.path(file), text)
            os.chmod(self.path(file), 0o600)
        program = "untidy_worker.py" if task else "hostile_worker.py"
        shutil.copy(os.path.join(HERE, program), self.path("worker", program))
        write_atomically(self.path("worker", "task.json"), json.dumps(task))
        write_atomically(self.path("worker", "worker.config.json"), json.dumps({"description": {
            "language": "hostile", "defaultExecutablePath": "/usr/bin/python3", "defaultWorkerPath": program}}))
        self.attack(0)
        write_atomically(self.path(self.file), f"""
[scheduler]
url = "ws://127.0.0.1:1"
[auth]
{more.get("auth", f'token_file = "{self.path("token")}"')}
[worker]
tenant = "acme"
state_folder = "{self.path('var')}"
[metrics]
listen = "127.0.0.1:0"
[language_worker]
folder = "{self.path('worker')}"
arguments = ["-B"]
stop_grace = "100ms"
{settings}""")
        os.chmod(self.path(self.file), 0o600)
        if user is not None:
            subprocess.run(["chown", "-R", f"{user}:{user}", self.home], check=True)

    def path(self, *names):
        return os.path.join(self.home, *names)

    def attack(self, agent, pages=0):
        write_atomically(self.path("worker", "attack.json"), json.dumps({
            "agent": agent, "pages": pages, "port": FIXED_PORT, "listed_port": LISTED_PORT, "ephemeral_port": EPHEMERAL_PORT,
            "own_token": self.path("token"), "settings": self.path(self.file), "other_token": self.path("other", "token"), "state": self.path("var"),
            "package": self.path("var", "packages", PACKAGE, "index.js")}))
        os.chmod(self.path("worker", "attack.json"), 0o644)

    def start(self):
        command = [self.fleet.program("windlass-agent"), "--config", self.path(self.file)]
        if self.user is not None:
            command = [*as_user(self.user), *command]
        command = [*self.before, *command]
        log = self.fleet.path(f"{self.name}.log")
        self.process = Process(log, command, env={"PATH": os.environ["PATH"], "HOME": self.user_home, "WINDLASS_SPARE_TOKEN": "marker"})
        self.fleet.agents[self.name] = self.process  # ended before its folder is removed
        # The worker waits for the agent's number.
        wait_until("its pages are served", lambda: not self.process.is_running() or self.process.said("metrics are served"))
        self.attack(self.process.process.pid, next((line["port"] for line in self.process.said("metrics are served")), 0))
        return self.process

    def said(self):
        """What the worker printed, and those before it."""
        return [line["text"] for line in self.process.said("the language worker says") if line["stream"] == "stdout"]

    def attempts(self):
        """What became of each, by name, and what the worker found out about itself."""
        wait_until("the attempts are over", lambda: not self.process.is_running() or "attempts are over" in self.said())
        assert self.process.is_running(), self.process.text()
        return {line.split()[1]: line.split(" ", 2)[2] for line in self.said() if line.startswith("attempt ")}, next(
            line for line in self.said() if line.startswith("facts "))


def open_up(trap):
    """Everything that other users of this machine may enter, they enter."""
    for folder in (trap.fleet.path(), trap.home, trap.path("worker")):
        os.chmod(folder, 0o755)
    for file in os.listdir(trap.path("worker")):
        if trap.path("worker", file) != trap.path(trap.file):
            os.chmod(trap.path("worker", file), 0o644)
