"""Fault tests on real processes: windlass-scheduler, windlass-agent and windlass-runtime over TLS, broken on purpose, under load.

  run.py --programs build/release                    every case, one after the other
  run.py --programs build/release agents_killed      one case
  run.py --programs build/release --seed 17 cuts     as it was: the seed of a run is the first thing it prints
  run.py --list

WINDLASS_FAULT_ROUNDS=20 makes the cases that repeat their fault do so that many times as often: a soak.
"""
import argparse
import os
import secrets
import signal
import sys
import time
import traceback

import bad_day
import cases_clock
import cases_disk
import cases_loss
import cases_memory
import cases_network
import cases_processes
import cases_runtime
import cases_store
import cases_workers
from world import Failure

CASES = {name: case for module in (cases_network, cases_processes, cases_disk, cases_clock, cases_store, cases_runtime,
                                   cases_workers, cases_memory, cases_loss, bad_day)
         for name, case in module.CASES.items()}


def run(name, options):
    begun = time.monotonic()
    print(f"{name}: seed {options.seed}", flush=True)
    try:
        said = CASES[name](options)
    except Failure as failure:
        traceback.print_exc()
        print(f"{name}: FAILED: {failure}; again with --seed {options.seed} {name}", flush=True)
        return False
    print(f"{name}: {said}; {time.monotonic() - begun:.1f} s", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="build/release", help="the build folder (build/release)")
    parser.add_argument("--seed", type=int, help="of every random choice; one is drawn and printed if not given")
    parser.add_argument("--list", action="store_true", help="names the cases")
    parser.add_argument("--expect", metavar="NAMES", help="fails unless these, with semicolons, are all the cases")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all if none is given")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return 0
    if options.expect is not None:
        forgotten = set(CASES) ^ set(options.expect.split(";"))
        print(f"not in both lists: {sorted(forgotten)}" if forgotten else "every case is a test")
        return 1 if forgotten else 0
    for name in options.cases:
        if name not in CASES:
            parser.error(f"there is no case '{name}'; --list names them")
    if options.seed is None:
        options.seed = secrets.randbelow(2**32)
    options.rounds = int(os.environ.get("WINDLASS_FAULT_ROUNDS", "1"))
    # A test that is told to end takes its processes down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return 0 if all([run(name, options) for name in options.cases or CASES]) else 1


if __name__ == "__main__":
    sys.exit(main())
