"""What every check shares: which files make up the project, and how findings are printed. Holds no rule of its own."""

import json
import os
import pathlib
import re
import subprocess
import sys

# The folders that hold components. Everything else at the top level is tests, docs, schemas or root files.
COMPONENT_ROOTS = ("protocol", "scheduler", "worker-agent", "runtime", "conformance")
UNITY = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")  # what CMake calls several sources compiled as one


def files(root, *suffixes):
    """Project files as sorted paths relative to root: what git tracks or would add, or all files where git is absent."""
    root = pathlib.Path(root)
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"],
            check=True, capture_output=True).stdout.decode()
        names = {name for name in listing.split("\0") if name}
    else:
        names = set()
        for folder, folders, inside in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", ".cache", "node_modules", "__pycache__")]
            names.update(os.path.relpath(os.path.join(folder, name), root) for name in inside)
    return sorted(name for name in names
                  if (not suffixes or name.endswith(suffixes)) and (root / name).is_file())


def read(root, name):
    return (pathlib.Path(root) / name).read_text(encoding="utf-8", errors="replace")


def database(build):
    """The entries of compile_commands.json, one per source of ours; empty when the folder is not configured. A build compiles
    several sources as one unit, which is not what a check wants to see: such an entry becomes one for each source in it."""
    path = pathlib.Path(build) / "compile_commands.json"
    entries = []
    for entry in json.loads(path.read_text()) if path.exists() else []:
        file = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        inside = re.findall(r'^#include "(.*)"$', pathlib.Path(file).read_text(), re.MULTILINE) if UNITY.search(file) else [file]
        entries += [{**entry, "file": source, "command": entry["command"].replace(file, source)} for source in inside]
    return entries


def compile_commands(build):
    """(source path, target name) for each compiled file of a configured build folder; empty when there is none."""
    targets = ((entry["file"], re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"])) for entry in database(build))
    return [(os.path.realpath(file), target.group(1) if target else "") for file, target in targets]


def finish(problems, passed, notes=()):
    """Prints findings, one line each, and ends the process: 1 when there are problems, 0 otherwise."""
    for note in notes:
        print("note: " + note)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} problem(s)")
        sys.exit(1)
    print(passed)
    sys.exit(0)
