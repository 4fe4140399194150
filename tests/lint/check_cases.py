"""Conformance cases and the protocol text agree: every clause has a case or a reason, every case a clause, files are named after ids.
And every invalid example of schema/examples is sent by a case: all of them to schedulers (but text that is not UTF-8, which WebSocket refuses), those of a scheduler's frames to workers."""
import argparse
import json
import pathlib
import re
import sys

WORKER_HEARS = ("ack", "drain", "envelope", "reset", "session.accept")  # in revision 2, as the cases for workers are
ROOT = pathlib.Path(__file__).resolve().parents[2]


def problems(root):
    clauses = set(re.findall(r"^- \*\*([A-Z]{3}-\d+)\*\*", (root / "docs/protocol.md").read_text(encoding="utf-8"), re.MULTILINE))
    page = (root / "docs/conformance-cases.md").read_text(encoding="utf-8")
    excused = set(re.findall(r"[A-Z]{3}-\d+", "".join(re.findall(r"^\| ([A-Z0-9, -]+) \|", page.split("## Clauses that no case judges")[1], re.MULTILINE))))
    judged, sent = set(), {"scheduler": [], "worker": []}
    for path in sorted((root / "conformance/cases").glob("*/*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        clause, name = case["id"].split("/")
        judged.add(clause)
        sent[case["role"]] += [start for step in case.get("steps", []) for start in step.get("send_examples", [])]
        if clause not in clauses:
            yield f"{path.relative_to(root)}: docs/protocol.md has no clause {clause}"
        wanted = ("worker-" if case["role"] == "worker" else "") + name
        if path.stem != wanted:
            yield f"{path.relative_to(root)}: its id asks for the file name {wanted}.json"
    for path in sorted((root / "schema/examples/invalid").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))["schema"]
        for role in ["scheduler"] + (["worker"] if schema in WORKER_HEARS else []):
            if not path.name.startswith(tuple(sent[role])):
                yield f"{path.relative_to(root)}: no case sends it to a {role}"
    for clause in sorted(clauses - judged - excused):
        yield f"{clause}: no case judges it, and docs/conformance-cases.md does not say why"
    for clause in sorted(excused & judged):
        yield f"{clause}: docs/conformance-cases.md says that no case judges it, but one does"
    for clause in sorted(excused - clauses):
        yield f"{clause}: docs/conformance-cases.md excuses a clause that is not there"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    found = list(problems(parser.parse_args().root))
    print("\n".join(found) or "every clause has a case or a reason")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
