"""windlass-scheduler and a worker of wire revision 1: 1 000 business frames each way, with cuts and resumes, then a drain.

  revision1_test.py PATH_OF_WINDLASS_SCHEDULER
"""
import asyncio
import sys

from revision1_worker import Worker
from scheduler_process import Scheduler

COMMANDS = 1000


async def answer(worker, answered):
    """Answers every command with what it asked."""
    while True:
        frame = await worker.inbox.get()
        await worker.send("biz.result", {"echo": frame["payload"]}, corr=frame["id"])
        answered.append(frame["id"])


async def main(binary):
    with Scheduler(binary) as scheduler:
        worker = Worker(scheduler.url, "acme", "i-old", scheduler.token)
        await worker.connect()
        await worker.handshake()
        await worker.register()
        answered = []
        answering = asyncio.create_task(answer(worker, answered))

        async def submit(i):
            return await asyncio.to_thread(scheduler.post, "/v1/workers/acme/i-old/commands",
                                           {"id": f"c{i}", "type": "biz.echo", "payload": {"n": i}})

        for batch in range(10):
            await asyncio.gather(*(submit(batch * 100 + i) for i in range(100)))
            if batch in (2, 5, 8):
                await worker.cut()
                await worker.connect()
                await worker.handshake()
                await worker.resume()
        deadline = asyncio.get_running_loop().time() + 60
        while len(answered) < COMMANDS and worker.problem is None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        assert worker.problem is None, worker.problem
        assert len(answered) == COMMANDS, f"{len(answered)} commands came"
        assert len(set(answered)) == COMMANDS, "a command came twice to its owner"
        await asyncio.wait_for(worker.all_acked(), 30)
        assert worker.next_seq == COMMANDS + 1
        for i in (0, 499, 999):
            record = await asyncio.to_thread(scheduler.get, f"/v1/commands/acme/c{i}")
            assert record["state"] == "done", record
            assert record["result"]["payload"] == {"echo": {"n": i}}, record
        fleet = await asyncio.to_thread(scheduler.get, "/v1/workers/acme/i-old")
        assert fleet["counters"]["resumes"] == 3, fleet

        await asyncio.to_thread(scheduler.post, "/v1/workers/acme/i-old/drain", {"reason": "test", "deadline_ms": 20000})
        await asyncio.wait_for(worker.drain_asked.wait(), 5)
        await worker.heartbeat(0)
        await asyncio.wait_for(worker.closed.wait(), 10)
        assert worker.close_code == 1000, worker.close_code
        answering.cancel()
        print(f"revision 1: {COMMANDS} commands and {COMMANDS} results, 3 resumes, {worker.duplicates} duplicates, drained")


asyncio.run(main(sys.argv[1]))
