"""Both directions of one session: sequence, windows, acknowledgement, retransmission (WIN, ACK, RTX)."""
import collections
import itertools
import random


class Sent:
    """A frame that ack_seq does not cover yet."""

    def __init__(self, seq, head, body, attachment, end):
        self.seq, self.head, self.body, self.attachment, self.end = seq, head, body, attachment, end
        self.held = False


class AckOfNothing(Exception):
    """ACK-4: an ack for what was never sent."""


class Outgoing:
    def __init__(self, has):
        self.has = has
        self.kept = collections.deque()
        self.next_seq = self.next_new = self.bytes_queued = self.bytes_acked = 0
        self.acked, self.edge, self.byte_edge = -1, 0, 0
        self.attempts, self.resend_at = 0, None
        self.last = None  # acknowledged last

    def credit(self, window, window_bytes):
        """Stated anew, from the ack_seq that is known (HSK-11, RES-9)."""
        self.edge, self.byte_edge = self.acked + 1 + window, self.bytes_acked + window_bytes

    def push(self, head, body, attachment):
        self.bytes_queued += len(body.encode()) + len(attachment or b"")
        head["seq"] = self.next_seq
        self.kept.append(Sent(self.next_seq, head, body, attachment, self.bytes_queued))
        self.next_seq += 1

    def take_back(self):
        """New work that was never sent, without what belongs to work under way."""
        while self.waiting() and "corr" not in self.kept[-1].head:
            sent = self.kept.pop()
            self.next_seq -= 1
            self.bytes_queued -= len(sent.body.encode()) + len(sent.attachment or b"")
            yield sent

    def sendable(self):
        """What credit lets out now (WIN-2, WIN-3)."""
        for sent in list(itertools.islice(self.kept, self.next_new - self.acked - 1, None)):
            if sent.seq >= self.edge and not self.has("no-frame-window"):
                return
            if sent.end > self.byte_edge and (sent.seq > self.acked + 1 or self.has("bytes-strict")) and not self.has("no-byte-window"):
                return
            self.next_new = sent.seq + 1
            yield sent

    def acknowledge(self, seq, bits, window, window_bytes):
        if max(seq, seq + bits.bit_length()) >= self.next_new:
            if self.has("ack-of-nothing"):
                return
            raise AckOfNothing
        if seq < self.acked:  # ACK-5
            if self.has("older-ack-resets"):
                raise AckOfNothing
            return
        while self.kept and self.kept[0].seq <= seq:  # ACK-3, WIN-8
            self.last = self.kept.popleft()
            self.bytes_acked = self.last.end
            self.attempts, self.resend_at = 0, None
        self.acked = max(seq, self.acked)
        for sent in self.kept:
            if sent.seq > seq and bits >> (sent.seq - seq - 1) & 1 and not self.has("bits-ignored"):
                sent.held = True
        if not self.has("edge-never-moves"):
            self.edge = max(self.edge, seq + 1 + window)
            self.byte_edge = max(self.byte_edge, self.bytes_acked + window_bytes)

    def seen(self, last_seen):
        """RES-4: what to send again after a resume."""
        for sent in self.kept:
            sent.held = sent.held or sent.seq <= last_seen
            if sent.seq < self.next_new and (not sent.held or self.has("replays-all")):
                yield sent

    def waiting(self):
        return self.next_new < self.next_seq

    def lost(self):
        """RTX-3: the oldest that the peer does not have."""
        return next((sent for sent in self.kept if sent.seq < self.next_new and not sent.held), None)

    def due(self, now):
        """RTX-1: whether the timer has run out, of 0.4 s or more. It starts when there is something to wait for."""
        if not self.waiting() and self.lost() is None:
            self.attempts, self.resend_at = 0, None
            return False
        due = self.resend_at is not None and now >= self.resend_at
        if due:
            self.attempts += 1
        if due or self.resend_at is None:
            doublings = 0 if self.has("no-backoff") else self.attempts
            self.resend_at = now + min(5, (0.05 if self.has("impatient") else 0.2 if self.has("no-backoff") else 0.4) * 2**doublings) * random.uniform(1, 1.25)
        return due


class Incoming:
    def __init__(self, window, window_bytes, has):
        self.window, self.window_bytes, self.has = window, window_bytes, has
        self.received, self.early, self.dup = -1, {}, 0

    def take(self, frame, size):
        """'new', 'duplicate' or 'beyond' (WIN-5 to WIN-7)."""
        seq = frame["seq"]
        if seq <= self.received or seq in self.early:
            self.dup += not self.has("dup-uncounted")
            return "duplicate"
        if seq > self.received + self.window and not self.has("window-unchecked"):
            return "beyond"
        if size + sum(early[1] for early in self.early.values()) > self.window_bytes and not self.has("bytes-unchecked"):
            return "beyond"
        if seq > self.received + 1 and self.has("early-dropped"):
            return "early"
        self.early[seq] = frame, size
        return "new"

    def ready(self):
        """WIN-4: what is in order now."""
        while self.early:
            seq = min(self.early) if self.has("out-of-order") else self.received + 1
            if seq not in self.early:
                return
            frame, _ = self.early.pop(seq)
            self.received = max(seq, self.received)
            yield frame

    def state(self):
        """The members of an ack that say what came."""
        bits = sum(1 << (seq - self.received - 1) for seq in self.early)
        state = {"recv_window": self.window, "recv_window_bytes": self.window_bytes}
        if self.received >= 0:
            state["ack_seq"] = self.received
        if bits:
            state["ack_bitmap"] = f"{bits:x}"
        if self.dup:
            state["dup"] = self.dup
        self.dup = self.dup if self.has("dup-keeps") else 0
        return state
