"""windlass as an operator uses it, against real processes: tables, JSON, exit codes.

  operator_test.py BUILD_FOLDER [test...]
"""
import json
import signal
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


def mistakes_are_answered_with_what_to_do(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        fleet.agent("a", settings=AGENT)
        admin = f"127.0.0.1:{fleet.admin_port}"
        fleet.ready("a")

        def said(*arguments, code, **environment):
            """The one sentence of a refusal."""
            done = fleet.windlass(*arguments, check=False, **{"WINDLASS_ADMIN_URL": f"http://{admin}", **environment})
            assert done.returncode == code and done.stdout == "" and done.stderr.count("\n") == 1, (arguments, done)
            assert done.stderr.startswith("windlass: ")
            return done.stderr

        refused = said("workers", code=1, WINDLASS_ADMIN_TOKEN="wrong")
        assert "the admin token in WINDLASS_ADMIN_TOKEN is not one of" in refused and admin in refused and "admin.token_file" in refused, refused
        missing = said("workers", code=1, WINDLASS_ADMIN_TOKEN="")
        assert "wants an admin token (E.AUTH.MISSING_TOKEN): set WINDLASS_ADMIN_TOKEN, or give --token-file" in missing, missing
        assert "nothing listens there; start it, or give" in said("--url", "http://127.0.0.1:1", "workers", code=3)
        workers_port = said("--url", f"http://127.0.0.1:{fleet.port}", "workers", code=3)
        assert "if it serves TLS, write https:// and give --ca, and if this is the port for workers" in workers_port, workers_port
        assert "it does not speak TLS; write http:// instead of https://" in said("--url", f"https://{admin}", "workers", code=3)
        unknown = said("--url", f"https://127.0.0.1:{fleet.port}", "workers", code=3)
        assert "if its authority is your own, give --ca" in unknown, unknown
        workers_tls = said("--url", f"https://localhost:{fleet.port}", "--ca", fleet.path("tls", "ca.pem"), "workers", code=1)
        assert "is not one of a scheduler's admin listener; give the address of admin.listen with --url" in workers_tls, workers_tls
        for action in (("workers", "show"), ("drain",), ("resume",)):
            nobody = said(*action, "acme/nobody", code=1)
            assert "'nobody'" in nobody and "run 'windlass workers' to list" in nobody, nobody
        assert "no application 'hallo' is deployed; see windlass deploy" in said("invoke", "hallo", "greet", code=1)


def what_is_not_known_of_a_lost_worker_is_not_shown(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='heartbeat = "1s"\nlost_after = "2s"')
        agent = fleet.agent("a", settings=AGENT)
        name = f"acme/{fleet.ready('a')['id']}"

        def windlass(*arguments):
            return fleet.windlass(*arguments, WINDLASS_ADMIN_URL=f"http://127.0.0.1:{fleet.admin_port}").stdout

        def worker():
            return json.loads(windlass("--json", "workers", "show", name))

        wait_until("its load is known", lambda: "cpu_pct" in worker().get("load", {}))
        assert worker()["liveness"] == "HEALTHY"
        agent.signal(signal.SIGKILL)
        for state in ("DETACHED", "LOST"):
            wait_until(f"it is {state}", lambda s=state: worker()["state"] == s)
            seen = worker()
            assert not {"load", "liveness"} & set(seen), seen
            assert seen["heard_at"] and seen["since"] and seen["max_parallel"], "what stays true is there"
            for shown in (windlass("workers"), windlass("top", "--once")):
                titles, *rows = [line for line in shown.splitlines() if line.startswith(("TENANT", "acme"))]
                row = rows[0].split()
                columns = titles.replace("IN FLIGHT", "IN-FLIGHT").split()
                assert [row[columns.index(title)] for title in ("STATE", "LIVENESS", "CPU", "MEM")] == [state, "-", "-", "-"], shown


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


run_tests([a_day_of_an_operator, mistakes_are_answered_with_what_to_do, what_is_not_known_of_a_lost_worker_is_not_shown, a_token_of_its_own_making_lets_a_worker_in], sys.argv[1:])
