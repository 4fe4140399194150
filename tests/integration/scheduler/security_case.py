"""What the security tests share: a scheduler over TLS, how a refusal is looked at, and that no secret shows afterwards.

Each test file is run as  FILE PATH_OF_WINDLASS_SCHEDULER PATH_OF_WINDLASS  and starts what it needs itself.
"""
import os
import re
import secrets
import signal
import sys
import time
import unittest
import urllib.request

from certificates import Certificates
from raw_peer import RawPeer
from revision2_worker import Reset, Worker
from scheduler_process import Scheduler, token_entry

SCHEDULER, WINDLASS = "", ""


def main():
    global SCHEDULER, WINDLASS
    SCHEDULER, WINDLASS = sys.argv[1:3]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])


def wait_until(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds} s still not: {what}")
        time.sleep(0.01)


class TlsScheduler(Scheduler):
    """A scheduler over TLS whose memory, descriptors, metrics and log can be looked at."""

    def __init__(self, certificates, tls="", entries="", settings="", descriptors_max=None, **more):
        self.certificates, self.entries = certificates, entries
        super().__init__(SCHEDULER, settings + f"""
[log]
level = "debug"
[tls]
certificate = "{certificates.path('scheduler.pem')}"
key = "{certificates.path('scheduler.key')}"
{tls}
""", **more)
        if descriptors_max is not None:
            self.wrapper = ["prlimit", f"--nofile={descriptors_max}:{descriptors_max}"]

    def credentials(self):
        return super().credentials() + self.entries

    def metrics(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}/metrics")
        request.add_header("Authorization", f"Bearer {self.admin_token}")
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read().decode()

    def metric(self, series):
        """The value of a series, named as in the exposition: name{label="value"}."""
        found = re.search("^" + re.escape(series) + r" (\S+)$", self.metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def refused(self, code):
        return self.metric(f'windlass_refused_connections_total{{code="{code}"}}')

    def unopened(self, cause):
        return self.metric(f'windlass_openings_failed_total{{cause="{cause}"}}')

    def closes(self, code, initiator="local"):
        return self.metric(f'windlass_closes_total{{code="{code}",initiator="{initiator}"}}')

    def log_text(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()

    def reload(self):
        """Asks for it; what has changed then shows in time."""
        self.process.send_signal(signal.SIGHUP)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def command_line(self):
        with open(f"/proc/{self.process.pid}/cmdline", encoding="utf-8") as file:
            return file.read()


class SecurityCase(unittest.TestCase):
    """One scheduler for all tests of a class; subclasses say how it is configured in `options`."""

    @classmethod
    def options(cls):
        return {}

    def assert_memory(self, before, most):
        """The scheduler has grown by less than that. A sanitizer keeps what was freed, so there it says nothing."""
        if not os.environ.get("WINDLASS_SANITIZE"):
            self.assertLess(self.scheduler.resident_bytes() - before, most)

    @classmethod
    def setUpClass(cls):
        cls.certificates = Certificates(WINDLASS)
        cls.certificates.issue("scheduler")
        cls.tls = cls.certificates.client()
        cls.secrets = []
        cls.scheduler = TlsScheduler(cls.certificates, **cls.options())
        cls.scheduler.__enter__()
        cls.secrets += [cls.scheduler.token, cls.scheduler.admin_token]

    @classmethod
    def tearDownClass(cls):
        try:
            cls.check_secrets()
        finally:
            cls.scheduler.__exit__()
            cls.certificates.folder.cleanup()

    @classmethod
    def check_secrets(cls):
        """After all of a class's tests: the scheduler lives, and no secret is where others can read it."""
        places = {"the log": cls.scheduler.log_text(), "the command line": cls.scheduler.command_line(),
                  "the metrics": cls.scheduler.metrics(), "the list of workers": str(cls.scheduler.get("/v1/workers"))}
        for where, text in places.items():
            for secret in cls.secrets + cls.certificates.private_texts():
                assert secret not in text, f"a secret stands in {where}"

    @classmethod
    def new_token(cls, tenant, more=""):
        """A bearer token and its entry in the credentials file."""
        token = secrets.token_urlsafe(24)
        cls.secrets.append(token)
        return token, token_entry(tenant, token, more)

    def peer(self, **how):
        peer = RawPeer(self.scheduler.port, how.pop("tls", self.tls), **how)
        self.addCleanup(peer.socket.close)
        return peer

    def upgraded_peer(self):
        peer = self.peer()
        self.assertEqual(peer.upgrade(), 101)
        return peer

    def worker(self, instance, **how):
        how.setdefault("token", self.scheduler.token)
        worker = Worker(self.scheduler.port, how.pop("tls", self.tls), instance=instance, **how)
        self.addCleanup(worker.cut)
        return worker

    def ready_worker(self, instance, **how):
        worker = self.worker(instance, **how).start()
        self.secrets.append(worker.session_token)
        return worker

    def assert_refused(self, code, step):
        """`step` ends in a reset of this code, the close that goes with it, and one more in the metrics."""
        before = self.scheduler.refused(code)
        with self.assertRaises(Reset) as caught:
            step()
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertEqual(caught.exception.close_code, 1011)
        self.assertFalse([s for s in self.secrets if s in caught.exception.reason], "the reason tells a secret")
        wait_until(lambda: self.scheduler.refused(code) == before + 1, f"one more {code} in the metrics")
        return caught.exception

    def assert_works(self, worker, command):
        """A command gets to this worker and its answer back."""
        self.scheduler.post(f"/v1/workers/{worker.tenant}/{worker.instance}/commands",
                            {"id": command, "type": "biz.echo", "payload": {"text": command}})
        worker.answer_one()
        path = f"/v1/commands/{worker.tenant}/{command}"
        wait_until(lambda: self.scheduler.get(path)["state"] == "done", f"command {command} is done")
