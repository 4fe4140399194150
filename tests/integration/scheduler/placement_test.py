"""Who gets which command, and what becomes of commands whose worker is lost: a real scheduler and windlass, workers that only pretend.

  placement_test.py SCHEDULER WINDLASS [test...]
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from app_peers import Agent, Runtime
from app_world import run
from revision2_worker import Reset, Worker
from scheduler_process import Scheduler

SCHEDULER, WINDLASS = sys.argv[1:3]


class World(Scheduler):
    def __init__(self, **more):
        super().__init__(SCHEDULER, **more)
        self.apps = tempfile.TemporaryDirectory(prefix="windlass-apps-")  # pylint: disable=consider-using-with

    def __exit__(self, *rest):
        super().__exit__(*rest)
        self.apps.cleanup()

    def windlass(self, *arguments, code=0):
        environment = {**os.environ, "WINDLASS_ADMIN_TOKEN": self.admin_token, "WINDLASS_ADMIN_URL": f"http://127.0.0.1:{self.admin_port}"}
        done = subprocess.run([WINDLASS, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, (arguments, done)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def worker(self, instance):
        return Worker(self.port, None, instance=instance, token=self.token)

    def submit(self, instance, kind="biz.echo", **more):
        return self.post(f"/v1/workers/acme/{instance}/commands", {"type": kind, "payload": {}, **more})["id"]

    def refusal(self, instance, kind="biz.echo"):
        try:
            self.submit(instance, kind)
        except RuntimeError as error:
            return str(error)
        return ""

    def command(self, name):
        return self.get(f"/v1/commands/acme/{name}")

    def deploy(self):
        """An application with two workers and a runtime, all pretended."""
        runtime = Runtime(self, "r-1").begin()
        agents = [Agent(self, f"a-{i}", "r-1").begin() for i in range(2)]
        wait_until("all have spoken", lambda: len([w for w in self.get("/v1/workers")["workers"] if "language_worker" in w]) == 2)
        folder = os.path.join(self.apps.name, "hello")
        os.makedirs(folder)
        for name, text in {"host.json": "{}", "package.json": "{}"}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.windlass("deploy", folder, "--tenant", "acme", "--code-version", "v1")
        self.windlass("assign", "hello", "--workers", "2")
        for agent in agents:
            agent.commands.clear()
        return runtime, agents


def wait_until(what, is_so, seconds=30):
    end = time.monotonic() + seconds
    while not (answer := is_so()):
        assert time.monotonic() < end, what
        time.sleep(0.03)
    return answer


def beat(peers):
    """Heartbeats from a thread, for as long as each has its connection."""
    def run(peer, lock, write):
        try:
            while True:
                with lock:
                    write(peer.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}))
                time.sleep(0.2)
        except OSError:
            pass  # it hung up

    for peer in peers:
        lock, write = threading.Lock(), peer.write

        def write_alone(frame, lock=lock, write=write):
            with lock:
                write(frame)

        peer.write = write_alone
        threading.Thread(target=run, args=(peer, lock, write), daemon=True).start()


def hang_up(agent):
    """Its thread is reading, so a close alone would not end the connection."""
    agent.peer.socket.shutdown(socket.SHUT_RDWR)


def register(worker, max_parallel=4, **more):
    worker.connect()
    worker.handshake()
    worker.next_seq, worker.received = 0, -1
    worker.ask(worker.frame("control.register", {"capabilities": {"concurrency": {"max_parallel": max_parallel}, "runtimes": ["python"]}, **more}))
    worker.take_accept()
    return worker


def heartbeat(worker, healthy=True, **load):
    """Its answer comes after whatever it caused; the frames before it."""
    frame = worker.frame("control.heartbeat", {"healthy": healthy, "metrics": {"inflight": 0, **load}}, ack={"request": True})
    worker.write(frame)
    before = []

    def is_answer(answer):
        before.append(answer["type"])
        return answer["payload"].get("for") == frame["id"]

    worker.read_until(is_answer)
    return before


def a_worker_that_is_short_keeps_its_session_and_gets_nothing_new():
    with World(settings="[tenants.acme]\ndisk_pct_max = 0\n") as world, world.worker("w") as worker:
        register(worker)
        assert "control.drain" not in heartbeat(worker, disk_pct=100), "off by a setting"
        world.submit("w")
        worker.answer_one()
        for load, is_short in ((89, False), (95, True), (86, True), (84, False), (89, False)):
            assert "control.drain" not in heartbeat(worker, mem_pct=load)
            shown = wait_until(f"at {load} %", lambda expected=is_short: (w := world.get("/v1/workers/acme/w"))
                               and (w["placement"] == "short of memory") == expected and w)
            assert shown["state"] == "READY" and shown["placement"] in ("open", "short of memory"), shown
            name = world.submit("w")
            if is_short:
                heartbeat(worker, mem_pct=load)
                assert world.command(name)["state"] == "waiting" and name not in [f["id"] for f in worker.inbox]
                assert "READY (short of memory)" in world.windlass("workers")
        wait_until("all came, once there was enough", lambda: heartbeat(worker) and len(worker.inbox) == 4)
        for _ in range(5):
            worker.answer_one()
        wait_until("all are done", lambda: len(world.get("/v1/commands?state=done")["commands"]) == 6)


def no_more_than_max_parallel_are_under_way_and_other_types_are_refused():
    with World() as world, world.worker("w") as worker:
        register(worker, max_parallel=2, payload_types=["biz.echo"])
        names = [world.submit("w") for _ in range(5)]
        for _ in range(3):
            heartbeat(worker)  # whatever was sent is here by then
        assert [frame["id"] for frame in worker.inbox] == names[:2], worker.inbox
        worker.answer_one()
        wait_until("the next one comes", lambda: heartbeat(worker) and [f["id"] for f in worker.inbox] == names[1:3])
        refusal = world.refusal("w", "biz.strange")
        assert "E.CMD.UNKNOWN" in refusal and "it takes biz.echo" in refusal, refusal


def a_command_of_a_lost_worker_has_one_clear_outcome_in_time():
    with World(session='lost_after = "2s"\nheartbeat = "1s"') as world:
        with world.worker("w") as worker:
            register(worker, max_parallel=1)
            given, waiting = world.submit("w"), world.submit("w")
            worker.read_until(lambda f: f.get("seq") is not None)
            begun = time.monotonic()
        outcome = world.get(f"/v1/commands/acme/{given}?wait_ms=20000")
        took = time.monotonic() - begun
        assert outcome["state"] == "failed" and outcome["failure"]["code"] == "E.WORKER.LOST", outcome
        assert outcome["failure"]["may_have_run"] is True and "may have run" in outcome["failure"]["reason"], outcome
        assert 1.5 < took < 15, took
        other = world.command(waiting)
        assert other["state"] == "failed" and other["failure"]["may_have_run"] is False, other
        shown = world.windlass("command", f"acme/{given}", code=1)
        assert "E.WORKER.LOST" in shown, shown
        # It comes back with the answer: that is late, changes nothing and becomes no message.
        with world.worker("w") as worker:
            register(worker)
            worker.send("biz.result", {"ok": True}, corr=given)
            heartbeat(worker)
            assert world.command(given)["state"] == "failed"
            assert world.get("/v1/messages")["messages"] == []


def commands_for_an_application_go_to_another_worker_when_that_is_safe():
    with World(session='lost_after = "3s"\nheartbeat = "1s"') as world:
        runtime, agents = world.deploy()
        beat([runtime, *agents])
        for agent in agents:
            agent.holds_answers = True
        safe = json.loads(world.windlass("--json", "send", "hello", "biz.echo", '{"n":1}', "--idempotent"))["id"]
        taker = wait_until("one has it", lambda: next((a for a in agents if [c["id"] for c in a.commands] == [safe]), None))
        other = next(agent for agent in agents if agent is not taker)
        unsafe = json.loads(world.windlass("--json", "send", "acme/hello", "--app", "biz.echo", '{"n":2}'))["id"]
        wait_until("the less busy one has it", lambda: [c["id"] for c in other.commands] == [unsafe])
        other.holds_answers = False
        hang_up(taker)
        wait_until("it goes to the other", lambda: [c["id"] for c in other.commands] == [unsafe, safe])
        outcome = world.get(f"/v1/commands/acme/{safe}?wait_ms=20000")
        assert outcome["state"] == "done" and outcome["worker"] == other.instance and outcome["moves"] == 1, outcome
        assert outcome["application"] == "hello" and outcome["idempotent"] is True, outcome
        hang_up(other)
        outcome = world.get(f"/v1/commands/acme/{unsafe}?wait_ms=20000")
        assert outcome["failure"]["code"] == "E.WORKER.LOST" and outcome["failure"]["may_have_run"] is True, outcome
        assert "no application 'nope'" in world.windlass("send", "nope", "biz.echo", "{}", code=1)


def placement_leaves_out_workers_that_are_not_healthy():
    with World() as world, world.worker("w-1") as first, world.worker("w-2") as second:
        register(first)
        register(second)
        heartbeat(first, healthy=False)
        wait_until("it is seen", lambda: world.get("/v1/workers/acme/w-1")["placement"] == "unhealthy")
        for _ in range(3):
            name = json.loads(world.windlass("--json", "send", "python", "--language", "--tenant", "acme", "biz.echo", "{}"))["id"]
            assert world.command(name)["worker"] == "w-2"
            second.answer_one()
        assert "READY (unhealthy)" in world.windlass("workers")
        heartbeat(second, healthy=False)
        wait_until("it is seen", lambda: world.get("/v1/workers/acme/w-2")["placement"] == "unhealthy")
        name = json.loads(world.windlass("--json", "send", "python", "--language", "--tenant", "acme", "biz.echo", "{}"))["id"]
        assert world.command(name)["state"] == "waiting" and "worker" not in world.command(name)
        heartbeat(first, healthy=True)
        first.answer_one()
        assert world.get(f"/v1/commands/acme/{name}?wait_ms=20000")["worker"] == "w-1"


def work_for_a_named_worker_waits_until_it_is_well():
    ladder = '[tenants.acme]\nheartbeat = "1s"\nheartbeat_misses_warn = 2\nheartbeat_misses_degraded = 3\nheartbeat_misses_lost = 60\nlost_after = "200s"\n'
    with World(settings=ladder) as world, world.worker("w") as worker:
        register(worker)

        def came():
            return [frame["id"] for frame in worker.inbox]
        heartbeat(worker, healthy=False)
        wait_until("it is seen", lambda: world.get("/v1/workers/acme/w")["placement"] == "unhealthy")
        name, hasty, order = world.submit("w"), world.submit("w", timeout_ms=300), world.submit("w", "biz.worker.resume")
        wait_until("what mends a worker comes all the same", lambda: heartbeat(worker, healthy=False) and order in came())
        outcome = world.get(f"/v1/commands/acme/{hasty}?wait_ms=20000")
        assert outcome["state"] == "failed" and outcome["failure"]["code"] == "E.TIMEOUT", outcome
        assert outcome["failure"]["may_have_run"] is False, outcome
        heartbeat(worker, healthy=False)
        assert came() == [order] and world.command(name)["state"] == "waiting", (came(), world.command(name))
        wait_until("it comes when the worker is well", lambda: heartbeat(worker) and came() == [order, name])
        wait_until("it is degraded", lambda: world.get("/v1/workers/acme/w")["liveness"] == "DEGRADED")
        name = world.submit("w")
        time.sleep(0.3)  # nothing may be heard of the worker meanwhile
        assert world.get("/v1/workers/acme/w")["placement"] == "degraded" and world.command(name)["state"] == "waiting", world.command(name)
        wait_until("it comes when the worker is heard", lambda: heartbeat(worker) and name in came())


def what_comes_again_is_known_after_it_made_room():
    with World(settings="[messages]\nper_tenant_max = 2\n[commands]\nfinished_per_tenant_max = 1\n") as world:
        with world.worker("w") as worker:
            register(worker)
            notes = [worker.frame("biz.note", {"n": n}, seq=n) for n in range(4)]
            for note in notes:
                worker.write(note)
            worker.next_seq = 4
            done = [world.submit("w") for _ in range(3)]
            for _ in done:
                worker.answer_one()
            wait_until("all are done", lambda: world.get("/v1/commands?state=done")["commands"] and not world.get("/v1/commands?state=sent")["commands"])
        kept = [m["id"] for m in world.get("/v1/messages")["messages"]]
        assert kept == [note["id"] for note in notes[2:]], kept
        for restarts in (False, True):
            if restarts:
                world.kill()
                world.start()
            with world.worker("w") as worker:
                worker.counter = 2000 if restarts else 1000  # its ids are new ones
                register(worker)
                worker.write({**notes[0], "seq": 0})
                worker.next_seq = 1
                worker.send("biz.result", {"again": True}, corr=done[0])
                heartbeat(worker)
                worker.send("biz.note", {"last": restarts})
                wait_until("the last one is there", lambda is_last=restarts: world.get("/v1/messages")["messages"][-1]["payload"] == {"last": is_last})
            kinds = {m["type"] for m in world.get("/v1/messages")["messages"]}
            assert kinds == {"biz.note"}, kinds
            assert notes[0]["id"] not in [m["id"] for m in world.get("/v1/messages")["messages"]]


def one_tenant_cannot_fill_the_table_of_sessions():
    with World(server="loops = 1", session="sessions_max = 4") as world:
        workers = [world.worker(f"w-{n}") for n in range(4)]
        try:
            for worker in workers[:2]:
                register(worker)
            try:
                register(workers[2])
                raise AssertionError("half of the table is its share")
            except Reset as reset:
                assert reset.code == "E.LIMIT.CAPACITY" and reset.retry_after_ms, reset
            workers[1].cut()
            wait_until("it is detached", lambda: world.get("/v1/workers/acme/w-1")["state"] == "DETACHED")
            register(workers[3])  # takes the place of the one that has no connection
            ended = wait_until("it made room", lambda: (w := world.get("/v1/workers/acme/w-1"))["state"] == "GONE" and w)
            assert ended["end_code"] == "E.LIMIT.CAPACITY", ended
            assert world.get("/v1/workers/acme/w-0")["state"] == "READY"
        finally:
            for worker in workers:
                worker.cut()


def heartbeats_are_a_tenants_own():
    with World(settings='[tenants.acme]\nheartbeat = "1s"\nheartbeat_misses_warn = 2\nheartbeat_misses_degraded = 3\n'
                        'heartbeat_misses_lost = 60\n') as world, world.worker("w") as worker:
        worker.connect()
        worker.handshake()
        accept = worker.register()
        assert accept["heartbeat_interval_ms"] == 1000, accept
        seen = wait_until("it is degraded", lambda: (w := world.get("/v1/workers/acme/w"))["liveness"] == "DEGRADED" and w)
        assert seen["placement"] == "degraded" and seen["state"] == "READY", seen
        heartbeat(worker)
        wait_until("it is healthy again", lambda: world.get("/v1/workers/acme/w")["placement"] == "open")


def a_tenant_says_when_its_workers_are_lost():
    with World(session='heartbeat = "40s"\nlost_after = "60s"') as world:
        with open(world.path("scheduler.toml"), "a", encoding="utf-8") as file:
            file.write('\n[tenants.acme]\nheartbeat = "1s"\nlost_after = "2s"\n')
        world.process.send_signal(signal.SIGHUP)

        def accepted_by_the_new_terms():
            with world.worker("other") as other:
                other.connect()
                other.handshake()
                return other.register()["heartbeat_interval_ms"] == 1000
        wait_until("the terms are read again", accepted_by_the_new_terms)
        with world.worker("w") as worker:
            register(worker, max_parallel=1)
            given = world.submit("w")
            worker.read_until(lambda f: f.get("seq") is not None)
        outcome = world.get(f"/v1/commands/acme/{given}?wait_ms=20000")
        assert outcome["state"] == "failed" and outcome["failure"]["code"] == "E.WORKER.LOST", outcome
        assert "it was gone for 2 s" in outcome["failure"]["reason"], outcome


def what_a_runtime_says_of_a_worker_is_shown():
    with World() as world:
        runtime, agents = world.deploy()
        known = {"worker": f"{agents[0].instance}.1", "state": "Ready", "in_flight": 1, "slots": 4, "done": 17, "failed": 2, "abandoned": 1,
                 "functions_loaded": 3, "load_failures": [{"function": "greet", "reason": "no such module"}],
                 "status_latency_ms": 1.5, "specialization_ms": 250.25}
        runtime.send("biz.runtime.status", {"url": runtime.url, "applications": [], "workers": [known], "health": "Healthy"})
        shown = wait_until("it is shown", lambda: world.get("/v1/workers/acme/a-0").get("invocations"))
        assert {k: v for k, v in shown.items() if k not in ("runtime", "told_at")} == {k: v for k, v in known.items() if k != "worker"}, shown
        assert shown["runtime"] == "r-1"
        assert "invocations" not in world.get("/v1/workers/acme/a-1")
        text = world.windlass("workers", "show", "acme/a-0")
        assert "no such module" in text and "250.25" in text and "max_parallel" in text, text
        for gone in ("features", "packages", "channels", "manifests", "per_node_limits"):
            assert gone not in world.get("/v1/workers/acme/a-0")


def main():
    tests = [a_worker_that_is_short_keeps_its_session_and_gets_nothing_new,
             no_more_than_max_parallel_are_under_way_and_other_types_are_refused,
             a_command_of_a_lost_worker_has_one_clear_outcome_in_time,
             commands_for_an_application_go_to_another_worker_when_that_is_safe,
             placement_leaves_out_workers_that_are_not_healthy, work_for_a_named_worker_waits_until_it_is_well,
             what_comes_again_is_known_after_it_made_room, one_tenant_cannot_fill_the_table_of_sessions,
             heartbeats_are_a_tenants_own, a_tenant_says_when_its_workers_are_lost, what_a_runtime_says_of_a_worker_is_shown]
    run(tests)


main()
