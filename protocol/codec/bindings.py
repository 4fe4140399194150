"""Where each schema's values go in the structs of protocol/messages.

By convention a property is stored in the struct's field of the same name, nested objects are flattened into the
same struct, and an object the schema leaves open is stored as its text. Below is what the convention cannot say:
a name means that field of `out`; a text with a parenthesis is a statement over `out` and `value`; IGNORE checks the
value and drops it; Text(name) checks an object and stores its text besides.
"""

import collections

Text = collections.namedtuple("Text", "field")
IGNORE = object()

STRUCTS = {
    "envelope": "DecodedFrame",
    "handshake": "Handshake",
    "register": "Register",
    "session.accept": "SessionAccept",
    "resume": "Resume",
    "reset": "Reset",
    "drain": "Drain",
    "ack": "Ack",
    "heartbeat": "Heartbeat",
}

# The struct of an array's items, where those are objects.
ITEMS = {"register": {"packages": "Register::Package", "manifests": "Register::Manifest"}}

_ENVELOPE = {
    "sender.role": "sender_role",
    "sender.id": "sender_id",
    "ack.for": "ack_for",
    "ack.request": "ack_request",
}

# The session counts from 0 and its positions are "next"; revision 1 counts from 1, so there "next" is the last.
#= REV-1, REV-2
EXCEPTIONS = {
    "envelope": {
        **_ENVELOPE,
        "attachment.bytes": "attachment_bytes",
        "attachment.type": "attachment_type",
    },
    "envelope.revision1": {**_ENVELOPE, "seq": IGNORE, "session_seq": "out.seq = value - 1"},
    "register": {"capabilities.concurrency.per_node_limits": Text("per_node_limits")},
    "register.revision1": {"capabilities.concurrency.per_node_limits": Text("per_node_limits")},
    "session.accept": {
        "last_seen_seq": "out.received_next = value + 1",
        "earliest_retained_seq": "earliest_retained",
        "recv_window": "credit.frames",
        "recv_window_bytes": "credit.bytes",
        "heartbeat_interval_ms": "heartbeat_interval",
        "resume_ttl_ms": "resume_ttl",
    },
    "resume": {
        "last_seen_seq": "out.received_next = value + 1",
        "earliest_retained_seq": "earliest_retained",
        "recv_window": "credit.frames",
        "recv_window_bytes": "credit.bytes",
    },
    "resume.revision1": {"last_seen_seq": "received_next"},
    "reset": {"retry_after_ms": "retry_after"},
    "reset.revision1": {"retry_after_ms": "retry_after"},
    "drain": {"deadline_ms": "deadline"},
    "drain.revision1": {"deadline_ms": "deadline"},
    "ack": {
        "for": "for_id",
        "ack_seq": "state(out).owned_next = value + 1",
        "ack_bitmap": "store_hex(state(out).held, value)",
        "recv_window": "store(state(out).credit.frames, value)",
        "recv_window_bytes": "store(state(out).credit.bytes, value)",
        "dup": "store(state(out).dup, value)",
    },
    "ack.revision1": {
        "for": "for_id",
        "ack_seq": "state_revision1(out).owned_next = value",
        "ack_bitmap": "store_bits(state_revision1(out).held, value)",
        "recv_window": "store(state_revision1(out).credit.frames, value)",
    },
    "heartbeat": {"metrics": Text("metrics"), "packages.drift": "packages_drift"},
    "heartbeat.revision1": {"metrics": Text("metrics"), "packages.drift": "packages_drift"},
}
