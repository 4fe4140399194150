"""Packages on their way from a scheduler to a worker: large ones arrive, and so do those that small frames carry.

  package_test.py BUILD_FOLDER [test...]
"""
import glob
import os
import shutil
import signal
import sys
import threading
import zipfile

from fleet_processes import Fleet, Process, run_tests, wait_until
from function_fleet import FunctionFleet

APPLICATION = "heavy"
MIB = 1024 * 1024


class Functions(Fleet):
    """With a runtime, and an agent whose native worker waits for an application."""

    def __init__(self, programs):
        super().__init__(programs, tls=False)
        self.runtime = None

    def __exit__(self, *gone):
        if self.runtime is not None:
            self.runtime.end()
        super().__exit__(*gone)

    def begin(self, session_settings=""):
        for name in ("a", "runtime"):
            self.new_token(name)
        self.roles["runtime"] = "runtime"
        self.credentials()
        self.start(session_settings=session_settings)
        with open(self.path("runtime-token"), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(self.tokens["runtime"] + "\n")
        with open(self.path("runtime.toml"), "w", encoding="utf-8") as file:
            file.write(f"""
[runtime]
id = "runtime-1"
[server]
listen = "127.0.0.1:0"
[session]
credentials_file = "{self.path('credentials.toml')}"
[http]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[scheduler]
url = "ws://127.0.0.1:{self.port}/ws/worker"
tenant = "acme"
token_file = "{self.path('runtime-token')}"
""")
        program = os.path.join(self.programs, "runtime/shell/windlass-runtime")
        self.runtime = Process(self.path("runtime.log"), [program, "--config", self.path("runtime.toml")])
        port = self.runtime.wait_for("listening")["port"]
        self.agent("a", settings=f"""
[language_worker]
folder = "{os.path.join(os.path.abspath(self.programs), 'worker-agent/native')}"
[runtime]
id = "runtime-1"
url = "ws://127.0.0.1:{port}/ws/worker"
""")
        wait_until("the worker is a placeholder", lambda: self.language_worker().get("state") == "placeholder")
        wait_until("the scheduler knows the runtime", lambda: self.json("GET", "/v1/runtimes")["runtimes"])

    def language_worker(self):
        return (self.worker("a") or {}).get("language_worker", {})

    def deploy(self, megabytes):
        """The counted application with so much beside it, stored as it is, so that all of it is sent."""
        source = os.path.join(self.programs, "tests/integration/faults/counted-app")
        package = self.path("heavy.zip")
        with zipfile.ZipFile(package, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(os.listdir(source)):
                archive.write(os.path.join(source, name), name)
            with archive.open("ballast", "w", force_zip64=True) as ballast:
                for number in range(megabytes):
                    ballast.write(number.to_bytes(8, "big") * (MIB // 8))
        self.operator("deploy", package, "--app", APPLICATION, "--tenant", "acme", "--setting", f"COUNTED_EFFECTS={self.path('effects')}")
        os.remove(package)

    def operator(self, *arguments):
        return self.windlass(*arguments, WINDLASS_ADMIN_URL=f"http://127.0.0.1:{self.admin_port}")

    def assign(self, patience):
        """Until the worker holds the application; gives how far its package was each time that was looked at."""
        assigning = threading.Thread(target=self.operator, args=("assign", APPLICATION, "--tenant", "acme", "--workers", "1"))
        assigning.start()
        seen = set()

        def is_ready():
            status = self.language_worker()
            if "package" in status:
                seen.add(status["package"]["bytes"])
            return status.get("state") == "ready" and status.get("application_id") == APPLICATION

        try:
            wait_until("the worker holds the application", is_ready, patience)
        except AssertionError as error:
            raise AssertionError(f"{error}; the agent's log is:\n{self.agents['a'].text()[-8000:]}") from None
        finally:
            assigning.join()
        return seen


def a_package_larger_than_the_window_arrives(programs):
    with Functions(programs) as fleet:
        fleet.begin()
        fleet.deploy(24)
        fleet.assign(60)
        steps = [line["bytes"] for line in fleet.agents["a"].said("a package arrives")]
        assert len(steps) >= 8 and steps == sorted(steps) and steps[-1] > 24 * MIB, steps


def a_package_of_300_megabytes_arrives(programs):
    with Functions(programs) as fleet:
        if shutil.disk_usage(fleet.folder.name).free < 3 << 30:
            print("skipped: less than 3 GiB free")
            return
        fleet.begin()
        fleet.deploy(300)
        seen = fleet.assign(240)
        assert fleet.agents["a"].said("a package arrives"), fleet.agents["a"].text()
        assert seen, "the scheduler shows how far it is"


def frames_smaller_than_a_part_carry_a_package(programs):
    with Functions(programs) as fleet:
        fleet.begin(session_settings='frame_bytes_max = "64KiB"\n')
        fleet.deploy(2)
        fleet.assign(60)


def a_package_that_was_changed_is_not_run(programs):
    """Neither by the worker that takes the place of one that crashed, nor after a restart of the agent."""
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=1)
        fleet.serve("shop", {"index.js": """
            const { app } = require('@azure/functions');
            app.http('who', { authLevel: 'anonymous', methods: ['POST'], handler: async () => ({ body: 'as deployed' }) });"""})
        agent = fleet.agents["a1"]
        changed = "an unpacked package was changed or cannot be read, and is fetched anew"

        def change():
            [path] = glob.glob(os.path.join(fleet.state_folder("a1"), "packages", "*", "index.js"))
            with open(path, encoding="utf-8") as file:
                text = file.read()
            os.chmod(path, 0o600)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("as deployed", "changed"))
            os.chmod(path, 0o444)

        def is_served():
            status, text = fleet.call("shop", "who")
            assert status != 200 or text == "as deployed", text
            return status == 200
        assert is_served()
        change()
        before = fleet.worker("a1")["language_worker"]
        os.kill(before["pid"], signal.SIGKILL)
        wait_until("another worker is there", lambda: fleet.worker("a1")["language_worker"].get("worker_id") not in (None, before["worker_id"]))
        wait_until("it is served again", is_served)
        assert agent.said(changed), agent.text()
        agent.signal(signal.SIGKILL)
        agent.wait()
        change()
        agent = fleet.start_agent("a1")
        wait_until("it is seen once more", lambda: len(agent.said(changed)) == 2)
        wait_until("it is served after a restart", is_served)


run_tests([a_package_that_was_changed_is_not_run, a_package_larger_than_the_window_arrives, frames_smaller_than_a_part_carry_a_package,
           a_package_of_300_megabytes_arrives], sys.argv[1:])
