"""docs/operating.md, followed word for word, installs a machine that runs a function.

Every `sh` block of its section Install is run, in order, by one shell, in a root folder of the test's own: absolute paths, the build folder and the
ports are replaced, and programs that need a real machine (useradd, chown, systemctl) are little ones of ours. That systemctl does what the
installed service file says: ExecStartPre, then ExecStart. As root, each account is a number that nobody has: files are really given to it, and the
services run as the `User=` of their file, with its umask, its capabilities and NoNewPrivileges. The rest of the hardening needs systemd.

  install_test.py BUILD_FOLDER [test...]
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from fleet_processes import die_with_parent, run_tests

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
ABSOLUTE = ("/usr/local", "/etc/windlass", "/var/lib/windlass", "/usr/sbin/nologin")
NOTHING = "#!/bin/sh\nexit 0\n"
ACCOUNTS = {"windlass": 61337, "windlass-agent": 61338}
# Accounts by number; chown is asked for `-R`, `NAME:` and paths.
CHOWN = r"""#!/usr/bin/env python3
import os, sys
accounts = ACCOUNTS
words = [each for each in sys.argv[1:] if not each.startswith("-")]
owner = accounts[words[0].rstrip(":")]
for path in words[1:]:
    os.lchown(path, owner, owner)
    for folder, folders, files in os.walk(path) if "-R" in sys.argv else ():
        for name in folders + files:
            os.lchown(os.path.join(folder, name), owner, owner)
""".replace("ACCOUNTS", repr(ACCOUNTS))
SYSTEMCTL = r"""#!/usr/bin/env python3
import os, subprocess, sys
root = os.environ["INSTALL_ROOT"]
accounts = ACCOUNTS
arguments = [each for each in sys.argv[1:] if not each.startswith("-")]
if arguments[0] == "daemon-reload":
    sys.exit(0)
assert arguments[0] == "enable" and "--now" in sys.argv, sys.argv
for name in arguments[1:]:
    settings = {}
    with open(f"{root}/usr/local/lib/systemd/system/{name}.service") as unit:
        for line in unit:
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith("#"):
                settings.setdefault(key, []).append(value)
    def command(text):
        return become + [root + word if word.startswith("/") else word for word in text.split()]
    folder = root + settings["WorkingDirectory"][0]
    assert folder == f"{root}/var/lib/{settings['StateDirectory'][0]}", settings
    os.makedirs(os.path.dirname(folder), mode=0o755, exist_ok=True)
    os.mkdir(folder)
    os.chmod(folder, int(settings["StateDirectoryMode"][0], 8))
    become = []
    if os.geteuid() == 0:
        owner = accounts[settings["User"][0]]
        os.chown(folder, owner, owner)
        assert settings["NoNewPrivileges"] == ["yes"], settings
        kept = [each.removeprefix("CAP_").lower() for each in settings["CapabilityBoundingSet"][0].split()]
        become = ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups", "--no-new-privs",
                  "--inh-caps=-all", "--bounding-set=" + ",".join(["-all"] + ["+" + each for each in kept])]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
    for before in settings["ExecStartPre"]:
        subprocess.run(command(before), cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    log = open(f"{root}/{name}.log", "w")
    process = subprocess.Popen(command(settings["ExecStart"][0]), cwd=folder, env=environment, stdout=log, stderr=log, umask=int(settings["UMask"][0], 8))
    with open(f"{root}/pids", "a") as pids:
        pids.write(f"{process.pid}\n")
""".replace("ACCOUNTS", repr(ACCOUNTS))


def documented_commands():
    with open(os.path.join(ROOT, "docs/operating.md"), encoding="utf-8") as file:
        text = file.read()
    section = text[text.index("\n## Install\n"):]
    section = section[:section.index("\n## ", 4)]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.S)
    assert len(blocks) >= 5, blocks
    return "\n".join(blocks)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def stub(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def placed(text, root, build):
    """The commands for a root folder of our own; what a person types, but for names of places."""
    for path in ABSOLUTE:
        text = re.sub(rf"(?<![\w./]){re.escape(path)}", root + path, text)
    text = text.replace("./dev build\n", "").replace("build/release", build)
    ports = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text)))
    for documented, free in zip(ports, free_ports(len(ports))):
        text = text.replace(f":{documented}", f":{free}")
    return text


def machine_made_by(commands, programs):
    """What the commands print, and the modes of the secrets they leave; the services run while they do."""
    build = os.path.abspath(programs)
    with tempfile.TemporaryDirectory(prefix="windlass-install-") as root:
        os.chmod(root, 0o755)
        stubs = os.path.join(root, "stubs")
        os.makedirs(stubs)
        stub(stubs, "useradd", NOTHING)
        stub(stubs, "chown", CHOWN if os.geteuid() == 0 else NOTHING)
        stub(stubs, "systemctl", SYSTEMCTL)
        script = placed(commands, root, build)
        # The services need a moment, which a person has: what is asked of them is asked again.
        script = "set -e\numask 022\nagain() { for i in $(seq 60); do \"$@\" && return 0; sleep 0.5; done; return 1; }\n" + \
            re.sub(r"^(?=windlass (?:workers|assign|invoke)|curl )", "again ", script, flags=re.M)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
        environment |= {"PATH": f"{root}/usr/local/bin:{stubs}:{environment['PATH']}", "INSTALL_ROOT": root}
        try:
            done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=110,
                                  preexec_fn=die_with_parent)
            logs = "".join(open(os.path.join(root, name), encoding="utf-8").read()[-1500:] for name in sorted(os.listdir(root)) if name.endswith(".log"))
            assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{logs}"
            for name in ("admin-token", "runtime-token", "agent-token", "tls/ca.key", "tls/scheduler.key"):
                mode = os.stat(os.path.join(root, "etc/windlass", name)).st_mode & 0o777
                assert mode == 0o600, (name, oct(mode))
            return done.stdout
        finally:
            end(root)


def the_documented_commands_make_a_machine_that_runs_a_function(programs):
    said = machine_made_by(documented_commands(), programs)
    assert "Hello, Ada!" in said, said
    assert re.search(r'"total": ?10\b', said), said


def replaced(text, documented, instead):
    assert documented in text, f"docs/operating.md no longer says {documented}"
    return text.replace(documented, instead)


def the_same_commands_run_a_node_app_where_the_folder_is_the_node_workers(programs):
    with tempfile.TemporaryDirectory(prefix="windlass-install-app-") as scratch:
        app = os.path.join(scratch, "node-app")
        shutil.copytree(os.path.join(ROOT, "docs/examples/node-app"), app)
        commands = replaced(documented_commands(), "workers/native", "workers/node")
        commands = replaced(commands, "build/release/examples/native-app", app)
        commands = replaced(commands, "invoke orders orders", "invoke orders processOrder")
        commands = replaced(commands, '"lines": [{"price": 2.5, "count": 4}]', '"items": [{"price": 2.5, "quantity": 4}]')
        commands = replaced(commands, "api/hello/Ada", "api/greet/Ada")
        said = machine_made_by(commands, programs)
        assert "Hello, Ada" in said, said
        assert re.search(r'"total": ?10\b', said), said


def is_alive(pid):
    """Not ended; whoever is its parent by now may never ask how."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def end(root):
    """Each service that was started, by its id: first as a service manager would."""
    try:
        with open(os.path.join(root, "pids"), encoding="utf-8") as file:
            pids = [int(line) for line in file]
    except FileNotFoundError:
        return
    for pid in reversed(pids):
        for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
            deadline = time.monotonic() + patience
            while is_alive(pid) and time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                time.sleep(0.1)


run_tests([the_documented_commands_make_a_machine_that_runs_a_function,
           the_same_commands_run_a_node_app_where_the_folder_is_the_node_workers], sys.argv[1:])
