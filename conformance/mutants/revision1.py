"""Revision 1 on the wire (REV-1 to REV-4). Inside everything is numbered as in revision 2."""

ACCEPT = ("session_id", "session_token", "expires_at", "resumed", "worker_instance_id")


def to_wire(frame):
    payload, kind = frame["payload"], frame["type"]
    if "seq" in frame:
        frame["session_seq"] = frame.pop("seq") + 1
    for name in ("ext", "attachment"):
        frame.pop(name, None)
    if kind == "control.ack":
        if "recv_window" in payload:
            payload["ack_seq"] = payload.get("ack_seq", -1) + 1
            payload["ack_bitmap"] = int(payload.get("ack_bitmap", "0"), 16)
        for name in ("recv_window_bytes", "dup"):
            payload.pop(name, None)
    if kind == "control.drain":
        payload.pop("phase")
    if kind == "control.session.accept":
        frame["payload"] = {name: payload[name] for name in ACCEPT if name in payload}


def from_wire(frame):
    def strip(value):
        for name in [name for name, member in value.items() if member is None]:
            del value[name]
    strip(frame)
    payload = frame["payload"]
    frame.pop("seq", None)
    if "session_seq" in frame:
        frame["seq"] = frame.pop("session_seq") - 1
    if frame["type"].startswith("control."):
        strip(payload)
    if frame["type"] == "control.ack" and "ack_seq" in payload:
        payload["ack_seq"] -= 1
        payload.setdefault("recv_window", 64)
    elif frame["type"] == "control.ack":
        payload.pop("recv_window", None)
    if frame["type"] == "control.resume":
        payload["last_seen_seq"] = payload.get("last_seen_seq", 0) - 1
