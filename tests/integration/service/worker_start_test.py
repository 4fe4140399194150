"""What a language worker is told when it starts: by its agent in its environment, and by the runtime in WorkerInitRequest. The real scheduler,
runtime, agent and Node worker, from a folder laid out as those of Azure's host are, with placeholders in its worker.config.json.

  worker_start_test.py BUILD_FOLDER [test...]
"""
import json
import os
import platform
import shutil
import sys

from fleet_processes import run_tests, wait_until
from function_fleet import NODE_WORKER, ROOT, FunctionFleet

# The Node worker, which says first what it was told.
TELLING_WORKER = """
const schema = require('../../../src/schema.js');
const { loadSchema } = schema;
schema.loadSchema = () => {
  const real = loadSchema();
  const decode = (bytes) => {
    const message = real.decode(bytes);
    const { FUNCTIONS_WORKER_RUNTIME_VERSION: version, FUNCTIONS_WORKER_DIRECTORY: folder } = process.env;
    if (message.workerInitRequest) console.log('told ' + JSON.stringify({ version, folder, init: message.workerInitRequest }));
    return message;
  };
  return { ...real, decode };
};
require('../../../src/main.js');
"""


class TellingFleet(FunctionFleet):
    def lay_out(self):
        folder = self.path("worker")
        shutil.copytree(NODE_WORKER, folder)
        shutil.copy(os.path.join(ROOT, "schema/proto/function_rpc.proto"), folder)
        place = os.path.join(folder, "22", "LINUX", "X64" if platform.machine() == "x86_64" else "Arm64")
        os.makedirs(place)
        with open(os.path.join(place, "worker.js"), "w", encoding="utf-8") as file:
            file.write(TELLING_WORKER)
        with open(os.path.join(folder, "worker.config.json"), "w", encoding="utf-8") as file:
            json.dump({"description": {"language": "node", "extensions": [".js"], "defaultExecutablePath": "node", "workerIndexing": "true",
                                       "defaultRuntimeVersion": "22",
                                       "defaultWorkerPath": "%FUNCTIONS_WORKER_RUNTIME_VERSION%/{os}/{architecture}/worker.js"}}, file)
        return folder


def a_worker_is_told_where_it_is_and_what_its_host_offers(programs):
    with TellingFleet(programs) as fleet:
        folder = fleet.worker_folder = fleet.lay_out()
        fleet.begin()
        agent = fleet.agents["a1"]
        said = wait_until("it says what it was told",
                          lambda: [line["text"] for line in agent.said("the language worker says") if line["text"].startswith("told ")])
        told = json.loads(said[0].removeprefix("told "))
        assert told["version"] == "22" and told["folder"] == folder, told
        init = told["init"]
        assert init["workerDirectory"] == folder, init
        assert init["hostVersion"].startswith("4."), init
        assert init["capabilities"].get("FunctionDataCache") == "false", init
        assert {"Default", "Function", "Host", "Worker"} <= set(init["logCategories"]), init


run_tests([a_worker_is_told_where_it_is_and_what_its_host_offers], sys.argv[1:])
