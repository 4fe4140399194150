#!/usr/bin/env python3
"""The state diagram in the docs is exactly what the transition table prints; it is generated, never edited.
--write puts the printed diagram into the document."""

import argparse
import pathlib
import re
import subprocess
import sys

import tree

BLOCK = re.compile(r"(```mermaid\n)(.*?)(\n```)", re.DOTALL)


def printed(tool):
    return subprocess.run([str(tool)], check=True, capture_output=True, text=True).stdout.strip("\n")


def check(document, tool):
    blocks = BLOCK.findall(pathlib.Path(document).read_text())
    if len(blocks) != 1:
        return [f"{document}: {len(blocks)} mermaid blocks where the diagram should be the only one"]
    have, want = blocks[0][1].strip("\n").splitlines(), printed(tool).splitlines()
    want = [line for line in want if not line.startswith("```")]
    if have == want:
        return []
    problems = [f"{document}: missing: {line.strip()}" for line in want if line not in have]
    problems += [f"{document}: not in the table: {line.strip()}" for line in have if line not in want]
    return problems or [f"{document}: same lines in another order"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        path = pathlib.Path(arguments.document)
        diagram = printed(arguments.tool)
        path.write_text(BLOCK.sub(lambda match: match.group(1) + diagram + match.group(3), path.read_text()))
        sys.exit(0)
    tree.finish(check(arguments.document, arguments.tool), "the state diagram is what the table prints")


if __name__ == "__main__":
    main()
