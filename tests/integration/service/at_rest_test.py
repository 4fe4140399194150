"""Settings of applications are secrets: a value that is set appears nowhere in what the scheduler, the runtime and the agents keep, and
nobody but their user can open those files. A store of an earlier version, in clear text, still opens and is encrypted.

  at_rest_test.py BUILD_FOLDER [test...]
"""
import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import stat
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "faults"))
from fleet_processes import Fleet, run_tests, wait_until  # noqa: E402 pylint: disable=wrong-import-position
from function_world import FunctionWorld  # noqa: E402 pylint: disable=wrong-import-position


def files_below(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def files_with(folder, text):
    found = []
    for path in files_below(folder):
        with open(path, "rb") as file:
            if text.encode() in file.read():
                found.append(path)
    return found


def is_private(path):
    return stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0


class MarkedWorld(FunctionWorld):
    """Whose application has a setting with a marker in it."""

    def __init__(self, programs):
        super().__init__(types.SimpleNamespace(programs=programs, seed=1))
        self.marker = "marker-" + secrets.token_hex(16)

    def windlass(self, *arguments):
        return super().windlass(*arguments, *(("--setting", f"MARKER={self.marker}") if arguments[0] == "deploy" else ()))


def a_setting_is_nowhere_to_be_read(programs):
    with MarkedWorld(programs) as world:
        world.start(agents=1)
        marker = world.marker
        agent = world.agents[0]
        wait_until("the agent remembers", lambda: os.path.exists(os.path.join(agent.state, "assignment.sealed")))
        assert files_with(world.folder, "MARKER") == [], files_with(world.folder, "MARKER")
        assert files_with(world.folder, marker) == [], files_with(world.folder, marker)
        for path in [world.store, world.store + "-wal", world.store + ".encryption-keys", *files_below(agent.state)]:
            # What is below packages lies behind a folder that is closed.
            assert "/packages/" in path or is_private(path), path
        assert stat.S_IMODE(os.stat(agent.state).st_mode) & 0o007 == 0
        # It is not lost either: a new agent process makes its worker the same again, and a new scheduler knows the application.
        agent.kill()
        agent.start()
        world.wait_whole()
        world.scheduler.kill()
        world.scheduler.start()
        names = [name for app in json.loads(world.windlass("apps", "--json"))["apps"] for version in app["versions"] for name in version["settings"]]
        assert "MARKER" in names, names
        assert files_with(world.folder, marker) == [], files_with(world.folder, marker)


def stored(fleet):
    with contextlib.closing(sqlite3.connect(fleet.path("scheduler.db"), isolation_level=None)) as database:
        return dict(database.execute("SELECT key, value FROM rows").fetchall())


def clear_row(marker):
    return json.dumps({"number": 1, "metadata_version": "1", "language": "node", "digest": "ab" * 32, "bytes": 1, "settings": ["KEY", marker],
                       "deployed_ms": 1}).encode()


def a_store_in_clear_text_opens_and_is_encrypted(programs):
    marker = "marker-" + secrets.token_hex(16)
    with Fleet(programs, tls=False) as fleet:
        fleet.start()
        stop(fleet)
        # As an earlier version left it: rows in clear text, some of them overwritten or erased, for everybody to read.
        with contextlib.closing(sqlite3.connect(fleet.path("scheduler.db"), isolation_level=None)) as database:
            database.execute("DELETE FROM rows")
            for number in range(50):
                database.execute("INSERT INTO rows VALUES (?, ?)", (f"app/acme/gone-{number}/1", clear_row(marker + "x" * 500)))
            database.execute("DELETE FROM rows")
            database.execute("INSERT INTO rows VALUES ('app/acme/shop/1', ?)", (clear_row(marker),))
        os.chmod(fleet.path("scheduler.db"), 0o644)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fleet.path("scheduler.db.encryption-keys"))
        assert files_with(fleet.path(), marker)
        fleet.start()
        apps = fleet.json("GET", "/v1/apps?tenant=acme")["apps"]
        assert [app["application_id"] for app in apps] == ["shop"], apps
        assert files_with(fleet.path(), marker) == []
        for name in ("scheduler.db", "scheduler.db-wal", "scheduler.db.encryption-keys"):
            assert is_private(fleet.path(name)), name


def folders_and_files_of_the_scheduler_are_its_users_own(programs):
    """Also those that an earlier version made for everybody to read."""
    old = os.umask(0o022)  # of whoever starts it; the scheduler has its own
    try:
        with Fleet(programs, tls=False) as fleet:
            packages = fleet.path("scheduler.db.packages")
            os.mkdir(packages, 0o755)
            fleet.start()
            assert stat.S_IMODE(os.stat(packages).st_mode) == 0o700, oct(os.stat(packages).st_mode)
            body = b"not much of a package"
            digest = hashlib.sha256(body).hexdigest()
            status, text = fleet.ask("PUT", f"/v1/packages/{digest}?total={len(body)}", raw=body)
            assert status == 200, text
            made = [*files_below(packages), *(fleet.path(name) for name in os.listdir(fleet.path()) if name.startswith("scheduler.db"))]
            assert len(made) >= 4, made
            for path in made:
                assert stat.S_IMODE(os.stat(path).st_mode) == (0o700 if os.path.isdir(path) else 0o600), (path, oct(os.stat(path).st_mode))
    finally:
        os.umask(old)


def keys_are_changed_and_a_lost_one_is_said(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.start()
        stop(fleet)
        with contextlib.closing(sqlite3.connect(fleet.path("scheduler.db"), isolation_level=None)) as database:
            database.execute("INSERT INTO rows VALUES ('app/acme/shop/1', ?)", (clear_row("x"),))
        fleet.start()
        stop(fleet)
        keys = fleet.path("scheduler.db.encryption-keys")
        first = stored(fleet)
        fleet.windlass("key", "add", keys)
        with open(keys, encoding="utf-8") as file:
            lines = file.read().splitlines()
        assert len(lines) == 2 and is_private(keys), lines
        fleet.start()  # encrypts everything anew
        stop(fleet)
        newest = lines[0].split()[0].encode()
        assert first and all(newest not in value for value in first.values())
        assert all(newest in value for value in stored(fleet).values()), stored(fleet)
        with open(keys, "w", encoding="utf-8") as file:
            file.write(lines[0] + "\n")
        fleet.start()
        stop(fleet)
        os.unlink(keys)
        try:
            fleet.start()
            raise RuntimeError("it started without its key")
        except AssertionError:
            assert "put its file of encryption keys back" in fleet.scheduler.text(), fleet.scheduler.text()
        assert not os.path.exists(keys)  # a new one would open nothing


def an_agents_key_is_changed(programs):
    with MarkedWorld(programs) as world:
        world.start(agents=1)
        agent = world.agents[0]
        sealed, keys = (os.path.join(agent.state, name) for name in ("assignment.sealed", "encryption.keys"))
        wait_until("the agent remembers", lambda: os.path.exists(sealed))
        agent.kill()
        world.windlass("key", "add", keys)
        with open(keys, encoding="utf-8") as file:
            newest = file.readline()

        def is_renewed():
            with open(sealed, "rb") as file:
                return newest.split()[0].encode() in file.read()
        assert not is_renewed()
        agent.start()
        wait_until("what it remembers is encrypted anew", is_renewed, 10)
        agent.kill()
        with open(keys, "w", encoding="utf-8") as file:
            file.write(newest)
        agent.start()
        world.wait_whole()
        assert "cannot be read" not in agent.said(), agent.said()


def stop(fleet):
    fleet.scheduler.signal(15)
    assert fleet.scheduler.wait() == 0


run_tests([a_setting_is_nowhere_to_be_read, a_store_in_clear_text_opens_and_is_encrypted, folders_and_files_of_the_scheduler_are_its_users_own,
           keys_are_changed_and_a_lost_one_is_said, an_agents_key_is_changed], sys.argv[1:])
