"""A bad day: random faults on real processes under load, many at a time, a third of what is killed stays dead.

  bad_day.py --minutes 30                    with a seed that is drawn and printed
  bad_day.py --minutes 30 --seed 4711        the same faults in the same order; when the kernel runs whom stays its own
  bad_day.py --seconds 20                    what ./dev test does, as the case `bad_day` of run.py

The day goes in rounds: some faults, then quiet until as many workers serve as were asked for, then the round is judged. All day long the
views are watched (day_truth.py), and afterwards every invocation and command is accounted for (day_load.py).
"""
import argparse
import os
import secrets
import signal
import subprocess
import sys
import time
import traceback

from day_faults import Faults
from day_load import DayLoad
from day_truth import Truth
from day_world import NOTICE, DayWorld
from world import Failure

SLOTS = 10  # of a worker, by default
ROUND_FAULTS = (2, 7)


class Round:
    """What its faults may cost callers."""

    def __init__(self, number, began):
        self.number, self.began = number, began
        self.said = []
        self.may_lose = 0  # all day until now
        self.may_refuse = self.may_refuse_orders = self.may_break = False

    def story(self):
        return f"round {self.number}: " + "; ".join(self.said)


class BadDay:
    def __init__(self, world, options):
        self.world, self.options = world, options
        self.begun = time.monotonic()
        self.round = Round(0, self.begun)
        self.faults = Faults(world, options.lost_after, self.log)

    def log(self, said):
        line = f"{time.monotonic() - self.begun:7.1f} s  {said}"
        self.round.said.append(line.strip())
        if self.options.verbose:
            print(line, flush=True)

    def check_well(self, load, truth):
        load.check_well()
        truth.check_well()
        for process in self.world.processes():
            process.check_alive()

    def run_round(self, number, load, truth):
        world, faults = self.world, self.faults
        self.round = Round(number, time.monotonic())
        before, before_scheduler = faults.runtime_kills, faults.scheduler_kills
        for _ in range(world.random.randrange(*ROUND_FAULTS)):
            faults.strike()
            pause = time.monotonic() + world.random.uniform(0, 2)
            while time.monotonic() < pause:
                faults.settle()
                self.check_well(load, truth)
                time.sleep(0.05)
        faults.settle(all_of_them=True)
        away = [agent for agent, at in faults.away.items() if at >= self.round.began]
        world.wait_served(self.options.lost_after + NOTICE + self.options.patience)
        self.check_well(load, truth)
        kills = faults.runtime_kills - before
        self.round.may_lose = SLOTS * faults.dangers
        self.round.may_break = kills > 0
        # With fewer of them than workers somebody is always there who can take an invocation.
        self.round.may_refuse = kills > 0 or len(away) >= world.workers
        # A scheduler that was just started does not know yet which runtimes serve what.
        self.round.may_refuse_orders = self.round.may_refuse or faults.scheduler_kills > before_scheduler
        load.judge(self.round)

    def run(self):
        world, options = self.world, self.options
        world.begin()
        self.begun = time.monotonic()
        truth = Truth(world, options.lost_after)
        truth.start()
        rounds = 0
        with DayLoad(world) as load:
            while time.monotonic() - self.begun < options.seconds:
                rounds += 1
                self.run_round(rounds, load, truth)
                if options.verbose:
                    print(f"{time.monotonic() - self.begun:7.1f} s  round {rounds} is whole; {len(load.tries)} invocations, "
                          f"{len(load.commands)} commands so far", flush=True)
            load.finish(60)
            truth.stopping.set()
            truth.join(60)
            self.check_well(load, truth)
            results = load.check(self.faults.runtime_kills)
            commands = load.check_commands(options.lost_after + 60)
        faults = self.faults
        return (f"{faults.count} faults in {rounds} rounds, {faults.killed} agents killed and {faults.left} of them left dead; invocations "
                f"{dict(results)}; {commands}; {truth.looks} looks at the views, {truth.notices} at somebody gone, {truth.losses} at somebody lost")


def run_day(options):
    with DayWorld(options) as world:
        return BadDay(world, options).run()


def short_day(options):
    """The case of run.py."""
    options.seconds, options.workers, options.lost_after, options.patience, options.verbose = 15, 3, 6, 40, False
    return run_day(options)


CASES = {"bad_day": short_day}


def commit():
    done = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="build/release", help="the build folder (build/release)")
    parser.add_argument("--seed", type=int, help="of every random choice; one is drawn and printed if not given")
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=4, help="of the application (4)")
    parser.add_argument("--lost-after", type=float, default=10.0, help="seconds after which the scheduler counts somebody as lost (10)")
    parser.add_argument("--patience", type=float, default=40.0, help="seconds for a replacement to serve, beyond lost_after (40)")
    parser.add_argument("--quiet", dest="verbose", action="store_false", help="only the outcome")
    options = parser.parse_args()
    options.seconds = options.seconds + 60 * options.minutes or 60
    if options.seed is None:
        options.seed = secrets.randbelow(2**32)
    print(f"bad day: seed {options.seed}, commit {commit()}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        print(f"bad day: {run_day(options)}", flush=True)
        return 0
    except Failure as failure:
        traceback.print_exc()
        print(f"bad day: FAILED: {failure}; again with --seed {options.seed}, commit {commit()}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
