"""What a client of Node functions sees on its socket, and the functions of it, where Azure's host and a careless one differ: framing
for old clients, targets, paths and routes, answers, cookies, outputs, timeouts. On a real scheduler, runtime, agents and Node workers.

  http_answers_test.py BUILD_FOLDER [test...]
"""
import json
import os
import re
import signal
import socket
import sys
import threading
import urllib.request

from fleet_processes import run_tests, wait_until
from function_fleet import FunctionFleet

# Each function tells what it got, or answers in one of the ways that once went wrong.
FACTS = """
'use strict';
const { app, output } = require('@azure/functions');
const http = (name, route, handler, more = {}) => app.http(name, { authLevel: 'anonymous', route, handler, ...more });
const sent = new Map();  // what the host sent of each invocation; the library shows less of it
const tell = async (request, context) => ({ jsonBody: {
  url: request.url, params: request.params, query: [...request.query], headers: [...request.headers], sent: sent.get(context.invocationId) } });
for (const [name, route] of Object.entries({
  about: 'about/{id}', plain: 'order/{id}', coded: 'order/{code:regex(^[a-z]{{2}}\\\\d+$)}', dated: 'order/{day:datetime}', fixed: 'order/new',
  file: 'file/{name}.{ext?}', rest: 'rest/{*path}', odd: 'odd/{id:regex((?=x))}', unheard: 'unheard/{id:colour}',
  slash: '/slash/{id}/', double: 'double//{id}' })) http(name, route, tell);

// As functions of version 3 answer whose output is named $return: the return value, and a shell without a value by that name.
const model = require('@azure/functions-core').getProgrammingModel();
const of = model.getInvocationModel.bind(model);
model.getInvocationModel = (core) => {
  const invocation = of(core);
  sent.set(core.invocationId, { metadata: core.request.triggerMetadata, http: core.request.inputData[0].data.http });
  const answer = invocation.getResponse.bind(invocation);
  invocation.getResponse = async (context, result) => {
    const response = await answer(context, result);
    if (context.functionName === 'returned') response.outputData = [{ name: '$return', data: { http: {} } }];
    return response;
  };
  return invocation;
};
http('returned', 'returned', async () => ({ status: 201, body: 'the return value' }));

http('chatty', 'chatty', async (request, context) => { context.log('too quiet'); context.warn('loud enough'); return {}; });
http('unchanged', 'unchanged', async () => ({ status: 304, headers: { etag: '"1"' } }));
http('cookie', 'cookie', async () => ({ cookies: [{ name: 'a', value: 'x; Secure; Path=/admin' }, { name: 'b', value: 'plain' }] }));

const queue = output.storageQueue({ queueName: 'dropped', connection: 'None' });
http('queued', 'queued', async (request, context) => {
  context.extraOutputs.set(queue, 'a message');
  return { body: 'said' };
}, { extraOutputs: [queue] });
"""

FACTS_HOST = '{"version": "2.0", "logging": {"logLevel": {"default": "Information", "Function.chatty": "Warning"}}}'

# `hang` never answers. `beside` answers a while after hang's time is over, and runs in the same worker.
SLOW = """
'use strict';
const { app } = require('@azure/functions');
const http = (name, handler) => app.http(name, { authLevel: 'anonymous', handler });
const STREAM
let since = 0;
http('age', async () => ({ body: String(since && Date.now() - since) }));
http('hang', async () => { since = Date.now(); await new Promise(() => {}); });
http('beside', async () => {
  while (Date.now() - since < 3600) await new Promise((next) => setTimeout(next, 20));
  return { body: 'beside' };
});
http('spin', async () => { since = Date.now(); for (;;) { /* nothing else runs in this worker */ } });
"""
# An answer of many parts, whose worker is gone before they are through.
PARTING = """
'use strict';
const { app } = require('@azure/functions');
app.http('large', { authLevel: 'anonymous', handler: async (request, context) => {
  context.log('large runs');
  setTimeout(() => process.exit(1), 3000);
  return { body: Buffer.alloc(60 * 1024 * 1024, 'a') };
} });
"""
SLOW_HOST = '{"version": "2.0", "functionTimeout": "00:00:03"}'


class Client:
    """One connection, and what comes of it."""

    def __init__(self, fleet):
        self.socket = socket.create_connection(("127.0.0.1", fleet.runtime_facts["http_port"]), timeout=30)
        self.have = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, line, headers="Host: localhost\r\n"):
        self.socket.sendall(f"{line}\r\n{headers}\r\n".encode())

    def more(self):
        data = self.socket.recv(65536)
        self.have += data
        return bool(data)

    def read(self):
        """Status, head (in lower case) and body of the next answer, by its length."""
        while b"\r\n\r\n" not in self.have:
            assert self.more(), f"the connection ended: {self.have!r}"
        head, self.have = self.have.split(b"\r\n\r\n", 1)
        text = head.decode().lower()
        length = re.search(r"content-length: (\d+)", text)
        while len(self.have) < int(length[1] if length else 0):
            assert self.more(), "the body is cut"
        body, self.have = self.have[:int(length[1]) if length else 0], self.have[int(length[1]) if length else 0:]
        return int(text.split()[1]), text, body

    def is_over(self):
        return not self.more()


def get(fleet, path, headers="Host: localhost\r\n", version="1.1"):
    with Client(fleet) as client:
        client.ask(f"GET {path} HTTP/{version}", headers)
        return client.read()


def told(fleet, path, headers="Host: localhost\r\n"):
    status, head, body = get(fleet, path, headers)
    assert status == 200, (path, head, body)
    return json.loads(body)


def old_clients_keep_their_connection(fleet):
    with Client(fleet) as client:  # what `ab -k` sends
        for number in range(3):
            client.ask(f"GET /facts/api/about/{number} HTTP/1.0", "Host: localhost\r\nConnection: Keep-Alive\r\n")
            status, head, body = client.read()
            assert status == 200 and "\r\nconnection: keep-alive" in head and "content-length: " in head, head
            assert json.loads(body)["params"] == {"id": str(number)}, body
    with Client(fleet) as client:
        client.ask("GET /facts/api/about/1 HTTP/1.0")
        status, head, _ = client.read()
        assert status == 200 and "\r\nconnection: close" in head and client.is_over(), head


def a_target_may_name_the_host(fleet):
    about = told(fleet, "http://localhost:81/facts/api/about/1?a=b", "Host: evil.example\r\n")
    assert about["url"] == "http://localhost:81/facts/api/about/1?a=b", about
    assert ["host", "localhost:81"] in about["headers"], about
    status, _, body = get(fleet, "http://evil.example/facts/api/about/1")
    assert status == 421, (status, body)


def routes_are_matched_as_they_are_written(fleet):
    for path, params in (("order/ab12", {"code": "ab12"}), ("order/AB12", {"code": "AB12"}), ("order/abc", {"id": "abc"}),
                         ("order/2024-02-29T10:00:00Z", {"day": "2024-02-29T10:00:00Z"}), ("order/2023-02-29", {"id": "2023-02-29"}),
                         ("order/new", {}), ("file/a.b.txt", {"name": "a.b", "ext": "txt"}), ("file/a", {"name": "a"}),
                         ("about/a%2Fb%20c", {"id": "a%2Fb c"}), ("rest/a//b%2Fc", {"path": "a//b%2Fc"}),
                         ("x/../about/%2e/7", {"id": "7"}), ("slash/7", {"id": "7"})):
        assert told(fleet, f"/facts/api/{path}")["params"] == params, path
    for path in ("/facts/api//about/1", "/facts/api/about//", "//facts/api/about/1", "/facts//api/about/1"):
        assert get(fleet, path)[0] == 404, path


def a_route_that_is_not_understood_is_said(fleet):
    for name, part in (("odd", "RE2 does not accept"), ("unheard", "has a constraint that is not known here"),
                       ("double", "has two slashes in a row")):
        assert get(fleet, f"/facts/api/{name}/1")[0] == 404
        lines = fleet.runtime.said("a function could not be loaded", function=name)
        assert lines and part in lines[0]["reason"] and f"'{name}' is not served" in lines[0]["reason"], (lines, fleet.runtime.text())
        instance = fleet.instance("a1")
        wait_until(f"the load state tells of {name}", lambda n=name, p=part: any(
            each["function"] == n and p in each.get("reason", "")
            for each in fleet.json("GET", f"/v1/workers/acme/{instance}").get("invocations", {}).get("load_failures", [])))


def requests_arrive_as_they_were_sent(fleet):
    about = told(fleet, "/facts/api/about/7?z=1&a=2&m=&z=3", "Host: localhost\r\nX-Zebra: 1\r\nX-Empty:\r\nX-Ant: 2\r\n")
    metadata, http = about["sent"]["metadata"], about["sent"]["http"]
    assert about["params"] == {"id": "7"} and metadata["id"]["string"] == "7", about
    # Empty headers are there, and everything is in the order of the request.
    assert ["x-empty", ""] in about["headers"], about
    assert list(json.loads(metadata["Headers"]["json"])) == ["Host", "X-Zebra", "X-Empty", "X-Ant"], about
    assert list(http["nullableHeaders"]) == ["host", "x-zebra", "x-empty", "x-ant"], about
    assert about["query"] == [["z", "1,3"], ["a", "2"], ["m", ""]] and list(http["nullableQuery"]) == ["z", "a", "m"], about
    assert json.loads(metadata["Query"]["json"]) == {"z": "1,3", "a": "2", "m": ""}, about


def answers_leave_as_they_were_meant(fleet):
    status, _, body = get(fleet, "/facts/api/returned")
    assert (status, body) == (201, b"the return value"), (status, body)
    status, head, _ = get(fleet, "/facts/api/unchanged")
    assert status == 304 and "content-length" not in head and re.search(r"\r\ndate: \w{3}, \d\d \w{3} \d{4} ", head), head
    status, head, _ = get(fleet, "/facts/api/cookie")
    cookies = [line for line in head.split("\r\n") if line.startswith("set-cookie: ")]
    assert len(cookies) == 2 and cookies[1] == "set-cookie: b=plain", head
    assert cookies[0].count(";") == 0 and "path=/admin" not in cookies[0], "a value added attributes"


def dropped_outputs_are_said(fleet):
    lines = [each for each in fleet.runtime.said("a function is not served as declared") if "'queued'" in each["reason"]]
    assert lines and "which goes nowhere" in lines[0]["reason"] and "(queue)" in lines[0]["reason"], fleet.runtime.text()
    said = fleet.windlass("invoke", "facts", "queued", "--tenant", "acme", WINDLASS_ADMIN_URL=f"http://127.0.0.1:{fleet.admin_port}")
    assert re.search('output queueOutput[0-9a-f]+: "a message"', said.stderr), said


def logs_have_the_level_of_host_json(fleet):
    assert get(fleet, "/facts/api/chatty")[0] == 200
    fleet.runtime.wait_for("a worker says", function="chatty", message="loud enough")
    assert not fleet.runtime.said("a worker says", message="too quiet"), "it was said first"


def what_clients_and_functions_see(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=1)
        fleet.serve("facts", {"index.js": FACTS, "host.json": FACTS_HOST})
        for test in (dropped_outputs_are_said, a_route_that_is_not_understood_is_said, old_clients_keep_their_connection,
                     a_target_may_name_the_host, routes_are_matched_as_they_are_written, requests_arrive_as_they_were_sent,
                     answers_leave_as_they_were_meant, logs_have_the_level_of_host_json):
            test(fleet)
            print(f"  ok {test.__name__}", flush=True)


class Caller(threading.Thread):
    def __init__(self, fleet, app, function):
        super().__init__(daemon=True)
        self.what, self.answer = (fleet, app, function), None
        self.start()

    def run(self):
        fleet, app, function = self.what
        self.answer = fleet.call(app, function)

    def result(self):
        self.join(30)
        return self.answer


def in_flight(fleet, app, count):
    def counted():
        with urllib.request.urlopen(f"http://127.0.0.1:{fleet.runtime_facts['admin_port']}/status", timeout=10) as answer:
            return sum(each["in_flight"] for each in json.load(answer)["applications"] if each["application_id"] == app)
    wait_until(f"{count} calls of {app} are under way", lambda: counted() == count)


def a_timeout_hurts_nobody_else(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=3)
        for app in ("slow", "busy"):
            fleet.serve(app, {"index.js": SLOW.replace("const STREAM", ""), "host.json": SLOW_HOST})
        fleet.serve("flow", {"index.js": SLOW.replace("const STREAM", "app.setup({ enableHttpStream: true });"), "host.json": SLOW_HOST})
        streamed = Caller(fleet, "flow", "hang")
        spinning = Caller(fleet, "busy", "spin")
        in_flight(fleet, "busy", 1)
        stuck = Caller(fleet, "busy", "beside")
        hung = Caller(fleet, "slow", "hang")
        wait_until("hang has run for a while", lambda: int(fleet.call("slow", "age")[1]) > 1200)
        beside = Caller(fleet, "slow", "beside")
        assert hung.result()[0] == 504, hung.answer
        wait_until("a replacement is asked for", lambda: any(
            each["job_host"].startswith("slow:") for each in fleet.runtime.said("the scheduler should know", kind="Replace")))
        assert beside.result() == (200, "beside"), beside.answer
        assert streamed.result()[0] == 504, streamed.answer
        assert spinning.result()[0] == 504, spinning.answer
        assert stuck.result()[0] in (502, 504), stuck.answer  # by its worker's end, or by its own
        # All three workers go: those that have nobody left to wait for, and the one that can do nothing any more.
        for app in ("slow", "flow", "busy"):
            wait_until(f"the worker of {app} is given up", lambda name=app: any(
                each["job_host"].startswith(name + ":") for each in fleet.runtime.said("a worker is given up")))


def an_order_that_fails_on_a_stream_is_answered_once(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=2)
        fleet.serve("flow", {"index.js": SLOW.replace("const STREAM", "app.setup({ enableHttpStream: true });"), "host.json": SLOW_HOST})
        fleet.serve("slow", {"index.js": SLOW.replace("const STREAM", ""), "host.json": SLOW_HOST})
        url = {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{fleet.admin_port}"}
        impatient = fleet.windlass("invoke", "flow", "hang", "--tenant", "acme", "--timeout", "0.5", check=False, **url)
        assert impatient.returncode == 1 and "E.TIMEOUT" in impatient.stderr, impatient
        too_long = fleet.windlass("invoke", "flow", "hang", "--tenant", "acme", check=False, **url)
        assert too_long.returncode == 1 and "timed out (E.TIMEOUT)" in too_long.stderr, too_long
        assert fleet.call("slow", "age")[0] == 200
        assert fleet.runtime.is_running() and len(fleet.runtime.said("listening")) == 1, fleet.runtime.text()


def an_answer_on_its_way_is_not_run_again(programs):
    """Its worker ends while the runtime takes nothing, so that the news of the end could pass the answer."""
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=1)
        fleet.serve("parting", {"index.js": PARTING})
        caller = Caller(fleet, "parting", "large")
        wait_until("the function runs", lambda: "large runs" in fleet.runtime.text())
        fleet.runtime.signal(signal.SIGSTOP)
        try:
            wait_until("its worker ends", lambda: fleet.agents["a1"].said("the language worker ended"))
        finally:
            fleet.runtime.signal(signal.SIGCONT)
        status, body = caller.result()
        assert status == 200 and len(body) == 60 * 1024 * 1024, (status, body[:200])
        wait_until("the next worker is ready", lambda: fleet.ready_workers("parting"))
        assert fleet.runtime.text().count("large runs") == 1, "it ran again"


def an_application_that_is_gone_is_not_waited_for(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=2)
        fleet.serve("facts", {"index.js": FACTS})
        folder = fleet.path("apps", "broken")
        os.makedirs(folder)
        for name, text in {"host.json": "{}", "package.json": '{"main": "index.js"}', "index.js": "throw new Error('on purpose');"}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        url = {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{fleet.admin_port}"}
        fleet.windlass("deploy", folder, "--app", "broken", "--tenant", "acme", "--language", "node", **url)
        assert fleet.windlass("assign", "broken", "--tenant", "acme", check=False, **url).returncode != 0
        fleet.windlass("undeploy", "broken", "--tenant", "acme", "--force", **url)
        wait_until("nobody waits for it", lambda: get(fleet, "/nonsense")[0] == 404)


def a_missing_worker_is_told_truly(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=1, session='heartbeat = "1s"\nlost_after = "4s"\n')
        fleet.serve("facts", {"index.js": FACTS})
        fleet.agents["a1"].signal(signal.SIGKILL)
        fleet.restart_runtime()

        def says(sentence):
            status, head, body = get(fleet, "/facts/api/about/1")
            return status == 503 and "retry-after: " in head and sentence in body.decode()
        wait_until("the worker is awaited", lambda: says("assigned and not back yet"))
        wait_until("nobody is awaited any more", lambda: says("has no worker at the moment"))


TESTS = [what_clients_and_functions_see, a_timeout_hurts_nobody_else, an_order_that_fails_on_a_stream_is_answered_once,
         an_answer_on_its_way_is_not_run_again, an_application_that_is_gone_is_not_waited_for, a_missing_worker_is_told_truly]

if __name__ == "__main__":
    run_tests(TESTS, sys.argv[1:])
