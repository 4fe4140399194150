"""A command that takes its time holds up none behind it, however small the window.

  long_command_test.py BUILD_FOLDER [test...]
"""
import sys
import time

from fleet_processes import Fleet, run_tests

AGENT = """
[exec.nap]
program = "/bin/sleep"
args = ["20"]
[session]
window = 2
"""


def later_commands_are_answered_while_a_long_one_runs(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        fleet.agent("a", settings=AGENT)
        worker = fleet.ready("a")
        commands = f"/v1/workers/{worker['tenant']}/{worker['id']}/commands"
        nap = fleet.json("POST", commands, {"type": "biz.exec", "payload": {"name": "nap"}})
        begun = time.monotonic()
        for number in range(12):  # six windows of them
            echo = fleet.json("POST", commands, {"type": "biz.echo", "payload": {"number": number}})
            answer = fleet.json("GET", f"/v1/commands/{worker['tenant']}/{echo['id']}?wait_ms=30000")
            assert answer["result"]["payload"] == {"number": number}, answer
        took = time.monotonic() - begun
        outcome = fleet.json("GET", f"/v1/commands/{worker['tenant']}/{nap['id']}")
        assert "result" not in outcome, f"the long command ended first, after {took:.1f} s: {outcome}"


run_tests([later_commands_are_answered_while_a_long_one_runs], sys.argv[1:])
