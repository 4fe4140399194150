"""Applications from the operator's side: windlass against a real scheduler, with an agent and a runtime that only pretend.

  apps_test.py SCHEDULER WINDLASS [test...]
"""
import io
import json
import os
import zipfile

from app_peers import Agent, Runtime
from app_world import HELLO, World, app_of, is_refused, run, wait_until
from revision2_worker import Reset


def a_folder_is_deployed_assigned_and_invoked():
    with World() as world:
        runtime = Runtime(world, "r-1").begin()
        agents = [Agent(world, f"a-{i}", "r-1").begin() for i in range(2)]
        wait_until("all have spoken", lambda: len([w for w in world.get("/v1/workers")["workers"] if "language_worker" in w]) == 2)
        folder = world.app_folder("hello", {**HELLO, "local.settings.json": '{"Values":{"KEY":"hidden"}}', ".git/config": "x"})
        shown = world.windlass("deploy", folder, "--tenant", "acme", "--code-version", "v1", "--metadata-version", "m", "--setting", "CITY=Paris",
                               "--setting", "SECRET", SECRET="hush")
        assert "acme/hello" in shown and "node" in shown, shown
        listed = world.windlass("apps")
        assert "CITY,SECRET" in listed and "hush" not in listed and "Paris" not in listed, listed

        shown = world.windlass("assign", "hello", "--workers", "2")
        assert shown.count("ready") == 2 and "12 ms" in shown, shown
        order = agents[0].commands[0]
        assert order["type"] == "biz.worker.specialize", order
        assert order["payload"]["settings"] == {"CITY": "Paris", "SECRET": "hush"}
        assert order["payload"]["runtime"] == {"id": "r-1", "url": "wss://r-1.example/ws/worker"}
        assert agents[0].parts == 3, "1.3 MB in parts of 512 KiB"
        with zipfile.ZipFile(io.BytesIO(next(iter(agents[0].packages.values())))) as package:
            names = package.namelist()
        assert names == ["big.bin", "greet/function.json", "host.json", "index.js", "package.json"], names
        # Nobody who looks at the order sees a secret.
        seen = json.dumps(world.get(f"/v1/commands/acme/{order['id']}"))
        assert "hush" not in seen and "SECRET" in seen, seen
        assert world.get("/v1/messages")["messages"] == [], "status is kept nowhere"
        workers = world.windlass("workers")
        assert "node" in workers and "hello" in workers and "ready" in workers, workers
        assert "r-1" in world.windlass("runtimes") and "Healthy" in world.windlass("runtimes")

        # Its workers say that they are ready before the runtime speaks of them; when it has spoken it is believed.
        assert json.loads(world.windlass("invoke", "hello", "greet", "--text", "early")) == {"hello": "early"}
        runtime.status()
        wait_until("the runtime is heard", lambda: is_refused(lambda: world.post("/v1/apps/acme/hello/invoke", {"function": "greet"})))
        refused = world.windlass("invoke", "hello", "greet", code=1)
        assert "no runtime has a ready worker" in refused and "2 ready" in refused, refused
        runtime.serve_app("hello", ["greet", "part"])
        wait_until("the runtime serves it", lambda: app_of(world)["runtimes"])
        assert json.loads(world.windlass("invoke", "hello", "greet", "--data", '{"name":"Ada"}')) == {"hello": {"name": "Ada"}}
        assert world.windlass("--json", "invoke", "hello", "greet", "--text", "Ada") == '{"hello":"Ada"}\n'
        assert json.loads(world.windlass("invoke", "hello", "greet", "--data", "[1, 2]")) == {"hello": [1, 2]}
        assert "did you mean 'greet'" in world.windlass("invoke", "hello", "gret", code=1)
        assert "no application 'hallo'" in world.windlass("invoke", "hallo", "greet", code=1)
        failed = world.windlass("invoke", "hello", "greet", "--data", '"throw"', code=1)
        assert "no such city" in failed and "E.FUNCTION.THREW" in failed and "greeting" not in failed, failed
        assert "split" in world.windlass("split", "hello", "v1=100")
        assert runtime.commands[-1]["payload"]["weights"] == {"v1": 100}
        assert "no code version 'v9'" in world.windlass("split", "hello", "v9=1", code=1)

        assert "2 workers are assigned" in world.windlass("undeploy", "hello", code=1)
        assert "released" in world.windlass("unassign", "hello", "--workers", "1")
        assert app_of(world)["workers"]["ready"] == 1
        packages = world.path("scheduler.db.packages")
        assert len(os.listdir(packages)) == 1
        assert "undeployed" in world.windlass("undeploy", "hello", "--force")
        wait_until("its package is gone", lambda: os.listdir(packages) == [])
        assert "no applications" in world.windlass("apps")


def workers_that_are_cut_off_for_the_moment_are_still_invoked():
    with World() as world:
        cut_off, sound = [Runtime(world, name).begin() for name in ("r-1", "r-2")]
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        cut_off.serve_app("hello", ready=0, detached=0)
        wait_until("it is told", lambda: app_of(world)["runtimes"])
        assert "no runtime has a ready worker" in world.windlass("invoke", "hello", "greet", code=1)
        cut_off.serve_app("hello", ready=0, detached=2)
        wait_until("it is told", lambda: app_of(world)["runtimes"][0]["detached"] == 2)
        world.windlass("invoke", "hello", "greet")
        # But not where somebody can take it at once.
        sound.serve_app("hello", ready=1)
        wait_until("the other is told", lambda: len(app_of(world)["runtimes"]) == 2)
        world.windlass("invoke", "hello", "greet")
        assert [len(each.commands) for each in (cut_off, sound)] == [1, 1]


def a_zip_is_deployed_and_the_same_folder_gives_the_same_zip():
    with World() as world:
        path = world.zip("shop.zip", [("host.json", "{}"), ("windlass.json", '{"language":"native"}'), ("lib/a.so", "x")])
        answer = json.loads(world.windlass("--json", "deploy", path, "--tenant", "acme", "--setting", "A=1"))
        assert answer["application_id"] == "shop" and answer["language"] == "native"
        assert answer["code_version"] == answer["digest"][:12] and len(answer["metadata_version"]) == 12
        # Once more is fine; other content under one version is not.
        world.windlass("deploy", path, "--tenant", "acme")
        other = world.zip("other.zip", [("host.json", "{}"), ("windlass.json", '{"language":"native"}')])
        refused = world.windlass("deploy", other, "--app", "acme/shop", "--code-version", answer["code_version"], code=1)
        assert "other content" in refused, refused
        folder = world.app_folder("twice", HELLO)
        first = json.loads(world.windlass("--json", "deploy", folder, "--dry-run", TZ="Asia/Tokyo"))
        os.utime(os.path.join(folder, "index.js"), (1, 1))
        second = json.loads(world.windlass("--json", "deploy", folder, "--dry-run", TZ="America/Lima", LC_ALL="C"))
        assert first == second and first["digest"], (first, second)


def what_may_register_functions_makes_the_metadata_version():
    with World() as world:
        def metadata_version(name, files, *more):
            folder = world.app_folder(name, files)
            return json.loads(world.windlass("--json", "deploy", folder, "--dry-run", "--tenant", "acme", *more))["metadata_version"]

        model4 = {"host.json": "{}", "package.json": '{"main":"index.js"}', "index.js": "app.http('a')"}
        assert metadata_version("m1", model4) != metadata_version("m2", {**model4, "index.js": "app.http('a'); app.http('b')"})
        assert metadata_version("m3", model4, "--metadata-version", "m") == "m", "so that versions can share traffic"
        assert metadata_version("m4", HELLO) == metadata_version("m5", {**HELLO, "index.js": "43"}), "function.json says them all"


def what_is_no_application_is_refused():
    with World() as world:
        cases = {
            "leads out of the package": [("host.json", "{}"), ("../x", "x")],
            "is absolute": [("host.json", "{}"), ("/etc/x", "x")],
            "no host.json": [("package.json", "{}")],
            "host.json is not a JSON object": [("host.json", "{"), ("package.json", "{}")],
            "the language is not known": [("host.json", "{}")],
            "language 'cobol' is not known": [("host.json", "{}"), ("windlass.json", '{"language":"cobol"}')],
        }
        for number, (words, entries) in enumerate(cases.items()):
            refused = world.windlass("deploy", world.zip(f"bad{number}.zip", entries), "--tenant", "acme", code=1)
            assert words in refused, (words, refused)
        link = zipfile.ZipInfo("out")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        path = world.zip("link.zip", [("host.json", "{}"), ("package.json", "{}"), (link, "../../etc/passwd")])
        assert "leads out" in world.windlass("deploy", path, "--tenant", "acme", code=1)
        folder = world.app_folder("links", HELLO)
        os.symlink("/etc/passwd", os.path.join(folder, "passwd"))
        assert "leads out of the folder" in world.windlass("deploy", folder, "--tenant", "acme", code=2)
        junk = world.app_folder("junk", {"a.zip": "this is no zip"})
        assert "zip" in world.windlass("deploy", os.path.join(junk, "a.zip"), "--tenant", "acme", code=1)
        assert "language 'basic' is not known" in world.windlass(
            "deploy", world.zip("l.zip", [("host.json", "{}")]), "--tenant", "acme", "--language", "basic", code=1)
        assert "no folder or zip" in world.windlass("deploy", "/nowhere/at/all", "--tenant", "acme", code=2)
        assert world.get("/v1/apps")["apps"] == []
        # And around windlass, too.
        digest = "0" * 64
        for body, words in (({"digest": digest}, "/code_version"), ({"digest": digest, "code_version": "1", "metadata_version": "1",
                                                                     "language": "node"}, "not here")):
            try:
                world.put("/v1/apps/acme/x", body)
                raise AssertionError("it was taken")
            except RuntimeError as error:
                assert words in str(error), error


def too_few_workers_are_said_and_taken_only_when_asked():
    with World() as world:
        folder = world.app_folder("hello", HELLO)
        world.windlass("deploy", folder, "--tenant", "acme")
        assert "no runtime is connected" in world.windlass("assign", "hello", code=1)
        _runtimes = [Runtime(world, name).begin() for name in ("r-1", "r-2")]
        agents = [Agent(world, "a-1", "r-1").begin(), Agent(world, "a-2", "r-2").begin(), Agent(world, "n-1", "r-1", "native").begin()]
        wait_until("all have spoken", lambda: len([w for w in world.get("/v1/workers")["workers"] if "language_worker" in w]) == 3)
        refused = world.windlass("assign", "hello", "--workers", "3", code=1)
        assert "there are 2 idle placeholders of language 'node', 3 were asked for" in refused, refused
        assert "no runtime 'r-9'" in world.windlass("assign", "hello", "--runtime", "r-9", code=1)
        shown = world.windlass("assign", "hello", "--workers", "3", "--partial", "--runtime", "r-2", "--id", "mine")
        assert shown.count("ready") == 2, shown
        assert agents[0].runtime == "r-2", "it moved"
        assert not agents[2].commands
        again = world.windlass("assign", "hello", "--workers", "3", "--partial", "--id", "mine")
        assert again.count("ready") == 2 and len(agents[0].commands) == 1, "an id is done once"
        assert "2 assigned already" in world.windlass("assign", "hello", code=1)


def a_worker_that_refuses_is_shown_and_free_again():
    with World() as world:
        _runtime = Runtime(world, "r-1").begin()
        agent = Agent(world, "a-1", "r-1").begin()
        agent.refusal = "the disk is full"
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        assert "1 of 1 worker did not become ready" in world.windlass("assign", "hello", code=1)
        assert app_of(world)["assignments"][0]["reason"] == "the disk is full"
        agent.refusal = None
        assert "ready" in world.windlass("assign", "hello")


def an_invocation_repeated_by_its_id_has_the_first_answer():
    with World() as world:
        runtimes = [Runtime(world, name).begin() for name in ("r-1", "r-2")]
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        runtimes[0].serve_app("hello")
        wait_until("it is served", lambda: app_of(world)["runtimes"])
        invoke = ("invoke", "hello", "greet", "--data", "1", "--id", "mine")
        first = world.windlass(*invoke)
        runtimes[0].serve_app("hello", ready=0)
        wait_until("nobody is ready", lambda: not [r for r in app_of(world)["runtimes"] if r["ready"]])
        assert world.windlass(*invoke) == first
        runtimes[1].serve_app("hello", ["other"])
        wait_until("another is", lambda: [r for r in app_of(world)["runtimes"] if r["ready"]])
        assert world.windlass(*invoke) == first
        assert "known" in world.windlass("invoke", "hello", "greet", "--data", "2", "--id", "mine", code=1)
        assert [len(each.commands) for each in runtimes] == [1, 0], "it ran once"


def a_split_is_kept_and_told_to_runtimes_that_come():
    with World() as world:
        folder = world.app_folder("hello", HELLO)
        for version in ("v1", "v2"):
            world.windlass("deploy", folder, "--tenant", "acme", "--code-version", version, "--metadata-version", "m")
        world.windlass("deploy", folder, "--tenant", "acme", "--code-version", "v3", "--metadata-version", "n")
        shown = world.windlass("split", "hello", "v1=80", "v2=20")
        assert "kept" in shown, shown
        assert "--metadata-version" in world.windlass("split", "hello", "v1=80", "v3=20", code=1)
        for name in ("r-1", "r-2", "r-1"):
            runtime = Runtime(world, name).begin()
            runtime.serve_app("hello")
            wait_until(f"{name} is told", lambda runtime=runtime: runtime.commands)
            assert runtime.commands[0]["type"] == "biz.runtime.split"
            assert runtime.commands[0]["payload"] == {"application_id": "hello", "metadata_version": "m", "weights": {"v1": 80, "v2": 20}}


def a_runtime_that_comes_back_elsewhere_is_followed():
    with World() as world:
        Runtime(world, "r-1").begin()
        agent = Agent(world, "a-1", "r-1").begin()
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        world.windlass("assign", "hello")
        moved = Runtime(world, "r-1")
        moved.url = "wss://r-1.example:2/ws/worker"
        moved.begin()
        wait_until("the agent is told", lambda: len(agent.commands) == 2)
        assert agent.commands[1]["payload"]["runtime"] == {"id": "r-1", "url": moved.url}
        wait_until("it is ready there", lambda: app_of(world)["workers"]["ready"] == 1)


def a_workers_token_makes_no_runtime():
    """Somebody who stole an agent's token wants to be told of invocations."""
    with World() as world:
        forger = Runtime(world, "r-forged")
        forger.token = world.token
        try:
            forger.start()
        except Reset as reset:
            assert reset.code == "E.SESSION.DENIED" and "runtime" in reset.reason, reset
        else:
            raise AssertionError("it was let in")
        assert world.get("/v1/runtimes")["runtimes"] == []
        # Nor does a runtime's token make a worker.
        agent = Agent(world, "a-forged", "r-1")
        agent.token = world.runtime_token
        try:
            agent.start()
        except Reset as reset:
            assert reset.code == "E.SESSION.DENIED", reset
        else:
            raise AssertionError("it was let in")
        Runtime(world, "r-1").begin()
        wait_until("a real one is there", lambda: len(world.get("/v1/runtimes")["runtimes"]) == 1)
        # A worker that takes the runtime's id would supersede it, read its orders and answer them.
        thief = Agent(world, "r-1", "r-1")
        try:
            thief.start()
        except Reset as reset:
            assert reset.code == "E.SESSION.DENIED" and "runtime's" in reset.reason, reset
        else:
            raise AssertionError("a worker took the runtime's id")
        assert [each["state"] for each in world.get("/v1/runtimes")["runtimes"]] == ["READY"], "the runtime was disturbed"


def agents_are_sent_only_where_somebody_vouches_for():
    with World() as world:
        runtime = Runtime(world, "r-1")
        runtime.url = "ws://attacker.test:7543/ws/worker"
        runtime.begin()
        agent = Agent(world, "a-1", "r-1").begin()
        wait_until("both have spoken", lambda: any("language_worker" in w for w in world.get("/v1/workers")["workers"]) and
                   any("url_refused" in r for r in world.get("/v1/runtimes")["runtimes"]))
        shown = world.get("/v1/runtimes")["runtimes"][0]
        assert shown["url_refused"] == runtime.url and "url" not in shown, shown
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme", "--code-version", "v1")
        agent.refusal = "not now"
        world.windlass("assign", "hello", "--no-wait")
        wait_until("the agent was told", lambda: agent.commands)
        assert "attacker" not in str(agent.commands), agent.commands
        runtime.url = "wss://r-1.example/ws/worker"
        runtime.status()
        wait_until("its own address is taken", lambda: world.get("/v1/runtimes")["runtimes"][0].get("url") == runtime.url)


def ids_that_are_taken_are_refused():
    with World() as world:
        Runtime(world, "r-1").begin()
        agents = [Agent(world, f"a-{i}", "r-1").begin() for i in range(2)]
        wait_until("all have spoken", lambda: len([w for w in world.get("/v1/workers")["workers"] if "language_worker" in w]) == 2)
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        world.windlass("assign", "hello", "--id", "x")
        assert "known" in world.windlass("unassign", "hello", "--id", "x", code=1)
        world.windlass("send", "acme/nobody", "biz.echo", "{}", "--id", "y.2")
        world.windlass("unassign", "hello")
        assert "choose another id" in world.windlass("assign", "hello", "--workers", "2", "--id", "y", code=1)
        assert "ready" in world.windlass("assign", "hello", "--workers", "2", "--id", "z")


def a_package_that_is_not_deployed_is_refused():
    with World() as world:
        agent = Agent(world, "a-1", "r-1").start()
        part = agent.get_part("f" * 64, 0)
        assert part["payload"]["error"] and not part["bytes"], part
        agent.cut()


def operations_on_packages_are_counted():
    with World() as world:
        def count(operation, status):
            series = f'pkg_ops_total{{op="{operation}",status="{status}",tenant="acme"}} '
            return [float(line[len(series):]) for line in world.metrics().splitlines() if line.startswith(series)]

        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        runtime = Runtime(world, "r-1").begin()
        agent = Agent(world, "a-1", "r-1").begin()
        wait_until("it has spoken", lambda: any("language_worker" in w for w in world.get("/v1/workers")["workers"]))
        world.windlass("assign", "hello")
        assert agent.parts == 3
        idle = Agent(world, "a-2", "r-1").start()
        digest = app_of(world)["versions"][0]["digest"]
        assert idle.get_part(digest, 0)["payload"]["code"] == "E.SESSION.DENIED", "it is not assigned to the application"
        idle.get_part("e" * 64, 0)
        assert count("fetch", "ok") == [1.0], "a package counts once, however many parts it has"
        assert count("fetch", "refused") == [2.0], world.metrics()
        assert count("deploy", "ok") == [1.0] and count("undeploy", "ok") in ([], [0.0])
        world.windlass("unassign", "hello")
        world.windlass("undeploy", "hello", "--tenant", "acme")
        assert count("undeploy", "ok") == [1.0], world.metrics()
        for each in (idle, agent, runtime):
            each.cut()


def nothing_is_lost_when_the_scheduler_is_killed_between_order_and_answer():
    with World() as world:
        _runtime = Runtime(world, "r-1").begin()
        agent = Agent(world, "a-1", "r-1")
        agent.holds_answers = True
        agent.begin()
        world.windlass("deploy", world.app_folder("hello", HELLO), "--tenant", "acme")
        world.windlass("assign", "hello", "--no-wait")
        wait_until("the order came", lambda: agent.commands)
        world.kill()
        agent.thread.join()
        first = agent.commands[0]
        world.start()
        assert app_of(world)["assignments"][0]["state"] == "pending"
        agent.holds_answers = False
        _runtime = Runtime(world, "r-1").begin()
        agent.begin()
        wait_until("it is ready", lambda: app_of(world)["assignments"][0]["state"] == "ready")
        assert [c["id"] for c in agent.commands] == [first["id"]] * 2, "sent again, and it is the same order"
        assert agent.commands[1]["payload"] == first["payload"]
        assert agent.parts == 3, "the package is still there"


def main():
    tests = [a_folder_is_deployed_assigned_and_invoked, workers_that_are_cut_off_for_the_moment_are_still_invoked,
             a_zip_is_deployed_and_the_same_folder_gives_the_same_zip,
             what_may_register_functions_makes_the_metadata_version,
             what_is_no_application_is_refused, too_few_workers_are_said_and_taken_only_when_asked,
             a_worker_that_refuses_is_shown_and_free_again, a_package_that_is_not_deployed_is_refused, operations_on_packages_are_counted,
             a_split_is_kept_and_told_to_runtimes_that_come, a_runtime_that_comes_back_elsewhere_is_followed,
             a_workers_token_makes_no_runtime, agents_are_sent_only_where_somebody_vouches_for,
             ids_that_are_taken_are_refused,
             an_invocation_repeated_by_its_id_has_the_first_answer,
             nothing_is_lost_when_the_scheduler_is_killed_between_order_and_answer]
    run(tests)


main()
