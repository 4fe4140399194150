"""What a worker may receive: schema/messages, checked by hand. A key with ! is required, any other key is a violation."""
import itertools, json, re

YEAR = 31536000000  # ms

def text(longest, pattern="(?s:.*)"): return lambda v: isinstance(v, str) and len(v) <= longest and re.fullmatch(pattern, v, re.A)
def number(low=0, high=2**53 - 1): return lambda v: type(v) is int and low <= v <= high
def a(kind): return lambda v: isinstance(v, kind)
ID, FLAG, TOKEN = text(128, "[ -~]+"), text(64, "(?s:.+)"), text(4096, "[ -~]+")
TIME = text(35, r"\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d))"
                r"T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)")
ENVELOPE = {"type!": text(128, r"(control|biz|ext)(\.[A-Za-z0-9_-]+)+"), "id!": ID, "ts!": TIME, "tenant!": text(64, "[ -~]+"),
            "sender!": {"role!": text(9, "scheduler|worker|runtime"), "id!": ID}, "payload!": a(dict), "corr": ID, "seq": number(),
            "ack": {"for": ID, "request": a(bool)}, "attachment": {"bytes!": number(), "type!": text(128, "(?s:.+)")},
            "ext": a(dict), "flags": (FLAG, 16)}
PAYLOADS = {
    "control.ack": {"ok!": a(bool), "for": ID, "info": text(1024), "ack_seq": number(), "ack_bitmap": text(1024, "[1-9a-f][0-9a-f]*"),
                    "recv_window": number(0, 4096), "recv_window_bytes": number(), "dup": number()},
    "control.session.accept": {
        "session_id!": ID, "session_token!": TOKEN, "worker_instance_id!": ID, "expires_at": TIME, "resumed!": a(bool),
        "last_seen_seq": number(), "earliest_retained_seq!": number(), "recv_window!": number(0, 4096), "recv_window_bytes!": number(),
        "heartbeat_interval_ms!": number(1, YEAR), "resume_ttl_ms!": number(0, YEAR), "frame_bytes_max!": number(16384)},
    "control.drain": {"phase!": text(8, "start|complete"), "reason": text(1024), "deadline_ms": number(0, YEAR)},
    "control.reset": {"code!": text(128, r"E(\.[A-Z][A-Z0-9_]*){1,2}"), "reason!": text(1024), "retry_after_ms": number(0, YEAR)}}
NOT_OURS = {"control.handshake", "control.register", "control.resume", "control.heartbeat"}  # only workers send these

class Object(dict): twice = None  # a key that occurred twice
class Violation(Exception): pass  # its text is "<code>[ <pointer>:][ <reason>]" (LIM-2)

def flaw(value, shape, at=""):
    """JSON pointer of the first place where `value` breaks `shape`, or None."""
    if callable(shape): return None if shape(value) else at
    if isinstance(shape, tuple):  # a list: of what, and how many at most
        if not isinstance(value, list) or len(value) > shape[1]: return at
        return next((place for i, v in enumerate(value) if (place := flaw(v, shape[0], f"{at}/{i}")) is not None), None)
    if not isinstance(value, dict): return at
    if value.twice is not None: return f"{at}/{value.twice}"  # ENV-8
    missing = [f"{at}/{key[:-1]}" for key in shape if key.endswith("!") and key[:-1] not in value]
    wrong = (flaw(v, shape.get(k) or shape.get(k + "!") or (lambda _: False), f"{at}/{k}") for k, v in value.items())
    return next((place for place in itertools.chain(missing, wrong) if place is not None), None)

def depth(json_text):
    """Objects and arrays around the innermost value; an empty one is a value itself."""
    values = re.sub(r'"(\\.|[^"\\])*"|[^][{}\s]', ".", json_text)
    brackets = re.sub(r"\[\s*\]|\{\s*\}|[.\s]", "", values)
    return max(itertools.accumulate(1 if c in "[{" else -1 for c in brackets), default=0)

def parse(message):
    """ENV-10. The envelope, the very text of its payload (ENV-3), and the bytes behind it (ATT-1; None in a text message)."""
    def pairs(members):
        made, keys = Object(members), [key for key, _ in members]
        made.twice = next((key for key in keys if keys.count(key) > 1), None) if len(made) < len(keys) else None
        return made
    def sane(value):
        if not -2**63 <= value < 2**64 and isinstance(value, int) or abs(value) == float("inf"): raise ValueError
        return value
    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_float=lambda t: sane(float(t)), parse_int=lambda t: sane(int(t)),
                               parse_constant=lambda t: sane(float("inf")))
    try:
        envelope, attachment = message, None
        if isinstance(message, bytes):
            length = int.from_bytes(message[:4], "big")
            if len(message) < 4 + length or len(message) < 4: raise ValueError
            envelope, attachment = message[4:4 + length].decode(), message[4 + length:]
        if depth(envelope) > 32: raise ValueError
        frame = decoder.decode(envelope)
        json.dumps(frame, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError):
        raise Violation("E.PROTO.JSON not one JSON text") from None
    body, at = "{}", envelope.find('"')
    while isinstance(frame, dict) and at >= 0:  # from member to member, to cut out the payload
        key, colon = decoder.raw_decode(envelope, at)
        start = re.compile(r"\s*:\s*").match(envelope, colon).end()
        end = decoder.raw_decode(envelope, start)[1]
        body, at = envelope[start:end] if key == "payload" else body, envelope.find('"', end)
    return frame, body, attachment
