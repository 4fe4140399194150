"""An address belongs to one process: a second scheduler, runtime or agent on it ends at once with one sentence, and a second
`./dev up` leaves the first alone.

  one_address_test.py BUILD_FOLDER [test...]
"""
import hashlib
import os
import re
import subprocess
import sys
import time

from fleet_processes import Fleet, Process, run_tests, wait_until, write_atomically

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
TAKEN = "another process listens there; end it, or choose another address"


def run_to_its_end(program, config):
    """Exit code and what it said on standard error; a program that listens beside the first would run for ever."""
    try:
        done = subprocess.run([program, "--config", config], capture_output=True, text=True, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{program} runs beside the first one") from None
    return done.returncode, done.stderr


def check_refused(program, config, port):
    code, said = run_to_its_end(program, config)
    assert code == 1, (code, said)
    lines = [line for line in said.splitlines() if not line.startswith("{")]
    assert lines == [f"{os.path.basename(program)}: cannot listen on 127.0.0.1:{port}: {TAKEN}"], said


def a_second_scheduler_is_refused(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.start()
        with open(fleet.path("scheduler.toml"), encoding="utf-8") as file:
            text = file.read()
        server, admin = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:0", text.replace(fleet.path("scheduler.db"), fleet.path("other.db"))).split("[admin]")
        write_atomically(fleet.path("same.toml"), server.replace("127.0.0.1:0", f"127.0.0.1:{fleet.port}") + "[admin]" + admin)
        check_refused(fleet.program("windlass-scheduler"), fleet.path("same.toml"), fleet.port)
        write_atomically(fleet.path("admin.toml"), server + "[admin]" + admin.replace("127.0.0.1:0", f"127.0.0.1:{fleet.admin_port}"))
        check_refused(fleet.program("windlass-scheduler"), fleet.path("admin.toml"), fleet.admin_port)
        for _ in range(20):  # nobody else answers for it
            assert fleet.ask("GET", "/v1/workers")[0] == 200


def a_second_runtime_is_refused(programs):
    with Fleet(programs, tls=False) as fleet:
        settings = f'[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n'

        def config(name, *ports):
            tables = zip(("server", "http", "admin", "grpc"), ports)
            write_atomically(fleet.path(name), "".join(f'[{table}]\nlisten = "127.0.0.1:{port}"\n' for table, port in tables) + settings)
            return fleet.path(name)
        first = Process(fleet.path("runtime.log"), [fleet.program("windlass-runtime"), "--config", config("first.toml", 0, 0, 0, 0)])
        fleet.agents["runtime"] = first  # ended with the fleet
        facts = first.wait_for("listening")
        for place, name in enumerate(("port", "http_port", "admin_port", "grpc_port")):
            ports = [facts[name] if each == place else 0 for each in range(4)]
            check_refused(fleet.program("windlass-runtime"), config(f"{name}.toml", *ports), facts[name])


def an_agent_on_a_taken_metrics_address_is_refused(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        agent = fleet.agent("a", settings=f'[metrics]\nlisten = "127.0.0.1:{fleet.admin_port}"\n')
        assert agent.wait() == 1
        assert f"cannot listen on 127.0.0.1:{fleet.admin_port}: {TAKEN}" in agent.text(), agent.text()


def a_second_up_leaves_the_first_alone(programs):
    with Fleet(programs, tls=False) as fleet:
        command = [sys.executable, "-B", os.path.join(ROOT, "docs/examples/fleet.py"), "--programs", programs, "--folder", fleet.path("up"),
                   "--agents", "1"]
        first = Process(fleet.path("up.log"), command)
        fleet.agents["up"] = first
        wait_until("the first fleet is up", lambda: "Try, in another terminal" in first.text() or not first.is_running(), 90)
        assert first.is_running(), first.text()

        def fingerprint():
            digests = {}
            for name in ("admin-token", "agent-token", "credentials.toml", "scheduler.toml", "runtime.toml"):
                with open(fleet.path("up", name), "rb") as file:
                    digests[name] = hashlib.sha256(file.read()).hexdigest()
            return digests
        before = fingerprint()
        begun = time.monotonic()
        second = subprocess.run([*command, "--once"], capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 1, (second.returncode, second.stdout, second.stderr)
        assert re.fullmatch(rf"up: a fleet is up already in .*/up, started by process {first.process.pid} at \d\d:\d\d:\d\d \(.*\); "
                            rf"end it with Ctrl-C or kill {first.process.pid}, or give --folder\n", second.stderr), second.stderr
        assert time.monotonic() - begun < 20
        assert fingerprint() == before
        asked = subprocess.run([*command[:3], "--folder", fleet.path("up"), "--is-free"], capture_output=True, text=True, check=False, timeout=60)
        assert asked.returncode == 1 and "already" in asked.stderr, asked
        assert first.is_running()
        # What it sends by itself is a few a second, and it says so.
        assert "sending 5 commands and invocations a second, all together; --rate N" in first.text(), first.text()
        wait_until("it shows its work", lambda: "\norders/orders " in first.text(), 20)
        lines = first.text().split("per s", 1)[1].splitlines()[1:3]
        rate = sum(float(line.split()[4]) for line in lines)
        assert 1 <= rate <= 8, (rate, lines)
        first.process.terminate()
        assert first.wait() == 0
        freed = subprocess.run([*command[:3], "--folder", fleet.path("up"), "--is-free"], capture_output=True, text=True, check=False, timeout=60)
        assert freed.returncode == 0, freed


run_tests([a_second_scheduler_is_refused, a_second_runtime_is_refused, an_agent_on_a_taken_metrics_address_is_refused,
           a_second_up_leaves_the_first_alone], sys.argv[1:])
