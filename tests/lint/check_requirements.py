#!/usr/bin/env python3
"""Every clause of docs/protocol.md is obeyed somewhere and proved somewhere, and no citation names a clause that does not exist.

A clause begins a line with its id in bold, `**WIN-12** text` (a list mark before it is fine). Code and tests cite it as
`//= WIN-12` (`#= WIN-12` in scripts, several ids separated by commas). A clause that cannot be cited says why in its own paragraph:
`(status: the reason)`."""

import argparse
import collections
import re

import tree

CLAUSE = re.compile(r"^\s*(?:[-*]\s+)?\*\*([A-Z]{2,}-\d+[a-z]?)\*\*", re.MULTILINE)
STATUS = re.compile(r"\(status:\s*([^)]*)\)")
CITATION = re.compile(r"(?://|#|--|/\*)=[ \t]*([A-Z]{2,}-\d+[a-z]?(?:\s*,\s*[A-Z]{2,}-\d+[a-z]?)*)")
CODE = tree.COMPONENT_ROOTS[:4] + ("schema",)
SUFFIXES = (".cc", ".h", ".inc", ".py", ".js", ".pml", ".json", ".txt", ".proto", ".sh")


def clauses(text):
    """Clause id -> its paragraph, up to an empty line or the next clause; and the ids defined twice."""
    found = {}
    twice = []
    matches = list(CLAUSE.finditer(text))
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        paragraph = re.split(r"\n\s*\n", text[match.end():end], maxsplit=1)[0]
        if match.group(1) in found:
            twice.append(match.group(1))
        found[match.group(1)] = " ".join(paragraph.split())
    return found, twice


def citations(root):
    """Top folder -> clause id -> places that cite it."""
    places = collections.defaultdict(lambda: collections.defaultdict(list))
    for name in tree.files(root, *SUFFIXES):
        top = name.split("/")[0]
        if top not in CODE + ("tests", "conformance") or name.startswith("tests/lint/"):
            continue
        for number, line in enumerate(tree.read(root, name).splitlines(), 1):
            for match in CITATION.finditer(line):
                for clause in re.split(r"\s*,\s*", match.group(1)):
                    places[top][clause].append(f"{name}:{number}")
    return places


def check(root, document="docs/protocol.md"):
    text = tree.read(root, document)
    defined, twice = clauses(text)
    places = citations(root)
    problems = [f"{document}: {clause} is defined twice" for clause in twice]
    if not defined:
        problems.append(f"{document}: no clause found; a clause line starts with its id in bold")
    exempt = 0
    for clause, paragraph in defined.items():
        status = STATUS.search(paragraph)
        if status:
            exempt += 1
            if len(status.group(1).split()) < 2:
                problems.append(f"{document}: {clause} has a status without a reason")
            continue
        if not any(places[top][clause] for top in CODE):
            problems.append(f"{document}: {clause} is cited by no code")
        if not places["tests"][clause]:
            problems.append(f"{document}: {clause} is cited by no test")
    for top in sorted(places):
        for clause, where in sorted(places[top].items()):
            if clause not in defined:
                problems += [f"{place}: cites {clause}, which {document} does not define" for place in where]
    return problems, f"{len(defined)} clauses, {len(defined) - exempt} cited by code and test, {exempt} with a status"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    arguments = parser.parse_args()
    problems, summary = check(arguments.root)
    tree.finish(problems, summary)


if __name__ == "__main__":
    main()
