"""windlass as an operator uses it, against real processes: tables, JSON, exit codes.

  operator_test.py BUILD_FOLDER [test...]
"""
import json
import sys

from fleet_processes import Fleet, run_tests, wait_until

AGENT = """
[exec.date]
program = "/bin/date"
args = ["-u"]
[exec.nap]
program = "/bin/sleep"
args = ["30"]
timeout = "200ms"
"""


def a_day_of_an_operator(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        agent = fleet.agent("a", settings=AGENT)
        name = f"acme/{fleet.ready('a')['id']}"

        def windlass(*arguments, code=0, **environment):
            where = {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{fleet.admin_port}"}
            done = fleet.windlass(*arguments, check=False, **{**where, **environment})
            assert done.returncode == code, (arguments, done)
            return done.stdout if code in (0, 1) and done.stdout else done.stderr

        assert "READY" in windlass("workers") and "READY" in windlass("top", "--once")
        assert json.loads(windlass("--json", "workers"))["workers"][0]["state"] == "READY"
        assert "session_id" in windlass("worker", "show", name)
        assert '{"text":"hello"}' in windlass("send", name, "biz.echo", '{"text":"hello"}', "--wait")
        answer = json.loads(windlass("--json", "send", name, "biz.exec", '{"name":"date"}', "--wait"))
        assert answer["result"]["payload"]["exit_code"] == 0 and "UTC" in answer["result"]["payload"]["stdout"], answer
        # A worker that could not do it makes a script stop.
        assert "E.TIMEOUT" in windlass("send", name, "biz.exec", '{"name":"nap"}', "--wait", code=1)
        assert "E.CMD.UNKNOWN" in windlass("send", name, "biz.exec", '{"name":"rm"}', "--wait", code=1)
        assert windlass("commands", "--state", "done").count("biz.exec") == 3
        assert "no worker 'nobody'" in windlass("worker", "show", "acme/nobody", code=1)
        assert "E.AUTH.INVALID_TOKEN" in windlass("workers", code=1, WINDLASS_ADMIN_TOKEN="wrong")
        assert "not a JSON object" in windlass("send", name, "biz.echo", "{", code=2)
        assert "cannot be reached" in windlass("--url", "http://127.0.0.1:1", "workers", code=3)
        assert "good" in windlass("config", "check", fleet.path("scheduler.toml"), WINDLASS_SCHEDULER=fleet.program("windlass-scheduler"))
        assert windlass("--version").startswith("windlass ")

        assert "accepted" in windlass("drain", name, "--reason", "new disk", "--deadline", "20")
        assert agent.wait() == 0, "a drained agent ends"
        wait_until("it is gone", lambda: "GONE" in windlass("workers"))
        assert "accepted" in windlass("revoke", name)


def a_token_of_its_own_making_lets_a_worker_in(programs):
    with Fleet(programs) as fleet:
        fleet.start()
        lines = fleet.windlass("token", "new", "--tenant", "acme", "--name", "rack-7", "--out", fleet.path("t")).stdout
        with open(fleet.path("t"), encoding="utf-8") as file:
            fleet.tokens["rack-7"] = file.read().strip()
        assert fleet.tokens["rack-7"] not in lines, "it is in its file alone"
        with open(fleet.path("credentials.toml"), "a", encoding="utf-8") as file:
            file.write(lines)
        fleet.scheduler.wait_for("files were read again", what="credentials")
        fleet.agent("a", token="rack-7")
        fleet.ready("a")


run_tests([a_day_of_an_operator, a_token_of_its_own_making_lets_a_worker_in], sys.argv[1:])
