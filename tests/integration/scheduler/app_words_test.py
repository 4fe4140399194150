"""What windlass tells operators of applications: what a command came to, and what to do next.

  app_words_test.py SCHEDULER WINDLASS [test...]
"""
import base64
import json
import os

from app_peers import Agent, Runtime
from app_world import HELLO, World, app_of, run, wait_until


def a_version_that_differs_in_its_metadata_version_only_is_told_so():
    with World() as world:
        deploy = ("deploy", world.app_folder("hello", HELLO), "--tenant", "acme", "--code-version", "v1")
        world.windlass(*deploy, "--metadata-version", "m")
        refused = world.windlass(*deploy, code=1)
        assert "the same package" in refused and "--metadata-version m" in refused and "other content" not in refused, refused
        refused = world.windlass(*deploy, "--metadata-version", "m", "--language", "native", code=1)
        assert "--language node" in refused, refused


def settings_alone_go_to_the_version_that_serves():
    with World() as world:
        _runtime = Runtime(world, "r-1").begin()
        agent = Agent(world, "a-1", "r-1").begin()
        wait_until("it has spoken", lambda: any("language_worker" in w for w in world.get("/v1/workers")["workers"]))
        folder = world.app_folder("hello", HELLO)
        deploy = ("deploy", folder, "--tenant", "acme")
        shown = world.windlass(*deploy, "--code-version", "v1", "--metadata-version", "m", "--setting", "A=1", "--setting", "B=2")
        assert "next: windlass assign acme/hello" in shown and "v1" in shown, shown
        world.windlass("assign", "hello")

        shown = world.windlass(*deploy, "--setting", "A=3")
        assert "code version 'v1'" in shown and "1 worker is reloaded" in shown and "next:" not in shown, shown
        row = dict(zip(shown.splitlines()[0].split(), shown.splitlines()[1].split()))
        assert row["CODE"] == "v1" and row["METADATA"] == "m" and row["SETTINGS"] == "2", row
        assert [each["code_version"] for each in app_of(world)["versions"]] == ["v1"]
        wait_until("it is reloaded", lambda: [c["payload"]["settings"] for c in agent.commands][1:] == [{"A": "3", "B": "2"}])
        wait_until("it is ready", lambda: app_of(world)["assignments"][0]["state"] == "ready")
        shown = world.windlass(*deploy)
        assert "stays as before" in shown, shown

        # Whoever names another version gets one, and is told who serves.
        shown = world.windlass(*deploy, "--code-version", "v2", "--metadata-version", "m", "--setting", "A=4")
        assert "a new version, code version 'v2'" in shown and "of 'v1'" in shown and "next: windlass assign" in shown, shown
        assert shown.splitlines()[1].split()[4] == "2", "those that it took over count"
        listed = [line.split() for line in world.windlass("apps").splitlines()]
        assert [line for line in listed if "v2" in line] and len(app_of(world)["versions"]) == 2, listed


def what_a_folder_lacks_is_said():
    with World() as world:
        empty = os.path.join(world.apps.name, "empty")
        os.makedirs(empty)
        refused = world.windlass("deploy", empty, "--tenant", "acme", code=1)
        assert "no host.json in this folder" in refused and "zip" not in refused, refused
        needy = {**HELLO, "package.json": '{"dependencies":{"@azure/functions":"4"}}'}
        world.windlass("deploy", world.app_folder("needy", needy), "--dry-run")
        assert world.remarks.count("node_modules") == 1 and "npm ci" in world.remarks, world.remarks
        world.windlass("deploy", world.app_folder("fed", {**needy, "node_modules/x/index.js": "1"}), "--dry-run")
        assert "node_modules" not in world.remarks, world.remarks


def versions_show_their_own_runtimes_weights_and_failures():
    with World() as world:
        runtime = Runtime(world, "r-1").begin()
        _agent = Agent(world, "a-1", "r-1").begin()
        wait_until("it has spoken", lambda: any("language_worker" in w for w in world.get("/v1/workers")["workers"]))
        for version in ("v2", "v1"):
            world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme", "--code-version", version, "--metadata-version", "m")
        world.windlass("assign", "hello", "--code-version", "v1")
        runtime.workers = [{"worker": "a-1.1", "state": "ready", "load_failures": [{"function": "pay", "reason": "its route is odd"}]}]
        runtime.serve_app("hello")
        wait_until("the runtime serves it", lambda: app_of(world)["runtimes"])
        lines = {line.split()[2]: line for line in world.windlass("apps").splitlines()}
        assert "r-1:1" in lines["v1"] and "r-1" not in lines["v2"], lines

        world.windlass("split", "hello", "v1=80", "v2=20")
        app = world.get("/v1/apps/acme/hello")
        assert {each["code_version"]: each["weight"] for each in app["versions"]} == {"v1": 80, "v2": 20}, app
        assert app["load_failures"] == [{"code_version": "v1", "function": "pay", "reason": "its route is odd"}], app
        shown = world.windlass("apps", "show", "hello")
        assert "WEIGHT" in shown and " 80 " in shown and "v1: function 'pay' could not be loaded: its route is odd\n" in shown, shown
        assert "To end it" in world.windlass("split", "--help")


def names_that_nobody_has_are_remarked_on():
    with World() as world:
        world.windlass("send", "acme/nix", "biz.echo", "{}")
        assert "no worker 'nix' of tenant 'acme' is known" in world.remarks and "waits" in world.remarks, world.remarks
        world.windlass("revoke", "acme/nix")
        assert "no worker 'nix' of tenant 'acme' is known" in world.remarks and "windlass allow acme/nix" in world.remarks, world.remarks
        folder = world.app_folder("hello", HELLO)
        world.windlass("deploy", folder, "--tenant", "nix")
        assert "tenant 'nix' has no application, worker or runtime yet" in world.remarks, world.remarks
        world.windlass("deploy", folder, "--tenant", "nix")
        assert "tenant" not in world.remarks, world.remarks

        agent = Agent(world, "a-1", "r-1").start()
        world.windlass("send", "acme/a-1", "biz.echo", "{}")
        assert world.remarks == "", world.remarks
        agent.cut()


def invoke_shows_text_as_text():
    with World() as world:
        runtime = Runtime(world, "r-1").begin()
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        runtime.serve_app("hello")
        wait_until("the runtime serves it", lambda: app_of(world)["runtimes"])

        def shown_of(kind, body):
            encoded = base64.urlsafe_b64encode(body).decode().rstrip("=")
            runtime.result = {"ok": True, "return": {"status": "200", "headers": {"Content-Type": kind}, "body": {"base64url": encoded}}, "outputs": {},
                              "logs": [{"level": "info", "message": "one\ntwo\x1b[2J"}]}
            return json.loads(world.windlass("invoke", "hello", "greet"))["body"]

        assert shown_of("text/plain; charset=utf-8", "Grüße\n".encode()) == "Grüße\n"
        assert world.remarks == "[info] one\ntwo?[2J\n", repr(world.remarks)
        assert shown_of("application/json", b'{"a": 1}') == {"a": 1}
        assert shown_of("application/problem+json", b"{") == "{"
        assert shown_of("image/png", b"abc") == {"base64url": "YWJj"}
        assert shown_of("text/plain", b"\xff") == {"base64url": "_w"}
        runtime.result = {"ok": False, "code": "E.INTERNAL", "cause": "function_failed", "reason": "boom\nsecond line"}
        failed = world.windlass("invoke", "hello", "greet", code=1)
        assert "failed: boom\nsecond line (E.INVOCATION.FUNCTION_FAILED)" in failed, failed


def drain_and_resume_say_what_undoes_them():
    with World() as world:
        agent = Agent(world, "a-1", "r-1").start()
        world.windlass("reset", "acme/a-1")
        wait_until("what to do is said", lambda: "start its agent again" in world.windlass("resume", "acme/a-1", code=1))
        agent.cut()
        assert "starting the agent again" in " ".join(world.windlass("drain", "--help").split())
        assert "not undo windlass drain" in " ".join(world.windlass("resume", "--help").split())


def main():
    run([a_version_that_differs_in_its_metadata_version_only_is_told_so, settings_alone_go_to_the_version_that_serves,
         what_a_folder_lacks_is_said, versions_show_their_own_runtimes_weights_and_failures, names_that_nobody_has_are_remarked_on,
         invoke_shows_text_as_text, drain_and_resume_say_what_undoes_them])


main()
