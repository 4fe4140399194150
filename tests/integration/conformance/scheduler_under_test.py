"""A windlass-scheduler over TLS for the conformance suite, and the hooks that act on it.

judge() starts one, judges it, ends it. `scheduler_under_test.py hook NAME` is what the suite runs (environment: INSTANCE, TENANT).
"""
import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HOOKS = ("send", "drain", "revoke", "rotate", "restart", "stop")


def entry(tenant, token, role="worker"):
    return f'[[token]]\ntenant = "{tenant}"\nrole = "{role}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'


class Folder:
    """Everything that outlives a restart is in one folder."""

    def __init__(self, path):
        self.path = path

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(os.open(self.file(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.file(name), encoding="utf-8") as file:
            return file.read()

    def facts(self):
        return json.loads(self.read("facts.json"))

    def start(self, binary, port=0, admin_port=0):
        self.write("scheduler.toml", f"""
[server]
listen = "127.0.0.1:{port}"
drain_window = "300ms"
loops = 2
[tls]
certificate = "{self.file('certs/scheduler.pem')}"
key = "{self.file('certs/scheduler.key')}"
client_authority = "{self.file('certs/ca.pem')}"
client_certificates = "optional"
[session]
credentials_file = "{self.file('credentials.toml')}"
[store]
path = "{self.file('scheduler.db')}"
[admin]
listen = "127.0.0.1:{admin_port}"
token_file = "{self.file('admin-token')}"
""")
        log = open(self.file("log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        process = subprocess.Popen([binary, "--config", self.file("scheduler.toml")], stderr=log, start_new_session=True)  # pylint: disable=consider-using-with
        while process.poll() is None:
            log.seek(0)
            for line in log:
                if '"event":"listening"' in line and line.endswith("\n"):
                    said = json.loads(line)
                    self.write("facts.json", json.dumps({"pid": process.pid, "port": said["port"], "admin_port": said["admin_port"],
                                                         "binary": binary}))
                    return
            time.sleep(0.02)
        raise RuntimeError(f"the scheduler ended: {self.read('log')}")

    def end(self, how):
        pid = self.facts()["pid"]
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            return
        while os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[0]:  # pylint: disable=consider-using-with
            time.sleep(0.01)

    def post(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.facts()['admin_port']}{path}", method="POST",
                                         data=json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {self.read('admin-token')}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                response.read()
        except urllib.error.HTTPError as refusal:
            if refusal.code != 409:  # a worker that drains takes nothing: that is an answer
                raise


def hook(name):
    folder = Folder(os.environ["CONFORMANCE_FOLDER"])
    worker = f"/v1/workers/{os.environ.get('TENANT')}/{os.environ.get('INSTANCE')}"
    if name == "send":
        folder.post(f"{worker}/commands", {"type": "biz.echo", "payload": {"text": "work"}})
    elif name in ("drain", "revoke", "rotate"):
        folder.post(f"{worker}/{name}", {"reason": "conformance"} if name == "drain" else {})
        if name == "revoke":  # it is the tokens that are judged, and they stay dead
            folder.post(f"{worker}/allow", {})
    elif name == "stop":
        os.kill(folder.facts()["pid"], signal.SIGTERM)
    elif name == "restart":
        facts = folder.facts()
        folder.end(signal.SIGKILL)
        folder.start(facts["binary"], facts["port"], facts["admin_port"])


def judge(scheduler, windlass, conformance, arguments):
    with tempfile.TemporaryDirectory(prefix="windlass-conformance-") as path:
        folder = Folder(path)
        subprocess.run([windlass, "cert", "new", "--out", folder.file("certs"), "--name", "scheduler", "--san", "DNS:localhost",
                        "--san", "IP:127.0.0.1"], check=True, stdout=subprocess.DEVNULL)
        for name in ("token", "runtime-token", "other-token", "admin-token"):
            folder.write(name, secrets.token_urlsafe(24))
        subprocess.run([windlass, "cert", "new", "--out", folder.file("certs"), "--name", "worker", "--san", "DNS:worker.example"],
                       check=True, stdout=subprocess.DEVNULL)
        folder.write("credentials.toml", entry("acme", folder.read("token")) + entry("acme", folder.read("runtime-token"), "runtime") +
                     entry("globex", folder.read("other-token")) +
                     '[[certificate]]\ntenant = "acme"\nsan = "DNS:worker.example"\n')
        folder.start(scheduler)
        os.environ["CONFORMANCE_FOLDER"] = path
        try:
            command = [conformance, "--url", f"wss://127.0.0.1:{folder.facts()['port']}/ws/worker", "--tenant", "acme",
                       "--token-file", folder.file("token"), "--runtime-token-file", folder.file("runtime-token"),
                       "--other-token-file", folder.file("other-token"),
                       "--ca", folder.file("certs/ca.pem"), "--certificate", folder.file("certs/worker.pem"),
                       "--key", folder.file("certs/worker.key")]
            for name in HOOKS:
                command += [f"--{name}-cmd", f"exec {sys.executable} -B {os.path.abspath(__file__)} hook {name}"]
            return subprocess.run(command + arguments, check=False).returncode
        finally:
            folder.end(signal.SIGKILL)


if __name__ == "__main__":
    hook(sys.argv[2])
