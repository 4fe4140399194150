"""Processes that are told to stop end when nothing is left to say, and no later.

  ending_test.py BUILD_FOLDER [test...]
"""
import os
import signal
import sys
import time

from fleet_processes import Fleet, run_tests, wait_until
from function_fleet import FunctionFleet

IDLE = "require('@azure/functions').app.http('idle', { authLevel: 'anonymous', handler: async () => ({}) });"
PATIENCE_S = 15  # far below the 300 s and 600 s that the settings would allow


def ends_soon(process, what):
    begun = time.monotonic()
    process.signal(signal.SIGTERM)
    try:
        code = process.wait(PATIENCE_S)
    except Exception as error:
        raise AssertionError(f"{what} still runs {PATIENCE_S} s after SIGTERM; its log is:\n{process.text()}") from error
    assert code == 0, f"{what} ended with {code}; its log is:\n{process.text()}"
    return time.monotonic() - begun


def an_idle_agent_ends_while_its_scheduler_is_away(programs):
    with Fleet(programs, tls=False) as fleet:
        for name in ("plain", "host"):
            fleet.new_token(name)
        fleet.credentials()
        fleet.start()
        fleet.agent("plain")
        fleet.agent("host", settings=f'[language_worker]\nfolder = "{os.path.join(os.path.abspath(programs), "worker-agent/native")}"\n')
        for name in ("plain", "host"):
            fleet.ready(name)
        wait_until("the language worker is there", lambda: fleet.worker("host").get("language_worker", {}).get("pid"))
        fleet.scheduler.signal(signal.SIGKILL)
        fleet.scheduler.wait()
        for name in ("plain", "host"):
            fleet.agents[name].wait_for("not connected")
        for name in ("plain", "host"):
            ends_soon(fleet.agents[name], f"the agent {name}")


def an_idle_agent_ends_while_its_scheduler_is_silent(programs):
    """Connected, but it answers nothing, as behind a network that was cut."""
    with Fleet(programs, tls=False) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        agent = fleet.agent("a")
        fleet.ready("a")
        fleet.scheduler.signal(signal.SIGSTOP)
        ends_soon(agent, "the agent")


def an_idle_agent_ends_while_its_runtime_is_away(programs):
    """Killed or silent, with the scheduler there or not; a placeholder and one that has an application."""
    for how in (signal.SIGKILL, signal.SIGSTOP):
        for with_scheduler in (False, True):
            with FunctionFleet(programs) as fleet:
                fleet.begin(agents=2)
                fleet.serve("idle", {"index.js": IDLE})
                for process in [fleet.runtime, *([fleet.scheduler] if with_scheduler else [])]:
                    process.signal(how)
                if how == signal.SIGKILL:
                    for agent in fleet.agents.values():
                        agent.wait_for("not connected to the runtime")
                for name, agent in fleet.agents.items():
                    ends_soon(agent, f"the agent {name} (runtime {how.name}, scheduler too: {with_scheduler})")


def a_scheduler_of_a_few_agents_ends_soon(programs):
    with Fleet(programs, tls=False) as fleet:
        names = [f"a{number}" for number in range(4)]
        for name in names:
            fleet.new_token(name)
        fleet.credentials()
        # Spread over all of the window, four sessions would end within our patience once in two million runs.
        fleet.start(drain_window="600s")
        for name in names:
            fleet.agent(name)
        for name in names:
            fleet.ready(name)
        ends_soon(fleet.scheduler, "the scheduler")
        for name in names:
            fleet.agents[name].wait_for("the session ended", code="E.SESSION.RESTARTING")


run_tests([an_idle_agent_ends_while_its_runtime_is_away, an_idle_agent_ends_while_its_scheduler_is_away, an_idle_agent_ends_while_its_scheduler_is_silent, a_scheduler_of_a_few_agents_ends_soon], sys.argv[1:])
