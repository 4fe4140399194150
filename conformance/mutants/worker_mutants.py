"""What the worker's mutants do wrong: a sentence, how (mutants.Mutant), and the cases that must notice."""


def work(kind):
    return isinstance(kind, str) and kind.startswith("biz.")


def there(value):
    return value != "<absent>"


ACK, RESUME, HANDSHAKE = {"type": "control.ack"}, {"type": "control.resume"}, {"type": "control.handshake"}
REFUSAL = {"type": "control.ack", "payload": {"ok": False}}

GROUPS = [
    # ---- transport
    ("closes with 1011 when the framing is broken", {"faults": "close-1002"}, """
     TRN-3/noise-beneath-websocket TRN-3/continuation-of-nothing-to-worker TRN-3/masked-by-the-server TRN-3/message-inside-message-to-worker
     TRN-3/ping-in-fragments TRN-3/ping-too-long TRN-3/reserved-bit-1 TRN-3/reserved-bit-3 TRN-3/unknown-opcode"""),
    ("closes with 1011 when a text is not UTF-8", {"faults": "close-1007"}, "TRN-4/text-not-utf8"),
    ("closes with 1011 when a message is too large", {"faults": "close-1009"}, "TRN-5/fragments-too-large TRN-5/header-says-too-large"),
    ("reads the whole message before it looks at its UTF-8", {"faults": "utf8-at-the-end"}, "TRN-4/first-wrong-byte-to-worker"),
    ("judges the UTF-8 of each fragment by itself", {"faults": "utf8-per-fragment"}, "TRN-4/character-split-in-two"),
    ("takes no fragments", {"faults": "no-fragments"}, "TRN-1/message-in-fragments"),
    ("answers in binary messages", {"faults": "always-binary"}, "TRN-1/answer-is-text"),
    ("takes an extension that it did not offer", {"faults": "any-extension"}, "TRN-3/extension-chosen-unoffered"),
    ("offers a subprotocol", {"faults": "offers-subprotocol"}, "TRN-6/no-subprotocol-offered"),
    ("offers compression", {"faults": "offers-compression"}, "TRN-3/no-extension-offered"),
    ("drops the connection instead of answering a close", {"faults": "no-close-echo"},
     "RST-3/close-is-answered DRN-4/close-1000-is-answered"),
    ("answers no pings", {"faults": "no-pong"}, "LIV-2/ping-is-answered"),
    # ---- envelope
    ("executes the envelopes of an array", {"faults": "arrays-taken"}, "ENV-1/array-for-an-envelope"),
    ("begins a drain that breaks its schema", {"faults": "bad-drains-taken"}, "ENV-2/bad-drain-not-acted-on"),
    ("counts a refused frame as received", {"faults": "violation-takes-seq"}, "ENV-2/bad-frame-takes-no-place"),
    ("executes work that it refuses", {"faults": "bad-work-done"}, "ENV-2/bad-work-not-executed"),
    ("overlooks ext.* frames", {"ignores": [{"type": lambda kind: str(kind).startswith("ext.")}]}, "ENV-3/ext-is-sequenced"),
    ("refuses a key that occurs twice in an opaque payload", {"faults": "opaque-twice"}, "ENV-3/opaque-payload"),
    ("cuts a long id short", {"out": [({"corr": lambda text: len(str(text)) == 128}, {"corr": lambda text: text[:64]})]},
     "ENV-5/id-of-128"),
    ("uses one id for all its answers", {"out": [({"type": work}, {"id": "always-the-same"})]}, "ENV-5/ids-differ"),
    ("counts its ids from one again when it restarts", {"faults": "ids-restart"}, "ENV-5/ids-differ-after-kill"),
    ("gives a frame that it sends again a new id", {"faults": "new-id-on-resend"}, "ENV-5/resent-as-it-was RES-4/replayed-as-it-was"),
    ("overlooks frames of another century", {"ignores": [{"ts": lambda text: not str(text).startswith("20")}]}, "ENV-6/ts-long-ago"),
    ("overlooks frames with ext", {"ignores": [{"ext": there}]}, "ENV-9/ext-is-open"),
    ("refuses a payload that is nested as deep as allowed", {"faults": "depth-31"}, "ENV-10/as-deep-as-allowed"),
    ("answers an unknown control type before the accept", {"faults": "unknown-early-answered"}, "ENV-11/unknown-control-before-accept"),
    ("charges unknown control types to the error budget", {"faults": "unknown-charged"}, "ENV-11/unknown-control-is-free"),
    ("ignores an unknown control type without a word", {"faults": "unknown-silently"}, "ENV-11/unknown-control-to-worker"),
    ("listens to any sender", {"faults": "any-sender"}, "ENV-12/other-sender-id ENV-12/other-sender-role"),
    ("listens to any tenant's scheduler", {"faults": "any-tenant"}, "ENV-12/other-tenant ENV-12/other-tenant-before-accept"),
    ("answers in another name", {"out": [({"type": work}, {"sender": {"id": "somebody-else"}})]}, "ENV-12/own-name-on-answers"),
    ("refuses a reset that names another tenant before the accept", {"faults": "reset-tenant-checked"}, "ENV-12/reset-of-any-tenant"),
    ("overlooks frames with flags", {"ignores": [{"flags": there}]}, "ENV-13/flags-are-ignored"),
    ("sends flags", {"out": [({"type": work}, {"flags": ["urgent"]})]}, "ENV-13/no-flags-sent"),
    ("ignores binary messages", {"faults": "binary-ignored"},
     "ATT-1/binary-work ATT-1/no-bytes ATT-3/counted-like-any ATT-3/held-like-any"),
    # ---- handshake and accept
    ("registers before its handshake", {"faults": "register-first"}, "HSK-1/handshake-first HSK-1/handshake-before-resume"),
    ("names revision 1", {"out": [(HANDSHAKE, {"payload": {"protocol": 1}})]}, "HSK-2/names-revision"),
    ("has another identity after each start", {"faults": "new-identity"}, "HSK-3/same-instance-after-kill"),
    ("names another instance than its sender", {"out": [(HANDSHAKE, {"payload": {"worker": {"worker_instance_id": "another"}}})]},
     "HSK-3/sender-is-instance"),
    ("shows another token than it was given", {"out": [(HANDSHAKE, {"payload": {"auth": {"token": "another"}}})]},
     "HSK-4/token-in-handshake"),
    ("takes any ack for the one that it waits for", {"faults": "any-ack-answers"}, "HSK-6/ack-of-another-frame"),
    ("registers twice", {"faults": "registers-twice"}, "HSK-6/ack-twice"),
    ("registers before the handshake is acknowledged", {"faults": "register-at-once"}, "HSK-6/waits-for-the-ack"),
    ("never registers", {"out": [({"type": "control.register"}, None)]}, "HSK-6/register-follows"),
    ("sends old answers before the accept", {"faults": "early-business"}, "HSK-9/nothing-before-the-accept"),
    ("waits for ever for an answer", {"faults": "patient"}, "HSK-10/no-answer-to-handshake HSK-10/no-accept"),
    ("does not name the accept in its ack", {"faults": "unnamed-accept"}, """
     HSK-11/accept-is-acknowledged HSK-11/accept-of-resume-acknowledged HSK-11/acknowledged-unasked TOK-6/rotation-acknowledged"""),
    ("ignores what is not due before the accept", {"faults": "early-ignored"},
     "HSK-13/accept-before-handshake-ack HSK-13/drain-before-accept-to-worker HSK-9/work-before-accept"),
    ("ignores what only workers may send", {"faults": "any-state"}, """HSK-13/complete-from-scheduler HSK-13/handshake-from-scheduler
     HSK-13/heartbeat-from-scheduler HSK-13/register-from-scheduler HSK-13/resume-from-scheduler LIM-2/wrong-state-costs"""),
    ("ignores violations before the accept", {"faults": "early-violations-ignored"},
     "LIM-3/accept-breaks-schema LIM-3/not-json-before-accept"),
    # ---- windows
    ("numbers its frames from one", {"out": [({"type": work}, {"seq": lambda seq: seq + 1})]}, "WIN-1/from-zero-by-one"),
    ("goes on with the numbers of the session before", {"faults": "numbers-go-on"}, "WIN-1/new-session-from-zero"),
    ("does not know a frame window", {"faults": "no-frame-window"}, "WIN-2/credit-of-one WIN-2/credit-of-zero"),
    ("counts its credit one too high", {"faults": "edge-too-far"}, "WIN-2/edge-moves-with-ack-seq"),
    ("never moves the right edge", {"faults": "edge-never-moves"}, "WIN-2/credit-comes-by-ack"),
    ("does not know a byte window", {"faults": "no-byte-window"}, "WIN-3/bytes-are-spent-to-worker"),
    ("keeps a frame back that is larger than the byte window", {"faults": "bytes-strict"}, "WIN-3/one-frame-is-always-allowed"),
    ("does work before its turn", {"faults": "out-of-order"}, "WIN-4/gap-waits"),
    ("drops what comes early", {"faults": "early-dropped"}, "WIN-5/early-frame-is-held WIN-5/two-gaps"),
    ("does not count duplicates", {"out": [(ACK, {"payload": {"dup": None}})]}, "WIN-6/duplicate-is-counted"),
    ("does duplicates again", {"faults": "duplicates-delivered"},
     "WIN-6/duplicate-is-not-delivered WIN-6/duplicate-of-held-frame WIN-6/replayed-burst RES-4/replayed-work-not-repeated"),
    ("takes what lies at the right edge", {"faults": "edge-unchecked"}, "WIN-7/at-the-edge"),
    ("does not charge frames beyond the right edge", {"faults": "beyond-free"}, "WIN-7/charged-to-worker"),
    ("resets for a frame beyond the right edge", {"faults": "beyond-resets"}, "WIN-7/far-beyond-the-edge"),
    ("never probes", {"faults": "never-probes"}, "WIN-11/probes-when-blocked"),
    ("probes once", {"faults": "probes-once"}, "WIN-11/probes-until-credit"),
    # ---- acks
    ("says that it owns frame 0 before it came",
     {"out": [({"type": "control.ack", "payload": {"recv_window": there, "ack_seq": "<absent>"}}, {"payload": {"ack_seq": 0}})]},
     "ACK-1/nothing-owned-yet"),
    ("counts the bits from one", {"out": [({"type": "control.ack", "payload": {"ack_bitmap": there}}, {"payload": {"ack_bitmap": lambda bits: f"{int(bits, 16) << 1:x}"}})]},
     "ACK-2/bitmap-counts-from-ack-seq ACK-2/bitmap-from-nothing"),
    ("writes the bitmap in decimal",
     {"out": [({"type": "control.ack", "payload": {"ack_bitmap": there}}, {"payload": {"ack_bitmap": lambda bits: str(int(bits, 16))}})]},
     "ACK-2/bitmap-is-long-hex"),
    ("frees what a bit says is held", {"faults": "bits-free"}, "ACK-3/bit-does-not-free"),
    ("sends again what the bitmap says is held", {"faults": "bits-ignored"},
     "ACK-3/bit-stops-resending-to-worker RTX-3/oldest-not-held-to-worker"),
    ("lets acks of what it never sent pass", {"faults": "ack-of-nothing"},
     "ACK-4/ack-seq-never-sent ACK-4/bit-never-sent-to-worker ACK-4/one-beyond-the-last ACK-4/bitmap-of-1024-digits"),
    ("resets for an ack that says less than an earlier one", {"faults": "older-ack-resets"}, "ACK-5/older-ack-changes-nothing"),
    ("acknowledges only who asks", {"out": [({"type": "control.ack", "payload": {"ok": True, "for": "<absent>"}}, None)]},
     "ACK-6/acknowledged-unasked ACK-6/quarter-of-the-window"),
    ("does not name work in its acks", {"faults": "unnamed-biz"}, "ACK-7/work-that-asks ACK-7/duplicate-that-asks"),
    ("names early work in an ack before it is owned", {"faults": "early-named"}, "ACK-7/early-work-answered-later"),
    ("acknowledges acks", {"faults": "acks-acks"}, "ACK-8/ack-is-not-acknowledged-to-worker"),
    ("names an ack that asked", {"faults": "ack-named"}, "ACK-8/ack-that-asks"),
    ("repeats dup in each ack", {"faults": "dup-keeps"}, "ACK-9/dup-counts-since-last-ack"),
    # ---- retransmission
    ("does not double the interval", {"faults": "no-backoff"}, "RTX-1/interval-doubles"),
    ("sends again after 50 ms", {"faults": "impatient-timer"}, "RTX-1/not-sooner-than-200-ms"),
    ("sends a frame again that was acknowledged", {"faults": "resends-acknowledged"}, "RTX-1/stops-when-acknowledged"),
    ("never sends again", {"faults": "never-resends"}, "RTX-1/unacknowledged-comes-again"),
    ("never gives up", {"faults": "never-gives-up"}, "RTX-4/gives-up"),
    # ---- resume
    ("never resumes", {"faults": "never-resumes"}, """RES-1/resumes-after-cut RES-1/cut-inside-a-frame RES-5/three-in-a-row RES-5/zero-traffic-to-worker
     LIV-5/resumes-after-silence RST-3/close-1000-without-drain-resumes RST-3/close-1011-resumes RST-10/close-1012-resumes"""),
    ("says that it keeps everything", {"out": [(RESUME, {"payload": {"earliest_retained_seq": 0}})]}, "RES-2/earliest-retained-after-acks"),
    ("says that it keeps nothing", {"out": [(RESUME, {"payload": {"earliest_retained_seq": lambda seq: seq + 1}})]},
     "RES-2/earliest-retained-unacknowledged"),
    ("does not say what it has seen", {"out": [(RESUME, {"payload": {"last_seen_seq": None}})]}, "RES-2/last-seen"),
    ("counts frames behind a gap as seen", {"faults": "last-seen-highest"}, "RES-2/last-seen-before-the-gap"),
    ("says that it has seen frame 0 when nothing came",
     {"out": [({"type": "control.resume", "payload": {"last_seen_seq": "<absent>"}}, {"payload": {"last_seen_seq": 0}})]},
     "RES-2/nothing-seen-to-worker"),
    ("is deaf after a resume", {"faults": "deaf-after-resume"}, "RES-4/lost-work-replayed"),
    ("replays what the scheduler has", {"faults": "replays-all"}, "RES-4/nothing-that-was-seen-to-worker RES-4/nothing-that-is-held"),
    ("does not replay", {"faults": "no-replay"}, "RES-4/replays-what-was-not-seen WIN-8/kept-until-acknowledged"),
    ("does not check the positions of an accept", {"faults": "positions-unchecked"},
     "RES-6/last-seen-below-freed RES-6/last-seen-never-sent RES-6/scheduler-forgot-frames"),
    ("resumes a session that was reset", {"faults": "reset-resumes"}, """RES-7/stale-registers-afresh RES-8/invalid-token-registers-afresh
     RST-2/own-reset-starts-afresh RST-2/starts-afresh"""),
    ("ignores the credit of a resume", {"faults": "resume-credit-ignored"}, "RES-9/credit-anew"),
    ("says no state when it acknowledges an accept",
     {"out": [({"type": "control.ack", "payload": {"for": there, "ack_seq": there}}, {"payload": {"ack_seq": None}})]},
     "RES-9/state-after-resume"),
    ("forgets a drain over a resume", {"faults": "drain-forgotten"}, "RES-11/drain-goes-on"),
    # ---- tokens
    ("changes the token that it was given", {"out": [(RESUME, {"payload": {"session_token": lambda token: token.strip() + "x"}})]},
     "TOK-1/token-is-opaque TOK-2/resumes-with-its-token"),
    ("resumes with its first token", {"faults": "first-token"}, "TOK-2/newest-token-after-resume"),
    ("ignores rotations", {"ignores": [{"type": "control.session.accept", "payload": {"resumed": True}}]}, "TOK-6/rotated-token-used"),
    ("takes an accept of another session for a rotation", {"faults": "any-session"}, "TOK-6/another-session"),
    ("takes the token of another session", {"faults": "any-session-token"}, "TOK-6/token-of-another-session"),
    ("takes credit from a rotation", {"faults": "rotation-credit"}, "TOK-6/rotation-credit-ignored"),
    ("takes the heartbeat interval from a rotation", {"faults": "rotation-interval"}, "TOK-6/rotation-interval-ignored"),
    ("checks the positions of a rotation", {"faults": "rotation-positions"}, "TOK-6/rotation-positions-ignored"),
    ("replays after a rotation", {"faults": "rotation-replays"}, "TOK-6/rotation-replays-nothing"),
    ("repeats a token in the reason of its reset", {"faults": "token-told"}, "TOK-8/token-not-repeated"),
    ("puts its token into the URL", {"faults": "token-in-url"}, "TOK-8/no-secret-in-the-url"),
    # ---- liveness
    ("is always busy", {"out": [({"type": "control.heartbeat"}, {"payload": {"metrics": {"inflight": 1}}})]}, "LIV-1/idle-says-so"),
    ("sends no heartbeats", {"out": [({"type": "control.heartbeat"}, None)]}, "LIV-1/in-every-interval"),
    ("sends heartbeats thrice as often", {"faults": "hasty"}, "LIV-1/not-much-sooner"),
    ("takes only answers for life", {"faults": "answers-only-life"}, "LIV-2/any-frame-is-life"),
    ("takes a ping for life", {"faults": "pings-are-life"}, "LIV-2/ping-is-no-life"),
    ("does not ask for the ack of a heartbeat", {"out": [({"type": "control.heartbeat"}, {"ack": None})]}, "LIV-5/asks-for-an-ack"),
    ("drops the connection after one interval", {"faults": "impatient"}, "LIV-5/not-before-three-intervals"),
    ("stays with a silent scheduler", {"faults": "patient-for-ever"}, "LIV-5/silent-scheduler-dropped"),
    # ---- drain
    ("does not ask for the ack of its drain", {"out": [({"type": "control.drain"}, {"ack": None})]}, "DRN-1/own-drain-asks-for-ack"),
    ("says its drain once", {"faults": "drain-once"}, "DRN-1/own-drain-repeated-after-resume"),
    ("does not name the drain in its ack", {"faults": "unnamed-drain"}, "DRN-1/repetition-is-acknowledged DRN-1/start-is-acknowledged"),
    ("ignores work in DRAINING", {"ignores": [{"type": work}]}, "DRN-2/work-before-the-drain"),
    ("sends no answers in DRAINING", {"faults": "draining-sends-nothing"}, "DRN-3/answers-go-on"),
    ("sends no heartbeats in DRAINING", {"faults": "draining-no-heartbeats"}, "DRN-3/heartbeats-go-on"),
    ("says complete once", {"faults": "completes-once"}, "DRN-4/complete-again-after-resume"),
    ("never says complete", {"faults": "never-complete"}, "DRN-4/complete-once-acknowledged DRN-4/says-complete"),
    ("dials again after a drain", {"faults": "comes-back"}, "DRN-4/no-dial-after-drain DRN-4/stale-answers-complete"),
    ("says complete before its answers are acknowledged", {"faults": "complete-early"}, "DRN-4/not-before-its-frames-are-acknowledged"),
    # ---- reset and backoff
    ("vanishes when it is told to terminate", {"faults": "vanishes"}, "RST-8/leaving-is-said"),
    ("ends its session for a reset before the handshake is acknowledged", {"faults": "early-reset-ends"},
     "RST-1/early-reset-keeps-the-session"),
    ("forgets its session when it resets a connection before the accept", {"faults": "own-early-reset-ends"},
     "RST-1/own-early-reset-keeps-the-session"),
    ("closes with 1011 after a reset that it was told", {"faults": "told-closes-1011"}, "RST-1/receiver-closes-with-1000"),
    ("closes with 1000 after its own reset", {"faults": "says-closes-1000"}, "RST-1/sender-closes-with-1011"),
    ("stays away", {"faults": "stays-away"}, """RST-4/first-within-two-seconds RST-4/refused-upgrade RST-5/comes-back-after-hint RST-7/never-is-of-the-frame
     RST-9/comes-back-after-503 LIM-8/unknown-code"""),
    ("does not wait as long as it was told", {"faults": "no-hint"},
     "RST-5/early-hint-is-waited RST-5/hint-is-waited RST-9/retry-after-is-waited"),
    ("comes back at once whatever the code", {"faults": "no-cap"}, """RST-7/denied-at-cap RST-7/invalid-token-at-cap RST-7/version-at-cap TOK-7/revoked-stays-away
     FEN-5/superseded-at-resume FEN-5/superseded-stays-away"""),
    # ---- idempotency and limits
    ("names the answer instead of the work", {"out": [({"type": work}, {"corr": "somebody-else"})]}, "WRK-1/answer-names-its-work"),
    ("answers with a type of its own", {"out": [({"type": "biz.result"}, {"type": "biz.answer"})]}, "WRK-2/answer-is-a-result"),
    ("overlooks work that it does not know", {"ignores": [{"type": "biz.conformance.no-such-work"}]}, "WRK-3/unknown-work-is-answered"),
    ("leaves corr out of the key of its journal", {"faults": "key-without-corr"}, "IDM-1/key-has-corr"),
    ("refuses work that it did before", {"faults": "known-is-refused"},
     "IDM-1/same-id-after-kill IDM-1/same-id-next-session IDM-1/same-id-same-session"),
    ("compares nothing but payloads", {"faults": "content-is-payload"}, "IDM-2/other-attachment IDM-2/other-type"),
    ("gives the stored result whatever the content", {"faults": "content-unchecked"}, "IDM-2/other-payload"),
    ("forgets its journal", {"faults": "no-journal"}, "IDM-2/other-payload-next-session"),
    ("does not charge malformed acks", {"faults": "bad-acks-free"}, "LIM-2/malformed-ack-costs-to-worker"),
    ("answers malformed acks and resets", {"faults": "bad-acks-answered"},
     "LIM-2/malformed-ack-unanswered-to-worker LIM-2/malformed-reset-unanswered-to-worker"),
    ("names a frame whose id it could not read",
     {"out": [({"type": "control.ack", "payload": {"ok": False, "for": "<absent>"}}, {"payload": {"for": "unknown"}})]},
     "LIM-2/nameless-frame"),
    ("does not name what it refuses", {"out": [(REFUSAL, {"ack": None, "payload": {"for": None}})]}, "LIM-2/names-the-frame"),
    ("has no error budget", {"faults": "no-budget"}, "LIM-2/seventeenth-resets"),
    ("has a budget of 15", {"faults": "budget-of-15"}, "LIM-2/sixteen-are-borne"),
    ("goes on sending what was refused", {"faults": "nack-ignored"}, "LIM-4/refused-answer-resets"),
]

# case, and the flaw that its mutant lets pass; of the worker's own checks only the pointer is known
ACCEPTED = """
ATT-1/control-with-attachment *:/attachment:*
ATT-1/length-beyond-message json::*
ATT-1/no-length json::*
ATT-2/attachment-in-text *:/attachment:*
ATT-2/binary-without-attachment-to-worker *:/attachment:*
ATT-2/fewer-bytes-than-said *:/attachment/bytes:*
ATT-2/more-bytes-than-said *:/attachment/bytes:*
ENV-1/payload-missing *:/payload:*
ENV-1/role-unknown *:/sender/role:*
ENV-1/sender-with-name *:/sender/name:*
ENV-1/tenant-missing *:/tenant:*
ENV-1/unknown-key-to-worker *:/extra:*
ENV-10/binary-not-utf8-to-worker json::*
ENV-10/not-json-to-worker json::*
ENV-10/too-deep-to-worker json::*
ENV-10/two-texts json::*
ENV-3/unknown-family-to-worker *:/type:*
ENV-4/control-with-seq *:/seq:*
ENV-4/work-without-seq *:/seq:*
ENV-5/id-empty *:/id:*
ENV-5/id-not-ascii-to-worker *:/id:*
ENV-5/id-too-long *:/id:*
ENV-6/ts-without-offset *:/ts:*
ENV-7/seq-above-2-to-53 *:/seq:*
ENV-8/key-twice *:/type:*
ENV-8/key-twice-in-payload *:/payload/phase:*
ENV-10/corrupt-frame-then-right json::*
ENV-2/invalid-examples-to-worker-drain *:/payload/deadline_ms:*
ENV-2/invalid-examples-to-worker-accept-absence *:/payload/recv_window:*
ENV-2/invalid-examples-to-worker-accept-value *:/payload/resumed:*
ENV-2/invalid-examples-to-worker-ack-bitmap *:/payload/ack_bitmap:*
ENV-2/invalid-examples-to-worker-ack-value *:/payload/ok:*
ENV-2/invalid-examples-to-worker-reset *:/payload/code:*
ENV-1/invalid-examples-to-worker-envelope-abc *:/ack/request:*
ENV-1/invalid-examples-to-worker-envelope-defil *:/flags:*
ENV-1/invalid-examples-to-worker-envelope-n *:/sender:*
ENV-1/invalid-examples-to-worker-envelope-psu *:/sender/role:*
ENV-1/invalid-examples-to-worker-envelope-t *:/type:*
LIM-2/null-bytes json::*
"""
