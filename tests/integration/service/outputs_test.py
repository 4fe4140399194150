"""Outputs that nobody takes: whoever deploys an application is told of them, as soon as anybody knows of them.

  outputs_test.py BUILD_FOLDER [test...]
"""
import json
import os
import sys

from fleet_processes import run_tests, wait_until
from function_fleet import FunctionFleet

# Functions of model 4 register by code; those of model 3 are in files that a deployment can read.
MODEL_4 = {"index.js": """
const { app, output } = require('@azure/functions');
const jobs = output.storageQueue({ queueName: 'jobs', connection: 'STORE' });
app.http('enqueue', { methods: ['POST'], authLevel: 'anonymous', extraOutputs: [jobs],
  handler: async (request, context) => { context.extraOutputs.set(jobs, 'x'); return { body: 'taken' }; } });
app.http('plain', { methods: ['POST'], authLevel: 'anonymous', handler: async () => ({ body: 'plain' }) });
"""}
MODEL_3 = {"host.json": '{"version":"2.0"}', "package.json": '{"name":"old"}', "put/index.js": "module.exports = async () => {};",
           "put/function.json": json.dumps({"bindings": [
               {"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": "anonymous"},
               {"type": "http", "direction": "out", "name": "res"},
               {"type": "queue", "direction": "out", "name": "jobs", "queueName": "jobs", "connection": "STORE"}]})}
NOWHERE = "which goes nowhere: output bindings do not exist yet"
LATER = "Its functions are known once a worker has loaded them; windlass apps show"


def outputs_that_go_nowhere_are_told(programs):
    with FunctionFleet(programs) as fleet:
        fleet.begin(agents=1)
        fleet.serve("new", MODEL_4)
        url = {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{fleet.admin_port}"}

        def shown():
            return fleet.windlass("apps", "show", "acme/new", **url).stdout

        wait_until("the operator is told", lambda: NOWHERE in shown())
        warnings = [line for line in shown().splitlines() if line.startswith("warning: ")]
        assert len(warnings) == 1 and warnings[0].startswith("warning: function 'enqueue' has the output '"), shown()
        app = json.loads(fleet.windlass("--json", "apps", "show", "acme/new", **url).stdout)
        assert [len(runtime["warnings"]) for runtime in app["runtimes"]] == [1], app
        deployed = fleet.windlass("deploy", fleet.path("apps", "new"), "--app", "acme/new", "--dry-run", **url)
        assert LATER + " acme/new" in deployed.stdout and NOWHERE not in deployed.stderr, deployed

        for path, text in MODEL_3.items():
            os.makedirs(os.path.dirname(fleet.path("apps", "old", path)), exist_ok=True)
            with open(fleet.path("apps", "old", path), "w", encoding="utf-8") as file:
                file.write(text)
        deployed = fleet.windlass("deploy", fleet.path("apps", "old"), "--app", "acme/old", **url)
        assert f"warning: function 'put' has the output 'jobs' (queue), {NOWHERE}\n" == deployed.stderr, deployed
        assert LATER not in deployed.stdout, deployed


run_tests([outputs_that_go_nowhere_are_told], sys.argv[1:])
