#!/usr/bin/env python3
"""clang-tidy on the files that changed: since the merge base with the upstream branch, or by the last commit when there is nothing
in between, and what is not committed yet. Within a time budget, so that it stays part of every test run; --all has none."""

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


def check(root, build, names, budget):
    if not (pathlib.Path(build) / "compile_commands.json").exists():
        return [f"{build} is not configured"], []
    with tempfile.TemporaryDirectory() as database:
        pathlib.Path(database, "compile_commands.json").write_text(json.dumps(tree.database(build)))
        return check_units(root, database, changed.units(root, build, names), budget)


def check_units(root, database, work, budget):
    deadline = time.monotonic() + budget if budget else None

    def one(item):
        left = deadline - time.monotonic() if deadline else None
        return item[0], tidy(root, database, item[1], left) if left is None or left > 1 else None

    problems, skipped = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, found in pool.map(one, work):
            if found is None:
                skipped.append(f"{name}: not looked at, the time budget was spent")
            else:
                problems += found
            if not budget:
                print(f"{name}: {'not finished' if found is None else len(found)}", flush=True)
    return sorted(set(problems)), skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--build", required=True)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    names = tree.files(arguments.root, ".cc", ".h") if arguments.all else changed.files(arguments.root)
    problems, skipped = check(arguments.root, arguments.build, names, None if arguments.all else BUDGET_SECONDS)
    tree.finish(problems, f"clang-tidy is quiet on {len(names) - len(skipped)} of {len(names)} files", skipped)


if __name__ == "__main__":
    main()
