"""Wall clocks that jump by hours, of the scheduler and of agents, while sessions and commands go on.

The steady clock stays as it is, as on a machine whose time was set or that was suspended; a process that itself stands
still is in cases_processes.py.
"""
import mmap
import os
import struct

from cases_network import finish, resumed
from fault_proxy import RST
from load import Load
from world import TENANT, Failure, World, check, wait_until

HOUR = 3600
MINUTE = 60


class WallClock:
    """Of the processes that it was given to."""

    def __init__(self, world, name):
        path = world.path(name)
        with open(path, "wb") as file:
            file.write(b"\0" * 8)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 8)
        shim = os.path.join(world.options.programs, "tests/integration/faults/libfault_clock.so")
        if not os.path.exists(shim):
            raise Failure(f"{shim} is missing; build it with ./dev build release fault_clock")
        # A sanitizer's library wants to be the first; it does not matter here.
        self.environment = {"LD_PRELOAD": os.path.abspath(shim), "WINDLASS_TEST_CLOCK_FILE": path,
                            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def set(self, seconds):
        self.map[:] = struct.pack("=q", seconds)


def present(world):
    return [agent for agent in world.agents if agent.is_running]


def cut_all(world):
    """Every connection, and all are there again."""
    for agent in present(world):
        before = len(agent.proxy.accepted)
        agent.proxy.cut(RST)
        wait_until(lambda a=agent, n=before: len(a.proxy.accepted) > n, f"{agent.name} dials again")
    world.wait_ready()


def beat(world):
    """Each agent is heard again, by a heartbeat that comes after this."""
    before = [agent.facts()["counters"]["heartbeats"] for agent in present(world)]
    for agent, count in zip(present(world), before):
        wait_until(lambda a=agent, n=count: a.facts()["counters"]["heartbeats"] > n, f"{agent.name} sends a heartbeat")


def check_one_session(world, when):
    for agent in present(world):
        counters = agent.facts()["counters"]
        check(counters["sessions"] == 1 and counters["times_lost"] == 0, f"{when}: {agent.name} has {counters}")


def check_short_life(world, absent, command):
    """A command of half a second for nobody fails after half a second, whatever the calendar says."""
    body = {"id": command, "type": "biz.echo", "payload": {}, "timeout_ms": 500}
    world.admin.request("POST", f"/v1/workers/{TENANT}/{absent.id}/commands", body)
    record = world.admin.get(f"/v1/commands/{TENANT}/{command}?wait_ms=10000")
    check(record["state"] == "failed" and record["failure"]["code"] == "E.TIMEOUT", f"{command} did not run out of time: {record}")


def scheduler_clock(options):
    """Forward and back by hours under load: no session ends, tokens that have not expired resume, nothing is lost."""
    with World(options, session='heartbeat = "1s"') as world:
        clock = WallClock(world, "scheduler.clock")
        world.scheduler.environment = clock.environment
        world.start(4)
        absent = world.agents[3]  # its commands wait through all of it, and no calendar makes them late
        absent.kill()
        with Load(world) as load:
            for hours in (6, -6, 30, 0):
                clock.set(hours * HOUR)
                load.wait_accepted(30 * options.rounds)
                check_short_life(world, absent, f"short-{hours}")
                beat(world)
                world.wait_ready()
                check_one_session(world, f"at {hours:+} h")
                check(resumed(world) == 0, f"a connection was given up when the clock went to {hours:+} h")
            for offset in (30 * MINUTE, -6 * HOUR):
                clock.set(offset)
                before = resumed(world)
                cut_all(world)
                check(resumed(world) >= before + 3, f"at {offset:+} s only {resumed(world) - before} of 3 sessions were resumed")
                check_one_session(world, f"after a cut at {offset:+} s")
            # Every token is past its hour now: sessions begin anew, and the outbox goes on in them.
            clock.set(12 * HOUR)
            cut_all(world)
            load.wait_accepted(30)
            absent.start()
            finish(world, load)
        return f"{resumed(world)} resumes; {load.summary()}"


def agent_clock(options):
    """An agent's calendar says nothing about its work: jumps end no session, and its journal keeps what was done."""
    with World(options, session='heartbeat = "1s"') as world:
        clock = WallClock(world, "agents.clock")
        world.scheduler.start()
        for _ in range(2):
            agent = world.add_agent()
            agent.environment = clock.environment
            agent.start()
        world.wait_ready()
        resumes = 0
        with Load(world) as load:
            for hours in (6, -6, 30, 0):
                clock.set(hours * HOUR)
                load.wait_accepted(30 * options.rounds)
                beat(world)
                world.wait_ready()
                check_one_session(world, f"at {hours:+} h")
                check(resumed(world) == 0, f"a connection was given up when the clock went to {hours:+} h")
            # Not further back than the certificate is valid: TLS would be right to refuse it.
            for offset in (30 * HOUR, -4 * MINUTE):
                clock.set(offset)
                cut_all(world)
                check_one_session(world, f"after a cut at {offset:+} s")
                resumes += resumed(world)
                for agent in world.agents:
                    load.wait_accepted(10)
                    agent.kill()
                    agent.start()
                world.wait_ready()
                break_even(world)
            finish(world, load)
        return f"{resumes} resumes; {load.summary()}"


def break_even(world):
    """Kills begin new sessions, which is no matter of clocks: the count starts again with the scheduler."""
    world.scheduler.kill()
    world.scheduler.start()
    world.wait_ready()


def stored_deadlines(options):
    """A restart by another calendar: what is young goes on, however far back; what is over fails once and never runs."""
    with World(options) as world:
        clock = WallClock(world, "scheduler.clock")
        world.scheduler.environment = clock.environment
        world.start(1)
        agent = world.agents[0]
        loads = []
        for offset in (-6 * HOUR, -6 * HOUR + MINUTE, 12 * HOUR):
            agent.kill()
            load = Load(world)
            load.submitters[0].number = len(loads) + 1
            with load:
                load.wait_accepted(25)
            loads.append(load)
            world.scheduler.kill()
            clock.set(offset)
            agent.start()
            world.scheduler.start()
            # Nobody else says a word to the scheduler before its worker is there: an alarm must not need that.
            wait_until(lambda: '"event":"the session is established"' in agent.said(), "the agent has a session")
            world.wait_ready()
            load.settle()
        effects = agent.effect_lines()
        for load in loads[:2]:
            load.agents = []  # its effects are in one file with the others'
            for command, (state, _) in load.records().items():
                check(state == "done", f"{command} ended as {state} after the clock was set back")
                is_exec = load.ledger.accepted[command][1]["type"] == "biz.exec"
                check(effects.count(command) == int(is_exec), f"{command} took effect {effects.count(command)} times")
        for command in loads[2].ledger.accepted:
            record = world.admin.get(f"/v1/commands/{TENANT}/{command}")
            check(record["state"] == "failed" and record["failure"]["code"] == "E.TIMEOUT", f"{command}: {record}")
            check(command not in effects, f"{command} took effect after its time was over")
        return "; ".join(load.summary() for load in loads)


CASES = {"scheduler_clock": scheduler_clock, "agent_clock": agent_clock, "stored_deadlines": stored_deadlines}
