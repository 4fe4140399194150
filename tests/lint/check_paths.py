#!/usr/bin/env python3
"""No file names this machine's checkout, a package host or a link that leads nowhere: what is committed must hold on any machine."""

import argparse
import os
import pathlib
import posixpath
import re

import tree

# Mirrors differ from site to site; the system's own configuration knows them, a project must not.
PACKAGE_HOST = re.compile(r"//(?:[a-z0-9-]+\.)*(?:debian|npmjs)\.[a-z]+")
INSTALLED = re.compile(r"install\((?:FILES|DIRECTORY) ([^)]*) DESTINATION \$\{CMAKE_INSTALL_DOCDIR\}")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def check(root, links=True):
    checkout = os.path.realpath(root)
    # A checkout directly below the root, such as /build, is a word that files may use for something else.
    named = checkout if checkout.count("/") > 1 else None
    problems = []
    installed = installed_documents(root)
    for name in tree.files(root):
        text = tree.read(root, name)
        for number, line in enumerate(text.splitlines(), 1):
            if named and named in line:
                problems.append(f"{name}:{number}: names the checkout {named}")
            if PACKAGE_HOST.search(line):
                problems.append(f"{name}:{number}: names a package host")
        if links and name.endswith(".md"):
            problems += dead_links(root, name, text)
            if name in installed:
                problems += [f"{name}:{line}: links to {target}, which is not installed with it"
                             for line, target, path in links_of(name, text) if not any(path == each or path.startswith(f"{each}/") for each in installed)]
    return problems


def installed_documents(root):
    """Files and folders of the documentation that an installed machine has."""
    recipe = pathlib.Path(root) / "CMakeLists.txt"
    found = INSTALLED.findall(recipe.read_text(encoding="utf-8")) if recipe.exists() else []
    return {name for each in found for name in each.split()}


def links_of(name, text):
    """Line, link and path of each link to a file."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", lambda match: "\n" * match.group(0).count("\n"), text, flags=re.DOTALL)
    for match in LINK.finditer(prose):
        target = match.group(1)
        if re.match(r"[a-z]+:", target):
            continue
        yield prose.count("\n", 0, match.start()) + 1, target, posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def dead_links(root, name, text):
    return [f"{name}:{line}: links to {target}, which does not exist"
            for line, target, path in links_of(name, text) if not (pathlib.Path(root) / path).exists()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--no-links", action="store_true")
    arguments = parser.parse_args()
    tree.finish(check(arguments.root, not arguments.no_links), "no machine, package host or dead link is named")


if __name__ == "__main__":
    main()
