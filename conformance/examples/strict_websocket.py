"""What `websockets` 10 leaves out of RFC 6455: lengths in their shortest form (TRN-3), and UTF-8 judged byte by byte (TRN-4)."""
import codecs

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import Opcode
from websockets.legacy.framing import Frame


class Strict:
    """Comes before the library's protocol class: class Client(Strict, websockets.WebSocketClientProtocol)."""
    decoder = None  # of the text message that is being read

    async def read_frame(self, max_size):
        head = await self.reader.readexactly(2)
        final, opcode, masked, length = bool(head[0] & 128), head[0] & 15, bool(head[1] & 128), head[1] & 127
        if head[0] & 0x70 or masked == self.is_client or opcode not in (0, 1, 2, 8, 9, 10) or opcode > 7 and (length > 125 or not final):
            raise ProtocolError("broken frame")
        if length > 125:
            count, least = (2, 126) if length == 126 else (8, 65536)
            length = int.from_bytes(await self.reader.readexactly(count), "big")
            if length < least or length >= 1 << 63:
                raise ProtocolError("length not in its shortest form")
        if max_size is not None and length > max_size:
            raise PayloadTooBig("too large")
        mask = await self.reader.readexactly(4) if masked else bytes(4)
        if opcode in (1, 2):
            self.decoder = codecs.getincrementaldecoder("utf-8")() if opcode == 1 else None
        data = bytearray()
        while len(data) < length:
            piece = await self.reader.read(length - len(data))
            if not piece:
                raise EOFError
            turned = (mask[len(data) % 4:] + mask[:len(data) % 4]) * (len(piece) // 4 + 1)
            piece = (int.from_bytes(piece, "big") ^ int.from_bytes(turned[:len(piece)], "big")).to_bytes(len(piece), "big")
            if opcode < 2 and self.decoder:
                self.decoder.decode(piece)  # UnicodeDecodeError: the library closes with 1007
            data += piece
        if opcode < 2 and self.decoder and final:
            self.decoder.decode(b"", True)
        return Frame(final, Opcode(opcode), bytes(data))
