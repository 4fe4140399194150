#!/usr/bin/env python3
"""A peer on Debian's python3-websockets; see README.md."""

import asyncio
import ssl
import sys

import websockets

MESSAGES = ["hello", "gr\u00fc\u00dfe \u2603 \U0001f600", bytes(i % 251 for i in range(70000)), ""]


async def client(port, authority):
    tls = ssl.create_default_context(cafile=authority)
    # The default offers compression, which our server must decline.
    async with websockets.connect(f"wss://localhost:{port}/v1", host="127.0.0.1", ssl=tls, max_size=None) as socket:
        for message in MESSAGES:
            await socket.send(message)
            assert await socket.recv() == message, message[:20]
        await socket.send(["frag", "men", "ted"])
        assert await socket.recv() == "fragmented"
        await asyncio.wait_for(await socket.ping(b"beat"), 10)
        await socket.close(4000, "done")
        assert socket.close_code == 4000, socket.close_code


async def server(certificate, key):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    closed = asyncio.get_running_loop().create_future()

    async def echo(socket):
        try:
            while True:
                message = await socket.recv()
                in_parts = len(message) > 1000
                await socket.send([message[:999], message[999:]] if in_parts else message)
                await asyncio.wait_for(await socket.ping(), 10)
        except websockets.ConnectionClosed:
            closed.set_result(f"closed {socket.close_code} {socket.close_reason}")

    async with websockets.serve(echo, "127.0.0.1", 0, ssl=tls, max_size=None) as listening:
        print("port", listening.sockets[0].getsockname()[1], flush=True)
        print(await closed, flush=True)


asyncio.run({"client": client, "server": server}[sys.argv[1]](*sys.argv[2:]))
