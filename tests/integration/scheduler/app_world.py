"""A scheduler and windlass for tests of applications; both are named on the command line: TEST SCHEDULER WINDLASS [test...]"""
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile

from scheduler_process import Scheduler

SCHEDULER, WINDLASS = sys.argv[1:3]


class World(Scheduler):
    def __init__(self):
        super().__init__(SCHEDULER)
        self.remarks = ""  # what the last command said on standard error
        self.apps = tempfile.TemporaryDirectory(prefix="windlass-apps-")  # pylint: disable=consider-using-with

    def __exit__(self, *rest):
        super().__exit__(*rest)
        self.apps.cleanup()

    def windlass(self, *arguments, code=0, **more):
        environment = {**os.environ, "WINDLASS_ADMIN_TOKEN": self.admin_token, "WINDLASS_ADMIN_URL": f"http://127.0.0.1:{self.admin_port}"}
        done = subprocess.run([WINDLASS, *arguments], env={**environment, **more}, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, (arguments, done)
        self.remarks = done.stderr
        return done.stdout if code == 0 else done.stderr

    def put(self, path, body):
        return self._ask("PUT", path, json.dumps(body).encode())

    def app_folder(self, name, files):
        for path, text in files.items():
            where = os.path.join(self.apps.name, name, path)
            os.makedirs(os.path.dirname(where), exist_ok=True)
            with open(where, "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
        return os.path.join(self.apps.name, name)

    def zip(self, name, entries):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as out:
            for path, text in entries:
                out.writestr(path, text)
        path = os.path.join(self.apps.name, name)
        with open(path, "wb") as file:
            file.write(data.getvalue())
        return path


HELLO = {"host.json": "{}", "package.json": '{"name":"hello"}', "index.js": "42", "greet/function.json": '{"bindings":[]}',
         "big.bin": os.urandom(1_300_000)}


def wait_until(what, is_so, seconds=20):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def is_refused(call):
    try:
        call()
        return False
    except RuntimeError:
        return True


def app_of(world):
    return world.get("/v1/apps")["apps"][0]


def run(tests):
    for test in tests:
        if sys.argv[3:] and test.__name__ not in sys.argv[3:]:
            continue
        begun = time.monotonic()
        test()
        print(f"ok {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
