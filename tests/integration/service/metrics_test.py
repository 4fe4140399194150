"""/metrics of a real scheduler and a real agent: the names and labels that the protocol's document promises, those of field experience
besides, and Prometheus' own linter, promtool.

  metrics_test.py BUILD_FOLDER [test...]
"""
import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.request

import websockets

from fleet_processes import Fleet, run_tests, wait_until
from function_fleet import FunctionFleet

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from revision1_worker import Worker  # noqa: E402  pylint: disable=wrong-import-position

# Exactly these labels: a dashboard that knows them must not find others. `le` is the histogram's own.
SCHEDULER = {
    "ws_conn_active": {"tenant"},
    "ws_frame_bytes_total": {"tenant", "dir"},
    "ws_heartbeat_miss_total": {"tenant", "worker"},
    "cmd_dispatch_total": {"tenant", "node_type"},
    "cmd_retry_total": {"reason"},
    "result_latency_ms_bucket": {"tenant", "node_type", "le"},
    "pkg_ops_total": {"tenant", "op", "status"},
    # From experience in the field.
    "windlass_resumes_total": {"result"},
    "windlass_duplicates_total": {"kind"},
    "windlass_duplicate_frames_total": set(),
    "windlass_retransmits_total": set(),
    "windlass_spurious_retransmits_total": set(),
    "windlass_outside_window_frames_total": set(),
    "windlass_window_blocked_seconds_total": set(),
    "windlass_schema_violations_total": {"code"},
    "windlass_closes_total": {"code", "initiator"},
    "windlass_sessions_total": {"result"},
    "windlass_refused_connections_total": {"code"},
}
AGENT = {
    "inflight_tasks": set(),
    "task_duration_ms_bucket": {"node_type", "le"},
    "heartbeat_sent_total": set(),
    "heartbeat_degraded_total": set(),
    "windlass_sessions_total": {"result"},
    "windlass_session_ends_total": {"code"},
    "windlass_closes_total": {"code", "initiator"},
    "windlass_duplicate_frames_total": set(),
    "windlass_spurious_retransmits_total": set(),
    "windlass_outside_window_frames_total": set(),
}
# The names are given, and the linter would have the unit spelt out. Nothing else may be complained of.
TOLERATED = {f"{name} metric names should not contain abbreviated units" for name in ("result_latency_ms", "task_duration_ms")}

# ./dev setup puts one there where none is installed.
PROMTOOL = shutil.which("promtool") or os.path.join(os.path.dirname(__file__), "../../../build/tools/promtool")


def samples_of(text):
    """name -> list of (labels, value)"""
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
        samples.setdefault(name, []).append((dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")), float(value)))
    return samples


def check_names(text, promised):
    samples = samples_of(text)
    for name, labels in promised.items():
        assert name in samples, f"{name} is not there:\n{text}"
        for found, _ in samples[name]:
            assert set(found) == labels, f"{name} has labels {set(found)}, not {labels}"
    return samples


def check_with_promtool(text):
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if line not in TOLERATED]
    assert not complaints, complaints
    # 3: only matters of style, all of them tolerated above.
    assert done.returncode in (0, 3), (done.returncode, done.stdout, done.stderr)


async def provoke(fleet, token):
    """Everything that only happens when something goes wrong."""
    worker = Worker(f"wss://127.0.0.1:{fleet.port}/ws/worker", "acme", "i-odd", token)
    tls = ssl.create_default_context(cafile=fleet.path("tls", "ca.pem"))

    async def connect():
        worker.socket = await websockets.connect(worker.url, compression=None, ssl=tls)
        worker.accepted = asyncio.get_running_loop().create_future()
        worker.reader = asyncio.create_task(worker.read())
        await worker.handshake()

    await connect()
    await worker.ask(worker.frame("control.register", {
        "capabilities": {"concurrency": {"max_parallel": 4}, "runtimes": ["python"], "features": []}, "payload_types": ["json"],
        "packages": [{"name": "p", "version": "1", "status": "installed"}], "channels": [], "manifests": []}))
    accept = await asyncio.wait_for(worker.accepted, 10)
    worker.session = accept["session_id"], accept["session_token"]
    await worker.send("biz.note", {})
    await asyncio.wait_for(worker.all_acked(), 10)
    await worker.write(worker.frame("biz.note", {}, session_seq=1))  # again
    await asyncio.to_thread(fleet.json, "POST", "/v1/workers/acme/i-odd/commands", {"type": "biz.echo", "payload": {}})
    command = await asyncio.wait_for(worker.inbox.get(), 10)
    for _ in range(2):
        await worker.send("biz.result", {}, corr=command["id"])
    await asyncio.wait_for(worker.all_acked(), 10)
    await worker.write(worker.frame("control.heartbeat", {"healthy": "perhaps"}))  # the last: its answer ends this worker
    await worker.cut()
    await connect()
    await worker.resume()
    await worker.cut()
    # A session that never was.
    await connect()
    worker.session = worker.session[0], "not.a-token"
    await worker.write(worker.frame("control.resume", {"session_id": worker.session[0], "session_token": "not.a-token", "last_seen_seq": 0}))
    await asyncio.wait_for(worker.closed.wait(), 10)


def names_and_labels_are_as_promised(programs):
    with Fleet(programs) as fleet:
        token = fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='heartbeat = "1s"', admin_settings="metrics_open = true")
        agent = fleet.agent("a", settings='[metrics]\nlisten = "127.0.0.1:0"\n[exec.wait]\nprogram = "/bin/sleep"\nargs = ["1"]\n'
                                          '[session]\nbackoff_first = "20ms"\n')
        worker = fleet.ready("a")
        for n in range(20):
            assert fleet.run_command("a", payload={"n": n})["state"] == "done"
        # A command that is under way when its session ends is given to the next.
        running = fleet.json("POST", f"/v1/workers/acme/{worker['id']}/commands", {"type": "biz.exec", "payload": {"name": "wait"}})
        wait_until("it runs", lambda: fleet.json("GET", f"/v1/commands/acme/{running['id']}")["state"] == "sent")
        fleet.json("POST", f"/v1/workers/acme/{worker['id']}/reset", {"reason": "test"})
        assert fleet.json("GET", f"/v1/commands/acme/{running['id']}?wait_ms=20000")["state"] == "done"
        asyncio.run(provoke(fleet, token))

        def everything_is_there():
            text = fleet.ask("GET", "/metrics")[1]
            return set(SCHEDULER) - {"ws_heartbeat_miss_total"} <= set(samples_of(text))

        wait_until("every metric", everything_is_there)
        text = fleet.ask("GET", "/metrics")[1]
        promised = {name: labels for name, labels in SCHEDULER.items() if name != "ws_heartbeat_miss_total"}
        samples = check_names(text, promised)
        check_with_promtool(text)
        assert ({"result": "resumed"}, 1.0) in samples["windlass_resumes_total"], samples["windlass_resumes_total"]
        assert ({"tenant": "acme", "op": "fetch", "status": "ok"}, 0.0) in samples["pkg_ops_total"]
        assert samples["windlass_duplicate_frames_total"][0][1] >= 1
        assert ({"code": "E.PROTO.SCHEMA"}, 1.0) in samples["windlass_schema_violations_total"]

        port = agent.said("metrics are served")[0]["port"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            text = response.read().decode()
        samples = check_names(text, AGENT)
        assert samples["heartbeat_sent_total"][0][1] >= 1, text
        assert ({"result": "new"}, 2.0) in samples["windlass_sessions_total"], samples["windlass_sessions_total"]
        check_with_promtool(text)


def series_of(text):
    """Every series of a page by its name and labels."""
    return {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")}


def an_agents_series_are_there_from_the_start(programs):
    """A rate over a series that appears with its first event misses that event."""
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='heartbeat = "1s"')
        agent = fleet.agent("a", settings='[metrics]\nlisten = "127.0.0.1:0"\n[session]\nbackoff_first = "20ms"\n[language_worker]\nfolder = '
                                          f'"{os.path.join(os.path.abspath(programs), "worker-agent/native")}"\n')
        port = agent.wait_for("metrics are served")["port"]

        def text():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
                return response.read().decode()
        before = series_of(text())
        worker = fleet.ready("a")
        assert fleet.run_command("a")["state"] == "done"
        for kind, payload in (("biz.exec", {"name": "unknown"}), ("biz.worker.release", {}), ("biz.worker.specialize", {"wrong": 1})):
            command = fleet.json("POST", f"/v1/workers/acme/{worker['id']}/commands", {"type": kind, "payload": payload})["id"]
            fleet.json("GET", f"/v1/commands/acme/{command}?wait_ms=20000")
        fleet.json("POST", f"/v1/workers/acme/{worker['id']}/reset", {"reason": "test"})
        fleet.ready("a")
        fleet.scheduler.signal(9)
        fleet.scheduler.wait()
        agent.wait_for("not connected")
        samples = samples_of(text())
        for name in ("cmd_refused_total", "windlass_session_ends_total", "windlass_closes_total", "task_duration_ms_count"):
            assert sum(value for _, value in samples[name]) >= 1, (name, samples[name])
        assert not series_of(text()) - before, sorted(series_of(text()) - before)
        check_with_promtool(text())


def missed_heartbeats_name_their_worker(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='heartbeat = "1s"')
        agent = fleet.agent("a")
        fleet.ready("a")
        agent.process.send_signal(19)  # SIGSTOP: it lives and says nothing
        try:
            def misses():
                return samples_of(fleet.ask("GET", "/metrics")[1])["ws_heartbeat_miss_total"]

            assert misses()[0][0] == {"tenant": "acme", "worker": fleet.instance("a")}, "it is there before the first miss"
            wait_until("a miss", lambda: misses()[0][1] > 0)
            text = fleet.ask("GET", "/metrics")[1]
            check_names(text, {"ws_heartbeat_miss_total": SCHEDULER["ws_heartbeat_miss_total"]})
            check_with_promtool(text)
        finally:
            agent.process.send_signal(18)


def alerts_of_the_page():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    with open(os.path.join(root, "docs", "operating.md"), encoding="utf-8") as page:
        # A bar inside a table's cell is written with a backslash.
        return [each.replace("\\|", "|") for each in re.findall(r"^\| [\w ]+ \| `(.+?)` \|", page.read(), re.MULTILINE)]


def series_of_alerts_are_there_from_the_start_and_gauges_are_true(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='heartbeat = "1s"')
        text = fleet.ask("GET", "/metrics")[1]
        samples = samples_of(text)
        for alert in alerts_of_the_page():
            for name in re.findall(r"(?:windlass|ws|cmd|result|pkg)_\w+", alert):
                # A worker's own series begins with its first session.
                assert name in samples or name == "ws_heartbeat_miss_total", f"{name} of {alert} is absent:\n{text}"
        check_with_promtool(text)

        def gauge(name, **labels):
            return next(value for found, value in samples_of(fleet.ask("GET", "/metrics")[1])[name] if found == labels)

        assert gauge("ws_conn_active", tenant="acme") == 0 and gauge("windlass_commands_pending") == 0
        agent = fleet.agent("a", settings='[exec.nap]\nprogram = "/bin/sleep"\nargs = ["2"]\n')
        worker = fleet.ready("a")
        assert gauge("ws_conn_active", tenant="acme") == 1
        for _ in range(2):
            fleet.json("POST", f"/v1/workers/acme/{worker['id']}/commands", {"type": "biz.exec", "payload": {"name": "nap"}})
        assert gauge("windlass_commands_pending") == 2
        wait_until("they are done", lambda: gauge("windlass_commands_pending") == 0)
        agent.process.kill()
        wait_until("its connection is gone", lambda: gauge("ws_conn_active", tenant="acme") == 0)


def gauges_of_a_runtime_are_true(programs):
    app = """
const { app } = require('@azure/functions');
app.http('hello', { methods: ['POST'], authLevel: 'anonymous', handler: async () => ({ body: 'hello' }) });
app.http('fail', { methods: ['POST'], authLevel: 'anonymous', handler: async () => { throw new Error('on purpose'); } });
app.http('hang', { methods: ['POST'], authLevel: 'anonymous', handler: () => new Promise(() => {}) });
"""
    with FunctionFleet(programs) as fleet:
        fleet.core_settings = "slots_per_worker = 1\npending_max = 1"
        fleet.begin(agents=1)

        def value(name, **labels):
            with urllib.request.urlopen(f"http://127.0.0.1:{fleet.runtime_facts['admin_port']}/metrics", timeout=10) as answer:
                samples = samples_of(answer.read().decode())["windlass_runtime_" + name]
            return next((value for found, value in samples if found == labels), None)

        def gauges():
            return [value(name) for name in ("ready_workers", "detached_workers", "degraded", "pending_invocations")]

        assert gauges() == [0, 0, 0, 0], gauges()
        fleet.serve("shop", {"index.js": app})
        assert gauges() == [1, 0, 0, 0], gauges()
        for cause in ("worker_lost", "no_worker", "overloaded", "timed_out"):  # of the alert in docs/runtime.md
            assert value("invocations_failed_total", application="shop", cause=cause) == 0, cause
        assert value("application_ready_workers", application="shop") == 1 and value("functions_not_loaded", application="shop") == 0
        assert 0 < value("memory_utilization") < 1
        assert fleet.call("shop", "hello") == (200, "hello") and fleet.call("shop", "fail")[0] == 500
        assert value("invocations_failed_total", application="shop", cause="function_failed") == 1
        assert value("http_requests_total", status="200") == 1 and value("http_requests_total", status="500") == 1

        def hang():
            with contextlib.suppress(OSError):  # its runtime ends before it
                fleet.call("shop", "hang")
        threading.Thread(target=hang, daemon=True).start()
        wait_until("an invocation is under way", lambda: gauges() == [1, 0, 0, 1])
        threading.Thread(target=hang, daemon=True).start()
        wait_until("another waits for the slot", lambda: gauges() == [1, 0, 0, 2])
        assert fleet.call("shop", "hello")[0] == 429
        assert value("invocations_failed_total", application="shop", cause="overloaded") == 1
        lost = value("invocations_failed_total", application="shop", cause="worker_lost")
        agent = fleet.agents["a1"]
        agent.signal(signal.SIGSTOP)
        try:
            wait_until("its worker is cut off", lambda: gauges() == [0, 1, 1, 2])
            assert value("application_ready_workers", application="shop") == 0
        finally:
            agent.signal(signal.SIGCONT)
        wait_until("it is back", lambda: gauges() == [1, 0, 0, 2])
        agent.signal(signal.SIGKILL)
        agent.wait()
        wait_until("its worker is gone", lambda: value("detached_workers") == 1 and value("degraded") == 1)
        assert lost == 0 and value("events_total", kind="worker_abandoned") == 0, "nothing is settled before lost_after"


def the_alerts_of_the_operating_page_are_good(_):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    alerts = alerts_of_the_page()
    assert len(alerts) >= 10, alerts
    with open(os.path.join(root, "scheduler", "adapters", "metrics.cc"), encoding="utf-8") as source:
        names = set(re.findall(r'"((?:windlass|ws|cmd|result|pkg)_\w+)"', source.read()))
    for alert in alerts:
        for name in re.findall(r"(?:windlass|ws|cmd|result|pkg)_\w+", alert):
            assert name.removesuffix("_bucket") in names, f"{name} of {alert} is not counted"
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as rules:
        rules.write("groups:\n- name: page\n  rules:\n")
        for number, alert in enumerate(alerts):
            rules.write(f"  - alert: a{number}\n    expr: {json.dumps(alert)}\n")
        rules.flush()
        done = subprocess.run([PROMTOOL, "check", "rules", rules.name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done


run_tests([gauges_of_a_runtime_are_true, the_alerts_of_the_operating_page_are_good, series_of_alerts_are_there_from_the_start_and_gauges_are_true, names_and_labels_are_as_promised,
           an_agents_series_are_there_from_the_start, missed_heartbeats_name_their_worker], sys.argv[1:])
