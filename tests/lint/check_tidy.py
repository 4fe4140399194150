#!/usr/bin/env python3
"""clang-tidy on the files that changed, as changed.py knows them. Within a time budget, so that it stays part of every test run;
--no-budget and --all have none."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import changed
import tree

BUDGET_SECONDS = 50


def tidy(root, database, path, timeout):
    own = re.escape(os.path.realpath(root)) + "/(protocol|scheduler|worker-agent|runtime|conformance|tests)/"
    # The build is GCC's: clang does not know all of its warnings.
    command = ["clang-tidy", "--quiet", "-p", database, "--extra-arg=-Wno-unknown-warning-option", f"--header-filter={own}", path]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    return [] if run.returncode == 0 else [line for line in run.stdout.splitlines() if re.search(r": (error|warning): ", line)] or [run.stderr]


class Looked:
    """What came of it: findings, names that nothing compiles, names that the budget left out, names that were looked at."""

    def __init__(self, without):
        self.problems, self.without, self.skipped, self.seen = [], without, [], []

    def notes(self):
        spent = [f"{len(self.skipped)} files were not looked at, the time budget of {BUDGET_SECONDS} s was spent"] if self.skipped else []
        return changed.note_without(self.without) + spent


def check(root, builds, names, budget):
    entries = changed.database(builds)
    work, without = changed.units(root, entries, names)
    looked = Looked(without)
    if not entries:
        looked.problems = [f"{' and '.join(str(build) for build in builds)}: not configured"]
        return looked
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "compile_commands.json").write_text(json.dumps(list(entries.values())))
        check_units(root, folder, work, budget, looked)
    return looked


def check_units(root, folder, work, budget, looked):
    deadline = time.monotonic() + budget if budget else None

    def one(item):
        left = deadline - time.monotonic() if deadline else None
        return item[0], tidy(root, folder, item[1], left) if left is None or left > 1 else None

    problems = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, found in pool.map(one, work):
            (looked.skipped if found is None else looked.seen).append(name)
            problems.update(found or [])
            if not budget:
                print(f"{name}: {len(found)}", flush=True)
    looked.problems = sorted(problems)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--build", required=True, action="append", help="may come twice; what the first does not compile, the next may")
    parser.add_argument("--all", action="store_true", help="every file, whether it changed or not")
    parser.add_argument("--no-budget", action="store_true", help="however long it takes")
    arguments = parser.parse_args()
    names = tree.files(arguments.root, ".cc", ".h") if arguments.all else changed.files(arguments.root)
    looked = check(arguments.root, arguments.build, names, None if arguments.all or arguments.no_budget else BUDGET_SECONDS)
    tree.finish(looked.problems, f"clang-tidy is quiet on {len(looked.seen)} of {len(names)} files", looked.notes())


if __name__ == "__main__":
    main()
