"""One application's code against another's: what functions can say on their worker's stream, and what happens to others.

  trust_test.py PROGRAMS [test...]
"""
import http.client
import json
import os
import signal
import socket
import sys
import threading

from fleet_processes import PLAIN_USER, Fleet, Process, can_make_namespaces, run_tests, wait_until
from function_fleet import NODE_WORKER, FunctionFleet

BANK = {"index.js": """
const { app } = require('@azure/functions');
app.http('transfer', { methods: ['POST'], authLevel: 'anonymous', handler: async () => ({ body: 'bank' }) });
"""}

# Finds its worker's stream by what the worker writes next, and writes on it itself. The messages are made by hand, as anybody can.
THIEF = {"index.js": r"""
const { app } = require('@azure/functions');
const { Duplex } = require('stream');
let stream = null;
const write = Duplex.prototype.write;
Duplex.prototype.write = function (chunk, ...rest) {
  if (!stream && this.constructor.name.startsWith('ClientDuplexStream')) stream = this;
  return write.call(this, chunk, ...rest);
};
const field = (number, bytes) => {
  const body = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes);
  const head = [];
  for (let n = (number << 3 | 2) >>> 0; ; n >>>= 7) { head.push(n > 127 ? n & 127 | 128 : n); if (n < 128) break; }
  for (let n = body.length; ; n >>>= 7) { head.push(n > 127 ? n & 127 | 128 : n); if (n < 128) break; }
  return Buffer.concat([Buffer.from(head), body]);
};
const argument = (name) => process.argv[process.argv.indexOf(name) + 1];
app.http('transfer', { methods: ['POST'], authLevel: 'anonymous', handler: async () => ({ body: 'stolen' }) });
app.http('attack', { methods: ['POST'], authLevel: 'anonymous', handler: async (request, context) => {
  const numbers = (await request.json());
  context.log('now');
  const specialized = Buffer.concat([
    field(numbers.application_id, 'bank'), field(numbers.metadata_version, numbers.version), field(numbers.code_version, 'v1'),
    field(numbers.language, 'node'), field(numbers.worker_id, argument('--functions-worker-id')), field(numbers.correlation_id, 'c')]);
  for (let i = 0; i < 1000; ++i) stream.write(field(100, specialized));
  return { body: stream ? 'sent' : 'no stream' };
} });
"""}


def numbers_of_fields():
    """Of WorkerSpecialized, from the schema."""
    path = os.path.join(os.path.dirname(__file__), "../../../schema/proto/function_rpc.proto")
    with open(path, encoding="utf-8") as file:
        message = file.read().split("message WorkerSpecialized {")[1].split("}")[0]
    return {line.split()[1]: int(line.split("=")[1].split(";")[0]) for line in message.splitlines() if line.strip().startswith("string ")}


def a_function_cannot_take_another_applications_requests(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=2)
        bank = fleet.serve("bank", BANK)
        thief = fleet.serve("thief", THIEF)
        assert bank["id"] != thief["id"]
        assert fleet.call("bank", "transfer") == (200, "bank")
        # No limit of memory is set for these agents, which their status tells.
        assert any("memory of user code is not limited" in gap for gap in bank["language_worker"]["confinement_gaps"]), bank
        version = bank["language_worker"]["metadata_version"]
        sent = [fleet.call("thief", "attack", json.dumps({**numbers_of_fields(), "version": wanted})) for wanted in (version, "zzz")]
        assert sent[0] == (200, "sent"), sent
        agent = next(a for n, a in fleet.agents.items() if fleet.instance(n) == thief["id"])
        # What it wrote has passed its agent once the agent has refused it, or the thief serves somebody else's application.
        wait_until("the words have come somewhere", lambda: agent.said("a message of the language worker is not passed on") or
                   fleet.ready_workers("bank") > 1 or not fleet.ready_workers("thief"))
        answers = [fleet.call("bank", "transfer") for _ in range(50)]
        assert answers == [(200, "bank")] * 50, answers
        assert fleet.ready_workers("bank") == 1
        assert len(agent.said("a message of the language worker is not passed on")) <= 2, "a flood is one line in a while"
        assert fleet.call("thief", "transfer") == (200, "stolen"), "it goes on with its own"


def unnamed(fleet, path):
    """Status, text and Retry-After of a request whose path names no application."""
    connection = http.client.HTTPConnection("127.0.0.1", fleet.runtime_facts["http_port"], timeout=30)
    try:
        connection.request("POST", path, b"{}", {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace"), response.getheader("Retry-After")
    finally:
        connection.close()


def the_paths_of_an_application_that_is_away_are_nobody_elses(programs):
    """Both have the route. The bank's agent hangs and the runtime begins anew: the thief is back first."""
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=2)
        bank = fleet.serve("bank", BANK)
        assert unnamed(fleet, "/api/transfer")[:2] == (200, "bank"), "it alone is served"
        fleet.serve("thief", THIEF)
        status, text, _ = unnamed(fleet, "/api/transfer")
        assert status == 404 and "several applications" in text and "bank" not in text and "thief" not in text, (status, text)
        name = next(n for n in fleet.agents if fleet.instance(n) == bank["id"])
        fleet.agents[name].signal(signal.SIGSTOP)
        fleet.restart_runtime()
        answers = []

        def thief_is_back():
            answers.append(unnamed(fleet, "/api/transfer"))
            return fleet.call("thief", "transfer") == (200, "stolen")
        wait_until("the thief is served again", thief_is_back)
        answers += [unnamed(fleet, "/api/transfer") for _ in range(10)]
        assert {status for status, _, _ in answers} == {503} and all(after for _, _, after in answers), answers
        assert fleet.call("bank", "transfer")[0] == 503
        fleet.agents[name].signal(signal.SIGCONT)
        wait_until("the bank is served again", lambda: fleet.call("bank", "transfer") == (200, "bank"))
        assert unnamed(fleet, "/api/transfer")[0] == 404


def an_instance_serves_only_what_it_is_assigned_to_across_restarts(programs):
    """An agent's state is forged to name another application, as code that runs as the agent's user could."""
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=2)
        bank = fleet.serve("bank", BANK)
        thief = fleet.serve("thief", THIEF)
        name = next(n for n in fleet.agents if fleet.instance(n) == thief["id"])
        agent = fleet.agents[name]
        agent.signal(signal.SIGKILL)
        agent.wait()
        assert os.path.exists(fleet.path(name, "var", "assignment.sealed"))
        package = agent.said("a package is fetched")[-1]
        taken = {key: bank["language_worker"][key] for key in ("application_id", "metadata_version", "code_version")}
        forged = {"runtime": {"id": "r1", "url": f"wss://127.0.0.1:{fleet.runtime_port}/ws/worker"},
                  "application": {**taken, "language": "node", "package": {"digest": package["digest"], "bytes": package["bytes"]},
                                  "setting_names": [], "setting_values": []}}
        # In clear text, as earlier versions kept it: the agent takes it instead of its own.
        with open(fleet.path(name, "var", "assignment.json"), "w", encoding="utf-8") as file:
            json.dump(forged, file)
        fleet.start_agent(name)
        stolen = lambda: [line for line in fleet.runtime.said("a worker takes an application")
                          if line["worker"].startswith(thief["id"]) and line["reason"].startswith("bank:")]
        refused = lambda: [line for line in fleet.runtime.said("an agent is not believed about its application") if line["worker"].startswith(thief["id"])]
        wait_until("it was believed or not", lambda: refused() or stolen())
        assert not stolen(), stolen()
        assert {fleet.call("bank", "transfer") for _ in range(20)} == {(200, "bank")}
        # Whoever is believed stays so when the runtime and the scheduler begin anew, and nobody else is.
        for restart in (fleet.restart_runtime, fleet.restart_scheduler):
            restart()
            wait_until("the bank is served again", lambda: fleet.call("bank", "transfer") == (200, "bank"))
            assert {fleet.call("bank", "transfer") for _ in range(20)} == {(200, "bank")}


def steal_a_worker(programs, user=None):
    """Another process of the agent's user reads its worker's id and port off the command line, and is quicker."""
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        os.makedirs(fleet.path("worker"))
        with open(fleet.path("worker", "worker.config.json"), "w", encoding="utf-8") as file:
            json.dump({"description": {"language": "fake", "extensions": [".x"], "defaultExecutablePath": "/bin/sh",
                                       "arguments": ["-c", "sleep 600", "a-worker-that-does-not-connect"]}}, file)
        settings = f'[language_worker]\nfolder = "{fleet.path("worker")}"\n'
        agent = fleet.agent("a", settings=settings, user=user)
        worker = fleet.ready("a")
        if user is not None:
            assert agent.wait_for("user code is confined")["confinement"] == "namespace"

        def arguments():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                        words = file.read().split("\0")
                except OSError:
                    continue
                if words[0] == "/bin/sh" and "a-worker-that-does-not-connect" in words and f"{worker['id']}.1" in words:
                    return words
            return None
        words = wait_until("the worker runs", arguments)
        command = [os.path.join(programs, "tests/integration/fake-language-worker"), *words[words.index("--host"):]]
        thief = Process(fleet.path("thief.log"), [word for word in command if word], **({} if user is None else {"user": user, "group": user}))
        try:
            state = lambda: (fleet.worker("a") or {}).get("language_worker", {}).get("state")
            wait_until("it is taken or not", lambda: not thief.is_running() or state() == "placeholder")
            assert state() == "starting", state()
        finally:
            thief.end()
        # The same program is let in where the agent has started it.
        with open(fleet.path("worker", "worker.config.json"), "w", encoding="utf-8") as file:
            json.dump({"description": {"language": "fake", "extensions": [".x"], "defaultExecutablePath": os.path.abspath(command[0])}}, file)
        agent.signal(signal.SIGTERM)
        agent.wait()
        fleet.agent("a", settings=settings, user=user)
        wait_until("its own worker is let in", lambda: fleet.ready("a") and state() == "placeholder")


def only_its_own_child_is_an_agents_language_worker(programs):
    steal_a_worker(programs)


def only_its_own_child_is_a_plain_users_language_worker(programs):
    """There the worker has the agent's user too, and is two processes below its supervisor."""
    if os.geteuid() != 0 or not can_make_namespaces(PLAIN_USER):
        return print("skipped: only root can run an agent as another user, and that user must be allowed to make namespaces", flush=True)
    steal_a_worker(programs, user=PLAIN_USER)


def a_revoked_agent_stays_out_until_it_is_allowed(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        agent = fleet.agent("a", settings='[session]\nbackoff_first = "50ms"\nbackoff_cap = "200ms"\n')
        worker = fleet.ready("a")
        name, url = f"acme/{worker['id']}", {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{fleet.admin_port}"}
        denied = lambda: len(fleet.scheduler.said("a connection was refused", code="E.SESSION.DENIED"))
        fleet.windlass("revoke", name, **url)
        wait_until("it tried again and was denied", lambda: denied() >= 2)
        assert fleet.worker("a")["state"] == "GONE" and fleet.worker("a")["denied"], fleet.worker("a")
        assert worker["id"] in fleet.windlass("denied", **url).stdout
        fleet.scheduler.signal(signal.SIGKILL)
        fleet.scheduler.wait()
        before = denied()
        fleet.start()
        wait_until("a restart forgets nothing", lambda: denied() >= before + 2)
        assert not fleet.worker("a") or fleet.worker("a")["state"] != "READY"
        fleet.windlass("allow", name, **url)
        fleet.ready("a")
        assert agent.is_running()
        for action in ("revoke", "allow"):
            assert fleet.scheduler.said("an operator asked for a change", action=action), "an audit line"


def an_agent_shows_its_token_to_nobody_in_clear_text(programs):
    """It is told, as by a scheduler that believed a forged runtime, to go to an address in clear text."""
    with FunctionFleet(programs) as fleet, socket.create_server(("127.0.0.1", 0)) as listener:
        fleet.begin(agents=1)
        worker = fleet.worker("a1")
        heard = []

        def listen():
            while True:
                try:
                    connection, _ = listener.accept()
                    heard.append(connection.recv(4096))
                except OSError:
                    return
        threading.Thread(target=listen, daemon=True).start()
        for scheme in ("ws", "http"):
            target = {"runtime": {"id": "r-forged", "url": f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/ws/worker"}}
            accepted = fleet.json("POST", f"/v1/workers/acme/{worker['id']}/commands", {"type": "biz.worker.reassign", "payload": target})
            record = fleet.json("GET", f"/v1/commands/acme/{accepted['id']}?wait_ms=5000")
            assert not heard, "it dialled"
            assert record["result"]["payload"]["code"] == "E.SESSION.DENIED", record
            assert "clear text" in record["result"]["payload"]["reason"], record
        fleet.serve("bank", BANK)
        assert fleet.call("bank", "transfer") == (200, "bank"), "it stays where it was"


LOGS = {"index.js": """
const { app } = require('@azure/functions');
app.http('order', { methods: ['POST'], authLevel: 'anonymous', handler: async (request, context) => {
  const order = await request.json();
  context.log(`order ${order.id}`);
  return { body: `got ${order.id}` };
} });
app.http('slow', { methods: ['POST'], authLevel: 'anonymous', handler: async () => {
  await new Promise((done) => setTimeout(done, 1500));
  return { body: 'done' };
} });
"""}


def half_a_character_hurts_nobody(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=1)
        fleet.serve("shop", LOGS)
        answers = []
        callers = [threading.Thread(target=lambda: answers.append(fleet.call("shop", "slow"))) for _ in range(4)]
        for caller in callers:
            caller.start()
        odd = [fleet.call("shop", "order", b'{"id":"A\\ud83dB"}') for _ in range(3)]
        for caller in callers:
            caller.join()
        assert answers == [(200, "done")] * 4, answers
        assert all(status == 200 and text.startswith("got A") and text.endswith("B") for status, text in odd), odd
        assert fleet.call("shop", "order", b'{"id":"plain"}') == (200, "got plain")
        fleet.runtime.wait_for("a worker says", message="order A\ufffd\ufffd\ufffdB")
        assert "a worker is given up" not in fleet.runtime.text()


def another_local_user_is_no_worker_of_the_runtime(programs):
    """Whoever reaches the loopback port wants to be a worker of the configured application."""
    if os.geteuid() != 0:
        return print("skipped: only root can run a process as another user", flush=True)
    with FunctionFleet(programs) as fleet:
        os.makedirs(fleet.path("app"))
        fleet.write_runtime_settings(scheduler="", more=f"""
[grpc]
listen = "127.0.0.1:0"
application = "shop"
[[application]]
id = "shop"
directory = "{fleet.path('app')}"
language = "node"
""")
        fleet.run_runtime()
        command = ["node", os.path.join(NODE_WORKER, "src/main.js"), "--functions-uri", f"http://127.0.0.1:{fleet.runtime_facts['grpc_port']}/",
                   "--functions-request-id", "q", "--functions-grpc-max-message-length", "1000000", "--functions-worker-id"]
        stranger = Process(fleet.path("stranger.log"), [*command, "stranger"], user=65534, group=65534)
        fleet.others.append(stranger)
        wait_until("it was let in or not", lambda: not stranger.is_running() or fleet.runtime.said("a worker connected"))
        assert not fleet.runtime.said("a worker connected"), fleet.runtime.text()
        assert "user 65534" in fleet.runtime.wait_for("a connection was refused")["reason"], stranger.text()
        fleet.others.append(Process(fleet.path("own.log"), [*command, "own"]))
        fleet.runtime.wait_for("a worker is initialized", worker="own")


run_tests([the_paths_of_an_application_that_is_away_are_nobody_elses, another_local_user_is_no_worker_of_the_runtime, a_function_cannot_take_another_applications_requests, an_instance_serves_only_what_it_is_assigned_to_across_restarts,
           only_its_own_child_is_an_agents_language_worker, only_its_own_child_is_a_plain_users_language_worker, a_revoked_agent_stays_out_until_it_is_allowed,
           an_agent_shows_its_token_to_nobody_in_clear_text, half_a_character_hurts_nobody], sys.argv[1:])
