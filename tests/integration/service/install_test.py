"""docs/operating.md, followed word for word, installs a machine that runs a function.

Every `sh` block of its section Install is run, in order, by one shell, in a root folder of the test's own: absolute paths, the build folder and the
ports are replaced, and programs that need a real machine (useradd, chown, systemctl) are little ones of ours. That systemctl does what the
installed service file says: ExecStartPre, then ExecStart.

  install_test.py BUILD_FOLDER [test...]
"""
import os
import re
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
SYSTEMCTL = r"""#!/usr/bin/env python3
import os, subprocess, sys
root = os.environ["INSTALL_ROOT"]
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
        return [root + word if word.startswith("/") else word for word in text.split()]
    folder = root + settings["WorkingDirectory"][0]
    os.makedirs(folder, exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
    for before in settings["ExecStartPre"]:
        subprocess.run(command(before), cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    log = open(f"{root}/{name}.log", "w")
    process = subprocess.Popen(command(settings["ExecStart"][0]), cwd=folder, env=environment, stdout=log, stderr=log, umask=int(settings["UMask"][0], 8))
    with open(f"{root}/pids", "a") as pids:
        pids.write(f"{process.pid}\n")
"""


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


def the_documented_commands_make_a_machine_that_runs_a_function(programs):
    build = os.path.abspath(programs)
    with tempfile.TemporaryDirectory(prefix="windlass-install-") as root:
        stubs = os.path.join(root, "stubs")
        os.makedirs(stubs)
        for name in ("useradd", "chown"):
            stub(stubs, name, NOTHING)
        stub(stubs, "systemctl", SYSTEMCTL)
        script = placed(documented_commands(), root, build)
        # The services need a moment, which a person has: what is asked of them is asked again.
        script = "set -e\nagain() { for i in $(seq 60); do \"$@\" && return 0; sleep 0.5; done; return 1; }\n" + \
            re.sub(r"^(?=windlass (?:workers|assign|invoke)|curl )", "again ", script, flags=re.M)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
        environment |= {"PATH": f"{root}/usr/local/bin:{stubs}:{environment['PATH']}", "INSTALL_ROOT": root}
        try:
            done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=110,
                                  preexec_fn=die_with_parent)
            logs = "".join(open(os.path.join(root, name), encoding="utf-8").read()[-1500:] for name in sorted(os.listdir(root)) if name.endswith(".log"))
            assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{logs}"
            assert "Hello, Ada!" in done.stdout, done.stdout
            assert re.search(r'"?total"?: ?10|10', done.stdout), done.stdout
            for name in ("admin-token", "runtime-token", "agent-token", "tls/ca.key", "tls/scheduler.key"):
                mode = os.stat(os.path.join(root, "etc/windlass", name)).st_mode & 0o777
                assert mode == 0o600, (name, oct(mode))
        finally:
            end(root)


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
            while time.monotonic() < deadline:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    break
                time.sleep(0.1)


run_tests([the_documented_commands_make_a_machine_that_runs_a_function], sys.argv[1:])
