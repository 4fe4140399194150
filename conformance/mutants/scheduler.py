#!/usr/bin/python3
"""A scheduler of both wire revisions, from docs/protocol.md alone, and its mutants: each breaks exactly one rule.

One process serves them all: /ws/worker is the one named with --mutant (the correct one if none is), and
/mutant/<name, with ~ for />/ws/worker any other, each with a state of its own.
"""
import argparse
import asyncio
import http
import json
import os
import pathlib
import ssl
import sys
import urllib.parse

import websockets
import websockets.legacy.server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
from strict_websocket import Strict

import mutants
import world as worlds
from connection import Connection
from link import BEFORE_AUTH, FRAME_MAX


class Socket(Strict, websockets.legacy.server.WebSocketServerProtocol):
    """HSK-12: the first message is bounded from its header; what follows is judged by the connection until the handshake is acknowledged."""
    world = None

    async def read_message(self):
        message = await super().read_message()
        self.max_size = FRAME_MAX if self.max_size == BEFORE_AUTH else self.max_size
        return message

    async def read_frame(self, max_size):
        has = self.world.has
        frame = await (super().read_frame(max_size) if not has("lax-framing") else websockets.legacy.server.WebSocketServerProtocol.read_frame(self, max_size))
        if has("no-fragments") and not frame.fin:
            raise websockets.ProtocolError("fragments")
        if has("utf8-per-fragment") and frame.opcode < 2:
            frame.data.decode()
        return frame

    def fail_connection(self, code=1006, reason=""):
        super().fail_connection(1011 if self.world and self.world.has(f"close-{code}") else code, reason)

    async def write_close_frame(self, close, data=None):
        if self.world.has("no-close-echo") and self.close_rcvd:
            self.transport.abort()
        await super().write_close_frame(close, data)

    async def pong(self, data=b""):
        if not self.world.has("no-pong"):
            await super().pong(data)

    async def process_request(self, path, headers):
        self.world = self.ws_server.find(path)
        if self.world is None:
            return http.HTTPStatus(404), [], b"no such place\n"
        if self.world.stopped:
            return http.HTTPStatus(503), [("Retry-After", "1")], b"stopping\n"
        if "Origin" in headers and not self.world.has("any-origin"):  # TRN-2
            return http.HTTPStatus(403), [], b"no browsers\n"
        if self.world.has("no-early-limit"):
            self.max_size = FRAME_MAX
        if self.world.has("no-limit"):
            self.max_size = None
        return None


class Server:
    def __init__(self, settings):
        self.settings, self.worlds, self.default = settings, {}, settings.mutant

    def world(self, name):
        name = name or ""
        if name not in self.worlds:
            if name and not mutants.exists(name):
                return None
            self.worlds[name] = worlds.World(self.settings, mutants.Mutant(name))
        return self.worlds[name]

    def find(self, path):
        """The world that a request is for."""
        path = urllib.parse.unquote(path.split("?")[0])
        name = self.default
        if path.startswith("/mutant/"):
            name, _, path = path[len("/mutant/"):].partition("/")
            name, path = name.replace("~", "/"), "/" + path
        return self.world(name) if path == "/ws/worker" else None

    async def control(self, reader, writer):
        try:
            asked = json.loads(await reader.readline())
            world = self.world(asked.get("mutant") or self.default)
            answer = world.hook(asked["hook"], asked["tenant"], asked["instance"], asked.get("env", {})) if world else "no such mutant"
        except Exception as error:  # pylint: disable=broad-except
            answer = f"{type(error).__name__}: {error}"  # whoever asked must not wait for ever
        writer.write(json.dumps({"error": answer}).encode() + b"\n")
        await writer.drain()
        writer.close()

    async def run(self):
        tls = None
        if self.settings.certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.settings.certificate, self.settings.key)
            if self.settings.client_authority:
                tls.load_verify_locations(self.settings.client_authority)
                tls.verify_mode = ssl.CERT_OPTIONAL
        if self.settings.control:
            if os.path.exists(self.settings.control):
                os.unlink(self.settings.control)
            await asyncio.start_unix_server(self.control, self.settings.control)
        async def handle(ws):
            await Connection(ws.world, ws).run()
        server = await websockets.serve(handle, self.settings.host, self.settings.port, ssl=tls, create_protocol=Socket, compression=None,
                                        max_size=BEFORE_AUTH, ping_interval=None, close_timeout=2, max_queue=None)
        server.find = self.find
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutant", default=os.environ.get("MUTANT", ""), help="which rule /ws/worker breaks; none if not given")
    parser.add_argument("--list-mutants", action="store_true")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any; the port is printed")
    parser.add_argument("--control", help="path of the unix socket for hook.py")
    parser.add_argument("--token", default="token", help="bearer token of --tenant")
    parser.add_argument("--tenant", default="acme")
    parser.add_argument("--other-token", help="bearer token of --other-tenant")
    parser.add_argument("--other-tenant", default="other")
    parser.add_argument("--certificate", help="PEM; without it there is no TLS")
    parser.add_argument("--key")
    parser.add_argument("--client-authority", help="PEM: asks for client certificates")
    parser.add_argument("--certificate-required", action="store_true")
    for name, value in (("heartbeat", 30.0), ("resume-ttl", 300.0), ("stage-deadline", 10.0), ("drain-window", 0.5)):
        parser.add_argument("--" + name, type=float, default=value, help="seconds")
    for name, value in (("window", 256), ("window-bytes", 8 << 20), ("rate", 100000), ("pending-max", 1024), ("sessions-max", 65536)):
        parser.add_argument("--" + name, type=int, default=value)
    settings = parser.parse_args()
    if settings.list_mutants:
        mutants.print_list("scheduler")
        return
    settings.tokens = {settings.token: settings.tenant, **({settings.other_token: settings.other_tenant} if settings.other_token else {})}
    if settings.mutant and not mutants.exists(settings.mutant):
        sys.exit(f"no mutant {settings.mutant}; see --list-mutants")
    asyncio.run(Server(settings).run())


if __name__ == "__main__":
    main()
