#!/usr/bin/env python3
"""The state diagram in the docs is exactly what the transition table prints; it is generated, never edited.
--write puts it into the document's mermaid block."""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys

import tree


BLOCK = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)


def printed(tool):
    return subprocess.run([str(tool)], check=True, capture_output=True, text=True).stdout


def check(document, tool):
    blocks, want = BLOCK.findall(pathlib.Path(document).read_text()), printed(tool)
    if not want.strip():
        return [f"{tool} printed nothing"]
    if len(blocks) != 1:
        return [f"{document}: {len(blocks)} mermaid blocks where the diagram should be the only one"]
    difference = difflib.unified_diff(blocks[0].splitlines(), want.splitlines(), "committed", "printed", n=0, lineterm="")
    return [f"{document}: {line}" for line in difference if line[0] in "+-" and not line.startswith(("+++", "---"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        path = pathlib.Path(arguments.document)
        path.write_text(BLOCK.sub(lambda _: printed(arguments.tool), path.read_text()))
        sys.exit(0)
    tree.finish(check(arguments.document, arguments.tool), "the state diagram is what the table prints")


if __name__ == "__main__":
    main()
