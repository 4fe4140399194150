#!/usr/bin/env python3
"""clang-format would change nothing. ./dev format mends what this finds."""

import argparse
import re
import subprocess

import tree


def check(root, program="clang-format"):
    names = tree.files(root, ".cc", ".h")
    if not names:
        return [], 0
    run = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *names], cwd=root, capture_output=True, text=True)
    found = sorted(set(re.findall(r"^(\S+:\d+):\d+: error", run.stderr, re.MULTILINE)))
    if run.returncode != 0 and not found:
        return [run.stderr.strip()], len(names)
    return [f"{place}: not formatted; run ./dev format" for place in found], len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    arguments = parser.parse_args()
    problems, count = check(arguments.root)
    tree.finish(problems, f"{count} files formatted")


if __name__ == "__main__":
    main()
