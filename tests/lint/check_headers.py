#!/usr/bin/env python3
"""Whether the headers that changed compile by themselves. The build target all_verify_interface_header_sets, which ./dev lint and CI
build, says it of all: parsing the standard library 250 times is a minute and a half that not every test run can spare."""

import argparse
import concurrent.futures
import os
import subprocess

import changed
import tree


def check(root, build, names):
    """Problems of these headers, one text each."""
    commands = {os.path.realpath(entry["file"]): entry for entry in tree.database(build)}

    def one(item):
        name, unit = item
        entry = commands[unit]
        run = subprocess.run(entry["command"] + " -fsyntax-only", shell=True, cwd=entry["directory"], capture_output=True, text=True)
        return f"{name}: does not compile by itself\n{run.stderr}" if run.returncode != 0 else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for problem in pool.map(one, changed.units(root, build, names)) if problem]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--build", required=True)
    arguments = parser.parse_args()
    names = [name for name in changed.files(arguments.root) if name.endswith(".h")]
    tree.finish(check(arguments.root, arguments.build, names), f"{len(names)} changed headers compile by themselves")


if __name__ == "__main__":
    main()
