#!/usr/bin/env python3
"""Holds the include arrows of layers.txt. CMake's links alone do not: with one include root a forbidden include compiles."""

import argparse
import pathlib
import posixpath
import re

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)

# Library headers that touch files, threads, clocks or the console: no pure folder needs them (a tool's main may).
IMPURE_STANDARD = {"condition_variable", "filesystem", "fstream", "future", "iostream", "mutex", "semaphore", "shared_mutex",
                   "stop_token", "syncstream", "thread", "latch", "barrier", "csignal", "clocale", "ctime"}


class Layer:
    def __init__(self, line):
        columns = [column.strip() for column in line.split("|")]
        if len(columns) != 4 or columns[2] not in ("pure", "impure"):
            raise ValueError(f"layers.txt: not 'folder | includes | pure or impure | third-party': {line}")
        self.folder = columns[0]
        self.includes = columns[1].split()
        self.pure = columns[2] == "pure"
        self.third_party = columns[3].split()

    def may_include(self, folder):
        return folder == self.folder or any(
            pattern == "*" or folder == pattern or (pattern.endswith("/*") and folder.startswith(pattern[:-1]))
            for pattern in self.includes)

    def may_use(self, header):
        return any(name == "*" or header == name or (name.endswith("/") and header.startswith(name))
                   for name in self.third_party)


def load_layers(path):
    lines = pathlib.Path(path).read_text().splitlines()
    return {layer.folder: layer for layer in (Layer(line) for line in lines if line.strip() and not line.startswith("#"))}


def folder_of(name, layers):
    """The listed folder a path lies in, the deepest one when several match; None when none does."""
    folder = posixpath.dirname(name)
    while folder:
        if folder in layers:
            return folder
        folder = posixpath.dirname(folder)
    return None


def is_standard(header):
    return re.fullmatch(r"[a-z_]+", header) is not None  # Third-party headers have a suffix or a folder.


def check_include(name, layer, quoted, header, root, layers):
    if quoted:
        target = folder_of(header, layers)
        if target is None:
            first = header.split("/")[0]
            if layer.may_include(first) and "/" in header:
                return None  # Generated code, such as schema/.
            return f'"{header}" does not start at the repository root, or its folder is not in layers.txt'
        if not layer.may_include(target):
            return f'{layer.folder} may not include {target} ("{header}")'
        return None
    if (pathlib.Path(root) / header).is_file():
        return f"<{header}> is a file of the project: include it with quotes"
    if is_standard(header):
        if layer.pure and header in IMPURE_STANDARD and not name.endswith("main.cc"):
            return f"<{header}> has no place in a pure folder"
        return None
    if layer.pure and not layer.may_use(header):
        return f"{layer.folder} may not use <{header}>"
    if layer.pure and not name.endswith(".cc"):
        return f"<{header}> belongs in a .cc file, so that no header of a pure folder passes it on"
    if not layer.pure and not layer.may_use(header) and "/" in header and not header.startswith("sys/"):
        return f"{layer.folder} may not use <{header}>"
    return None


def check_listing(root, layers):
    """What layers.txt says of folders that are not there: a row without files, an arrow to nowhere."""
    names = tree.files(root, ".cc", ".h", ".inc")
    filled = {folder_of(name, layers) for name in names}
    problems = [f"layers.txt: {folder} is listed and has no files" for folder in layers if folder not in filled]
    # Generated code has a folder and no row: its sources are not C++.
    folders = set(layers) | {posixpath.dirname(name).split("/")[0] for name in tree.files(root)}
    for layer in layers.values():
        problems += [f"layers.txt: {layer.folder} may include {pattern}, which is no folder" for pattern in layer.includes
                     if pattern != "*" and pattern not in folders and not (pattern.endswith("/*") and pattern[:-2] in folders)]
    return problems


def check(root, layers):
    problems = []
    for name in tree.files(root, ".cc", ".h", ".inc"):
        folder = folder_of(name, layers)
        if folder is None:
            problems.append(f"{name}: its folder is not in layers.txt")
            continue
        text = tree.read(root, name)
        for match in INCLUDE.finditer(text):
            problem = check_include(name, layers[folder], match.group(1) == '"', match.group(2), root, layers)
            if problem:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(f"{name}:{line}: {problem}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--layers", default=str(pathlib.Path(__file__).with_name("layers.txt")))
    arguments = parser.parse_args()
    layers = load_layers(arguments.layers)
    tree.finish(check(arguments.root, layers) + check_listing(arguments.root, layers), f"include arrows hold in {len(tree.files(arguments.root, '.cc', '.h'))} files")


if __name__ == "__main__":
    main()
