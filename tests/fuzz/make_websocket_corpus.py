#!/usr/bin/env python3
"""Writes corpus/websocket: one small named stream per rule of RFC 6455, for each side of fuzz_websocket.

Run it after adding a case; the files are committed. Byte 0 is fuzz_websocket's own: even for a server, odd for a client.
"""
import pathlib
import struct

KEY = bytes.fromhex("37fa213d")
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def frame(opcode, payload=b"", *, server, final=True, reserved=0, masked=None, length=None, form=None):
    length = len(payload) if length is None else length
    form = form or (7 if length < 126 else 16 if length < 65536 else 64)
    masked = server if masked is None else masked
    short = {7: length & 127, 16: 126, 64: 127}[form]
    head = bytes([final << 7 | reserved << 4 | opcode, masked << 7 | short])
    head += {7: b"", 16: struct.pack(">H", length & 0xFFFF), 64: struct.pack(">Q", length)}[form]
    if masked:
        head += KEY
        payload = bytes(byte ^ KEY[i % 4] for i, byte in enumerate(payload))
    return head + payload


def streams(server):
    def f(*args, **options):
        return frame(*args, server=server, **options)

    euro = "€".encode()
    yield "text", f(TEXT, b'{"type":"control.heartbeat"}')
    yield "text_empty", f(TEXT)
    yield "text_utf8", f(TEXT, "grüße € 😀".encode())
    yield "binary_125", f(BINARY, bytes(125))
    yield "binary_126", f(BINARY, bytes(126))
    yield "binary_at_limit", f(BINARY, bytes(3000))
    yield "binary_over_limit", f(BINARY, length=3001)
    yield "many_messages", b"".join(f(TEXT, b"m" * size) for size in range(20))
    yield "fragments", f(TEXT, b"one", final=False) + f(CONTINUATION, b"two", final=False) + f(CONTINUATION, b"three")
    yield "fragments_empty", f(TEXT, final=False) + f(CONTINUATION, final=False) + f(CONTINUATION)
    yield "fragments_over_limit", f(BINARY, bytes(2000), final=False) + f(CONTINUATION, bytes(1001))
    yield "fragments_cut_character", b"".join(
        [f(TEXT, euro[:1], final=False), f(CONTINUATION, euro[1:2], final=False), f(CONTINUATION, euro[2:])])
    yield "ping_between_fragments", f(TEXT, b"a", final=False) + f(PING, b"p") + f(CONTINUATION, b"b")
    yield "close_between_fragments", f(TEXT, b"a", final=False) + f(CLOSE, b"\x03\xe8")
    yield "ping", f(PING, b"are you there") + f(PONG, b"yes")
    yield "ping_125", f(PING, bytes(125))
    yield "close", f(CLOSE, b"\x03\xe8bye") + f(TEXT, b"ignored")
    yield "close_empty", f(CLOSE)
    yield "close_half_code", f(CLOSE, b"\x03")
    for code in (999, 1004, 1005, 1006, 1014, 1015, 2999, 3000, 4999, 5000):
        yield f"close_{code}", f(CLOSE, struct.pack(">H", code))
    yield "close_bad_utf8", f(CLOSE, b"\x03\xe8\xff")
    yield "bad_utf8", f(TEXT, b"ab\xff")
    yield "bad_utf8_surrogate", f(TEXT, b"\xed\xa0\x80")
    yield "bad_utf8_overlong", f(TEXT, b"\xc0\xaf")
    yield "bad_utf8_cut_at_end", f(TEXT, euro[:2])
    yield "bad_utf8_empty_last_fragment", f(TEXT, euro[:2], final=False) + f(CONTINUATION) + f(TEXT, b"next")
    yield "bad_utf8_second_fragment", f(TEXT, euro[:1], final=False) + f(CONTINUATION, b"(")
    for reserved in (1, 2, 4):
        yield f"bad_reserved_{reserved}", f(TEXT, b"x", reserved=reserved)
    for opcode in (3, 7, 11, 15):
        yield f"bad_opcode_{opcode}", f(opcode, b"x")
    yield "bad_mask", f(TEXT, b"hello", masked=not server)
    yield "bad_continuation", f(CONTINUATION, b"x")
    yield "bad_new_message", f(TEXT, b"a", final=False) + f(BINARY, b"b")
    yield "bad_ping_fragment", f(PING, b"p", final=False)
    yield "bad_ping_126", f(PING, bytes(126))
    yield "bad_length_16_short", f(BINARY, b"x" * 5, form=16)
    yield "bad_length_64_short", f(BINARY, b"x" * 5, form=64)
    yield "bad_length_top_bit", f(BINARY, length=1 << 63)
    yield "cut_header", f(BINARY, bytes(300))[:3]
    yield "cut_payload", f(TEXT, "wörter".encode())[:-2]


def main():
    folder = pathlib.Path(__file__).parent / "corpus" / "websocket"
    folder.mkdir(parents=True, exist_ok=True)
    for side, server in (("server", True), ("client", False)):
        for name, stream in streams(server):
            (folder / f"{side}_{name}").write_bytes(bytes([0 if server else 1]) + stream)


if __name__ == "__main__":
    main()
