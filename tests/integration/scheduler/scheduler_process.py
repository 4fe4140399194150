"""A real windlass-scheduler for one test: its own folder, ports chosen by the system, ended with the test."""
import hashlib
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


def token_entry(tenant, token, more=""):
    """An entry of the credentials file. `more` is lines such as instance = "i-1"."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f'[[token]]\ntenant = "{tenant}"\nsha256 = "{digest}"\n{more}\n'


class Scheduler:
    def __init__(self, binary, settings="", server="", session=""):
        """`settings` are whole tables of the settings file, `server` and `session` are lines of those tables."""
        self.binary, self.settings, self.server, self.session = binary, settings, server, session
        self.folder = tempfile.TemporaryDirectory(prefix="windlass-")
        self.token, self.runtime_token, self.admin_token = (secrets.token_urlsafe(24) for _ in range(3))
        self.port = self.admin_port = 0
        self.process = None
        self.wrapper = []  # a command that runs the scheduler in its own place

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        """In one step, so that nobody reads half of it."""
        with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.path(name + ".new"), self.path(name))

    def __enter__(self):
        self.write("credentials.toml", self.credentials())
        self.write("admin-token", self.admin_token)
        self.start()
        return self

    def credentials(self):
        """The credentials file: who may connect."""
        return token_entry("acme", self.token) + token_entry("acme", self.runtime_token, 'role = "runtime"')

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()

    def start(self):
        """The ports of the first start are kept by later ones."""
        self.write("scheduler.toml", f"""
[server]
listen = "127.0.0.1:{self.port}"
drain_window = "1s"
{self.server}
[session]
{self.session}
credentials_file = "{self.path('credentials.toml')}"
[runtimes]
addresses = ["*.example"]
[store]
path = "{self.path('scheduler.db')}"
[admin]
listen = "127.0.0.1:{self.admin_port}"
token_file = "{self.path('admin-token')}"
{self.settings}""")
        log = open(self.path("log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen([*self.wrapper, self.binary, "--config", self.path("scheduler.toml")], stderr=log)  # pylint: disable=consider-using-with
        while self.process.poll() is None:
            log.seek(0)
            for line in log:
                if '"event":"listening"' in line and line.endswith("\n"):
                    facts = json.loads(line)
                    self.port, self.admin_port = facts["port"], facts["admin_port"]
                    log.close()
                    return
            time.sleep(0.02)
        log.seek(0)
        raise RuntimeError(f"the scheduler ended with {self.process.returncode}: {log.read()}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """At once: the second signal does not wait for sessions. Two that come together count as one, so it is repeated."""
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            self.process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
        self.process.wait(timeout=1)

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.port}/ws/worker"

    def get(self, path):
        return self._ask("GET", path, None)

    def post(self, path, body):
        return self._ask("POST", path, json.dumps(body).encode())

    def metrics(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}/metrics", headers={"Authorization": f"Bearer {self.admin_token}"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read().decode()

    def _ask(self, method, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", data=body, method=method)
        request.add_header("Authorization", f"Bearer {self.admin_token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error
