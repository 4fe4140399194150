"""A language worker whose code leaves things behind or takes all there is, as task.json beside this file says. Prints one line for each
thing that it did and waits to be ended.

  {"do": "leave", "mark": "x"}    tells what of an earlier worker's it finds, then leaves a file in every shared folder, and shared memory
  {"do": "memory"}                takes memory without end
  {"do": "disk", "at": [...]}     writes to each folder without end, in one file and in many
"""
import ctypes
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")
IPC_CREAT = 0o1000
CHUNK = b"x" * (1 << 20)
CHUNKS_MAX = 64  # a disk that takes all of these has no bound


def shared_memory(key, flags):
    return ctypes.CDLL(None, use_errno=True).shmget(key, 4096, flags)


def leave(mark):
    key = 0x57000000 + int(mark, 16)
    names = [os.path.join(folder, f"left-{mark}") for folder in SHARED if os.path.isdir(folder)]
    found = [name for name in names if os.path.exists(name)] + (["shared memory"] if shared_memory(key, 0) >= 0 else [])
    print("found " + json.dumps(found), flush=True)
    for name in names:
        os.makedirs(name)
        with open(os.path.join(name, "secret"), "w", encoding="utf-8") as file:
            file.write("of one application")
        os.chmod(name, 0)  # closed to the next one, and no reason to keep it
    assert shared_memory(key, IPC_CREAT | 0o666) >= 0
    print("left", flush=True)


def take_memory():
    print("takes memory", flush=True)
    kept = []
    while True:
        kept.append(bytearray(CHUNK))


def fill(folder, name_of):
    """How many pieces were written, and what ended it."""
    names = set()
    try:
        for count in range(CHUNKS_MAX):
            names.add(os.path.join(folder, name_of(count)))
            with open(os.path.join(folder, name_of(count)), "ab") as file:
                file.write(CHUNK)
        return [CHUNKS_MAX, "no end"]
    except OSError as error:
        return [count, os.strerror(error.errno)]
    finally:
        for name in names:
            os.remove(name)


def fill_disk(folders):
    for folder in [os.environ["TMPDIR"], *folders]:
        print("filled " + json.dumps([folder, fill(folder, lambda _: "one"), fill(folder, str)]), flush=True)
    print("filled all", flush=True)


def main():
    with open(os.path.join(HERE, "task.json"), encoding="utf-8") as file:
        task = json.load(file)
    if task["do"] == "leave":
        leave(task["mark"])
    elif task["do"] == "memory":
        take_memory()
    elif task["do"] == "disk":
        fill_disk(task["at"])
    time.sleep(120)


if sys.argv[1:]:
    main()
