"""A real agent that is short of memory by its scheduler's settings: it stays, gets nothing new, and is back by a changed setting.

  load_test.py BUILD_FOLDER [test...]
"""
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.request

from fleet_processes import Fleet, run_tests, wait_until, write_atomically
from function_fleet import FunctionFleet


def an_agent_that_is_short_stays_and_is_back_when_the_threshold_allows(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        # Every machine has more than 1 % of its memory in use.
        fleet.start(session_settings='heartbeat = "1s"\ndrain_at_mem_pct = 1\ndrain_hysteresis_pct = 0')
        agent = fleet.agent("a", settings='[load]\ninterval = "1s"\n')
        worker = fleet.ready("a")
        path = f"/v1/workers/acme/{worker['id']}"
        wait_until("it is short of memory", lambda: fleet.json("GET", path)["placement"] == "short of memory")
        fleet.scheduler.wait_for("a worker is short of memory or disk and gets no new work", reason="memory")
        command = fleet.json("POST", f"{path}/commands", {"type": "biz.echo", "payload": {"n": 1}})["id"]
        before = fleet.json("GET", path)["counters"]["heartbeats"]
        wait_until("it goes on to speak", lambda: fleet.json("GET", path)["counters"]["heartbeats"] >= before + 3)
        assert fleet.json("GET", f"/v1/commands/acme/{command}")["state"] == "waiting"
        assert agent.is_running() and fleet.json("GET", path)["session_id"] == worker["session_id"]
        assert "READY (short of memory)" in fleet.windlass("workers", WINDLASS_ADMIN_URL=f"http://127.0.0.1:{fleet.admin_port}").stdout
        with open(fleet.path("scheduler.toml"), encoding="utf-8") as file:
            settings = file.read()
        write_atomically(fleet.path("scheduler.toml"), settings + "\n[tenants.acme]\nmem_pct_max = 0\n")
        done = fleet.json("GET", f"/v1/commands/acme/{command}?wait_ms=30000")
        assert done["state"] == "done", done
        fleet.scheduler.wait_for("a worker has enough memory and disk again and gets new work")
        assert fleet.json("GET", path)["placement"] == "open" and fleet.json("GET", path)["session_id"] == worker["session_id"]


def thresholds_that_are_off_are_off(programs):
    """Settings by which an agent of an earlier version called itself unfit have no effect, and it says so."""
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='heartbeat = "1s"\ndrain_at_mem_pct = 0\ndrain_at_disk_pct = 0')
        agent = fleet.agent("a", settings='[load]\ninterval = "1s"\nmem_pct_max = 1\ndisk_pct_max = 1\n')
        path = f"/v1/workers/acme/{fleet.ready('a')['id']}"
        wait_until("it has told its load", lambda: fleet.json("GET", path)["counters"]["heartbeats"] >= 2)
        command = fleet.json("POST", f"{path}/commands", {"type": "biz.echo", "payload": {"n": 1}})["id"]
        done = fleet.json("GET", f"/v1/commands/acme/{command}?wait_ms=10000")
        assert done["state"] == "done", done
        assert fleet.json("GET", path)["placement"] == "open"
        assert agent.wait_for("[load] mem_pct_max and disk_pct_max no longer have any effect; remove them. The scheduler and the runtime "
                              "now apply their own thresholds.")["level"] == "warn"


def a_command_of_a_killed_agent_ends_in_the_promised_time(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='lost_after = "2s"\nheartbeat = "1s"')
        agent = fleet.agent("a", settings='[exec.nap]\nprogram = "/bin/sleep"\nargs = ["60"]\ntimeout = "90s"\n')
        worker = fleet.ready("a")
        command = fleet.json("POST", f"/v1/workers/acme/{worker['id']}/commands", {"type": "biz.exec", "payload": {"name": "nap"}})["id"]
        wait_until("it runs", lambda: fleet.json("GET", f"/v1/commands/acme/{command}")["state"] == "sent")
        agent.process.kill()
        outcome = fleet.json("GET", f"/v1/commands/acme/{command}?wait_ms=20000")
        assert outcome["failure"]["code"] == "E.WORKER.LOST" and outcome["failure"]["may_have_run"] is True, outcome
        assert re.search(r"gone for 2 s", outcome["failure"]["reason"]), outcome


def used_pct(folder):
    disk = os.statvfs(folder)
    used = disk.f_blocks - disk.f_bfree
    return 100 * used / (used + disk.f_bavail)


def invocations_go_to_a_worker_whose_agent_is_not_short(programs):
    """Two agents on two file systems; by the runtime's threshold the one on the fuller is short of disk."""
    roomy = tempfile.mkdtemp(dir="/dev/shm")
    try:
        with FunctionFleet(programs) as fleet:
            full_pct, roomy_pct = used_pct(fleet.path()), used_pct(roomy)
            assert full_pct > roomy_pct + 1, f"the test wants two file systems, one fuller: {full_pct:.1f} %, {roomy_pct:.1f} %"
            os.chmod(roomy, 0o711)
            fleet.state_folders["a2"] = roomy
            fleet.session_settings = f'unfit_at_disk_pct = {(full_pct + roomy_pct) / 2:.2f}\nunfit_hysteresis_pct = 0\nunfit_at_mem_pct = 0\n'
            fleet.begin(agents=2)
            fleet.serve("pids", {"index.js": """
                const { app } = require('@azure/functions');
                app.http('pid', { authLevel: 'anonymous', methods: ['POST'], handler: async () => ({ body: String(process.pid) }) });"""})
            url = {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{fleet.admin_port}"}
            fleet.windlass("assign", "pids", "--tenant", "acme", **url)
            wait_until("both workers serve", lambda: fleet.ready_workers("pids") == 2)

            def workers():
                with urllib.request.urlopen(f"http://127.0.0.1:{fleet.runtime_facts['admin_port']}/status", timeout=10) as answer:
                    return {each["worker"].rsplit(".", 1)[0]: each for each in json.load(answer)["workers"]}

            short, fit = fleet.instance("a1"), fleet.instance("a2")
            wait_until("the runtime knows who is short", lambda: [workers()[each]["unfit"] for each in (short, fit)] == [True, False])
            before = {each: workers()[each]["done"] for each in (short, fit)}
            for _ in range(20):
                status, text = fleet.call("pids", "pid")
                assert status == 200, text
            wait_until("all are counted", lambda: workers()[fit]["done"] == before[fit] + 20)
            assert workers()[short]["done"] == before[short], "a worker that is short was given an invocation"
    finally:
        shutil.rmtree(roomy)


run_tests([invocations_go_to_a_worker_whose_agent_is_not_short, an_agent_that_is_short_stays_and_is_back_when_the_threshold_allows, thresholds_that_are_off_are_off,
           a_command_of_a_killed_agent_ends_in_the_promised_time], sys.argv[1:])
