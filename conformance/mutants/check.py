#!/usr/bin/python3
"""Whether each mutant fails its case, and the peers without a fault pass all: check.py --runner PATH [--role scheduler] [NAME ...]

A mutant that its case lets pass is a survivor: the case does not check what it says. Exit code 1 if there is one.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import mutants

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"


def certificates(folder):
    """An authority, and leaves for the scheduler and a client."""
    def run(*command):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=mutants", "-days", "2")
    for name in ("scheduler", "client"):
        run("req", "-x509", *new, "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:false", "-days", "2")


class Check:
    def __init__(self, options, folder):
        self.options, self.folder, self.port = options, folder, None

    def start(self):
        """The scheduler that is every mutant."""
        certificates(self.folder)
        for name in ("token", "other-token"):
            (self.folder / name).write_text(name, encoding="utf-8")
        log = open(self.folder / "scheduler.log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [PYTHON, HERE / "scheduler.py", "--control", "control", "--token", "token", "--other-token", "other-token", "--certificate", "scheduler.pem",
             "--key", "scheduler.key", "--client-authority", "ca.pem"], cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True)
        self.port = int(process.stdout.readline())
        return process

    def judge(self, name, area=None):
        """Results of the cases of this mutant: its own case, those of an area, or all of the peer without a fault."""
        report = self.folder / (name.replace("/", "~") + ".json")
        command = [self.options.runner, "--json", report, "--jobs", "2" if name else "16",  *(["--area", area] if area else ["--id", name] if name else [])]
        env = dict(os.environ, MUTANT=name)
        if self.options.role == "scheduler":
            path = f"/mutant/{name.replace('/', '~')}/ws/worker" if name else "/ws/worker"
            hook = f"CONTROL={shlex.quote(str(self.folder / 'control'))} {PYTHON} -S {HERE / 'hook.py'}"
            command += ["--url", f"wss://127.0.0.1:{self.port}{path}", "--token-file", self.folder / "token", "--other-token-file", self.folder / "other-token",
                        "--ca", self.folder / "ca.pem", "--certificate", self.folder / "client.pem", "--key", self.folder / "client.key"]
            for each in ("send", "drain", "revoke", "rotate", "restart", "stop"):
                command += [f"--{each}-cmd", f"{hook} {each}"]
        else:
            command += ["--command", f"exec {PYTHON} {HERE / 'worker.py'} 2>/dev/null", *(["--no-probe"] if name else [])]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            return f"the runner ended with {done.returncode}: {done.stderr}{done.stdout}"
        cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
        return [case for case in cases if not name or area or case["id"] == name]

    def survivor(self, name):
        """What is wrong with this mutant's case, or None."""
        cases = self.judge(name)
        if isinstance(cases, str):
            return cases
        if not cases:
            return "has no case"
        if any(case["verdict"] == "HARNESS-ERROR" for case in cases):
            return "the runner could not play it"
        return "is not noticed" if all(case["standing"] == "passed" for case in cases) else None

    def bystanders(self, name):
        """Cases of its area that this mutant fails, though they are not those of its fault."""
        registry = mutants.REGISTRY[self.options.role]
        area = mutants.area_of(name)
        cases = self.judge(name, area)
        if isinstance(cases, str):
            return cases
        meant = {each for each, entry in registry.items() if entry[3] == registry[name][3]}
        hit = sorted({case["id"] for case in cases if case["standing"] == "failed"} - meant)
        return f"also fails {' '.join(hit)}" if hit else None

    def unfit(self):
        cases = self.judge("")
        return [cases] if isinstance(cases, str) else [f"{case['id']}@{case['revision']}: {case['came']}" for case in cases if case["standing"] != "passed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True, help="windlass-conformance")
    parser.add_argument("--role", choices=("scheduler", "worker"), default="scheduler")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--bystanders", action="store_true", help="instead: which other cases of its area a mutant fails (slow)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth mutant, and the peer without a fault")
    parser.add_argument("names", nargs="*", help="only these mutants; else all, and the peer without a fault")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="windlass-mutants-"))
    check, process, bad = Check(options, folder), None, 0
    try:
        process = check.start() if options.role == "scheduler" else None
        names = options.names or sorted(mutants.REGISTRY[options.role])[::options.every]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            unfit = pool.submit(lambda: [] if options.names or options.bystanders else check.unfit())
            for name, answer in zip(names, pool.map(check.bystanders if options.bystanders else check.survivor, names)):
                if answer:
                    print(f"{name} {answer}", flush=True)
                    bad += 1
        for line in unfit.result():
            print("fails without a fault:", line, flush=True)
            bad += 1
        without = [] if options.names else sorted(set(mutants.cases(options.role)) - set(mutants.REGISTRY[options.role]))
        bad += len(without)
        print(f"{len(names)} mutants, {bad} complaints; MUST cases without a mutant: {' '.join(without) or 'none'}")
    finally:
        if process:
            process.kill()
        shutil.rmtree(folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
