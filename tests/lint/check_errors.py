#!/usr/bin/env python3
"""schema/errors.json is the one list of error codes: protocol/base/error_code.h has the same ones of the wire, each entry is complete,
and every code that documents and the C++ of components speak of is in it. In C++ that is what stands in string literals; `E.AUTH.*` and
a literal that ends in a dot stand for the codes that begin so."""

import argparse
import json
import re

import tree

HEADER = "protocol/base/error_code.h"
SCHEMA = "schema/errors.json"
FIELDS = {"codes": ("code", "meaning", "sender", "retry"), "http": ("code", "meaning", "status")}
SENDERS = {"scheduler", "worker", "runtime", "local"}
CODE = re.compile(r"\bE(?:\.[A-Z][A-Z0-9_]*)+(?:\.\*|\.(?=\"))?")
CODE_FILES = (".cc", ".h", ".inc")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
ANSWER = re.compile(r'\b([1-5]\d\d), "(E\.[A-Z0-9_.]+)"')


def form_problems(name, codes):
    problems = [f"{name}: {code} is listed twice" for code in sorted(set(codes)) if codes.count(code) > 1]
    return problems + [f"{name}: {code!r} is not of the form E.AREA.NAME" for code in codes
                       if not re.fullmatch(r"E(\.[A-Z][A-Z0-9_]*)+", code)]


def entry_problems(listed):
    problems = []
    for part, fields in FIELDS.items():
        for entry in listed[part]:
            problems += [f"{SCHEMA}: {entry.get('code')} has no {field}" for field in fields if not entry.get(field)]
    for entry in listed["codes"]:
        code, sender, retry = entry.get("code"), entry.get("sender", []), entry.get("retry")
        if not isinstance(sender, list) or set(sender) - SENDERS or ("local" in sender and len(sender) > 1):
            problems.append(f"{SCHEMA}: {code} has the sender {sender!r}; known are {', '.join(sorted(SENDERS))}, local alone")
        if retry and retry not in listed["retry_rules"]:
            problems.append(f"{SCHEMA}: {code} has the retry rule {retry!r}, which retry_rules does not explain")
    for entry in listed["http"]:
        if not isinstance(entry.get("status", []), list) or any(status not in range(400, 600) for status in entry.get("status", [])):
            problems.append(f"{SCHEMA}: {entry.get('code')} has a status that is no HTTP refusal")
    return problems


def is_listed(code, known):
    stem = code.rstrip(".*")
    return any(each.startswith(stem + ".") for each in known) if code != stem else code in known


def places(root):
    """(name, line, text to look at) of documents and of the string literals of components."""
    for name in tree.files(root, ".md", "docs/openapi.json", *CODE_FILES):
        is_code = name.endswith(CODE_FILES)
        if name == HEADER or (is_code and name.split("/")[0] not in tree.COMPONENT_ROOTS):
            continue
        for number, line in enumerate(tree.read(root, name).splitlines(), 1):
            yield name, number, " ".join(LITERAL.findall(line)) if is_code else line


def use_problems(root, listed):
    http = {entry.get("code"): entry.get("status", []) for entry in listed["http"]}
    known = {entry.get("code") for entry in listed["codes"]} | set(http)
    problems, used = [], set()
    for name, number, text in places(root):
        for code in CODE.findall(text):
            if name.endswith(CODE_FILES):
                used.add(code)
            if not is_listed(code, known):
                problems.append(f"{name}:{number}: {code} is not in {SCHEMA}")
    for name in tree.files(root, ".cc"):
        for status, code in ANSWER.findall(tree.read(root, name)) if name.startswith(tree.COMPONENT_ROOTS) else ():
            if code in http and int(status) not in http[code]:
                problems.append(f"{name}: answers {code} with {status}, which {SCHEMA} does not say of it")
    return problems + [f"{SCHEMA}: {code} is in the http list and nothing answers so" for code in sorted(set(http) - used)]


def check(root):
    header = re.findall(r'X\(\w+,\s*"([^"]+)"\)', tree.read(root, HEADER))
    listed = {"http": [], "retry_rules": {}, **json.loads(tree.read(root, SCHEMA))}
    schema = [entry.get("code", "") for entry in listed["codes"]]
    problems = [f"{HEADER}: no codes found"] if not header else []
    problems += form_problems(HEADER, header) + form_problems(SCHEMA, schema + [entry.get("code", "") for entry in listed["http"]])
    problems += [f"{HEADER}: {code} is not in {SCHEMA}" for code in header if code not in schema]
    problems += [f"{SCHEMA}: {code} is not in {HEADER}" for code in schema if code not in header]
    problems += entry_problems(listed) + use_problems(root, listed)
    return problems, f"{len(header)} error codes of the wire and {len(listed['http'])} of HTTP, the same in code, documents and schema"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    arguments = parser.parse_args()
    problems, summary = check(arguments.root)
    tree.finish(problems, summary)


if __name__ == "__main__":
    main()
