"""The scheduler's log: what happens to sessions is said with the fields that operators search for, nobody can flood it, and no
secret is ever in it.

  logs_test.py BUILD_FOLDER [test...]
"""
import asyncio
import json
import os
import re
import ssl
import sys

import websockets

from fleet_processes import Fleet, run_tests, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from revision1_worker import Worker  # noqa: E402  pylint: disable=wrong-import-position

STRANGERS = 400


class TlsWorker(Worker):
    """A worker that we can make misbehave."""

    def __init__(self, fleet, instance, token):
        super().__init__(f"wss://127.0.0.1:{fleet.port}/ws/worker", "acme", instance, token)
        self.tls = ssl.create_default_context(cafile=fleet.path("tls", "ca.pem"))
        self.fleet = fleet

    async def connect(self):
        self.socket = await websockets.connect(self.url, compression=None, max_size=2**21, ssl=self.tls)
        self.accepted = asyncio.get_running_loop().create_future()
        self.closed.clear()
        self.reader = asyncio.create_task(self.read())

    async def take(self, frame):
        if frame["type"] == "control.session.accept":
            self.fleet.secrets.add(frame["payload"]["session_token"])
        await super().take(frame)


def check_no_secret(fleet):
    with open(fleet.path("scheduler.db.keys"), encoding="utf-8") as file:
        for line in file:
            fleet.secrets.add(line.split()[1])
    for process in [fleet.scheduler, *fleet.agents.values()]:
        for secret in fleet.secrets:
            assert secret not in process.text(), f"a secret is in {process.log}"


async def stranger(fleet, token):
    """Shows a token and waits to be sent away; gives the code that it was told."""
    tls = ssl.create_default_context(cafile=fleet.path("tls", "ca.pem"))
    async with websockets.connect(f"wss://127.0.0.1:{fleet.port}/ws/worker", compression=None, ssl=tls) as socket:
        await socket.send(json.dumps(Worker("", "acme", "i-stranger", token).frame("control.handshake", {
            "protocol": 1, "auth": {"mode": "token", "token": token},
            "worker": {"worker_name": "s", "worker_instance_id": "i-stranger", "version": "1", "hostname": "h"}})))
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] == "control.reset":
                return frame["payload"]["code"]
    return None


def a_session_is_told_from_beginning_to_end(programs):
    with Fleet(programs) as fleet:
        token = fleet.new_token("a")
        fleet.credentials()
        scheduler = fleet.start('[log]\nlevel = "debug"')

        async def live():
            worker = TlsWorker(fleet, "i-told", token)
            await worker.connect()
            await worker.handshake()
            await worker.register()
            # A frame that breaks the schema.
            await worker.write({**worker.frame("control.heartbeat", {"healthy": "perhaps"}), "id": "bad-1"})
            # The link breaks, and the session comes back.
            await worker.cut()
            await worker.connect()
            await worker.handshake()
            await worker.resume()
            # A command, and its answer twice.
            await asyncio.to_thread(fleet.json, "POST", "/v1/workers/acme/i-told/commands", {"id": "c-1", "type": "biz.echo", "payload": {}})
            command = await asyncio.wait_for(worker.inbox.get(), 10)
            await worker.send("biz.result", {}, corr=command["id"])
            await worker.send("biz.result", {}, corr=command["id"])
            await asyncio.wait_for(worker.all_acked(), 10)
            # A second connection of the same session takes over.
            second = TlsWorker(fleet, "i-told", token)
            second.session, second.received, second.next_seq = worker.session, worker.received, worker.next_seq
            await second.connect()
            await second.handshake()
            await second.resume()
            await asyncio.to_thread(fleet.json, "POST", "/v1/workers/acme/i-told/reset", {"reason": "enough"})
            await asyncio.wait_for(second.closed.wait(), 10)
            # A token that is nobody's.
            fleet.secrets.add("guessed-token-of-a-stranger")
            assert await stranger(fleet, "guessed-token-of-a-stranger") == "E.AUTH.INVALID_TOKEN"

        asyncio.run(live())
        told = {"tenant": "acme", "sender.id": "i-told"}
        opened = scheduler.wait_for("a session opened", **told)
        assert opened["level"] == "info" and opened["address"].startswith("127.0.0.1:") and opened["session"], opened
        refused = scheduler.wait_for("a frame was refused", type="control.heartbeat", id="bad-1", **told)
        assert refused["code"] == "E.PROTO.SCHEMA" and "/payload/healthy" in refused["reason"], refused
        scheduler.wait_for("a connection is gone; its session waits for a resume", session=opened["session"], **told)
        scheduler.wait_for("a session resumed", session=opened["session"], **told)
        scheduler.wait_for("a command was given to a session", id="c-1", type="biz.echo", seq=0, **told)
        scheduler.wait_for("a message came", type="biz.result", corr="c-1", seq=1, **told)
        scheduler.wait_for("a command is done", id="c-1", **told)
        scheduler.wait_for("a frame came again and changed nothing", corr="c-1", code="E.RESULT.DUPLICATE", **told)
        scheduler.wait_for("a newer connection took over a session", code="E.SESSION.SUPERSEDED", **told)
        scheduler.wait_for("a session ended", reason="enough", initiator="local", **told)
        scheduler.wait_for("a connection was refused", type="control.handshake", code="E.AUTH.INVALID_TOKEN",
                           **{"tenant": "acme", "sender.id": "i-stranger"})
        scheduler.wait_for("a connection closed", initiator="network")
        check_no_secret(fleet)


def agents_drain_and_are_lost(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        scheduler = fleet.start()
        agents = {name: fleet.agent(name, token="a", settings='[log]\nlevel = "debug"') for name in ("goes", "dies")}
        ids = {name: fleet.ready(name)["id"] for name in agents}
        for name in agents:
            assert fleet.run_command(name)["state"] == "done"
        agents["goes"].process.terminate()
        assert agents["goes"].wait() == 0
        scheduler.wait_for("a worker drains", **{"sender.id": ids["goes"]})
        scheduler.wait_for("a session closed after its drain", **{"sender.id": ids["goes"]})
        agents["dies"].process.kill()
        scheduler.wait_for("a connection is gone; its session waits for a resume", **{"sender.id": ids["dies"]})
        assert not scheduler.said("a command is done"), "a command that went well is for whoever looks closely"
        check_no_secret(fleet)


def nobody_floods_it(programs):
    with Fleet(programs) as fleet:
        fleet.credentials()
        scheduler = fleet.start()

        async def flood():
            for _ in range(STRANGERS // 20):
                codes = await asyncio.gather(*(stranger(fleet, "not-a-token-at-all-0123456789") for _ in range(20)))
                assert set(codes) == {"E.AUTH.INVALID_TOKEN"}, codes

        asyncio.run(flood())
        fleet.secrets.add("not-a-token-at-all-0123456789")

        def counted():
            found = re.search(r'windlass_refused_connections_total\{code="E.AUTH.INVALID_TOKEN"\} (\d+)', fleet.ask("GET", "/metrics")[1])
            return found and int(found[1]) == STRANGERS

        wait_until("all are counted", counted)
        lines = scheduler.said("a connection was refused")
        seconds, loops = span_of(lines), os.cpu_count()
        assert len(lines) <= loops * (64 + 5 * seconds + 5), f"{len(lines)} lines in {seconds} s"
        assert len(lines) < STRANGERS or seconds > 20, "the rate is no bound"
        check_no_secret(fleet)


def span_of(lines):
    def at(line):
        hours, minutes, seconds = line["ts"][11:-1].split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    return (at(lines[-1]) - at(lines[0])) % 86400


run_tests([a_session_is_told_from_beginning_to_end, agents_drain_and_are_lost, nobody_floods_it], sys.argv[1:])
