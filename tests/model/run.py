#!/usr/bin/env python3
"""Searches the model of window.pml with spin, one line per configuration: every rule must hold in every reachable state of the
correct model, every planted fault must be found and for the right reason, and no search may have been cut short."""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ("window.pml", "sender.pml", "receiver.pml")
DEPTH_MAX = 20000  # steps on the search stack; the deepest search needs a few hundred, and run.py fails if it is short
SECONDS_MAX = 240  # for one search, on a machine busy with other things

# name, parameters. The first group proves the claims (asserts) and that there is no deadlock, the second, with PROGRESS, that
# every fair run in which faults end gets everything owned and acknowledged.
CORRECT = (
    ("cuts/sender-dials", "CUTS=2 FRAMES=4"),
    ("cuts/receiver-dials", "CUTS=2 RECEIVER_DIALS"),
    ("two-old-connections", "CUTS=1 SPURIOUS=1 CONNECTIONS=3"),
    ("wider-window", "CUTS=1 FRAMES=5 WINDOW=3 DEPTH=3"),
    ("credit", "CUTS=1 CLOSES=1 SPURIOUS=1 RECEIVER_DIALS"),
    ("credit/dishonest-peer", "CUTS=1 CLOSES=1 SILENT RETREAT"),
    ("receiver-crash/sender-dials", "CUTS=1 RECEIVER_CRASHES=1"),
    ("receiver-crash/receiver-dials", "CUTS=1 RECEIVER_CRASHES=1 RECEIVER_DIALS"),
    ("sender-ends/sender-dials", "SENDER_CRASHES=1 GIVEUPS=1"),
    ("sender-ends/receiver-dials", "SENDER_CRASHES=1 GIVEUPS=1 RECEIVER_DIALS"),
    ("progress/credit", "PROGRESS CUTS=1 CLOSES=1 RECEIVER_DIALS"),
    ("progress/credit/silent-peer", "PROGRESS CLOSES=2 SPURIOUS=1 SILENT"),
    ("progress/credit/dishonest-peer", "PROGRESS CLOSES=2 SPURIOUS=1 SILENT RETREAT"),
    ("progress/cuts/sender-dials", "PROGRESS CUTS=1 FRAMES=4"),
    ("progress/cuts/receiver-dials", "PROGRESS CUTS=1 FRAMES=4 RECEIVER_DIALS"),
    ("progress/crashes/sender-dials", "PROGRESS RECEIVER_CRASHES=1 SENDER_CRASHES=1 FRAMES=2"),
    ("progress/crashes/receiver-dials", "PROGRESS RECEIVER_CRASHES=1 SENDER_CRASHES=1 FRAMES=2 RECEIVER_DIALS"),
    ("progress/give-up", "PROGRESS GIVEUPS=1"),
)

# fault, parameters under which it shows, what must be reported. These are the wrong turns an implementer could take.
FAULTS = (
    ("FREE_ON_BIT", "", "FREED_ONLY_WHEN_OWNED"),
    ("ACK_BEFORE_OWNED", "RECEIVER_CRASHES=1", "FREED_ONLY_WHEN_OWNED"),
    ("RESUME_FREES", "CUTS=1", "FREED_ONLY_WHEN_OWNED"),
    ("RESET_DROPS_UNACKED", "GIVEUPS=1", "FREED_ONLY_WHEN_OWNED"),
    ("REPLAY_SKIPS_ONE", "CUTS=1", "deadlock"),
    ("REPLAY_RESENDS_HELD", "CUTS=1", "HELD_IS_NOT_RESENT"),
    ("BITMAP_OFF_BY_ONE", "CUTS=1", "deadlock"),
    ("NO_ACK_ON_RESUME", "CUTS=1", "deadlock"),
    ("NO_FENCE_ON_ACK", "RECEIVER_CRASHES=1", "ACK_WITHIN_SENT"),
    ("NO_FENCE_ON_DATA", "GIVEUPS=1", "CREDIT_IS_HONOURED"),
    ("NO_FENCE_ON_CLOSE", "CUTS=1", "deadlock"),
    ("NO_PROBE", "CLOSES=1 SILENT", "deadlock"),
    ("PROBE_STARVES_TIMER", "PROGRESS CLOSES=1 RETREAT", "no progress"),
    ("SEND_BEYOND_CREDIT", "", "SENT_WITHIN_CREDIT"),
    ("CREDIT_FROM_LAST_SEEN", "CUTS=1", "CREDIT_IS_HONOURED"),
    ("ACCEPT_BEYOND_CREDIT", "CLOSES=1 RETREAT", "HELD_WITHIN_CREDIT"),
    ("DUPLICATE_DELIVERED", "SPURIOUS=1", "DELIVERED_ONCE_IN_ORDER"),
    ("DELIVER_OUT_OF_ORDER", "CLOSES=1 RETREAT", "DELIVERED_ONCE_IN_ORDER"),
    ("UNKNOWN_SESSION_RESUMED", "RECEIVER_CRASHES=1", "RESUME_WITHOUT_GAP"),
    ("NO_JOURNAL", "RECEIVER_CRASHES=1", "EFFECT_ONCE_IN_ORDER"),
)

INCOMPLETE = ("max search depth too small", "Search not completed", "out of memory", "Bit statespace", "hash-compact",
              "memory exhausted", "truncated")


def read_sources():
    text = ""
    for name in SOURCES:
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            text += file.read()
    return text


def claim_names(text):
    """Number -> name, as it stands in a broken assertion."""
    return {number: name for name, number in re.findall(r"^#define ([A-Z_]+) (\d+)$", text, re.MULTILINE) if f"CLAIM({name}," in text}


class Search:
    """One configuration: built and run in its own folder."""

    def __init__(self, name, parameters, expected, fault=None, depth_max=DEPTH_MAX):
        self.name = name
        self.depth_max = depth_max
        self.defines = ["-D" + each for each in parameters.split() + (["MUTANT_" + fault] if fault else [])]
        self.expected = expected
        self.is_progress = "-DPROGRESS" in self.defines
        self.is_fault = fault is not None

    def run(self, folder, claims):
        started = time.monotonic()
        self.folder = os.path.join(folder, re.sub(r"[^\w-]", "_", self.name))
        os.makedirs(self.folder)
        self.output = ""
        self.verdict = self.judge(claims)
        self.seconds = time.monotonic() - started
        return self

    def judge(self, claims):
        generated = self.call(["spin", "-a"] + self.defines + [os.path.join(HERE, "window.pml")])
        if generated.returncode != 0 or "rror" in generated.stdout:
            return "spin refused the model"
        # A fault is found within moments and few states need no fast search, so compiling is what costs there. Every step is
        # global, so partial order reduction saves nothing and only costs.
        is_large = not self.is_fault and re.search("CUTS|CRASHES", " ".join(self.defines))
        options = ["-O1" if is_large else "-O0", "-w", "-DNOREDUCE", "-DMEMLIM=4096", "-DVECTORSZ=512"]
        if not self.is_progress:
            options.append("-DSAFETY")
        if self.call(["gcc"] + options + ["-o", "pan", "pan.c"]).returncode != 0:
            return "the search did not compile"
        try:
            ran = self.call(["./pan", f"-m{self.depth_max}", "-w22"] + (["-a", "-f"] if self.is_progress else []))
        except subprocess.TimeoutExpired:
            return "the search took too long"
        return self.outcome(ran.stdout, claims)

    def call(self, command):
        result = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=SECONDS_MAX, check=False)
        self.output += result.stdout
        return result

    def outcome(self, text, claims):
        errors = re.search(r"errors: (\d+)", text)
        if not errors or "Full statespace search" not in text:
            return "the search did not finish"
        if int(errors.group(1)) > 0:
            assertion = re.search(r"assertion violated .*\((\d+)==0\)+ ", text)
            if assertion:
                return claims.get(assertion.group(1), "an unnamed claim")
            if "pan:1: invalid end state" in text:
                return "deadlock"
            return "no progress" if "pan:1: acceptance cycle" in text else "an unknown error"
        incomplete = [mark for mark in INCOMPLETE if mark in text]
        return incomplete[0] if incomplete else "holds"

    def number(self, pattern):
        found = re.search(pattern, self.output)
        return int(float(found.group(1))) if found else 0

    def line(self):
        states = self.number(r"([\d.e+]+) states, stored")
        depth = self.number(r"depth reached (\d+)")
        verdict = "pass" if self.verdict == self.expected else "FAIL"
        told = self.verdict if verdict == "pass" else f"{self.verdict}, expected: {self.expected}"
        return f"model {self.name:32} {states:>8} states {depth:>4} deep {self.seconds:5.1f} s  {verdict}  {told}"

    def steps(self):
        """The way to the error as spin tells it: step, process, place, statement; then the state it ends in."""
        trail = os.path.join(self.folder, "window.pml.trail")
        if not os.path.exists(trail):
            return "no trail was written"
        command = ["spin", "-t", "-p", "-k", trail] + self.defines + [os.path.join(HERE, "window.pml")]
        told = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        walk, _, end = told.partition("spin: trail ends")
        control = re.compile(r"\[(sub-sequence|\.\(goto\)|goto .*|DO|IF|else|D_STEP.*|ATOMIC|\(1\)|\{c_code.*)\]$")
        step = re.compile(r"^ *(\d+):\tproc +\d+ \((\w+):1\) .*/(\w+\.pml:\d+) \(state \d+\)\t(.*)$")
        lines = [f"{match[1]:>4} {match[2]:12} {match[3]:18} {match[4]}" if match else line
                 for line in walk.splitlines() if not control.search(line)
                 for match in [step.match(line)] if match or "CYCLE" in line]
        return "\n".join(lines) + "\nends in" + end


def searches(pattern):
    chosen = [Search(name, parameters, "holds") for name, parameters in CORRECT]
    chosen += [Search("fault/" + fault.lower(), parameters, expected, fault) for fault, parameters, expected in FAULTS]
    # One that is cut short on purpose, because a judge that takes an unfinished search for a proof would pass all the others.
    chosen.append(Search("unfinished-is-noticed", "CUTS=1", "max search depth too small", depth_max=40))
    return [each for each in chosen if re.search(pattern, each.name)]


def vacuous(finished, text):
    """What the run would not notice: a situation that no search of the correct model met, a planted fault that is not listed, a
    claim that no fault breaks."""
    met = set()
    for each in finished:
        if not each.is_fault:
            met.update(re.findall(r"^seen (\w+)$", each.output, re.MULTILINE))
    situations = set(re.findall(r"SEEN\((\w+)\)", text)) - {"situation"}
    planted = set(re.findall(r"^#if(?:n?def) MUTANT_(\w+)$", text, re.MULTILINE))
    listed = {fault for fault, _, _ in FAULTS}
    broken = {expected for _, _, expected in FAULTS}
    bounds = {"MODEL_BOUNDS"}  # says that the model's own arrays are large enough
    return ([f"no search met the situation {each}" for each in sorted(situations - met)] +
            [f"the fault {each} is planted or listed, but not both" for each in sorted(planted ^ listed)] +
            [f"no fault breaks the claim {each}" for each in sorted(set(claim_names(text).values()) - broken - bounds)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="only configurations whose name matches")
    parser.add_argument("--trail", action="store_true", help="print the steps that lead to each error found")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    arguments = parser.parse_args()
    for program in ("spin", "gcc"):
        if not shutil.which(program):
            sys.exit(f"model: {program} is not installed (Debian package {program}); ./dev setup installs it")
    chosen = searches(arguments.only)
    if not chosen:
        sys.exit(f"model: no configuration matches {arguments.only!r}")
    text = read_sources()
    claims = claim_names(text)
    started = time.monotonic()
    failed = []
    with tempfile.TemporaryDirectory(prefix="windlass-model-") as folder:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for each in pool.map(lambda search: search.run(folder, claims), chosen):
                print(each.line(), flush=True)
                if each.verdict != each.expected:
                    failed.append(each.name)
                    print(each.output[-2000:])
                if arguments.trail:
                    print(each.steps())
    if not arguments.only:
        for gap in vacuous(chosen, text):
            failed.append(gap)
            print(f"model: {gap}")
    states = sum(each.number(r"([\d.e+]+) states, stored") for each in chosen if not each.is_fault)
    faults = sum(each.is_fault and each.verdict == each.expected for each in chosen)
    print(f"model {'FAIL: ' + ', '.join(failed) if failed else 'PASS'}: {states} states of the correct model, {faults} faults found, "
          f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
