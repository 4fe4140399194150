"""A whole fleet of real processes that runs Node functions: scheduler, runtime, agents, over TLS.

  with FunctionFleet(programs) as fleet: fleet.begin(agents=2); fleet.serve("bank", {"index.js": "..."})
"""
import http.client
import json
import os
import shutil
import signal

from fleet_processes import Fleet, Process, wait_until, write_atomically

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
NODE_WORKER = os.path.join(ROOT, "worker-agent/node")
NODE_MODULES = os.path.join(ROOT, "docs/examples/node-app/node_modules")


class FunctionFleet(Fleet):
    runtime = runtime_facts = None
    runtime_port = 0
    runtime_token = scheduler_settings = session_settings = core_settings = ""
    worker_folder = NODE_WORKER

    def program(self, name):
        if name == "windlass-runtime":
            return os.path.join(self.programs, "runtime/shell", name)
        return super().program(name)

    def __enter__(self):
        super().__enter__()
        self.new_token("worker")
        self.runtime_token = self.new_token("runtime")
        self.roles["runtime"] = "runtime"
        self.others = []
        self.credentials()
        return self

    def __exit__(self, *rest):
        for process in [*self.others, self.runtime]:
            if process is not None:
                process.end()
        super().__exit__(*rest)

    def begin(self, agents=1, scheduler="", runtime="", session=""):
        self.scheduler_settings = '[runtimes]\naddresses = ["127.0.0.1"]\n' + scheduler
        self.start(settings=self.scheduler_settings, session_settings=session)
        self.start_runtime(runtime)
        for number in range(1, agents + 1):
            self.start_agent(f"a{number}")
        for number in range(1, agents + 1):
            self.ready(f"a{number}")
            wait_until(f"a{number} has a placeholder", lambda n=number: (self.worker(f"a{n}") or {}).get("language_worker", {}).get("state") == "placeholder")
        wait_until("the runtime has spoken", lambda: any(r.get("url") for r in self.json("GET", "/v1/runtimes")["runtimes"]))

    def start_agent(self, name):
        return self.agent(name, token="worker", settings=f'''
[language_worker]
folder = "{self.worker_folder}"
[runtime]
id = "r1"
url = "wss://127.0.0.1:{self.runtime_port}/ws/worker"
[session]
backoff_first = "50ms"
backoff_cap = "500ms"
''')

    def restart_runtime(self):
        self.runtime.signal(signal.SIGKILL)
        self.runtime.wait()
        self.start_runtime()

    def restart_scheduler(self):
        self.scheduler.signal(signal.SIGKILL)
        self.scheduler.wait()
        self.start(settings=self.scheduler_settings)

    def start_runtime(self, more=""):
        """The port of the first start is kept by later ones."""
        self.write_runtime_settings(f"""
[scheduler]
url = "wss://127.0.0.1:{self.port}/ws/worker"
authority = "{self.path('tls', 'ca.pem')}"
tenant = "acme"
token_file = "{self.path('runtime-token')}"
""", more)
        self.run_runtime()

    def write_runtime_settings(self, scheduler, more=""):
        write_atomically(self.path("runtime-token"), self.runtime_token + "\n")
        write_atomically(self.path("runtime.toml"), f"""
[runtime]
id = "r1"
{self.core_settings}
[server]
listen = "127.0.0.1:{self.runtime_port}"
[tls]
certificate = "{self.path('tls', 'scheduler.pem')}"
key = "{self.path('tls', 'scheduler.key')}"
[session]
credentials_file = "{self.path('credentials.toml')}"
backoff_first = "50ms"
backoff_cap = "500ms"
{self.session_settings}
[http]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
{scheduler}
{more}""")

    def run_runtime(self):
        starts = len(self.runtime.said("listening")) if self.runtime else 0
        self.runtime = Process(self.path("runtime.log"), [self.program("windlass-runtime"), "--config", self.path("runtime.toml")])
        wait_until("the runtime listens", lambda: len(self.runtime.said("listening")) > starts or not self.runtime.is_running())
        assert self.runtime.is_running(), self.runtime.text()
        self.runtime_facts = self.runtime.said("listening")[-1]
        self.runtime_port = self.runtime_facts["port"]

    def serve(self, name, files):
        """Deploys a Node application on one placeholder; the worker that got it."""
        folder = self.path("apps", name)
        for path, text in {"host.json": '{"version":"2.0"}', "package.json": json.dumps({"name": name, "main": "index.js"}), **files}.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        if not os.path.exists(os.path.join(folder, "node_modules")):
            shutil.copytree(NODE_MODULES, os.path.join(folder, "node_modules"))
        url = {"WINDLASS_ADMIN_URL": f"http://127.0.0.1:{self.admin_port}"}
        self.windlass("deploy", folder, "--app", name, "--tenant", "acme", **url)
        self.windlass("assign", name, "--tenant", "acme", **url)
        wait_until(f"{name} is served", lambda: self.ready_workers(name))
        return next(w for w in self.json("GET", "/v1/workers")["workers"] if w.get("language_worker", {}).get("application_id") == name)

    def ready_workers(self, name):
        return sum(app["ready"] for runtime in self.json("GET", "/v1/runtimes")["runtimes"]
                   for app in runtime.get("applications", []) if app["application_id"] == name)

    def call(self, app, path, body=None, timeout=30):
        """Status and text of a request to a function."""
        connection = http.client.HTTPConnection("127.0.0.1", self.runtime_facts["http_port"], timeout=timeout)
        try:
            connection.request("POST", f"/{app}/api/{path}", body or b"{}", {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()
