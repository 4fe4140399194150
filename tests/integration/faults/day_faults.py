"""What happens on a bad day. Each fault is drawn from the world's seed, says what it did in one line, and returns what it owes:
a function that ends it (restarts, lets go on) after a while, or nothing.

A third of the agents that are killed stay dead; a newcomer with a state of its own takes each one's place.
"""
import os
import signal
import time

from fault_proxy import FIN, HALF_OPEN, RST
from function_world import worker_pid
from world import TENANT, Failure

LEFT_DEAD = 3  # each third one
WAITS = "waits"  # said by the end of a fault that is to be asked again
ENDS_WITHIN = 120.0  # an agent that is told to, once its scheduler and its runtime are there


class Fault:
    """One that is under way: when it ends, and how."""

    def __init__(self, said, seconds=0.0, end=None):
        self.said, self.due, self.end = said, time.monotonic() + seconds, end


class Faults:
    def __init__(self, world, lost_after, log):
        self.world, self.random, self.lost_after, self.log = world, world.random, lost_after, log
        self.under_way = []
        self.turn = self.random.randrange(LEFT_DEAD)
        self.killed = self.left = self.runtime_kills = self.scheduler_kills = self.count = 0
        self.dangers = 0  # times that a worker with what it had under way was hit
        self.away = {}  # agent -> when it was last known not to work
        self.weights = {self.kill_agent: 6, self.kill_worker: 4, self.suspend_agent: 3, self.cut_agent: 4, self.cut_runtime: 4, self.kill_scheduler: 2,
                        self.kill_runtime: 2, self.term_agent: 2, self.drain_agent: 2}

    # ---- the loop

    def strike(self):
        """One more fault, whichever can be had now."""
        kinds = list(self.weights)
        while kinds:
            kind = self.random.choices(kinds, [self.weights[each] for each in kinds])[0]
            fault = kind()
            if fault is not None:
                self.count += 1
                self.log(fault.said)
                if fault.end:
                    self.under_way.append(fault)
                return
            kinds.remove(kind)

    def settle(self, all_of_them=False):
        """Ends what is due, or everything, in the order in which it is due."""
        while self.under_way:
            fault = min(self.under_way, key=lambda each: each.due)
            if all_of_them:
                time.sleep(max(0.0, fault.due - time.monotonic()))
            if fault.due > time.monotonic():
                return
            if fault.end() is WAITS:
                fault.due = time.monotonic() + 0.2
            else:
                self.under_way.remove(fault)

    # ---- who is hit

    def pick(self):
        """An agent that nothing is the matter with; two thirds of the fleet are left alone at a time."""
        fit = [agent for agent in self.world.living() if self.world.lives[agent].gone_since is None]
        if len(fit) <= max(2, len(self.world.living()) * 2 // 3):
            return None
        return self.random.choice(fit)

    def endanger(self, agent):
        self.dangers += 1
        self.away[agent] = time.monotonic()

    def come_back(self, agent):
        self.away[agent] = time.monotonic()
        self.world.bring(agent)
        self.log(f"{agent.name} is started again")

    def kill_agent(self):
        agent = self.pick()
        if agent is None:
            return None
        self.endanger(agent)
        self.killed += 1
        agent.kill()
        self.world.lives[agent].goes()
        if self.killed % LEFT_DEAD == self.turn:
            self.left += 1
            self.world.lives[agent].is_left = True
            newcomer = self.world.add_agent()
            return Fault(f"kill -9 {agent.name}, for good; {newcomer.name} takes its place", self.random.uniform(0, self.lost_after),
                         lambda: self.come_back(newcomer))
        away = self.random.choice([0.0, self.random.uniform(0, 2), self.random.uniform(0, self.lost_after * 1.5)])
        return Fault(f"kill -9 {agent.name}, back in {away:.1f} s", away, lambda: self.come_back(agent))

    def kill_worker(self):
        agent = self.pick()
        if agent is None:
            return None
        try:
            pid = worker_pid(agent)
        except (Failure, OSError):
            return None
        self.endanger(agent)
        self.world.lives[agent].touch()
        os.kill(pid, signal.SIGKILL)
        return Fault(f"kill -9 of the language worker of {agent.name}")

    def suspend_agent(self):
        agent = self.pick()
        if agent is None:
            return None
        away = self.random.uniform(0.2, self.lost_after * 1.5)
        self.endanger(agent)
        agent.signal(signal.SIGSTOP)
        self.world.lives[agent].goes()

        def resume():
            self.away[agent] = time.monotonic()
            agent.signal(signal.SIGCONT)
            self.world.lives[agent].comes()
            self.log(f"{agent.name} goes on")
        return Fault(f"{agent.name} stands still for {away:.1f} s", away, resume)

    def cut_agent(self):
        """Between an agent and the scheduler: nobody's work is lost."""
        agent = self.pick()
        if agent is None:
            return None
        manner = self.random.choice([RST, FIN, HALF_OPEN])
        self.world.lives[agent].touch()
        agent.proxy.cut(manner)
        return Fault(f"the link of {agent.name} to the scheduler is cut ({manner})")

    def cut_runtime(self):
        """Between agents and the runtime, one or all: nobody's work is lost."""
        manner = self.random.choice([RST, FIN, HALF_OPEN])
        everybody = self.random.random() < 0.3
        for agent in self.world.living():
            self.world.lives[agent].touch()
        if everybody:
            self.world.proxy.cut(manner)
        else:
            self.world.proxy.cut_one(manner)
        return Fault(f"{'every link' if everybody else 'a link'} to the runtime is cut ({manner})")

    def is_calm(self, process, life):
        return process.is_running and life.gone_since is None

    def kill_scheduler(self):
        world = self.world
        if not self.is_calm(world.scheduler, world.scheduler_life):
            return None
        away = self.random.uniform(0, 2)
        self.scheduler_kills += 1
        world.scheduler_life.goes()
        world.scheduler.kill()

        def back():
            world.scheduler.start()
            self.log("the scheduler is started again")
        return Fault(f"kill -9 of the scheduler, back in {away:.1f} s", away, back)

    def kill_runtime(self):
        world = self.world
        if not self.is_calm(world.runtime, world.runtime_life):
            return None
        away = self.random.uniform(0, min(2.0, self.lost_after / 3))
        self.runtime_kills += 1
        world.runtime_life.goes()
        world.runtime.kill()

        def back():
            world.runtime.start()
            world.runtime_life.comes()
            self.log("the runtime is started again")
        return Fault(f"kill -9 of the runtime, back in {away:.1f} s", away, back)

    def term_agent(self):
        """SIGTERM, and started again as a service manager would."""
        agent = self.pick()
        if agent is None or not self.is_calm(self.world.scheduler, self.world.scheduler_life):
            return None
        self.world.lives[agent].goes()
        self.away[agent] = time.monotonic()
        agent.is_wanted = False
        agent.signal(signal.SIGTERM)
        return Fault(f"{agent.name} is told to end", 0.5, lambda: self._restart_ended(agent))

    def drain_agent(self):
        agent = self.pick()
        if agent is None or not self.is_calm(self.world.scheduler, self.world.scheduler_life):
            return None
        try:
            answer = self.world.admin.request("POST", f"/v1/workers/{TENANT}/{agent.id}/drain", {"reason": "a bad day"})
        except OSError:
            return None
        if answer.status >= 300:
            return None  # it has no session at the moment
        self.world.lives[agent].goes()
        self.away[agent] = time.monotonic()
        agent.is_wanted = False
        return Fault(f"{agent.name} is drained by an operator", 0.5, lambda: self._restart_ended(agent))

    def _restart_ended(self, agent):
        if agent.is_running:
            gone = self.world.lives[agent].gone_for(time.monotonic())
            if gone > ENDS_WITHIN:
                raise Failure(f"{agent.name} was told to end {gone:.0f} s ago and runs: {agent.said()[-1000:]}")
            return WAITS
        if agent.process.returncode != 0:
            raise Failure(f"{agent.name} was to end in order and ended with {agent.process.returncode}: {agent.said()[-1000:]}")
        self.away[agent] = time.monotonic()
        self.world.bring(agent)
        self.log(f"{agent.name} has ended and is started again")
        return None
