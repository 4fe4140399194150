"""Which files changed, for the checks that compile: since the merge base with the upstream branch, or by the last commit when there is
nothing in between, and what is not committed yet."""

import os
import re
import subprocess

import tree


def git(root, *arguments):
    run = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), *arguments], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def base_commit(root):
    head = git(root, "rev-parse", "HEAD")
    asked = os.environ.get("WINDLASS_LINT_BASE")
    for branch in [asked] if asked else ["@{upstream}", "origin/main", "main"]:
        base = git(root, "merge-base", "HEAD", branch)
        if base and base != head:
            return base
    return git(root, "rev-parse", "HEAD~1")


def files(root):
    base = base_commit(root)
    names = (git(root, "diff", "--name-only", "--diff-filter=d", base) or "").split("\n") if base else []
    names += (git(root, "ls-files", "-o", "--exclude-standard") or "").split("\n")
    return sorted({name for name in names if name.endswith((".cc", ".h"))}, key=lambda name: (name.endswith(".h"), name))


def units(root, build, names):
    """The files to run on: a source itself; for a header the unit that compiles it alone."""
    compiled = {}
    for path, _ in tree.compile_commands(build):
        header = re.search(r"_verify_interface_header_sets/(.*)\.cxx$", path)
        compiled[header.group(1) if header else os.path.relpath(path, os.path.realpath(root))] = path
    return [(name, compiled[name]) for name in names if name in compiled]
