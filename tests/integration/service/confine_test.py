"""User code is not the agent: a language worker whose code is hostile meets a wall at every attempt, whether the agent is root and
switches to another user, or nobody special and makes a namespace.

  confine_test.py BUILD_FOLDER [test...]
"""
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys

from fleet_processes import PLAIN_USER, Fleet, Process, as_user, can_make_namespaces, run_tests, wait_until, write_atomically

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST_USER, USER_COUNT = 60706, 478  # those that agents give to their workers
USER_LOCKS = "/run/windlass/users"
PACKAGE = "ab" * 32
SECRET_ATTEMPTS = ("own_token", "other_token", "state", "list_state", "read_package", "write_package", "agent_memory",
                   "agent_environment", "ptrace")

REFUSED_CALLS = {"clone_new_user": errno.EPERM, "clone_new_network": errno.EPERM, "clone3": errno.ENOSYS, "io_uring": errno.EPERM,
                 "fsmount": errno.EPERM, "fspick": errno.EPERM}


def processes_with(mark):
    """Of all processes, those whose command line has the mark."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


class Trap:
    """An agent with a hostile language worker, in a folder of its own; no scheduler answers it, which it does not mind."""

    def __init__(self, fleet, name, user=None, settings=""):
        self.fleet, self.name, self.user = fleet, name, user
        self.home = fleet.path(name)
        os.makedirs(self.path("worker"), exist_ok=True)
        os.makedirs(self.path("var", "packages", PACKAGE), exist_ok=True)
        for file, text in (("token", "own-secret"), ("other/token", "secret-of-another-tenant"),
                           (f"var/packages/{PACKAGE}/index.js", "// of another application")):
            os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
            write_atomically(self.path(file), text)
            os.chmod(self.path(file), 0o600)
        shutil.copy(os.path.join(HERE, "hostile_worker.py"), self.path("worker", "hostile_worker.py"))
        write_atomically(self.path("worker", "worker.config.json"), json.dumps({"description": {
            "language": "hostile", "defaultExecutablePath": "/usr/bin/python3", "defaultWorkerPath": "hostile_worker.py"}}))
        self.attack(0)
        write_atomically(self.path("agent.toml"), f"""
[scheduler]
url = "ws://127.0.0.1:1"
[auth]
token_file = "{self.path('token')}"
[worker]
tenant = "acme"
state_folder = "{self.path('var')}"
[language_worker]
folder = "{self.path('worker')}"
arguments = ["-B"]
stop_grace = "100ms"
{settings}""")
        if user is not None:
            subprocess.run(["chown", "-R", f"{user}:{user}", self.home], check=True)

    def path(self, *names):
        return os.path.join(self.home, *names)

    def attack(self, agent):
        write_atomically(self.path("worker", "attack.json"), json.dumps({
            "agent": agent, "own_token": self.path("token"), "other_token": self.path("other", "token"), "state": self.path("var"),
            "package": self.path("var", "packages", PACKAGE, "index.js")}))
        os.chmod(self.path("worker", "attack.json"), 0o644)

    def start(self):
        command = [self.fleet.program("windlass-agent"), "--config", self.path("agent.toml")]
        if self.user is not None:
            command = [*as_user(self.user), *command]
        log = self.fleet.path(f"{self.name}.log")
        self.process = Process(log, command, env={"PATH": os.environ["PATH"], "HOME": self.home, "WINDLASS_SPARE_TOKEN": "marker"})
        self.fleet.agents[self.name] = self.process  # ended before its folder is removed
        # The worker waits for the agent's number.
        self.attack(self.process.process.pid)
        return self.process

    def attempts(self):
        """What became of each, by name, and what the worker found out about itself."""
        def texts():
            return [line["text"] for line in self.process.said("the language worker says") if line["stream"] == "stdout"]
        wait_until("the attempts are over", lambda: not self.process.is_running() or "attempts are over" in texts())
        assert self.process.is_running(), self.process.text()
        return {line.split()[1]: line.split(" ", 2)[2] for line in texts() if line.startswith("attempt ")}, next(
            line for line in texts() if line.startswith("facts "))


def open_up(trap):
    """Everything that other users of this machine may enter, they enter."""
    for folder in (trap.fleet.path(), trap.home, trap.path("worker")):
        os.chmod(folder, 0o755)
    for file in os.listdir(trap.path("worker")):
        os.chmod(trap.path("worker", file), 0o644)


def check(trap, expected_user, expected_confinement):
    open_up(trap)
    agent = trap.start()
    confined = agent.wait_for("user code is confined")
    assert confined["confinement"] == expected_confinement, confined
    attempts, facts = trap.attempts()
    for name in SECRET_ATTEMPTS:
        assert attempts[name].startswith("refused"), (name, attempts)
    for name, error in REFUSED_CALLS.items():
        assert attempts[name].startswith(f"refused [Errno {error:d}]"), (name, attempts)
    assert attempts["threads_and_processes"] == "ok", attempts
    assert attempts["node"] == "ok" or not shutil.which("node"), attempts
    assert attempts["own_folder"] == "ok", attempts  # it has a place of its own
    assert attempts["signal_agent"].startswith("refused"), attempts
    assert "no_new_privs=1" in facts and "secrets=[]" in facts, facts
    if expected_user is not None:
        assert f"user={expected_user} " in facts, facts
    else:
        assert "user=0 " not in facts, facts
    # What it left behind goes with it, whether the worker ends or the agent is killed.
    left = processes_with(trap.path("worker"))
    assert len(left) >= 2, left
    agent.signal(signal.SIGKILL)
    agent.wait()
    wait_until("nothing is left", lambda: not set(processes_with(trap.path("worker"))) & set(left))
    with open(trap.path("var", "packages", PACKAGE, "index.js"), encoding="utf-8") as file:
        assert file.read() == "// of another application"


def an_agent_of_root_switches_to_another_user(programs):
    with Fleet(programs, tls=False) as fleet:
        check(Trap(fleet, "root"), None, "user")


def the_settings_name_the_user(programs):
    with Fleet(programs, tls=False) as fleet:
        check(Trap(fleet, "named", settings='user = "65521:65522"\nconfine = "required"\n'), 65521, "user")


def an_agent_of_a_plain_user_makes_a_namespace(programs):
    with Fleet(programs, tls=False) as fleet:
        trap = Trap(fleet, "plain", user=PLAIN_USER)
        if can_make_namespaces(PLAIN_USER):
            return check(trap, PLAIN_USER, "namespace")
        # No namespaces here, as in a chroot: then it is said loudly.
        os.chmod(fleet.path(), 0o755)
        said = trap.start().wait_for("USER CODE IS NOT CONFINED: it can do whatever this agent's user can")
        assert "agent's own user" in said["gaps"] and said["reason"], said


def what_cannot_be_confined_is_refused_or_said(programs):
    with Fleet(programs, tls=False) as fleet:
        os.chmod(fleet.path(), 0o755)
        loud = Trap(fleet, "loud", settings='confine = "off"\n').start()
        said = loud.wait_for("USER CODE IS NOT CONFINED: it can do whatever this agent's user can")
        assert said["level"] == "error" and said["confinement"] == "none", said
        # The agent's own user is no other user.
        refused = Trap(fleet, "refused", settings='user = "0:0"\nconfine = "required"\n').start()
        assert refused.wait() == 2, refused.text()
        assert "the language worker cannot be confined" in refused.text(), refused.text()


def what_a_worker_leaves_behind_ends_with_it(programs):
    """Also when only the worker ends and the agent goes on."""
    with Fleet(programs, tls=False) as fleet:
        trap = Trap(fleet, "leaver")
        open_up(trap)
        agent = trap.start()
        trap.attempts()
        # windlass-run, the worker, and the one that it left behind
        wait_until("the worker has left something behind", lambda: len(set(processes_with(trap.path("worker")))) >= 3)
        left = set(processes_with(trap.path("worker")))
        children = children_of(agent)
        # The one that was left behind is windlass-run's child by now, as the worker is, but younger.
        worker = min((pid for pid in left - children if status(pid)["parent"] in children), key=lambda pid: status(pid)["started"])
        os.kill(worker, signal.SIGKILL)
        agent.wait_for("the language worker ended")
        wait_until("nothing is left", lambda: not set(processes_with(trap.path("worker"))) & left)
        assert agent.is_running()


def children_of(process):
    children = set()
    for task in os.listdir(f"/proc/{process.process.pid}/task"):
        with open(f"/proc/{process.process.pid}/task/{task}/children", encoding="utf-8") as file:
            children |= {int(each) for each in file.read().split()}
    return children


def what_a_worker_leaves_behind_ends_before_the_next_one_starts(programs):
    """When its supervisor is killed and cannot see to it."""
    with Fleet(programs, tls=False) as fleet:
        trap = Trap(fleet, "orphans")
        open_up(trap)
        agent = trap.start()
        trap.attempts()
        wait_until("the worker has left something behind", lambda: len(set(processes_with(trap.path("worker")))) >= 3)
        left = set(processes_with(trap.path("worker")))
        supervisors = left & children_of(agent)
        assert len(supervisors) == 1, (supervisors, left)
        for supervisor in supervisors:
            os.kill(supervisor, signal.SIGKILL)
        wait_until("the next worker starts", lambda: len(agent.said("a language worker starts")) > 1)
        # Long before the one that was left behind would end by itself.
        wait_until("nothing is left", lambda: not set(processes_with(trap.path("worker"))) & left, patience=10)
        wait_until("the next worker runs", lambda: [line["text"] for line in agent.said("the language worker says")].count("attempts are over") > 1)


def user_of(trap):
    """Starts the agent and gives the user of its worker."""
    confined = trap.start().wait_for("user code is confined")
    assert confined["confinement"] == "user" and "reason" not in confined, confined
    return confined["user"]


def kill(trap):
    trap.process.signal(signal.SIGKILL)
    trap.process.wait()
    os.remove(trap.process.log)


def agents_of_one_machine_have_different_users(programs):
    """Also those whose state folders lead to the same one. An agent keeps its own as long as the machine runs."""
    with Fleet(programs, tls=False) as fleet:
        def first_choice(name):
            folder = os.path.realpath(fleet.path(name, "var"))
            return FIRST_USER + int.from_bytes(hashlib.sha256(folder.encode()).digest()[:8], "big") % USER_COUNT
        alike = next(name for name in (f"other{i}" for i in range(100_000)) if first_choice(name) == first_choice("one"))
        one, other = Trap(fleet, "one"), Trap(fleet, alike)
        for trap in (one, other):
            open_up(trap)
        users = [user_of(one), user_of(other)]
        assert users[0] != users[1], users
        assert all(user in range(FIRST_USER, FIRST_USER + USER_COUNT) for user in users), users
        assert os.stat(USER_LOCKS).st_mode & 0o777 == 0o700 and os.stat(USER_LOCKS).st_uid == 0
        kill(one)
        kill(other)
        assert user_of(other) == users[1]  # whoever comes first
        assert user_of(one) == users[0]


def an_agent_whose_user_is_lost_gives_its_folders_to_the_next(programs):
    with Fleet(programs, tls=False) as fleet:
        trap = Trap(fleet, "changed")
        open_up(trap)
        before = user_of(trap)
        trap.attempts()
        kill(trap)
        record = os.path.join(USER_LOCKS, f"{before}.lock")
        write_atomically(record, fleet.path())  # as if another agent had been first after a boot
        after = user_of(trap)
        assert after != before
        attempts, _ = trap.attempts()
        assert attempts["own_folder"] == "ok", attempts
        scratch = os.stat(trap.path("var", "scratch"))
        assert (scratch.st_uid, scratch.st_gid, scratch.st_mode & 0o777) == (after, after, 0o700), scratch
        assert os.stat(trap.path("var", "scratch", "mine")).st_uid == after
        for folder in (trap.path("var"), trap.path("var", "packages")):
            facts = os.stat(folder)
            assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o777) == (0, after, 0o710), (folder, facts)
        os.remove(record)


def status(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return {"parent": int(fields[1]), "started": int(fields[19])}


if os.geteuid() != 0:
    print("these tests switch users and need root")
    sys.exit(0)
run_tests([an_agent_of_root_switches_to_another_user, the_settings_name_the_user, an_agent_of_a_plain_user_makes_a_namespace,
           what_cannot_be_confined_is_refused_or_said, what_a_worker_leaves_behind_ends_with_it,
           what_a_worker_leaves_behind_ends_before_the_next_one_starts,
           agents_of_one_machine_have_different_users, an_agent_whose_user_is_lost_gives_its_folders_to_the_next], sys.argv[1:])
