#!/usr/bin/env python3
"""Every clause of docs/protocol.md is obeyed somewhere and proved somewhere, and no citation names a clause that does not exist.

A clause begins a line with its id in bold, `**WIN-12** text` (a list mark before it is fine). Code and tests cite it as `//= WIN-12` on a
line of its own (`#= WIN-12` in scripts, `"$comment": "//= WIN-12"` in schemas), several ids separated by commas. Only files that can
obey or prove something cite: sources, tests, models, schemas. A clause that cannot be cited says why in its own paragraph, in a
sentence: `(status: the reason)`."""

import argparse
import collections
import re

import tree

CLAUSE = re.compile(r"^\s*(?:[-*]\s+)?\*\*([A-Z]{2,}-\d+[a-z]?)\*\*", re.MULTILINE)
STATUS = re.compile(r"\(status:\s*([^)]*)\)")
STATUS_WORDS_MIN = 6  # fewer name a state, and no reason for it
IDS = r"([A-Z]{2,}-\d+[a-z]?(?: *, *[A-Z]{2,}-\d+[a-z]?)*)"
SLASHES = re.compile(rf"\s*(?://= *{IDS}|/\*= *{IDS} *\*/)\s*")
HASH = re.compile(rf"\s*#= *{IDS}\s*")
COMMENT_MEMBER = re.compile(rf'\s*"\$comment": *"//= *{IDS}",?\s*')
FORMS = {".cc": SLASHES, ".h": SLASHES, ".inc": SLASHES, ".js": SLASHES, ".pml": SLASHES, ".proto": SLASHES,
         ".py": HASH, ".sh": HASH, ".schema.json": COMMENT_MEMBER}
# Whatever looks like a citation: what the forms above do not read is an error, never silence.
LIKENESS = re.compile(r"(?://|#|--|/\*)=.*\b[A-Z]{2,}-\d")
CODE = tree.COMPONENT_ROOTS[:4] + ("schema",)


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


def form_of(name):
    return next((form for suffix, form in FORMS.items() if name.endswith(suffix)), None)


def citations(root):
    """Top folder -> clause id -> places that cite it; and what looks like a citation and is none."""
    places = collections.defaultdict(lambda: collections.defaultdict(list))
    problems = []
    for name in tree.files(root):
        top = name.split("/")[0]
        if top not in CODE + ("tests", "conformance") or name.startswith("tests/lint/") or name.endswith(".md"):
            continue
        form = form_of(name)
        for number, line in enumerate(tree.read(root, name).splitlines(), 1):
            if not LIKENESS.search(line):
                continue
            match = form.fullmatch(line) if form else None
            if form is None:
                problems.append(f"{name}:{number}: a citation in a file that neither obeys nor proves anything")
            elif match is None:
                problems.append(f"{name}:{number}: not a citation on a line of its own, ids separated by commas: {line.strip()}")
            else:
                for clause in re.split(r" *, *", next(filter(None, match.groups()))):
                    places[top][clause].append(f"{name}:{number}")
    return places, problems


def check(root, document="docs/protocol.md"):
    text = tree.read(root, document)
    defined, twice = clauses(text)
    places, problems = citations(root)
    problems += [f"{document}: {clause} is defined twice" for clause in twice]
    if not defined:
        problems.append(f"{document}: no clause found; a clause line starts with its id in bold")
    exempt = 0
    for clause, paragraph in defined.items():
        status = STATUS.search(paragraph)
        if status:
            exempt += 1
            if len(status.group(1).split()) < STATUS_WORDS_MIN:
                problems.append(f"{document}: {clause} has a status without a reason; say it in a sentence")
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
