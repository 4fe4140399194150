#!/usr/bin/env python3
"""Whether the headers that changed compile by themselves. The build target all_verify_interface_header_sets, which ./dev lint and CI
build, says it of all: parsing the standard library 250 times is a minute and a half that not every test run can spare."""

import argparse
import concurrent.futures
import os
import subprocess

import changed
import tree


def check(root, builds, names):
    """Problems of these headers, one text each; and the names that nothing compiles."""
    entries = changed.database(builds)
    work, without = changed.units(root, entries, names)
    if not entries:
        return [f"{' and '.join(str(build) for build in builds)}: not configured"], without

    def one(item):
        name, unit = item
        entry = entries[unit]
        run = subprocess.run(entry["command"] + " -fsyntax-only", shell=True, cwd=entry["directory"], capture_output=True, text=True)
        return f"{name}: does not compile by itself\n{run.stderr}" if run.returncode != 0 else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for problem in pool.map(one, work) if problem], without


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--build", required=True, action="append")
    arguments = parser.parse_args()
    names = [name for name in changed.files(arguments.root) if name.endswith(".h")]
    problems, without = check(arguments.root, arguments.build, names)
    tree.finish(problems, f"{len(names) - len(without)} of {len(names)} changed headers compile by themselves", changed.note_without(without))


if __name__ == "__main__":
    main()
