"""A TCP proxy that breaks connections on purpose: cut, stall, delay, throttle, close at byte n, half-open.

It stands between one agent and the scheduler and knows nothing of TLS: bytes pass as they are, and a cut at byte n is a
cut at exactly that byte. What happens to a connection is its Plan, drawn when it is accepted; whatever is open can also
be broken from outside. One thread with its own event loop per proxy; every method may be called from any thread.
"""
import asyncio
import concurrent.futures
import dataclasses
import socket
import struct
import threading
import time

UP = "up"  # from the worker to the scheduler
DOWN = "down"

RST = "rst"  # both sides are reset
FIN = "fin"  # both sides are closed politely, in the middle of whatever they were saying
HALF_OPEN = "half-open"  # the worker's side is reset, the scheduler is told nothing
SILENT = "silent"  # nobody is told anything, nothing passes any more
MANNERS = (RST, FIN, HALF_OPEN, SILENT)

CHUNK_BYTES = 16 * 1024


@dataclasses.dataclass
class Plan:
    """What happens to one connection."""
    cut_at: dict = dataclasses.field(default_factory=dict)  # direction -> bytes that pass before the cut
    manner: str = RST
    delay: tuple = (0.0, 0.0)  # each chunk waits a time between these, in seconds
    bytes_per_second: float = 0.0  # 0: as fast as it goes


def reset(connection):
    """Closes with an RST instead of a FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Link:
    """One connection through the proxy: two sockets, two pumps."""

    def __init__(self, loop, worker, scheduler, plan, random):
        self.loop, self.plan, self.random = loop, plan, random
        self.worker, self.scheduler = worker, scheduler
        self.passed = {UP: 0, DOWN: 0}
        self.open_gate = {UP: asyncio.Event(), DOWN: asyncio.Event()}
        for gate in self.open_gate.values():
            gate.set()
        self.is_silent = False
        self.is_over = False
        self.pumps = []

    async def run(self):
        self.pumps = [asyncio.ensure_future(self.pump(UP, self.worker, self.scheduler)),
                      asyncio.ensure_future(self.pump(DOWN, self.scheduler, self.worker))]
        await asyncio.wait(self.pumps)
        self.end(FIN)

    async def pump(self, direction, source, target):
        try:
            while True:
                data = await self.loop.sock_recv(source, CHUNK_BYTES)
                if self.is_silent:
                    if not data:
                        return
                    continue
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                await self.pass_on(direction, target, data)
                if self.is_over:
                    return
        except OSError:
            # Whoever broke it, the other side hears of it the same way.
            if not self.is_silent:
                self.end(RST)

    async def pass_on(self, direction, target, data):
        limit = self.plan.cut_at.get(direction)
        if limit is not None:
            data = data[:max(0, limit - self.passed[direction])]
        wait = self.random.uniform(*self.plan.delay) if self.plan.delay[1] > 0 else 0
        if self.plan.bytes_per_second:
            wait += len(data) / self.plan.bytes_per_second
        if wait:
            await asyncio.sleep(wait)
        await self.open_gate[direction].wait()
        if self.is_silent or self.is_over:
            return
        if data:
            await self.loop.sock_sendall(target, data)
        self.passed[direction] += len(data)
        if limit is not None and self.passed[direction] >= limit:
            self.cut(self.plan.manner)

    def stall(self, direction):
        self.open_gate[direction].clear()

    def flow(self):
        for gate in self.open_gate.values():
            gate.set()

    def cut(self, manner):
        if manner in (SILENT, HALF_OPEN):
            self.is_silent = True
            self.flow()
            if manner == HALF_OPEN:
                self.drop(self.worker, RST)
                self.pumps[0].cancel()
        else:
            self.end(manner)

    def end(self, manner):
        if self.is_over:
            return
        self.is_over = True
        self.drop(self.worker, manner)
        self.drop(self.scheduler, manner)
        for pump in self.pumps:
            pump.cancel()

    def drop(self, connection, manner):
        if connection.fileno() < 0:
            return
        # A pump may wait for it, and the number of a closed descriptor is soon another's.
        self.loop.remove_reader(connection.fileno())
        self.loop.remove_writer(connection.fileno())
        if manner == RST:
            reset(connection)
        else:
            connection.close()


class FaultProxy:
    def __init__(self, random, plan=None):
        """`plan` makes the Plan of each connection from its number, 0 first; none: nothing is broken."""
        self.random = random
        self.make_plan = plan or (lambda number: Plan())
        self.upstream = None
        self.accepted = []  # when, by the steady clock
        self.links = set()
        self.is_refusing = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.accepting = self.loop.create_task(self._accept())
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _accept(self):
        tasks = set()  # the loop itself only holds weak references
        while True:
            worker, _ = await self.loop.sock_accept(self.listener)
            self.accepted.append(time.monotonic())
            if self.is_refusing or self.upstream is None:
                reset(worker)
                continue
            task = self.loop.create_task(self._serve(worker, self.make_plan(len(self.accepted) - 1)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _serve(self, worker, plan):
        scheduler = socket.socket()
        scheduler.setblocking(False)
        try:
            await self.loop.sock_connect(scheduler, ("127.0.0.1", self.upstream))
        except OSError:
            reset(worker)
            scheduler.close()
            return
        for each in (worker, scheduler):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self.loop, worker, scheduler, plan, self.random)
        self.links.add(link)
        try:
            if 0 in plan.cut_at.values():
                link.end(RST if plan.manner == RST else FIN)
            else:
                await link.run()
        finally:
            self.links.discard(link)

    def _call(self, function):
        """On the loop's thread; what it returns."""
        done = concurrent.futures.Future()

        def call():
            try:
                done.set_result(function())
            except Exception as problem:  # pylint: disable=broad-except
                done.set_exception(problem)
        self.loop.call_soon_threadsafe(call)
        return done.result(timeout=10)

    # ---- from outside

    def cut(self, manner=RST):
        """Whatever is open now; how many that were."""
        return self._call(lambda: len([link.cut(manner) for link in list(self.links) if not link.is_silent]))

    def cut_one(self, manner=RST):
        """One of what is open now; how many that were."""
        def cut():
            alive = [link for link in self.links if not link.is_silent]
            if alive:
                self.random.choice(alive).cut(manner)
            return min(1, len(alive))
        return self._call(cut)

    def stall(self, *directions):
        """Of what is open now; a new connection flows."""
        self._call(lambda: [link.stall(each) for link in list(self.links) for each in directions])

    def flow(self):
        self._call(lambda: [link.flow() for link in list(self.links)])

    def bury(self):
        """What hangs half-open or silent is reset at last."""
        self._call(lambda: [link.end(RST) for link in list(self.links) if link.is_silent])

    def calm(self):
        """What is open now is not cut any more."""
        self._call(lambda: [link.plan.cut_at.clear() for link in list(self.links)])

    def passed(self):
        """Bytes of the connection that has sent most, by direction."""
        return self._call(lambda: dict(max(self.links, key=lambda link: link.passed[UP]).passed) if self.links else None)

    def close(self):
        def end():
            self.listener.close()
            for link in list(self.links):
                link.end(RST)
            self.loop.stop()
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(end)
            self.thread.join(timeout=10)
