"""Full disks: the store's, and an agent's. A real ENOSPC on a real file system."""
import collections
import tempfile

from load import Load
from small_disk import small_disk
from world import TENANT, World, check, wait_until


def submit(world, command):
    body = {"id": command, "type": "biz.echo", "payload": {"fill": "x" * 3000}}
    return world.admin.request("POST", f"/v1/workers/{TENANT}/{world.agents[0].id}/commands", body)


def sessions(world):
    return [agent.facts()["counters"]["sessions"] for agent in world.agents]


def check_refusal(answer):
    """Clear to a program, and to a person."""
    check(answer.status == 507, f"a full disk is answered with {answer.status}, not 507")
    check(answer.content_type.startswith("application/problem+json"), f"a refusal is {answer.content_type}")
    text = str(answer.body)
    check("E.STORE.FULL" in text and "full" in text, f"a refusal does not say that the disk is full: {text}")


def store_full(options):
    """Commands are refused, sessions live on, and nothing that was acknowledged is lost, now or after a kill."""
    with tempfile.TemporaryDirectory(prefix="windlass-disk-") as folder:
        disk = small_disk(options, folder, f"{8 * options.rounds}m")
        try:
            with World(options, store=disk.path("scheduler.db"), session='heartbeat = "1s"') as world:
                world.scheduler.environment = disk.environment
                world.start(3)
                with Load(world) as load:
                    load.wait_accepted(100)
                    for each in range(2 * options.rounds):
                        disk.fill()
                        probes = iter(range(10_000_000))
                        refusal = wait_until(lambda n=each, p=probes: next(
                            (a for a in [submit(world, f"probe-{n}-{next(p)}")] if a.status != 202), None),
                            "a command is refused on a full disk")
                        check_refusal(refusal)
                        ready = world.admin.request("GET", "/readyz")
                        check(ready.status == 503, f"/readyz is {ready.status} on a full disk")
                        refused = len(load.ledger.refused)
                        wait_until(lambda n=refused: len(load.ledger.refused) > n + 20, "the load is refused for a while")
                        world.wait_ready()
                        disk.free()
                        load.wait_accepted(60)
                    check(sessions(world) == [1, 1, 1], f"sessions ended on a full disk: {sessions(world)}")
                    check(world.scheduler.starts == 1, "the scheduler was started again")
                    load.stop()
                    load.settle()
                    load.check()
                failures = int(world.admin.metric("windlass_store_failures_total"))
                check(failures > 0, "no failure of the store was counted")
                killed_while_full(world, disk, load)
                return f"{failures} commits refused; {load.summary()}"
        finally:
            disk.unmount()


def killed_while_full(world, disk, load):
    """A scheduler that is killed on a full disk starts again, on a full disk or not, with all that it acknowledged."""
    before = load.records()
    disk.fill()
    world.scheduler.kill()
    world.scheduler.start()
    check(load.records() == before, "a scheduler that was started on a full disk knows less than before")
    disk.free()
    world.wait_ready()
    wait_until(lambda: submit(world, "after").status == 202, "commands are accepted again")


def agent_full(options):
    """No room for the journal or for runs: what did not begin says so or waits; nothing takes effect twice."""
    with tempfile.TemporaryDirectory(prefix="windlass-disk-") as folder:
        disk = small_disk(options, folder, f"{2 * options.rounds}m")
        try:
            # A worker on a full disk is drained when it says so; here it does not, to see the journal itself.
            with World(options, agent='[load]\ninterval = "1h"') as world:
                world.scheduler.start()
                agent = world.add_agent(state=disk.path("state"))
                agent.environment = disk.environment
                agent.start()
                world.wait_ready()
                with Load(world) as load:
                    load.wait_accepted(40)
                    for _ in range(2 * options.rounds):
                        disk.fill()
                        load.wait_accepted(60)
                        agent.kill()
                        starts_or_says_why(agent)
                        disk.free()
                        if not agent.is_running:
                            agent.start()
                        load.wait_accepted(40)
                    load.stop()
                world.wait_ready()
                load.settle()
                return check_once_or_refused(load)
        finally:
            disk.unmount()


def starts_or_says_why(agent):
    """On a full disk; which of the two depends on what it finds there."""
    agent.start()
    wait_until(lambda: agent.is_ready() or not agent.is_running, "the agent came back or gave up")
    if not agent.is_running:
        agent.is_wanted = False
        said = agent.said()
        check(agent.process.returncode == 2 and "No space left" in said and said.count("\n") == 1,
              f"an agent on a full disk ended with {agent.process.returncode} and said: {said}")


def check_once_or_refused(load):
    """Every command has one outcome; it took effect once if that says so and never if it says not."""
    effects = collections.Counter(load.agents[0].effect_lines())
    ended = collections.Counter()
    for command, (state, result) in load.records().items():
        _, body = load.ledger.accepted[command]
        check(state == "done", f"{command} ended as {state}")
        if body["type"] == "biz.echo":
            check(result == body["payload"], f"{command}: the result is {str(result)[:200]}")
            continue
        check(effects[command] == (1 if result["ok"] else 0), f"{command} took effect {effects[command]} times, and its result is {result}")
        if not result["ok"]:
            check("No space left" in result["reason"] or "disk full" in result["reason"], f"{command}: not clear: {result}")
        ended["done" if result["ok"] else "refused"] += 1
    check(ended["done"] > 0, "nothing was done at all")
    check(set(effects) <= set(load.ledger.accepted), "something took effect that was never accepted")
    return f"{ended['done']} programs ran, {ended['refused']} were refused for want of room; {load.summary()}"


CASES = {"store_full": store_full, "agent_full": agent_full}
