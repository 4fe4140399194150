"""User code is not the agent: a language worker whose code is hostile meets a wall at every attempt, whether the agent is root and
switches to another user, or nobody special and makes a namespace.

  confine_test.py BUILD_FOLDER [test...]
"""
import ctypes
import errno
import hashlib
import json
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

from fleet_processes import PLAIN_USER, Fleet, can_make_namespaces, run_tests, wait_until, write_atomically
from hostile_trap import CREATE_RULESET, LISTED_PORT, PACKAGE, Trap, has_port_rules, open_up

FIRST_USER, USER_COUNT = 60706, 478  # those that agents give to their workers
USER_LOCKS = "/run/windlass/users"
SECRET_ATTEMPTS = ("own_token", "settings", "other_token", "state", "list_state", "read_package", "write_package", "agent_memory",
                   "agent_environment", "agent_pages", "ptrace")

MACHINE_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")
WITHOUT_NAMESPACES = ["setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin"]
WITHOUT_FILTERS = "--without-filters"

REFUSED_CALLS = {"clone_new_user": errno.EPERM, "clone_new_network": errno.EPERM, "clone3": errno.ENOSYS, "io_uring": errno.EPERM,
                 "fsmount": errno.EPERM, "fspick": errno.EPERM}
REFUSED_PORTS = {"fixed_port": errno.EACCES, "fixed_port_everywhere": errno.EACCES, "fixed_port_mptcp": errno.EPROTONOSUPPORT,
                 "ephemeral_port": errno.EACCES, "freed_port": errno.EACCES, "ephemeral_port_range": errno.ENOPROTOOPT}


def can_make_mounts():
    """Not in a chroot whose root is no mount: root can make no mount namespace there."""
    return subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0


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
    if has_port_rules():
        for name, error in REFUSED_PORTS.items():
            assert attempts[name].startswith(f"refused [Errno {error:d}]"), (name, attempts)
    else:
        assert "any free port" in confined["gaps"], confined
    assert attempts["any_port"] == "ok", attempts
    assert (attempts["listed_port"] == "ok") == ("ports" in trap.settings or not has_port_rules()), attempts
    assert attempts["agent_pages"] == "refused status 403" and attempts["agent_probe"] == "ok", attempts
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
        # A limit that Node can live with.
        check(Trap(fleet, "root", settings=f'memory_max = "512MiB"\nports = [{LISTED_PORT}]\n'), None, "user")
        assert not has_port_rules() or not can_make_mounts() or "gaps" not in fleet_said(fleet, "root"), fleet_said(fleet, "root")


def fleet_said(fleet, name):
    """The line of this agent's log that tells how user code is confined."""
    with open(fleet.path(f"{name}.log"), encoding="utf-8") as file:
        return next(line for line in map(json.loads, file) if line["event"] == "user code is confined")


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


def a_token_in_the_settings_is_hidden(programs):
    """Also where the settings lie in no folder that is hidden anyway, and in one that the worker needs."""
    if not can_make_namespaces(PLAIN_USER):
        return
    with Fleet(programs, tls=False) as fleet:
        for file in ("agent.toml", "worker/agent.toml"):
            with tempfile.TemporaryDirectory(prefix="windlass-", dir="/var/lib") as folder:
                auth = 'token = "own-secret-in-the-settings"'
                trap = Trap(fleet, os.path.dirname(file) or "above", user=PLAIN_USER, folder=folder, file=file, auth=auth)
                open_up(trap)
                trap.start().wait_for("user code is confined", confinement="namespace")
                attempts, _ = trap.attempts()
                assert attempts["settings"].startswith("refused"), attempts
                trap.process.end()


def agents_of_one_user_say_so(programs):
    """Whichever comes later, also when the first is gone."""
    warning = ("another agent of this user runs on this machine, and functions of each can read the other's files: "
               "give each agent a user of its own (User= in its service file)")
    user = 64000 + os.getpid() % 1000  # no other test's
    with Fleet(programs, tls=False) as fleet:
        def start(name):
            trap = Trap(fleet, name, user=user)
            open_up(trap)
            agent = trap.start()
            agent.wait_for("the agent starts")  # what there is to say of its worker was said before
            return agent, next(line for line in agent.lines() if line["event"].lower().startswith("user code is"))
        first, confined = start("first")
        assert not first.said(warning) and "another agent" not in confined["gaps"], first.text()
        for name, before in (("second", first), ("third", None)):
            agent, confined = start(name)
            assert agent.said(warning, level="warn") and confined["gaps"].startswith("another agent of this user"), agent.text()
            if before is not None:
                before.end()


def ports_of_a_range_may_be_taken(programs):
    """Which is what a program needs that asks the kernel for a port, gives it back and takes it again."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="utf-8") as file:
        first, last = file.read().split()
    with Fleet(programs, tls=False) as fleet:
        trap = Trap(fleet, "range", settings=f'ports = [{LISTED_PORT}, "{first}-{last}"]\n')
        open_up(trap)
        trap.start()
        attempts, _ = trap.attempts()
        for name in ("listed_port", "freed_port", "any_port"):
            assert attempts[name] == "ok", (name, attempts)
        assert not has_port_rules() or attempts["fixed_port"].startswith("refused"), attempts
        refused = Trap(fleet, "upside_down", settings='ports = ["60999-32768"]\n').start()
        assert refused.wait() == 2, refused.text()
        assert "language_worker.ports must be a list of whole numbers from 1 to 65535, or of ranges" in refused.text(), refused.text()


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


def second_worker_finds(trap):
    """A worker leaves things wherever it can and is ended; gives what the next one finds of them."""
    open_up(trap)
    trap.start()
    wait_until("things are left", lambda: not trap.process.is_running() or "left" in trap.said())
    seen = [each for each in MACHINE_FOLDERS if os.path.exists(os.path.join(each, f"left-{trap.mark}"))]
    for pid in set(processes_with(trap.path("worker", "untidy_worker.py"))) - children_of(trap.process):
        os.kill(pid, signal.SIGKILL)
    wait_until("the next one looks", lambda: not trap.process.is_running() or len(founds(trap)) > 1)
    assert trap.process.is_running(), trap.process.text()
    assert founds(trap)[0] == [], founds(trap)
    return seen, founds(trap)[1]


def founds(trap):
    return [json.loads(line.removeprefix("found ")) for line in trap.said() if line.startswith("found ")]


def untidy(fleet, name, **more):
    mark = os.urandom(3).hex()
    trap = Trap(fleet, name, task={"do": "leave", "mark": mark}, **more)
    trap.mark = mark
    return trap


def one_worker_finds_nothing_of_the_one_before(programs):
    with Fleet(programs, tls=False) as fleet:
        # With folders of its own, which the machine never sees.
        if can_make_mounts():
            seen, found = second_worker_finds(untidy(fleet, "apart"))
            assert seen == [] and found == [], (seen, found)
        # An agent that may make no mount namespace removes what was left.
        bare = untidy(fleet, "bare", before=WITHOUT_NAMESPACES)
        seen, found = second_worker_finds(bare)
        assert seen and found == [], (seen, found)
        confined = bare.process.wait_for("user code is confined")
        assert "shares temporary folders" in confined["gaps"] and "namespace cannot be made" in confined["reason"], confined
        bare.process.signal(signal.SIGKILL)
        wait_until("what the last one left is removed", lambda: not any(
            os.path.exists(os.path.join(each, f"left-{bare.mark}")) for each in MACHINE_FOLDERS))


def a_worker_that_takes_all_memory_ends_alone(programs):
    with Fleet(programs, tls=False) as fleet:
        # As another user, and in a namespace where there are any.
        for name, user in (("other", None), ("plain", PLAIN_USER)):
            trap = Trap(fleet, name, user=user, task={"do": "memory"}, settings='memory_max = "64MiB"\n')
            open_up(trap)
            agent = trap.start()
            try:
                ended = agent.wait_for("the language worker ended")
                assert "language_worker.memory_max is 64 MiB" in ended["reason"] and ended["restart_ms"] > 0, ended
                wait_until("the next one runs", lambda: trap.said().count("takes memory") > 1)  # pylint: disable=cell-var-from-loop
                assert agent.is_running()
            finally:
                agent.end()


def filled(trap):
    open_up(trap)
    trap.start()
    wait_until("it wrote what it could", lambda: not trap.process.is_running() or "filled all" in trap.said())
    assert trap.process.is_running(), trap.process.text()
    return [json.loads(line.removeprefix("filled ")) for line in trap.said() if line.startswith("filled [")]


def what_a_worker_writes_has_a_bound(programs):
    with Fleet(programs, tls=False) as fleet:
        task, settings = {"do": "disk", "at": ["/tmp", "/dev/shm"]}, 'scratch_max = "8MiB"\n'
        apart = filled(Trap(fleet, "apart", task=task, settings=settings)) if can_make_mounts() else []
        assert len(apart) == 3 or not can_make_mounts(), apart
        for folder, one, many in apart:
            assert one[0] < 9 and many[0] < 9 and many[1] == os.strerror(errno.ENOSPC), (folder, one, many)
        # Without a mount namespace it is a bound for each file, and that is said.
        bare = Trap(fleet, "bare", task={"do": "disk", "at": []}, settings=settings, before=WITHOUT_NAMESPACES)
        assert [one for _, one, _ in filled(bare)] == [[8, os.strerror(errno.EFBIG)]]
        assert "but not their total size" in fleet_said(fleet, "bare")["gaps"]


def a_wall_that_cannot_be_put_up_is_said(programs):
    with Fleet(programs, tls=False) as fleet:
        os.chmod(fleet.path(), 0o755)
        # Where the agent itself runs under a policy that lets nobody install a filter.
        bare = Trap(fleet, "filter", before=[sys.executable, os.path.abspath(__file__), WITHOUT_FILTERS])
        open_up(bare)
        confined = bare.start().wait_for("user code is confined")
        assert confined["level"] == "warn" and "no filter of system calls can be installed" in confined["gaps"], confined
        assert "any free port" in confined["gaps"], confined
        attempts, _ = bare.attempts()  # the other walls stand
        assert attempts["fixed_port"] == "ok", attempts
        if not can_make_mounts():
            return  # nor can this test lay anything over /proc
        # Where something lies over a part of /proc, as in containers.
        seen = Trap(fleet, "proc", user=PLAIN_USER, before=["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /proc/uptime && exec "$@"', "sh"])
        open_up(seen)
        agent = seen.start()
        try:
            wait_until("it is told", lambda: not agent.is_running() or agent.said("user code is confined") or "NOT CONFINED" in agent.text())
            if "NOT CONFINED" in agent.text():
                return  # a plain user makes no namespaces here
            confined = agent.wait_for("user code is confined")
            assert confined["level"] == "warn" and "sees the processes of this machine" in confined["gaps"], confined
            seen.attempts()
        finally:
            agent.end()  # a process that changes its user does not end with its parent


def exec_without_filters(command):
    """The command, under a policy by which prctl(PR_SET_SECCOMP) is an error, and so is the making of Landlock's rules."""
    def step(code, value, when=0, otherwise=0):
        return struct.pack("HBBI", code, when, otherwise, value)
    load, is_equal, give = 0x20, 0x15, 0x06
    prctl, set_seccomp, allow, refuse = (157 if platform.machine() == "x86_64" else 167), 22, 0x7FFF0000, 0x00050000 | errno.EINVAL
    program = b"".join((step(load, 0), step(is_equal, CREATE_RULESET, 3, 0), step(is_equal, prctl, 0, 3), step(load, 16),
                        step(is_equal, set_seccomp, 0, 1), step(give, refuse), step(give, allow)))
    kept = ctypes.create_string_buffer(program, len(program))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(kept)))
    if ctypes.CDLL(None, use_errno=True).prctl(set_seccomp, 2, ctypes.c_void_p(ctypes.addressof(whole)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(command[0], command)


def user_of(trap):
    """Starts the agent and gives the user of its worker."""
    confined = trap.start().wait_for("user code is confined")
    assert confined["confinement"] == "user" and ("reason" not in confined or not can_make_mounts()), confined
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
        assert "another agent of this user" not in other.process.text()  # the two are apart
        assert users[0] != users[1], users
        assert all(user in range(FIRST_USER, FIRST_USER + USER_COUNT) for user in users), users
        assert os.stat(USER_LOCKS).st_mode & 0o777 == 0o700 and os.stat(USER_LOCKS).st_uid == 0
        kill(one)
        kill(other)
        assert user_of(other) == users[1]  # whoever comes first
        assert user_of(one) == users[0]


def an_agent_whose_user_is_lost_gives_its_folders_to_the_next(programs):
    with Fleet(programs, tls=False) as fleet:
        trap = Trap(fleet, "changed", settings="scratch_max = 0\n")  # so that its folder lies on the disk
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


if sys.argv[1:2] == [WITHOUT_FILTERS]:
    exec_without_filters(sys.argv[2:])
if os.geteuid() != 0:
    print("these tests switch users and need root")
    sys.exit(0)
run_tests([an_agent_of_root_switches_to_another_user, the_settings_name_the_user, an_agent_of_a_plain_user_makes_a_namespace,
           a_token_in_the_settings_is_hidden, agents_of_one_user_say_so, ports_of_a_range_may_be_taken,
           what_cannot_be_confined_is_refused_or_said, what_a_worker_leaves_behind_ends_with_it,
           what_a_worker_leaves_behind_ends_before_the_next_one_starts, one_worker_finds_nothing_of_the_one_before,
           a_worker_that_takes_all_memory_ends_alone, what_a_worker_writes_has_a_bound, a_wall_that_cannot_be_put_up_is_said,
           agents_of_one_machine_have_different_users, an_agent_whose_user_is_lost_gives_its_folders_to_the_next], sys.argv[1:])
