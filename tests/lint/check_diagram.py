#!/usr/bin/env python3
"""The page with the state diagram is exactly what the transition table prints; it is generated, never edited.
--write prints it into the document."""

import argparse
import difflib
import pathlib
import subprocess
import sys

import tree


def printed(tool):
    return subprocess.run([str(tool)], check=True, capture_output=True, text=True).stdout


def check(document, tool):
    have, want = pathlib.Path(document).read_text(), printed(tool)
    if not want.strip():
        return [f"{tool} printed nothing"]
    difference = difflib.unified_diff(have.splitlines(), want.splitlines(), "committed", "printed", n=0, lineterm="")
    return [f"{document}: {line}" for line in difference if line[0] in "+-" and not line.startswith(("+++", "---"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        pathlib.Path(arguments.document).write_text(printed(arguments.tool))
        sys.exit(0)
    tree.finish(check(arguments.document, arguments.tool), "the state diagram is what the table prints")


if __name__ == "__main__":
    main()
