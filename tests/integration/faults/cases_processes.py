"""What happens to processes: killed, suspended, drained, and started twice with one identity."""
import os
import signal
import time

from cases_network import QUICK, finish, resumed
from fault_proxy import DOWN, MANNERS, RST, UP
from load import Load
from world import Failure, World, check, wait_until


def is_all_kept(world, load):
    """What the scheduler said before it was killed it says after it came back."""
    before = load.records()
    world.scheduler.kill()
    world.scheduler.start()
    after = load.records()
    changed = [command for command in before if before[command] != after.get(command)]
    check(not changed, f"{len(changed)} outcomes changed with a restart, among them {changed[:3]}")
    world.wait_ready()


def scheduler_killed(options):
    """kill -9 of the scheduler under load, again and again, on one store."""
    with World(options) as world:
        world.start(3)
        kills = 5 * options.rounds
        with Load(world) as load:
            for _ in range(kills):
                load.wait_accepted(world.random.randrange(10, 60))
                world.scheduler.kill()
                world.scheduler.start()
            finish(world, load)
        is_all_kept(world, load)
        return f"{kills} kills; {load.summary()}"


def agents_killed(options):
    """kill -9 of agents under load; the journal and the runs in their folders are all that is left."""
    with World(options) as world:
        world.start(3)
        kills = 16 * options.rounds
        with Load(world) as load:
            for _ in range(kills):
                agent = world.random.choice(world.agents)
                load.wait_accepted(world.random.randrange(5, 30))
                # While the newest are being recorded, begun, or answered.
                load.burst(agent, 3)
                time.sleep(world.random.uniform(0, 0.006))
                agent.kill()
                agent.start()
            finish(world, load)
        return f"{kills} kills; {load.summary()}"


def both_killed(options):
    """Scheduler and agents, in any order, while connections are cut as well."""
    with World(options) as world:
        world.start(3)
        kills = 0
        with Load(world) as load:
            for _ in range(4 * options.rounds):
                load.wait_accepted(world.random.randrange(10, 40))
                victims = [world.scheduler, *world.random.sample(world.agents, world.random.randrange(1, 4))]
                world.random.shuffle(victims)
                kills += len(victims)
                for victim in victims:
                    victim.kill()
                for agent in world.agents:
                    agent.proxy.cut(RST)
                world.random.shuffle(victims)
                for victim in victims:
                    victim.start()
            finish(world, load)
        is_all_kept(world, load)
        return f"{kills} kills; {load.summary()}"


def agent_suspended(options):
    """SIGSTOP until the scheduler calls it lost, then SIGCONT: the session is resumed, not begun anew."""
    with World(options, session=QUICK) as world:
        world.start(2)
        asleep = world.agents[0]
        with Load(world) as load:
            for _ in range(options.rounds):
                load.wait_accepted(30)
                lost = asleep.facts()["counters"]["times_lost"]
                asleep.signal(signal.SIGSTOP)
                wait_until(lambda n=lost: asleep.facts()["counters"]["times_lost"] > n, "the suspended agent is called lost")
                asleep.signal(signal.SIGCONT)
                world.wait_ready()
            finish(world, load)
        counters = asleep.facts()["counters"]
        check(counters["sessions"] == 1 and counters["resumes"] >= options.rounds,
              f"a suspended agent has {counters['sessions']} sessions and {counters['resumes']} resumes")
        return f"{counters['resumes']} resumes; {load.summary()}"


def scheduler_suspended(options):
    """SIGSTOP of the scheduler until every agent gave the connection up: nobody is called lost for its own sleep."""
    with World(options, session=QUICK) as world:
        world.start(2)
        with Load(world) as load:
            for _ in range(options.rounds):
                load.wait_accepted(30)
                before = [len(agent.proxy.accepted) for agent in world.agents]
                world.scheduler.signal(signal.SIGSTOP)
                for agent, count in zip(world.agents, before):
                    wait_until(lambda a=agent, c=count: len(a.proxy.accepted) > c, f"{agent.name} gives the connection up")
                world.scheduler.signal(signal.SIGCONT)
                world.wait_ready()
            finish(world, load)
        for agent in world.agents:
            counters = agent.facts()["counters"]
            check(counters["times_lost"] == 0, f"{agent.name} was called lost for time that the scheduler slept")
            check(counters["sessions"] == 1, f"{agent.name} had to begin {counters['sessions']} sessions")
        return f"{resumed(world)} resumes; {load.summary()}"


def scheduler_drained(options):
    """SIGTERM under load: sessions are told, spread over the window; the process ends; the next one goes on."""
    with World(options) as world:
        world.start(3)
        with Load(world) as load:
            for _ in range(2 * options.rounds):
                load.wait_accepted(40)
                world.scheduler.signal(signal.SIGTERM)
                check(world.scheduler.wait(10) == 0, "the drained scheduler did not end with 0")
                world.scheduler.start()
                world.wait_ready()
            finish(world, load)
        is_all_kept(world, load)
        return load.summary()


def agents_drained(options):
    """SIGTERM of agents under load: what they took is finished, the rest is refused or waits for the next process."""
    with World(options) as world:
        world.start(2)
        drains = 4 * options.rounds
        with Load(world) as load:
            for _ in range(drains):
                load.wait_accepted(20)
                agent = world.random.choice(world.agents)
                agent.signal(signal.SIGTERM)
                check(agent.wait(20) == 0, f"{agent.name} was drained and did not end with 0")
                agent.start()
                world.wait_ready()
            finish(world, load)
        return f"{drains} drains; {load.summary()}"


def chaos(options):
    """All of it in any order: cuts in every manner, stalls, kills, drains and short sleeps of anybody."""
    with World(options, session=QUICK) as world:
        world.start(3)
        done = []
        with Load(world) as load:
            for _ in range(14 * options.rounds):
                load.wait_accepted(world.random.randrange(5, 25))
                agent = world.random.choice(world.agents)
                action = world.random.choice((cut_some, stall_some, kill_scheduler, kill_agent, drain_agent, sleep_a_little))
                done.append(action.__name__)
                action(world, agent)
            for agent in world.agents:
                agent.proxy.flow()
            finish(world, load)
        is_all_kept(world, load)
        return f"{len(done)} faults; {load.summary()}"


def cut_some(world, agent):
    agent.proxy.cut(world.random.choice(MANNERS))


def stall_some(world, agent):
    agent.proxy.stall(world.random.choice((UP, DOWN)))


def kill_scheduler(world, _):
    world.scheduler.kill()
    world.scheduler.start()


def kill_agent(_, agent):
    agent.kill()
    agent.start()


def drain_agent(_, agent):
    """It may be cut off or stalled, and then has nobody to say goodbye to: it is not waited for long."""
    agent.signal(signal.SIGTERM)
    try:
        agent.wait(1)
    except Failure:
        agent.kill()
    agent.start()


def sleep_a_little(world, agent):
    victim = world.random.choice((world.scheduler, agent))
    victim.signal(signal.SIGSTOP)
    time.sleep(world.random.uniform(0.1, 1.5))  # the fault itself
    victim.signal(signal.SIGCONT)


def twins(options):
    """A copied identity: the newer one gets the work, the older one is found out when it comes back, and is reported."""
    with World(options) as world:
        world.start(1)
        first = world.agents[0]
        with Load(world) as load:
            load.wait_accepted(40)
        load.settle()
        # Its link is stuck, so it does not hear that it is replaced, and holds on to its session.
        first.proxy.stall(UP, DOWN)
        second = world.add_agent()
        os.makedirs(second.state)
        with open(os.path.join(second.state, "worker_instance_id"), "w", encoding="utf-8") as file:
            file.write(first.id + "\n")
        second.start()
        wait_until(lambda: (first.facts() or {}).get("counters", {}).get("sessions") == 2, "the second one takes over")
        wait_until(second.is_ready, "the second one is READY")
        check(world.admin.metric("windlass_twins_suspected_total") == 0, "a new registration alone was called a twin")
        first.proxy.cut(RST)
        wait_until(lambda: world.admin.metric("windlass_twins_suspected_total") >= 1, "the twin is reported")
        check(second.facts()["counters"]["twins_suspected"] >= 1, "the worker's own record does not say that it has a twin")
        first.kill()
        wait_until(second.is_ready, "the second one is READY again")
        again = Load(world, [second])
        again.submitters[0].number = 9
        with again:
            again.wait_accepted(40)
        again.settle()
        load.check()
        again.check()
        return f"{int(world.admin.metric('windlass_twins_suspected_total'))} reports; {load.summary()} before, {again.summary()} after"


def twins_in_turns(options):
    """Two machines with one identity and sound links: each drives the other out, and that is reported too."""
    with World(options) as world:
        world.start(1)
        first = world.agents[0]
        second = world.add_agent()
        os.makedirs(second.state)
        with open(os.path.join(second.state, "worker_instance_id"), "w", encoding="utf-8") as file:
            file.write(first.id + "\n")
        second.start()
        wait_until(lambda: world.admin.metric("windlass_twins_suspected_total") >= 1, "twins in turns are reported")
        reported = first.facts()["counters"]
        check(reported["twins_suspected"] >= 1, "the worker's own record does not say that it has a twin")
        # A worker that is killed and started again is no twin of itself.
        second.kill()
        wait_until(first.is_ready, "the first one is READY again")
        before = world.admin.metric("windlass_twins_suspected_total")
        for _ in range(4 * options.rounds):
            first.kill()
            wait_until(lambda: (first.facts() or {}).get("state") == "DETACHED", "the killed one is missed")
            first.start()
            world.wait_ready()
        now = world.admin.metric("windlass_twins_suspected_total")
        check(now == before, f"a worker that restarts was called a twin {now - before:g} times")
        return f"{before:g} reports in {reported['sessions']} sessions"


CASES = {"scheduler_killed": scheduler_killed, "agents_killed": agents_killed, "both_killed": both_killed,
         "agent_suspended": agent_suspended, "scheduler_suspended": scheduler_suspended,
         "scheduler_drained": scheduler_drained, "agents_drained": agents_drained,
         "chaos": chaos, "twins": twins, "twins_in_turns": twins_in_turns}
