"""What the scheduler's mutants do wrong: a sentence, how (mutants.Mutant), and the cases that must notice."""


def work(kind):
    return isinstance(kind, str) and kind.startswith("biz.")


def there(value):
    return value != "<absent>"


def says(code, instead="E.INTERNAL"):
    return {"out": [({"type": "control.reset", "payload": {"code": code}}, {"payload": {"code": instead}})]}


ACK, ACCEPT, RESUMED = {"type": "control.ack"}, {"type": "control.session.accept"}, {"type": "control.session.accept", "payload": {"resumed": True}}
STATE = {"type": "control.ack", "payload": {"recv_window": there}}

GROUPS = [
    # ---- transport
    ("takes browsers from anywhere", {"faults": "any-origin"}, "TRN-2/foreign-origin TRN-2/null-origin"),
    ("closes with 1011 when the framing is broken", {"faults": "close-1002"}, """
     TRN-3/continuation-of-nothing TRN-3/forbidden-close-code TRN-3/fragmented-ping TRN-3/half-a-close-code TRN-3/long-ping TRN-3/message-inside-message
     TRN-3/offered-extension TRN-3/reserved-bit TRN-3/reserved-bit-in-session TRN-3/reserved-opcode TRN-3/unmasked-frame TRN-3/garbage-bytes
     TRN-3/http-after-the-upgrade TRN-3/length-with-top-bit"""),
    ("takes a frame length in a longer form than it needs", {"faults": "lax-framing"}, "TRN-3/length-in-longer-form"),
    ("reads the whole message before it looks at its UTF-8", {"faults": "lax-framing"}, "TRN-4/first-wrong-byte"),
    ("drops the connection instead of answering a close", {"faults": "no-close-echo"}, "TRN-3/close-echoed"),
    ("closes with 1011 when a text is not UTF-8", {"faults": "close-1007"},
     "TRN-4/invalid-byte TRN-4/invalid-in-session TRN-4/overlong-form TRN-4/surrogate TRN-4/wrong-across-fragments"),
    ("judges the UTF-8 of each fragment by itself", {"faults": "utf8-per-fragment"}, "TRN-4/character-across-fragments"),
    ("closes with 1011 when a message is too large", {"faults": "close-1009"},
     "TRN-5/binary-oversize-header TRN-5/fragments-add-up TRN-5/oversize-header TRN-5/largest-length LIM-1/larger-is-refused"),
    ("takes no fragments", {"faults": "no-fragments"}, "TRN-1/fragmented-handshake TRN-1/ping-between-fragments"),
    ("answers no pings", {"faults": "no-pong"}, "LIV-2/ping-answered LIV-2/ping-before-handshake"),
    # ---- envelope
    ("refuses a value inside 32 objects and arrays", {"faults": "depth-31"}, "ENV-10/deepest"),
    ("resets for an unknown control type before the accept", {"faults": "unknown-early-reset"}, "ENV-11/unknown-before-accept"),
    ("ignores an unknown control type without a word", {"faults": "unknown-silently"}, "ENV-11/unknown-control REV-13/unknown-that-asks"),
    ("charges unknown control types to the error budget", {"faults": "unknown-charged"},
     "ENV-11/unknown-costs-nothing ENV-11/flood-of-unknown-types"),
    ("acknowledges unknown control types that did not ask", {"faults": "unknown-always-acked"}, "REV-13/unknown-that-does-not-ask"),
    ("refuses frames with flags", {"faults": "flags-refused"}, "ENV-13/flags-ignored"),
    ("sends flags", {"out": [({}, {"flags": ["urgent"]})]}, "ENV-13/scheduler-sends-none"),
    ("overlooks ext.* frames", {"ignores": [{"type": lambda kind: str(kind).startswith("ext.")}]}, "ENV-3/vendor-type"),
    ("overlooks ids of 128 characters", {"ignores": [{"id": lambda text: len(str(text)) == 128}]}, "ENV-5/longest-id"),
    ("uses one id for all its acks", {"out": [(STATE, {"id": "always-the-same"})]}, "ENV-5/scheduler-ids-differ"),
    ("gives a frame that it sends again a new id", {"faults": "new-id-on-resend"}, "ENV-5/resent-is-the-same ENV-5/replayed-is-the-same"),
    ("overlooks frames whose ts is not in UTC", {"ignores": [{"ts": lambda text: not str(text).endswith(("Z", "+00:00"))}]},
     "ENV-6/offset-time"),
    ("refuses a key that occurs twice in an opaque payload", {"faults": "opaque-twice"}, "ENV-8/opaque-duplicate-key"),
    ("overlooks frames with ext", {"ignores": [{"ext": there}]}, "ENV-9/ext-open"),
    ("lets a session speak for any sender", {"faults": "any-sender"},
     "ENV-12/other-role-in-session ENV-12/other-sender-before-accept ENV-12/other-sender-in-session"),
    ("lets a session speak for any tenant", {"faults": "any-tenant"}, "ENV-12/other-tenant-in-session HSK-5/register-for-other-tenant"),
    ("names another sender on its acks than in its accept", {"out": [(STATE, {"sender": {"id": "scheduler-2"}})]},
     "ENV-12/scheduler-names-itself"),
    ("ignores binary messages", {"faults": "binary-ignored"}, "ATT-1/taken ATT-3/held ATT-3/sequenced"),
    ("takes what lacks every key", {"ignores": [{"type": "<absent>"}]}, "ENV-1/many-keys"),
    # ---- handshake, register, accept
    ("ignores whatever comes before the handshake instead of refusing it", {"faults": "any-first"}, """
     HSK-1/ack-first HSK-1/business-first HSK-1/heartbeat-first HSK-1/register-first HSK-1/resume-first HSK-1/unknown-first HSK-1/revision-1-business-first"""),
    ("waits for ever for the next stage", {"faults": "no-deadline"},
     "HSK-10/no-registration HSK-10/pings-do-not-count HSK-10/silent-connection"),
    ("takes only 8 KiB before authentication", {"faults": "early-limit-8k"}, "HSK-12/below-the-bound HSK-12/sixteen-kib-are-taken"),
    ("takes a whole MiB from strangers", {"faults": "no-early-limit"}, "HSK-12/fragments-beyond-16-kib HSK-12/header-beyond-16-kib"),
    ("has no limit of a message", {"faults": "no-limit"}, "HSK-12/one-gibibyte"),
    ("takes any protocol revision for its own", {"faults": "any-version"}, "HSK-2/protocol-0 HSK-2/protocol-3"),
    ("judges the handshake of another revision by its own schema", {"faults": "unspoken-judged"}, "HSK-2/protocol-3-of-another-form"),
    ("takes a sender that is not the worker it names", {"faults": "any-identity"},
     "HSK-3/other-sender HSK-3/role-scheduler HSK-3/revision-1-other-sender"),
    ("takes no runtimes", {"faults": "no-runtimes"}, "HSK-3/role-runtime"),
    ("takes a token that begins like a good one", {"faults": "token-prefix"}, "HSK-4/longer-token"),
    ("takes any bearer token, or none", {"faults": "any-token"}, """HSK-4/missing-token HSK-4/nothing-after-refusal HSK-4/wrong-token
     HSK-4/guessing-bearer-tokens HSK-4/revision-1-null-token HSK-4/revision-1-wrong-token"""),
    ("takes no client certificates", {"faults": "no-mtls"}, "HSK-4/mtls-certificate"),
    ("believes a fingerprint without the certificate", {"faults": "fingerprint-believed"}, "HSK-4/mtls-claimed-fingerprint"),
    ("takes any fingerprint beside a certificate", {"faults": "fingerprint-unchecked"}, "HSK-14/mtls-wrong-fingerprint"),
    ("does not look at the token of who has a certificate", {"faults": "certificate-is-enough"}, "HSK-4/mtls-token-still-judged"),
    ("takes mode mtls without a certificate", {"faults": "mtls-unchecked"}, "HSK-4/mtls-without-certificate"),
    ("does not bind a connection to its tenant", {"faults": "tenant-unbound"},
     "HSK-5/handshake-for-other-tenant HSK-5/token-of-other-tenant HSK-5/mtls-other-tenant"),
    ("does not name the handshake in its ack", {"faults": "handshake-unnamed"}, "HSK-6/acknowledged"),
    ("accepts before anybody has registered", {"faults": "accept-at-once"}, "HSK-6/no-accept-yet"),
    ("accepts before it acknowledges the registration", {"faults": "accept-then-ack"}, "HSK-7/ack-then-accept"),
    ("overlooks registrations with manifests",
     {"ignores": [{"type": "control.register", "payload": {"manifests": lambda each: each not in ("<absent>", [], None)}}]},
     "HSK-7/full-registration"),
    ("overlooks registrations of more than 8 KiB",
     {"ignores": [{"type": "control.register", "payload": {"manifests": lambda each: len(str(each)) > 8192}}]}, "LIM-10/registration-of-16-kib"),
    ("lets an instance id register once", {"faults": "instance-once"}, "HSK-7/cut-after-registering"),
    ("does not acknowledge a registration in READY", {"faults": "register-again-unacked"}, "HSK-8/acknowledged-again"),
    ("answers a registration in READY with a second accept", {"faults": "second-accept"}, "HSK-8/no-second-accept HSK-8/while-draining"),
    ("starts the stream anew at a registration in READY", {"faults": "register-again-new-stream"}, "HSK-8/stream-goes-on"),
    ("ignores business before the registration", {"faults": "early-business"}, "HSK-9/business-before-register"),
    ("ignores control frames that are not due before the accept", {"faults": "any-state"},
     "HSK-13/drain-before-accept HSK-13/heartbeat-before-accept HSK-13/second-handshake"),
    ("does not ask for the ack of its accept", {"out": [(ACCEPT, {"ack": None})]}, "HSK-11/asks-for-its-ack"),
    ("keeps work back though credit came", {"out": [({"type": work}, None)]}, "HSK-11/credit-of-the-ack"),
    ("sends work before the accept is acknowledged", {"faults": "credit-before-ack"}, "HSK-11/no-credit-before-the-ack"),
    ("states a frame limit below 16 KiB", {"out": [(ACCEPT, {"payload": {"frame_bytes_max": 8192}})]}, "HSK-11/states-its-terms"),
    ("says that it has seen frames of a new session",
     {"out": [({"type": "control.session.accept", "payload": {"resumed": False}}, {"payload": {"last_seen_seq": 0}})]},
     "RES-2/fresh-positions"),
    # ---- windows
    ("numbers its frames from one", {"out": [({"type": work}, {"seq": lambda seq: seq + 1})]}, "WIN-1/first-is-zero"),
    ("leaves numbers out", {"out": [({"type": work}, {"seq": lambda seq: seq * 2})]}, "WIN-1/next-is-one-higher"),
    ("starts its numbers anew after a resume", {"faults": "numbers-restart"}, "WIN-1/numbers-go-on"),
    ("does not know a frame window", {"faults": "no-frame-window"}, "WIN-2/right-edge WIN-2/zero-window"),
    ("never moves the right edge", {"faults": "edge-never-moves"}, "WIN-2/edge-moves-with-ack WIN-2/window-opens"),
    ("does not know a byte window", {"faults": "no-byte-window"}, "WIN-3/bytes-are-spent"),
    ("keeps a frame back that is larger than the byte window", {"faults": "bytes-strict"}, "WIN-3/one-is-always-allowed"),
    ("drops what comes early", {"faults": "early-dropped"}, "WIN-5/gap-filled WIN-5/reversed WIN-5/holes-everywhere"),
    ("acknowledges past a gap", {"faults": "out-of-order"}, "WIN-5/gap-is-not-acknowledged"),
    ("loses what it holds over a resume", {"faults": "early-lost-on-resume"}, "WIN-5/held-across-a-resume"),
    ("does not count duplicates", {"faults": "dup-uncounted"}, "WIN-6/duplicate-counted WIN-6/duplicate-of-a-held-frame"),
    ("refuses duplicates as violations", {"faults": "duplicates-refused"},
     "WIN-6/duplicates-cost-nothing WIN-6/flood-of-duplicates WIN-6/replayed-twice"),
    ("says nothing to a frame beyond the right edge", {"faults": "beyond-silently"}, "WIN-7/acknowledged"),
    ("does not charge frames beyond the right edge", {"faults": "beyond-free"}, "WIN-7/charged"),
    ("answers no heartbeat while work waits for credit", {"faults": "control-waits"}, "WIN-9/control-does-not-wait"),
    ("offers less after a resume", {"out": [(RESUMED, {"payload": {"recv_window": 8}})]}, "WIN-10/edge-across-connections"),
    ("never probes", {"faults": "never-probes"}, "WIN-11/probe"),
    ("probes once", {"faults": "probes-once"}, "WIN-11/probe-again"),
    # ---- acks
    ("says that it owns frame 0 before it came",
     {"out": [({"type": "control.ack", "payload": {"recv_window": there, "ack_seq": "<absent>"}}, {"payload": {"ack_seq": 0}})]},
     "ACK-1/absent-before-the-first"),
    ("acknowledges the first frame only", {"out": [({"type": "control.ack", "payload": {"ack_seq": there}}, {"payload": {"ack_seq": 0}})]},
     "ACK-1/cumulative"),
    ("counts the bits from one", {"out": [({"type": "control.ack", "payload": {"ack_bitmap": there}}, {"payload": {"ack_bitmap": lambda bits: f"{int(bits, 16) << 1:x}"}})]},
     "ACK-2/bitmap-before-the-first ACK-2/bitmap-with-two-gaps"),
    ("sends a bitmap without a gap",
     {"out": [({"type": "control.ack", "payload": {"ack_seq": there, "ack_bitmap": "<absent>"}}, {"payload": {"ack_bitmap": "1"}})]},
     "ACK-2/no-bitmap-without-a-gap"),
    ("sends again what the bitmap says is held", {"faults": "bits-ignored"}, "ACK-3/bit-stops-resending RTX-3/oldest-not-held"),
    ("lets acks of what it never sent pass", {"faults": "ack-of-nothing"},
     "ACK-4/bit-beyond-the-last ACK-4/bit-never-sent ACK-4/largest-integer ACK-4/nothing-was-sent ACK-4/one-too-many"),
    ("resets for an ack that says less than an earlier one", {"faults": "older-ack-resets"}, "ACK-5/older-ack ACK-5/flood-of-stale-acks"),
    ("does not name business frames in its acks", {"faults": "business-unnamed"}, "ACK-7/business-frame"),
    ("does not name heartbeats in its acks", {"faults": "heartbeat-unnamed"}, "ACK-7/control-frame"),
    ("does not name duplicates in its acks", {"faults": "duplicate-unnamed"}, "ACK-7/duplicate-asks-again"),
    ("names an early frame in an ack before it is owned", {"faults": "early-named"}, "ACK-7/early-frame-waits"),
    ("acknowledges acks", {"faults": "acks-acks"}, "ACK-8/ack-is-not-acknowledged"),
    ("charges acks to the error budget", {"faults": "acks-charged"}, "ACK-8/flood-of-acks"),
    ("names an ack that asked", {"faults": "ack-named"}, "ACK-8/asked-for-state"),
    ("repeats dup in each ack", {"faults": "dup-keeps"}, "ACK-9/dup-starts-over"),
    # ---- retransmission
    ("does not double the interval", {"faults": "no-backoff"}, "RTX-1/doubles"),
    ("sends a frame again that was acknowledged", {"faults": "resends-acknowledged"}, "RTX-1/not-once-acknowledged"),
    ("sends again after 50 ms", {"faults": "impatient"}, "RTX-1/not-too-early"),
    ("never sends again", {"faults": "never-resends"}, "RTX-1/sent-again"),
    # ---- resume
    ("ends a session with its connection", {"faults": "close-ends"}, """RES-1/kept-while-away RES-1/kept-work RES-5/cut-inside-a-frame RES-5/ten-times
     RES-5/zero-traffic RES-5/cut-before-the-accept RST-3/close-1000-leaves-the-session RST-3/close-leaves-the-session RST-3/framing-fault-leaves-the-session
     RST-3/oversize-leaves-the-session LIM-7/peer-that-does-not-read TRN-4/wrong-bytes-leave-the-session"""),
    ("says that it keeps everything", {"out": [(RESUMED, {"payload": {"earliest_retained_seq": 0}})]}, "RES-2/earliest-retained"),
    ("counts frames behind a gap as seen", {"faults": "last-seen-highest"}, "RES-2/last-seen-before-a-gap"),
    ("says that it has seen frame 0 when nothing came",
     {"out": [({"type": "control.session.accept", "payload": {"resumed": True, "last_seen_seq": "<absent>"}},
               {"payload": {"last_seen_seq": 0}})]},
     "RES-2/nothing-seen"),
    ("ends the session for which somebody has a wrong token", {"faults": "wrong-token-ends"},
     "RES-3/good-token-after-a-wrong-one RES-3/wrong-token-changes-nothing"),
    ("keeps a session whose worker lied in its resume", {"faults": "lie-keeps"}, "RES-3/lie-ends-the-session"),
    ("acknowledges a resume", {"faults": "resume-acked"}, "RES-3/no-ack-before-the-accept"),
    ("does not say what it has seen", {"out": [(RESUMED, {"payload": {"last_seen_seq": None}})]}, "RES-3/positions"),
    ("replays what the worker has seen", {"faults": "replays-all"}, "RES-4/everything-seen RES-4/nothing-that-was-seen"),
    ("does not replay", {"faults": "no-replay"}, "RES-4/lost-frames-in-order REV-7/scheduler-replays"),
    ("refuses a resume while it believes in the old connection", {"faults": "old-owner-wins"}, "RES-5/unnoticed-drop"),
    ("does not look for holes", {"faults": "gap-unchecked"}, "RES-6/hole-in-the-schedulers-stream RES-6/hole-in-the-workers-stream"),
    ("believes any last_seen_seq", {"faults": "resume-ack-unchecked"}, "RES-6/seen-never-sent"),
    ("loses its signing keys in a restart", {"faults": "keys-lost"}, "RES-7/after-a-restart"),
    ("has another code for a session that is gone", says("E.SESSION.STALE_BINDING"), "RES-7/session-is-gone DRN-4/resume-after-completion"),
    ("keeps out who resumed a session that is gone", {"faults": "stale-bars"}, "RES-7/registers-afresh"),
    ("does not look at the signature", {"faults": "token-unsigned"}, "RES-8/changed-signature"),
    ("resumes with any token", {"faults": "any-session-token"}, """RES-8/changed-text RES-8/text-without-signature RES-8/garbage-token RES-8/guessing-session-tokens REV-6/resume-first-wrong-token"""),
    ("takes session and worker out of the token without comparing them", {"faults": "claims-unchecked"},
     "RES-8/other-session-id RES-8/other-worker REV-6/resume-first-other-tenant REV-6/resume-first-other-worker"),
    ("ignores the credit in a resume", {"faults": "resume-credit-ignored"}, "RES-9/credit-of-the-resume"),
    ("says no state after the accept of a resume", {"faults": "no-state-after-resume"},
     "RES-9/state-after-the-accept REV-7/state-after-a-resume"),
    ("forgets a drain over a resume", {"faults": "drain-forgotten"}, "RES-11/deadline-goes-on RES-11/no-new-work-after-a-resume"),
    # ---- fencing and tokens
    ("ends a session when the connection that it had before ends", {"faults": "old-connection-ends-new"},
     "FEN-1/old-close FEN-1/old-reset"),
    ("leaves the connection that was replaced in the session", {"faults": "old-connection-stays"},
     "FEN-1/old-frames FEN-2/registration-replaces FEN-2/resume-replaces REV-9/superseded-by-registration REV-9/superseded-by-resume"),
    ("does not say why it closes a superseded connection", {"faults": "superseded-without-reason"}, "FEN-2/close-reason"),
    ("lets the first owner win", {"faults": "first-wins"}, "FEN-2/newest-wins FEN-2/registration-storm"),
    ("replaces other workers too", {"faults": "replaces-everybody"}, "FEN-2/others-stay"),
    ("goes on with the stream of the session before", {"faults": "stream-survives-registration"}, "FEN-3/new-session-starts-over"),
    ("resumes with an older token", {"faults": "old-token"}, "FEN-4/older-token FEN-4/twin-changes-nothing TOK-6/old-one-is-dead"),
    ("has another code for a session that was replaced", says("E.SESSION.SUPERSEDED", "E.SESSION.STALE_BINDING"), "FEN-4/replaced-session"),
    ("makes tokens of one part", {"out": [(ACCEPT, {"payload": {"session_token": lambda token: token.replace(".", "_")}})]},
     "TOK-1/two-parts"),
    ("gives the same token again", {"faults": "same-token"}, "TOK-2/every-accept-a-new-one"),
    ("voids a token before the next one is proved to have arrived", {"faults": "token-dies-at-once"},
     "TOK-2/old-one-until-proved TOK-6/old-one-until-acknowledged"),
    ("does not take the use of a token for a proof", {"faults": "use-proves-nothing"}, "TOK-2/use-proves"),
    ("rotates with an accept of a new session", {"faults": "rotation-not-resumed"}, "TOK-6/rotation"),
    ("starts the stream anew at a rotation", {"faults": "rotation-restarts"}, "TOK-6/stream-goes-on"),
    ("has another code for a revoked worker", says("E.AUTH.INVALID_TOKEN", "E.SESSION.DENIED"), "TOK-7/revoked"),
    ("lets revoked tokens verify", {"faults": "revoked-resumes"}, "TOK-7/tokens-are-dead"),
    ("repeats the token in the reason", {"faults": "reason-tells-token"}, "TOK-8/reason-without-bearer TOK-8/reason-without-session-token"),
    # ---- liveness and drain
    ("takes only metrics that it knows", {"faults": "strict-metrics"}, "LIV-2/any-metric"),
    ("takes a worker for short too early", {"faults": "drains-too-early"}, "LIV-7/below-the-thresholds"),
    ("gives work to a worker without memory or disk", {"faults": "overload-ignored"}, "LIV-7/disk LIV-7/memory"),
    ("drains a worker without memory or disk", {"faults": "overload-drains"}, "LIV-7/session-stays"),
    ("takes a worker for short for ever", {"faults": "short-for-ever"}, "LIV-7/enough-again"),
    ("repeats a drain that was acknowledged", {"faults": "drain-always-repeated"}, "DRN-1/not-repeated-once-acknowledged"),
    ("does not repeat a drain", {"faults": "drain-never-repeated"}, "DRN-1/repeated-until-acknowledged"),
    ("starts the deadline anew at a repetition", {"faults": "deadline-anew"}, "DRN-1/repetition-starts-no-new-deadline"),
    ("does not ask for the ack of its drain", {"out": [({"type": "control.drain"}, {"ack": None})]}, "DRN-1/scheduler-asks"),
    ("does not acknowledge a drain", {"faults": "drain-unacked"}, "DRN-1/worker-asks DRN-1/worker-repeats"),
    ("sends new work in DRAINING", {"faults": "work-while-draining"}, "DRN-2/no-new-work DRN-2/no-new-work-by-its-own-drain"),
    ("answers no heartbeats in DRAINING", {"faults": "draining-heartbeats-unacked"}, "DRN-3/heartbeats"),
    ("acknowledges no results in DRAINING", {"faults": "draining-results-unacked"}, "DRN-3/results"),
    ("closes with 1011 after a drain", {"faults": "complete-closes-1011"}, "DRN-4/closes-with-1000"),
    ("does not acknowledge the completion", {"faults": "complete-unacked"}, "DRN-4/completion-acknowledged"),
    ("knows no deadline of a drain", {"faults": "no-drain-deadline"}, "DRN-5/deadline DRN-5/deadline-zero"),
    ("gives no hint when it stops", {"out": [({"type": "control.reset"}, {"payload": {"retry_after_ms": None}})]}, "DRN-6/hint"),
    ("stops without a reset", {"faults": "stop-without-reset"}, "DRN-6/stop"),
    # ---- reset, idempotency, limits
    ("closes with 1011 after a reset that it was told", {"faults": "reset-closes-1011"}, "RST-1/before-the-accept RST-1/closes-with-1000"),
    ("ends the session of a worker that resets a connection before its accept", {"faults": "early-reset-forgets"},
     "RST-1/early-reset-leaves-the-session"),
    ("answers a reset with a reset", {"faults": "reset-answered"}, "RST-1/not-answered"),
    ("ends a session when somebody else is refused", {"faults": "refusal-ends-session"},
     "RST-1/refused-handshake-leaves-the-session LIM-3/only-that-connection"),
    ("refuses a message that it knows", {"faults": "same-id-refused"}, "IDM-1/same-message-twice IDM-1/same-message-in-the-next-session"),
    ("forgets work once it is acknowledged", {"faults": "acknowledged-is-done"}, "WRK-4/unanswered-comes-again"),
    ("refuses a second result", {"faults": "second-result-refused"}, "IDM-1/second-result"),
    ("refuses a duplicate with another content in a control.ack", {"faults": "duplicate-in-ack"}, "IDM-2/not-in-a-control-ack"),
    ("takes only 8 KiB", {"faults": "limit-8k"}, "LIM-1/frame-of-16-kib LIM-1/large-is-taken"),
    ("gives each connection a budget of its own", {"faults": "budget-per-connection"}, "LIM-2/budget-outlives-the-connection"),
    ("has no error budget", {"faults": "no-budget"}, "LIM-2/seventeenth-is-reset"),
    ("has a budget of 15", {"faults": "budget-of-15"}, "LIM-2/sixteen-are-answered"),
    ("does not charge malformed acks", {"faults": "bad-acks-free"}, "LIM-2/malformed-ack-costs"),
    ("answers malformed acks and resets", {"faults": "answers-bad-acks"},
     "LIM-2/malformed-ack-unanswered LIM-2/malformed-reset-unanswered REV-2/zero-window-is-malformed"),
    ("counts a refused frame as received", {"faults": "violation-takes-seq"}, "LIM-2/seq-of-a-violation"),
    ("lets everybody wait for a stranger", {"faults": "stranger-blocks"}, "LIM-7/half-a-frame LIM-7/half-a-message LIM-7/stalled-twin"),
    ("goes on sending what was refused", {"faults": "nack-ignored"}, "LIM-4/refused-frame"),
    ("resets for any refusal", {"faults": "nack-resets"}, "LIM-8/unknown-code-in-a-refusal"),
    ("overlooks resets with a code that it does not know", {"ignores": [{"type": "control.reset"}]}, "LIM-8/unknown-code-in-a-reset"),
    # ---- revision 1
    ("resumes no session of the other revision, with another code", says("E.SESSION.STALE_BINDING"), "RES-7/other-revision-resumes"),
    ("counts revision 1 from zero", {"faults": "revision-1-from-zero"}, "REV-1/first-is-one"),
    ("judges the seq of revision 1", {"faults": "seq-judged"}, "REV-1/seq-is-ignored"),
    ("sends dup to revision 1", {"wire": [({"type": "control.ack"}, {"payload": {"dup": 0}})]}, "REV-2/ack-keys"),
    ("sends its credit to revision 1", {"wire": [({"type": "control.session.accept"}, {"payload": {"recv_window": 64}})]},
     "REV-3/accept-keys"),
    ("refuses nulls of revision 1", {"faults": "nulls-refused"}, "REV-3/null-in-a-heartbeat REV-3/nulls-are-taken"),
    ("sends ts with Z to revision 1", {"wire": [({}, {"ts": lambda text: text.replace("+00:00", "Z")})]}, "REV-4/time-with-offset"),
    ("acknowledges every fourth frame", {"faults": "lazy-acks"}, "REV-5/each-frame"),
    ("refuses a resume behind a handshake", {"faults": "resume-after-handshake-refused"}, "REV-6/resume-after-a-handshake"),
    ("refuses a resume without a handshake", {"faults": "no-resume-first"}, "REV-6/resume-first"),
    ("has another code for a resume in the form of the other revision", says("E.AUTH.HANDSHAKE_REQUIRED"), "REV-6/revision-2-session"),
    ("closes a draining worker of revision 1 that is busy", {"faults": "closes-busy"}, "REV-8/busy-heartbeat-does-not-close"),
    ("sends phase to revision 1", {"wire": [({"type": "control.drain"}, {"payload": {"phase": "start"}})]}, "REV-8/drain-without-phase"),
    ("does not close a drained worker of revision 1", {"faults": "never-closes"}, "REV-8/idle-heartbeat-closes"),
    ("closes a worker of revision 1 with frames unacknowledged", {"faults": "closes-unacknowledged"},
     "REV-8/unacknowledged-does-not-close"),
    ("resets a superseded connection of revision 1", {"faults": "revision-1-reset"}, "REV-9/no-reset"),
    ("has revision 2's code for a stale session", says("E.SESSION.UNKNOWN", "E.SESSION.STALE_BINDING"),
     "REV-10/replaced-session REV-10/unknown-session"),
    ("closes with 1011 when it stops", {"faults": "stop-closes-1011"}, "REV-10/stop"),
    ("asks revision 1 for an ack of its accept", {"wire": [({"type": "control.session.accept"}, {"ack": {"request": True}})]},
     "REV-11/accept-does-not-ask"),
    ("gives revision 1 no credit before its first ack", {"faults": "revision-1-no-credit"}, "REV-11/credit-without-an-ack"),
    ("refuses repetitions", {"faults": "repetition-refused"},
     "REV-12/handshake-again REV-12/handshake-again-in-session REV-12/resume-again"),
    ("wants an instance id of revision 1", {"faults": "instance-needed"}, "REV-15/no-instance-id"),
]

# case, and the flaw that its mutant lets pass: schema:pointer:keyword
ACCEPTED = """
ATT-1/binary-first json::length
ATT-1/length-lies json::length
ATT-1/no-room-for-a-length json::length
ATT-1/on-a-control-frame envelope:/attachment:false
ATT-1/without-media-type envelope:/attachment/type:required
ATT-2/binary-without-attachment envelope:/attachment:attachment
ATT-2/bytes-do-not-match envelope:/attachment/bytes:attachment
ATT-2/in-a-text-message envelope:/attachment:attachment
ENV-1/ack-unknown-member envelope:/ack/soon:additionalProperties
ENV-1/corr-null envelope:/corr:type
ENV-1/first-array envelope::type
ENV-1/first-sender-extra-key envelope:/sender/zone:additionalProperties
ENV-1/first-sender-without-id envelope:/sender/id:required
ENV-1/first-unknown-key envelope:/colour:additionalProperties
ENV-1/first-unknown-role envelope:/sender/role:enum
ENV-1/first-without-tenant envelope:/tenant:required
ENV-1/first-without-ts envelope:/ts:required
ENV-1/invalid-examples-envelope envelope:/sender/role:enum
ENV-1/no-payload envelope:/payload:required
ENV-1/payload-array envelope:/payload:type
ENV-1/unknown-key envelope:/colour:additionalProperties
ENV-10/binary-not-utf8 json::utf-8
ENV-10/byte-order-mark json::syntax
ENV-10/control-character json::syntax
ENV-10/first-bare-nan json::constant
ENV-10/first-empty-text json::syntax
ENV-10/first-not-json json::syntax
ENV-10/first-too-deep json::depth
ENV-10/first-trailing-text json::trailing
ENV-10/integer-beyond-64-bits json::integer
ENV-10/lone-surrogate json::surrogate
ENV-10/nesting-bomb json::depth
ENV-10/not-json json::syntax
ENV-10/too-deep json::depth
ENV-10/trailing-text json::trailing
ENV-1/flag-not-text envelope:/flags/1:type
ENV-2/drain-negative-deadline drain:/payload/deadline_ms:minimum
ENV-2/drain-unknown-phase drain:/payload/phase:enum
ENV-2/drain-without-phase drain:/payload/phase:required
ENV-2/handshake-extra-member handshake:/payload/features:additionalProperties
ENV-2/handshake-long-hostname handshake:/payload/worker/hostname:maxLength
ENV-2/handshake-protocol-text handshake:/payload/protocol:type
ENV-2/handshake-token-empty handshake:/payload/auth/token:minLength
ENV-2/handshake-unknown-mode handshake:/payload/auth/mode:enum
ENV-2/handshake-without-auth handshake:/payload/auth:required
ENV-2/handshake-without-instance handshake:/payload/worker/worker_instance_id:required
ENV-2/handshake-without-worker handshake:/payload/worker:required
ENV-2/heartbeat-cpu-over-100 heartbeat:/payload/metrics/cpu_pct:maximum
ENV-2/heartbeat-inflight-negative heartbeat:/payload/metrics/inflight:minimum
ENV-2/heartbeat-metric-object heartbeat:/payload/metrics/queue:type
ENV-2/heartbeat-without-metrics heartbeat:/payload/metrics:required
ENV-2/invalid-examples-ack ack:/payload/rtt:additionalProperties
ENV-2/invalid-examples-drain drain:/payload/reason:maxLength
ENV-2/invalid-examples-handshake handshake:/payload/auth/mode:enum
ENV-2/invalid-examples-heartbeat heartbeat:/payload/metrics/inflight:minimum
ENV-2/invalid-examples-register register:/payload/manifests/0/manifest:type
ENV-2/invalid-examples-reset reset:/payload/reason:maxLength
ENV-2/invalid-examples-resume resume:/payload/session_id:required
ENV-2/invalid-examples-session-accept session.accept:/payload/session_token:required
ENV-2/register-again-invalid register:/payload/capabilities/runtimes:minItems
ENV-2/register-extra-member register:/payload/labels:additionalProperties
ENV-2/register-manifest-text register:/payload/manifests/0/manifest:type
ENV-2/register-node-limit-text register:/payload/capabilities/concurrency/per_node_limits/gpu:type
ENV-2/register-package-status register:/payload/packages/1/status:enum
ENV-2/register-too-many-features register:/payload/capabilities/features:maxItems
ENV-2/register-without-capabilities register:/payload/capabilities:required
ENV-2/register-without-runtimes register:/payload/capabilities/runtimes:minItems
ENV-2/register-zero-parallel register:/payload/capabilities/concurrency/max_parallel:minimum
ENV-2/resume-extra-member resume:/payload/worker_instance_id:additionalProperties
ENV-2/resume-without-window resume:/payload/recv_window:required
ENV-2/revision-1-resume-members resume.revision1:/payload/earliest_retained_seq:additionalProperties
ENV-3/empty-segment envelope:/type:pattern
ENV-3/unknown-family envelope:/type:pattern
ENV-4/first-seq-on-control envelope:/seq:false
ENV-4/seq-missing envelope:/seq:required
ENV-4/seq-on-heartbeat envelope:/seq:false
ENV-5/corr-too-long envelope:/corr:maxLength
ENV-5/first-empty-id envelope:/id:*
LIM-2/effect-of-a-violation ack:/payload/rtt:additionalProperties
ENV-5/first-long-id envelope:/id:maxLength
ENV-5/first-long-tenant envelope:/tenant:maxLength
ENV-5/id-not-ascii envelope:/id:pattern
ENV-6/first-ts-without-offset envelope:/ts:pattern
ENV-6/ts-no-such-day envelope:/ts:pattern
ENV-7/first-integer-too-large handshake:/payload/protocol:maximum
ENV-7/seq-fraction envelope:/seq:type
ENV-7/seq-negative envelope:/seq:minimum
ENV-7/seq-too-large envelope:/seq:maximum
ENV-8/duplicate-in-sender envelope:/sender/role:twice
ENV-8/duplicate-key envelope:/id:twice
ENV-8/duplicate-metric heartbeat:/payload/metrics/inflight:twice
ENV-8/first-duplicate-in-payload handshake:/payload/protocol:twice
ENV-8/first-duplicate-key envelope:/tenant:twice
ENV-8/register-duplicate-member register:/payload/capabilities:twice
ENV-8/revision-1-duplicate-key envelope.revision1:/session_seq:twice
ENV-9/ext-array envelope:/ext:type
HSK-13/accept-from-worker control.session.accept::not now
HSK-13/completion-without-a-drain drain::no drain
HSK-13/handshake-in-session control.handshake::not now
HSK-13/resume-in-session control.resume::not now
REV-1/session-seq-missing envelope.revision1:/session_seq:required
REV-1/session-seq-on-control envelope.revision1:/session_seq:type
REV-1/session-seq-zero envelope.revision1:/session_seq:minimum
REV-2/no-attachment envelope.revision1::binary
REV-2/no-ext envelope.revision1:/ext:additionalProperties
REV-2/no-runtime-role envelope.revision1:/sender/role:enum
"""
