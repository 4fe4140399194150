"""What a network does to sessions: cuts at any byte, stalls, delay, and everybody dropped at once."""
import time

from fault_proxy import DOWN, FIN, HALF_OPEN, RST, SILENT, UP, Plan
from load import Load
from lossy_network import LossyNetwork
from world import TENANT, World, check, wait_until

QUICK = 'heartbeat = "1s"\nhandshake_deadline = "2s"'  # three seconds of silence and a worker is lost

NOTICED = 5  # seconds from a cut until every view says so


def finish(world, load):
    """Faults are over: the fleet is whole again and every promise was kept."""
    load.stop()
    world.wait_ready()
    load.settle()
    return load.check()


def resumed(world):
    return int(world.admin.metric("windlass_sessions_total", result="resumed"))


def calm(agent):
    agent.proxy.make_plan = lambda number: Plan()
    agent.proxy.calm()


def cuts(options):
    """Each connection is cut at a random byte, mostly early, in a random direction and manner."""
    with World(options) as world:
        world.start(3)

        def plan_for(random):
            def plan(_):
                byte = int(10 ** random.uniform(1, 5))
                return Plan({random.choice((UP, DOWN)): byte}, random.choice((RST, FIN, HALF_OPEN)))
            return plan

        with Load(world) as load:
            for agent in world.agents:
                agent.proxy.make_plan = plan_for(agent.proxy.random)
                agent.proxy.cut(RST)
            goal = 25 * options.rounds
            for agent in world.agents:
                wait_until(lambda a=agent: len(a.proxy.accepted) > goal, f"{agent.name} was cut {goal} times", 60 * options.rounds)
            for agent in world.agents:
                calm(agent)
            finish(world, load)
        count = sum(len(agent.proxy.accepted) for agent in world.agents)
        check(resumed(world) > 0, "no session was resumed")
        return f"{count} connections, {resumed(world)} resumes; {load.summary()}"


def half_open(options):
    """The worker is gone and the scheduler was not told: a resume takes over, and the old connection's end changes nothing."""
    with World(options) as world:
        world.start(2)
        with Load(world) as load:
            for number in range(8 * options.rounds):
                load.wait_accepted(10)
                for agent in world.agents:
                    before = len(agent.proxy.accepted)
                    agent.proxy.cut(HALF_OPEN)
                    wait_until(lambda a=agent, n=before: len(a.proxy.accepted) > n, f"{agent.name} dials again")
                    resumes = number + 1
                    wait_until(lambda a=agent, n=resumes: a.facts()["counters"]["resumes"] >= n, f"{agent.name} resumes")
                    agent.proxy.bury()
                # Heartbeats come every half minute here: what is answered now is answered over the new connection.
                for agent in world.agents:
                    answer_soon(world, agent, f"soon-{number}-{agent.name}")
            finish(world, load)
        for agent in world.agents:
            counters = agent.facts()["counters"]
            check(counters["sessions"] == 1 and counters["resumes"] == 8 * options.rounds,
                  f"{agent.name} was cut {8 * options.rounds} times and has {counters['sessions']} sessions, {counters['resumes']} resumes")
        return f"{resumed(world)} resumes; {load.summary()}"


def answer_soon(world, agent, command):
    body = {"id": command, "type": "biz.echo", "payload": {}}
    accepted = world.admin.request("POST", f"/v1/workers/{TENANT}/{agent.id}/commands", body)
    check(accepted.status == 202, f"{command} was answered with {accepted.status} {accepted.body}")
    record = world.admin.get(f"/v1/commands/{TENANT}/{command}?wait_ms=10000")
    check(record["state"] == "done", f"{command} is {record['state']} ten seconds after the resume of {agent.name}")


def sweep(early, steps, random):
    """Cut points over all bytes up to the accept, both directions, a little beyond."""
    plans = []
    for direction in (UP, DOWN):
        step = max(1, (early[direction] + 300) // steps)
        for byte in range(random.randrange(step), early[direction] + 300, step):
            plans.append(Plan({direction: byte}, random.choice((RST, FIN))))
    return plans


def early_bytes(options):
    """Closes at byte n for n over TLS handshake, upgrade, handshake and register; then again over resumes."""
    fast = '[load]\ninterval = "1h"'
    with World(options, agent=fast) as world:
        world.scheduler.start()
        scout = world.add_agent()
        scout.start()
        world.wait_ready()
        early = scout.proxy.passed()
        steps = 40 * options.rounds
        points = sweep(early, steps, world.random)
        swept = world.add_agent(lambda number: points[number] if number < len(points) else Plan())
        text = open(swept.config, encoding="utf-8").read().replace('"20ms"', '"1ms"').replace('"400ms"', '"10ms"')
        world.write("agent-2.toml", text)
        swept.start()
        wait_until(lambda: len(swept.proxy.accepted) > 3, "the new agent dials again and again")
        with Load(world) as load:
            wait_until(lambda: len(swept.proxy.accepted) > len(points), "every point was tried", 60 * options.rounds)
            wait_until(swept.is_ready, "the agent is READY after the sweep")
            fresh = int(world.admin.metric("windlass_sessions_total", result="new"))
            before = len(swept.proxy.accepted)
            again = sweep(early, steps, world.random)
            swept.proxy.make_plan = lambda number: again[number - before] if number - before < len(again) else Plan()
            swept.proxy.cut(RST)
            wait_until(lambda: len(swept.proxy.accepted) > before + len(again), "every point was tried by a resume",
                       60 * options.rounds)
            finish(world, load)
        check(resumed(world) > 0, "no session was resumed")
        now = int(world.admin.metric("windlass_sessions_total", result="new"))
        check(now == fresh, f"{now - fresh} resumes ended in a new session, though the session was there")
        return (f"{len(points)} + {len(again)} cuts over {early[UP]} bytes up and {early[DOWN]} down, "
                f"{resumed(world)} resumes; {load.summary()}")


def stalls(options):
    """Up, down, both, and a silent death: each longer than the ladder of liveness, all at once."""
    with World(options, session=QUICK) as world:
        world.start(4)
        with Load(world) as load:
            load.wait_accepted(40)
            for _ in range(options.rounds):
                before = [len(agent.proxy.accepted) for agent in world.agents]
                up, down, both, silent = world.agents
                up.proxy.stall(UP)
                down.proxy.stall(DOWN)
                both.proxy.stall(UP, DOWN)
                silent.proxy.cut(SILENT)
                for agent, count in zip(world.agents, before):
                    wait_until(lambda a=agent, c=count: len(a.proxy.accepted) > c, f"{agent.name} dials again", 30)
                world.wait_ready()
            for agent in world.agents:
                agent.proxy.flow()
            finish(world, load)
            # Which side gives up first is a race of two ladders; that this one was climbed is not.
            missed = world.admin.metric("ws_heartbeat_miss_total", worker=up.id)
            check(missed >= 2 * options.rounds, f"the worker that could not speak was missed {missed:g} times only")
        for agent in world.agents:
            counters = agent.facts()["counters"]
            check(counters["sessions"] == 1 and counters["resumes"] >= 1,
                  f"{agent.name} has {counters['sessions']} sessions and {counters['resumes']} resumes, not one session that was resumed")
        misses = int(world.admin.metric("ws_heartbeat_miss_total"))
        check(misses >= 3, f"only {misses} missed heartbeats were counted")
        return f"{resumed(world)} resumes, {misses} missed heartbeats; {load.summary()}"


def delay(options):
    """A slow, far network: nobody is called lost, nothing is reset, nothing is said twice for long."""
    with World(options, session='heartbeat = "2s"') as world:
        world.start(3, lambda number: Plan(delay=(0.02, 0.08), bytes_per_second=200_000))
        with Load(world) as load:
            load.wait_accepted(250 * options.rounds, 60 * options.rounds)
            finish(world, load)
        for agent in world.agents:
            counters = agent.facts()["counters"]
            check(counters["sessions"] == 1 and counters["resumes"] == 0 and counters["times_lost"] == 0,
                  f"a slow network ended something of {agent.name}: {counters}")
        return load.summary()


def storm(options):
    """Everybody is dropped at once, several times: reconnects are spread over the backoff."""
    wide = 1.0
    with World(options) as world:
        world.scheduler.start()
        for _ in range(8):
            agent = world.add_agent()
            text = open(agent.config, encoding="utf-8").read().replace('"20ms"', f'"{wide:g}s"').replace('"400ms"', f'"{wide:g}s"')
            world.write(f"{agent.name}.toml", text)
            agent.start()
        world.wait_ready()
        delays = []
        with Load(world, world.agents[:2]) as load:
            for _ in range(3 * options.rounds):
                before = [len(agent.proxy.accepted) for agent in world.agents]
                begun = time.monotonic()
                for agent in world.agents:
                    agent.proxy.cut(RST)
                for agent, count in zip(world.agents, before):
                    wait_until(lambda a=agent, c=count: len(a.proxy.accepted) > c, f"{agent.name} dials again")
                    delays.append(agent.proxy.accepted[count] - begun)
                world.wait_ready()
            finish(world, load)
        delays.sort()
        check(delays[-1] < wide + 1.0, f"a reconnect took {delays[-1]:.2f} s, with a backoff of at most {wide} s")
        width = wide / 5
        crowd = max(sum(1 for other in delays if each <= other < each + width) for each in delays)
        # A fifth of the time should see a fifth of them; two thirds is far beyond chance.
        check(crowd <= len(delays) * 2 // 3, f"{crowd} of {len(delays)} reconnects came within {width:.1f} s: {delays}")
        check(resumed(world) >= len(delays), f"{resumed(world)} resumes of {len(delays)} drops")
        return f"{len(delays)} drops, at most {crowd} reconnects in {width:.1f} s of {wide} s; {load.summary()}"


def silent_cut(options):
    """Packets vanish and nobody is told: every view says so within five seconds, long before a heartbeat is due, and the session goes on."""
    network = LossyNetwork()
    with World(options) as world:
        world.start(2)
        busy, idle = world.agents  # something is always on its way to the first, nothing to the other
        with Load(world, [busy]) as load:
            load.wait_accepted(10)
            ports = [world.port, *(agent.proxy.port for agent in world.agents)]
            network.drop(ports)
            begun = time.monotonic()
            for agent in (busy, idle):
                wait_until(lambda a=agent: a.facts()["state"] == "DETACHED", f"{agent.name} is said to be detached",
                           begun + NOTICED - time.monotonic())
            noticed = time.monotonic() - begun
            network.deliver(ports)
            finish(world, load)
        for agent in world.agents:
            counters = agent.facts()["counters"]
            check(counters["sessions"] == 1 and counters["resumes"] >= 1, f"{agent.name} did not resume: {counters}")
        return f"noticed after {noticed:.1f} s; {load.summary()}"


CASES = {"cuts": cuts, "half_open": half_open, "early_bytes": early_bytes, "stalls": stalls, "delay": delay, "storm": storm,
         "silent_cut": silent_cut}
