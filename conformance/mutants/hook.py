#!/usr/bin/python3
"""hook.py NAME: asks the scheduler behind the unix socket CONTROL for something. INSTANCE, TENANT, MUTANT and more are in the environment."""
import json
import os
import socket
import sys


def main():
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["CONTROL"])
        env = {name: os.environ[name] for name in ("TYPE", "PAYLOAD", "DEADLINE_MS") if name in os.environ}
        line.sendall(json.dumps({"hook": sys.argv[1], "instance": os.environ.get("INSTANCE", ""), "tenant": os.environ.get("TENANT", ""),
                                 "mutant": os.environ.get("MUTANT", ""), "env": env}).encode() + b"\n")
        answer = json.loads(line.makefile().readline())
    if answer["error"]:
        sys.exit(answer["error"])


if __name__ == "__main__":
    main()
