#!/usr/bin/env python3
"""protocol/base/error_code.h and schema/errors.json list the same codes, and each entry of the schema is complete."""

import argparse
import json
import re

import tree

HEADER = "protocol/base/error_code.h"
SCHEMA = "schema/errors.json"
FIELDS = ("code", "meaning", "sender", "retry")


def check(root):
    header = re.findall(r'X\(\w+,\s*"([^"]+)"\)', tree.read(root, HEADER))
    entries = json.loads(tree.read(root, SCHEMA))["codes"]
    schema = [entry.get("code", "") for entry in entries]
    problems = [f"{HEADER}: no codes found"] if not header else []
    for name, codes in ((HEADER, header), (SCHEMA, schema)):
        problems += [f"{name}: {code} is listed twice" for code in sorted(set(codes)) if codes.count(code) > 1]
        problems += [f"{name}: {code!r} is not of the form E.AREA.NAME" for code in codes
                     if not re.fullmatch(r"E(\.[A-Z][A-Z0-9_]*)+", code)]
    problems += [f"{HEADER}: {code} is not in {SCHEMA}" for code in header if code not in schema]
    problems += [f"{SCHEMA}: {code} is not in {HEADER}" for code in schema if code not in header]
    for entry in entries:
        problems += [f"{SCHEMA}: {entry.get('code')} has no {field}" for field in FIELDS if not entry.get(field)]
    return problems, f"{len(header)} error codes, the same in code and schema"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    arguments = parser.parse_args()
    problems, summary = check(arguments.root)
    tree.finish(problems, summary)


if __name__ == "__main__":
    main()
