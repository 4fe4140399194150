"""The mutants: each is a peer that breaks exactly one rule. A mutant's name is the id of the case that it must fail."""
import copy
import json

# name: (role, clause, what it does wrong, how). `how` has any of
#   faults:  names that the peer's code asks for with has()
#   accepts: flaws that are let pass, as schema:pointer:keyword
#   out:     [(pattern, change)]: what happens to its own frames that fit; a change of None drops the frame, "twice" doubles it
#   ignores: [pattern]: frames that it does as if it never got
MUTANTS = {}


def fits(frame, pattern):
    if isinstance(pattern, dict):
        return isinstance(frame, dict) and all(fits(frame.get(key, "<absent>"), member) for key, member in pattern.items())
    return pattern(frame) if callable(pattern) else frame == pattern


def merge(frame, change):
    for key, member in change.items():
        if member is None:
            frame.pop(key, None)
        elif isinstance(member, dict) and isinstance(frame.get(key), dict):
            merge(frame[key], member)
        else:
            frame[key] = member(frame.get(key)) if callable(member) else member
    return frame


def exists(name):
    return name in MUTANTS or name.startswith("accepts:")


class Mutant:
    def __init__(self, name, role="scheduler"):
        self.name = name
        how = MUTANTS[name][3] if name in MUTANTS else {"accepts": [name[len("accepts:"):]]} if name.startswith("accepts:") else {}
        self.faults, self.accepts = set(how.get("faults", ())), set(how.get("accepts", ()))
        self.out, self.ignored = how.get("out", []), how.get("ignores", [])

    def has(self, fault):
        return fault in self.faults

    def ignores(self, frame):
        return any(fits(frame, pattern) for pattern in self.ignored)

    def edit(self, frame):
        """What is sent in place of a frame."""
        for pattern, change in self.out:
            if fits(frame, pattern):
                if change is None:
                    return []
                if change == "twice":
                    return [frame, copy.deepcopy(frame)]
                return [merge(copy.deepcopy(frame), change)]
        return [frame]


def print_list(role):
    print(json.dumps({name: {"role": each[0], "clause": each[1], "breaks": each[2]} for name, each in sorted(MUTANTS.items()) if role in (None, each[0])}, indent=1))
