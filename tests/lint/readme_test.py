"""README.md names nothing that does not exist: its links, programs, `./dev` commands and folders.

Words for parts that are only planned are listed here; whoever builds one takes its word off the list.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PLANNED = ("etcd", "autoscal", "web page", "event hub", "hubs", "timer trigger", "service bus")


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    problems = [f"names '{word}', which does not exist yet" for word in PLANNED if word in text.lower().replace("do not exist yet", "")]
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        if not os.path.exists(os.path.join(ROOT, target)):
            problems.append(f"links to {target}, which is not there")
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False).stdout
    cmake = "".join(open(os.path.join(ROOT, name), encoding="utf-8").read() for name in tracked.split() if name.endswith("CMakeLists.txt"))
    for program in set(re.findall(r"\bwindlass-[a-z-]+[a-z]", text)):
        if f"add_executable({program} " not in cmake:
            problems.append(f"names the program {program}, which is not built")
    help_text = subprocess.run([os.path.join(ROOT, "dev"), "help"], capture_output=True, text=True, check=True).stdout
    for command in set(re.findall(r"\./dev ([a-z]+)", text)):
        if not re.search(rf"^  {command} ", help_text, re.M):
            problems.append(f"names ./dev {command}, which does not exist")
    for problem in problems:
        print(f"README.md: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
