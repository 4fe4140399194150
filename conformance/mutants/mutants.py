"""The mutants: each is a peer that breaks exactly one rule. A mutant's name is the id of the case that it must fail."""
import copy
import json
import pathlib

import scheduler_mutants
import worker_mutants

ABSENT = "<absent>"
CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"


def _registry(role, groups, accepted):
    """name: (role, clause, what is wrong with it, how)."""
    found = {}
    for text, how, names in groups:
        for name in names.split():
            found[name] = (role, name.split("/")[0], text, how)
    for line in accepted.strip().splitlines():
        name, flaw = line.split(" ", 1)
        schema, place, keyword = flaw.split(":")
        both = [f"{schema.replace('.revision1', '')}{tail}:{place}:{keyword}" for tail in ("", ".revision1")] if schema != "json" else [flaw]
        found[name] = (role, name.split("/")[0], f"takes what {schema.replace('*', 'the schema')} forbids: {place or 'the message'}, {keyword.replace('*', 'whatever is wrong')}", {"accepts": both})
    return found


REGISTRY = {"scheduler": _registry("scheduler", scheduler_mutants.GROUPS, scheduler_mutants.ACCEPTED),
            "worker": _registry("worker", worker_mutants.GROUPS, worker_mutants.ACCEPTED)}


def exists(name, role="scheduler"):
    return name in REGISTRY[role] or name.startswith("accepts:")


def fits(value, pattern):
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(fits(value.get(key, ABSENT), member) for key, member in pattern.items())
    return pattern(value) if callable(pattern) else value == pattern


def merge(frame, change):
    for key, member in change.items():
        if member is None:
            frame.pop(key, None)
        elif isinstance(member, dict) and isinstance(frame.get(key), dict):
            merge(frame[key], member)
        else:
            frame[key] = member(frame.get(key)) if callable(member) else member
    return frame


class Mutant:
    """How one peer is wrong. The members of `how`:

    faults   names that the peer's code asks for with has()
    accepts  flaws that are let pass, as schema:pointer:keyword
    out      [(pattern, change)]: own frames that fit are changed, or dropped when the change is None; as revision 2 sees them
    wire     the same, of the frame as it is on the wire
    ignores  [pattern]: frames that it overlooks
    """

    def __init__(self, name, role="scheduler"):
        self.name = name
        how = REGISTRY[role][name][3] if name in REGISTRY[role] else {"accepts": [name[len("accepts:"):]]} if name.startswith("accepts:") else {}
        self.faults, self.accepts = set(how.get("faults", "").split()), set(how.get("accepts", ()))
        self.edits, self.ignored = {"out": how.get("out", []), "wire": how.get("wire", [])}, how.get("ignores", [])

    def has(self, fault):
        return fault in self.faults

    def ignores(self, frame):
        return any(fits(frame, pattern) for pattern in self.ignored)

    def edit(self, frame, where):
        """What is sent in place of a frame: nothing, it, or another."""
        for pattern, change in self.edits[where]:
            if fits(frame, pattern):
                return [] if change is None else [merge(copy.deepcopy(frame), change)]
        return [frame]


def print_list(role):
    known = {name: {"role": each[0], "clause": each[1], "breaks": each[2]} for name, each in sorted(REGISTRY[role].items())}
    print(json.dumps(known, indent=1))


def area_of(name):
    """The folder of the case with this id."""
    return next(path.parent.name for path in CASES.glob("*/*.json") if json.loads(path.read_text(encoding="utf-8"))["id"] == name)


def cases(role, level="MUST"):
    """Ids of the cases beside this folder."""
    read = [json.loads(path.read_text(encoding="utf-8")) for path in CASES.glob("*/*.json")]
    return sorted({case["id"] for case in read if case["role"] == role and case["level"] == level})
