"""A damaged store: reported in one sentence, exit 2, and left as it was, byte for byte."""
import glob
import os

from load import Load
from world import Failure, World, check

PAGE = 4096
LOG_HEADER, FRAME_HEADER = 32, 24


def read(path):
    with open(path, "rb") as file:
        return file.read()


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def files_of(world):
    """The database's own; packages lie in a folder beside it."""
    return [path for path in glob.glob(world.store + "*") if os.path.isfile(path)]


def all_bytes(world):
    return {path: read(path) for path in files_of(world)}


def restore(world, files):
    for path in files_of(world):
        os.unlink(path)
    for path, data in files.items():
        with open(path, "wb") as file:
            file.write(data)


def expect_refusal(world, what):
    """Started on what is there now."""
    before = all_bytes(world)
    process = world.scheduler
    super(type(process), process).start()
    try:
        code = process.wait(5)
    except Failure:
        raise Failure(f"{what}: the scheduler runs on it as if nothing were wrong") from None
    said = process.said()
    check(code == 2, f"{what}: the scheduler ended with {code}, not 2: {said[-500:]}")
    check(said.count("\n") == 1 and world.store in said, f"{what}: not one sentence that names the file: {said}")
    after = all_bytes(world)
    for path in set(before) | set(after):
        check(before.get(path) == after.get(path),
              f"{what}: {os.path.basename(path)} is not as it was ({len(before.get(path, b''))} and {len(after.get(path, b''))} bytes)")
    return said.strip()


def damages(world, random):
    """Each a name and what it does to the files."""
    store, log = world.store, world.store + "-wal"
    pages = os.path.getsize(store) // PAGE
    size = os.path.getsize(log)
    frames = (size - LOG_HEADER) // (PAGE + FRAME_HEADER)
    yield "another header", lambda: overwrite(store, 0, b"not a database at all")
    yield "a page of noise", lambda: overwrite(store, PAGE * random.randrange(1, pages), random.randbytes(PAGE))
    yield "half the file", lambda: os.truncate(store, PAGE * (pages // 2))
    yield "an odd length", lambda: os.truncate(store, PAGE + random.randrange(1, PAGE))
    yield "a log of noise", lambda: overwrite(log, 0, random.randbytes(size))
    yield "a log without its header", lambda: overwrite(log, 0, b"\0" * LOG_HEADER)
    # All the commits behind it were acknowledged; a reader that stops there would forget them without a word.
    yield "a damaged frame amid the log", lambda: overwrite(
        log, LOG_HEADER + (frames // 3) * (PAGE + FRAME_HEADER) + FRAME_HEADER + random.randrange(PAGE), b"\xa5\x5a\xa5\x5a")


def store_damaged(options):
    """Of a store that was in use when the scheduler was killed, with a log beside it."""
    with World(options) as world:
        world.start(2)
        with Load(world) as load:
            load.wait_accepted(150)
            load.stop()
            load.settle()
        for agent in world.agents:
            agent.kill()
        records = load.check()
        world.scheduler.kill()
        files = all_bytes(world)
        check(len(files[world.store + "-wal"]) > 20 * PAGE, "there is no log to damage")
        # The file itself holds something only after a clean end.
        world.scheduler.start()
        world.scheduler.signal(15)
        check(world.scheduler.wait(10) == 0, "the scheduler did not end with 0")
        folded = all_bytes(world)
        said = []
        for what, damage in damages_of_both(world, files, folded):
            damage()
            said.append(f"{what}: {expect_refusal(world, what)}")
        restore(world, files)
        world.scheduler.start()
        check(load.records() == records, "the store as it was is not what it was")
        print("\n".join(said), flush=True)
        return f"{len(said)} damages refused; {load.summary()}"


def damages_of_both(world, files, folded):
    """Damages of the file are done to the folded store, those of the log to the one with a log."""
    restore(world, {**folded, world.store + "-wal": files[world.store + "-wal"]})
    for what, damage in list(damages(world, world.random)):
        restore(world, files if "log" in what else folded)
        yield what, damage


CASES = {"store_damaged": store_damaged}
