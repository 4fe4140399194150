"""What becomes of invocations: cuts between agent and runtime, and kill -9 of language worker, agent and runtime, under load.

A cut costs nothing: the session between agent and runtime is resumed. A worker or an agent that is killed takes with it
what it was doing, and whoever asked is told so once and may ask again. A runtime that is killed has forgotten what it was
doing; what the scheduler asked of it is asked again.
"""
import os
import signal

from callers import BROKEN, LOST, REFUSED, Callers
from fault_proxy import FIN, HALF_OPEN, RST
from function_world import FunctionWorld, worker_pid
from world import check, wait_until

SLOTS = 10  # of a worker at the runtime, by default


def wait_at_work(world, agent):
    """Until the agent's worker has invocations; how many."""
    return wait_until(lambda: (world.runtime.worker_of(agent) or {}).get("in_flight"), f"{agent.name} has invocations", 30)


def cut_agent_runtime_link(options):
    """A hundred cuts of the link, between all else and within the resume itself: not one invocation fails or runs twice."""
    with FunctionWorld(options) as world:
        world.start(2)
        cuts, flying, quick = 0, [], 0
        with Callers(world, by_http=24, by_order=8) as callers:
            callers.wait_answered(50)
            while cuts < 100 * options.rounds:
                callers.check_well()
                if world.random.random() < 0.7:
                    callers.wait_answered(world.random.randrange(1, 30))
                else:
                    quick += 1  # as soon as somebody dialled: most of these fall into a handshake
                flying.append(wait_until(world.runtime.in_flight, "invocations are under way"))
                cut = world.proxy.cut if world.random.random() < 0.5 else world.proxy.cut_one
                manner = world.random.choice((RST, FIN, HALF_OPEN))
                wait_until(lambda c=cut, m=manner: c(m), "there is a link to cut")
                cuts += 1
            callers.finish()
            world.wait_whole()
            callers.check()
            check(not any(map(callers.count, (LOST, REFUSED, BROKEN))),
                  f"cuts alone cost invocations: {callers.summary()}; {callers.refusal()}")
        new, resumed = world.runtime.sessions("new"), world.runtime.sessions("resumed")
        check(new == len(world.agents), f"{new:g} sessions were begun by {len(world.agents)} agents: a cut cost one")
        check(resumed >= (cuts - quick) / 2, f"only {resumed:g} resumes after {cuts} cuts")
        return (f"{cuts} cuts with {min(flying)} to {max(flying)} invocations under way, {resumed:g} resumes; "
                f"{callers.summary()}")


def worker_killed(options):
    """kill -9 of language workers: their agents start others, and what was lost is said and tried again."""
    with FunctionWorld(options) as world:
        world.start(2)
        flying = []
        with Callers(world, by_http=16, by_order=8) as callers:
            for _ in range(8 * options.rounds):
                callers.wait_answered(world.random.randrange(10, 60))
                victims = world.random.sample(world.agents, world.random.randrange(1, 3))
                before = {agent: world.runtime.worker_of(agent)["worker"] for agent in victims}
                for agent in victims:
                    flying.append(wait_at_work(world, agent))
                    os.kill(worker_pid(agent), signal.SIGKILL)
                for agent in victims:
                    wait_until(lambda a=agent, b=before[agent]: (world.runtime.worker_of(a) or {"worker": b})["worker"] != b,
                               f"{agent.name} brings another worker", 30)
                world.wait_whole()
            callers.finish()
            world.wait_whole()
            callers.check()
        lost = callers.count(LOST)
        # Some, else the load was elsewhere; and no more than had a slot of the killed.
        check(0 < lost <= SLOTS * len(flying), f"{lost} lost by {len(flying)} kills with {flying} invocations under way")
        return f"{len(flying)} kills with {min(flying)} to {max(flying)} invocations under way; {callers.summary()}"


def runtime_agent_killed(options):
    """kill -9 of an agent: the other one takes the load, and the killed one comes back as what it was."""
    with FunctionWorld(options) as world:
        world.start(2)
        flying = []
        with Callers(world, by_http=16, by_order=8) as callers:
            for _ in range(4 * options.rounds):
                callers.wait_answered(world.random.randrange(10, 60))
                victim = world.random.choice(world.agents)
                flying.append(wait_at_work(world, victim))
                victim.kill()
                callers.wait_answered(60)
                check(not world.has_ready_worker(victim), f"{victim.name} is dead and Ready")
                victim.start()
                world.wait_whole()
                wait_at_work(world, victim)
            callers.finish()
            world.wait_whole()
            callers.check()
        lost = callers.count(LOST)
        check(0 < lost <= SLOTS * len(flying), f"{lost} lost by {len(flying)} kills with {flying} invocations under way")
        return f"{len(flying)} kills with {min(flying)} to {max(flying)} invocations under way; {callers.summary()}"


def runtime_killed(options):
    """kill -9 of the runtime: agents come back by themselves, every order that the scheduler took is answered once, and whoever
    asked by HTTP may ask again."""
    with FunctionWorld(options) as world:
        world.start(2)
        flying = []
        kills = 4 * options.rounds
        with Callers(world, by_http=8, by_order=16) as callers:
            for _ in range(kills):
                callers.wait_answered(world.random.randrange(10, 60))
                flying.append(wait_until(world.runtime.in_flight, "invocations are under way"))
                world.runtime.kill()
                world.runtime.start()
                world.wait_whole()
            callers.finish()
            world.wait_whole()
            # What is under way in one that is killed is begun again by the next.
            callers.check(runs_max=kills + 1)
        check(callers.count(LOST) == 0, f"invocations were lost though no worker was: {callers.summary()}")
        check(callers.count(BROKEN) > 0, f"nobody who asked by HTTP noticed {kills} kills")
        again = callers.runs_beyond_one()
        check(0 < again <= sum(flying), f"{again} functions ran again after kills with {flying} under way")
        return f"{kills} kills with {min(flying)} to {max(flying)} orders under way, {again} runs repeated; {callers.summary()}"


CASES = {"cut_agent_runtime_link": cut_agent_runtime_link, "worker_killed": worker_killed,
         "runtime_agent_killed": runtime_agent_killed, "runtime_killed": runtime_killed}
