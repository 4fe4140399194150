"""Which files the checks that compile look at: what changed since WINDLASS_LINT_BASE or the merge base with the upstream branch, or by
the last commit when there is nothing in between, and what is not committed yet. Where history does not say, all files."""

import os
import re
import subprocess

import tree


class UnknownBase(Exception):
    """WINDLASS_LINT_BASE names nothing that HEAD can be compared with."""


def git(root, *arguments):
    run = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), *arguments], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def base_commit(root):
    """None when there is none: no git, a first commit, a clone of depth 1."""
    asked = os.environ.get("WINDLASS_LINT_BASE")
    if asked:
        base = git(root, "merge-base", "HEAD", asked)
        if base is None:
            raise UnknownBase(f"WINDLASS_LINT_BASE is '{asked}', which is no commit that this branch has a history with")
        return base
    head = git(root, "rev-parse", "HEAD")
    for branch in ("@{upstream}", "origin/main", "main"):
        base = git(root, "merge-base", "HEAD", branch)
        if base and base != head:
            return base
    return git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")


def files(root):
    """Sources first, then headers. Ends the process where the base is unknown."""
    try:
        base = base_commit(root)
    except UnknownBase as problem:
        tree.finish([str(problem)], "")
    if base is None:
        names = tree.files(root)
    else:
        names = (git(root, "diff", "--name-only", "--diff-filter=d", base) or "").split("\n")
        names += (git(root, "ls-files", "-o", "--exclude-standard") or "").split("\n")
    return sorted({name for name in names if name.endswith((".cc", ".h"))}, key=lambda name: (name.endswith(".h"), name))


def database(builds):
    """What compiles each file, by its real path; of two builds the first."""
    entries = {}
    for build in builds:
        for entry in tree.database(build):
            entries.setdefault(os.path.realpath(entry["file"]), entry)
    return entries


def units(root, entries, names):
    """The files to run on, (name, path): a source itself; for a header the unit that compiles it alone. And the names without one."""
    compiled = {}
    for path in entries:
        header = re.search(r"_verify_interface_header_sets/(.*)\.cxx$", path)
        compiled.setdefault(header.group(1) if header else os.path.relpath(path, os.path.realpath(root)), path)
    return [(name, compiled[name]) for name in names if name in compiled], [name for name in names if name not in compiled]


def note_without(names):
    """One note that says how many files no build compiles, and which; none when there are none."""
    if not names:
        return []
    listed = " ".join(names[:12]) + (" ..." if len(names) > 12 else "")
    return [f"{len(names)} files are compiled by no build at hand, so nobody looked at them: {listed}"]
