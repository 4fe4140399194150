"""Judges what this repository builds: judge.py BUILD_FOLDER WHO [ARGUMENTS of windlass-conformance].

WHO is `scheduler`, `agent`, `example` (the Python worker of conformance/examples), or `all` of them. Reports of `all` are
BUILD_FOLDER/conformance-<who>.html.
"""
import os
import subprocess
import sys

import scheduler_under_test

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def judge(build, who, arguments):
    programs = {name: os.path.join(build, path) for name, path in {
        "conformance": "conformance/runner/windlass-conformance", "scheduler": "scheduler/shell/windlass-scheduler",
        "windlass": "scheduler/cli/windlass", "agent": "worker-agent/shell/windlass-agent"}.items()}
    if who == "scheduler":
        return scheduler_under_test.judge(programs["scheduler"], programs["windlass"], programs["conformance"], arguments)
    worker = (f"{os.path.join(HERE, 'agent_under_test.py')} {programs['agent']}" if who == "agent"
              else os.path.join(ROOT, "conformance/examples/worker.py"))
    # Debian's packages belong to Debian's Python.
    return subprocess.run([programs["conformance"], "--command", f"exec /usr/bin/python3 -B {worker}", *arguments], check=False).returncode


def main():
    build, who, arguments = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if who != "all":
        return judge(build, who, arguments)
    worst = 0
    for each in ("scheduler", "agent", "example"):
        page = os.path.join(build, f"conformance-{each}.html")
        print(f"\n== {each}", flush=True)
        worst = max(worst, judge(build, each, ["--html", page, *arguments]))
        print(f"report: {page}", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
