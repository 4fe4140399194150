"""The client's end of a connection, down to its bytes: TCP, TLS, HTTP upgrade and WebSocket frames, each as wrong as a test wants.

Blocking, with a deadline on every read. Shares nothing with the project.
"""
import base64
import os
import socket
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
DEADLINE = 10  # seconds for an answer, on a busy machine


class Ended(Exception):
    """The server ended the connection; says how."""


def upgrade_head(target="/ws/worker", headers=()):
    lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", "Sec-WebSocket-Version: 13",
             *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def frame_bytes(opcode, payload=b"", final=True, reserved=0, claimed=None, mask=b"\x11\x22\x33\x44"):
    """One frame, masked as a client must unless `mask` is None. `claimed` is a length that the payload need not have."""
    length = len(payload) if claimed is None else claimed
    head = bytes([(0x80 if final else 0) | reserved << 4 | opcode])
    bit = 0 if mask is None else 0x80
    if length < 126:
        head += bytes([bit | length])
    elif length < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", length)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", length)
    if mask is None:
        return head + payload
    repeated = (mask * (len(payload) // 4 + 1))[:len(payload)]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(payload), "big")
    return head + mask + masked


class RawPeer:
    def __init__(self, port, tls=None, source="127.0.0.1"):
        self.begun = time.monotonic()
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE, (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b""
        if tls is not None:
            self.start_tls(tls)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def start_tls(self, context):
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def upgrade(self, target="/ws/worker", headers=()):
        """The HTTP status of the answer."""
        self.send(upgrade_head(target, headers))
        return self.read_status()

    def read_status(self):
        while b"\r\n\r\n" not in self.input:
            self.read_more()
        head, self.input = self.input.split(b"\r\n\r\n", 1)
        return int(head.split(b" ", 2)[1])

    def send(self, data):
        self.socket.sendall(data)

    def send_frame(self, opcode, payload=b"", **how):
        self.send(frame_bytes(opcode, payload, **how))

    def read_frame(self):
        """(opcode, payload) of the next frame; Ended when there is none."""
        size = self._need(2)[1]
        at = 2
        if size == 126:
            size, at = struct.unpack(">H", self._need(4)[2:4])[0], 4
        elif size == 127:
            size, at = struct.unpack(">Q", self._need(10)[2:10])[0], 10
        whole = self._need(at + size)
        self.input = self.input[at + size:]
        return whole[0] & 15, whole[at:at + size]

    def read_close(self):
        """The code of the server's close frame; what comes before it is passed over."""
        while True:
            opcode, payload = self.read_frame()
            if opcode == CLOSE:
                return struct.unpack(">H", payload[:2])[0]

    def seconds_to_the_end(self, limit=DEADLINE):
        """Reads until the server has ended the connection, and says how long that took; fails after `limit`."""
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < limit:
                self.socket.settimeout(max(0.001, limit - (time.monotonic() - begun)))
                if not self.socket.recv(65536):
                    return time.monotonic() - begun
        except TimeoutError:
            pass
        except OSError:
            return time.monotonic() - begun
        raise AssertionError(f"the connection is still open after {limit} s")

    def read_within(self, seconds):
        """Whether something came in this time; Ended when the connection did."""
        self.socket.settimeout(seconds)
        try:
            more = self.socket.recv(65536)
        except TimeoutError:
            return False
        except OSError as error:
            raise Ended(str(error)) from error
        finally:
            self.socket.settimeout(DEADLINE)
        if not more:
            raise Ended("the server hung up")
        self.input += more
        return True

    def has_frame(self, opcode):
        """Whether a frame of this kind is among those that came and were not read yet."""
        at = 0
        while at + 2 <= len(self.input):
            if self.input[at] & 15 == opcode:
                return True
            size = self.input[at + 1]
            at += {126: 4, 127: 10}.get(size, 2) + (struct.unpack_from(">H", self.input, at + 2)[0] if size == 126 else size)
        return False

    def read_more(self):
        if not self.read_within(DEADLINE):
            raise AssertionError(f"the server said nothing for {DEADLINE} s")

    def _need(self, count):
        while len(self.input) < count:
            self.read_more()
        return self.input[:count]
