/* The window, resume and fencing rules of docs/protocol.md for one direction of data, as a finite model for spin. It owns
 * the rules, not their encoding: no bytes, no clock, no tokens. This file: parameters, claims, state, connections, and the
 * environment that does all the harm. sender.pml and receiver.pml: the two ends. run.py: what is searched, and the faults.
 *
 * Parameters (-D): the sizes and budgets below, and
 *   RECEIVER_DIALS  the receiver is the worker; otherwise the sender is
 *   SILENT          a peer that does not announce when its window opens (against WIN-12)
 *   RETREAT         a peer that takes credit back (against WIN-10)
 *   PROGRESS        search for cycles without progress instead of broken claims
 *   MUTANT_*        one planted fault */
#ifndef FRAMES
#define FRAMES 3
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef DEPTH /* messages that one direction of a connection holds before its writer has to wait */
#define DEPTH 2
#endif
#ifndef CONNECTIONS /* the current one, and the old ones that may still speak */
#define CONNECTIONS 2
#endif
#ifndef INBOX /* delivered frames that an owner can leave unowned, over all sessions */
#define INBOX (3 * WINDOW)
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef SPURIOUS /* resends by a timer that was too fast */
#define SPURIOUS 0
#endif
#ifndef CLOSES /* times the owner stops giving credit */
#define CLOSES 0
#endif
#ifndef GIVEUPS /* sessions the sender resets, as after too many attempts */
#define GIVEUPS 0
#endif
#ifndef RECEIVER_CRASHES
#define RECEIVER_CRASHES 0
#endif
#ifndef SENDER_CRASHES
#define SENDER_CRASHES 0
#endif

/* spin prints the text of a broken assertion, so the number in it tells run.py which claim that was. */
#define CLAIM(name, condition) assert((condition) || name == 0)
#define FREED_ONLY_WHEN_OWNED 1
#define ACK_WITHIN_SENT 2
#define SENT_WITHIN_CREDIT 3
#define HELD_WITHIN_CREDIT 4
#define DELIVERED_ONCE_IN_ORDER 5
#define EFFECT_ONCE_IN_ORDER 6
#define HELD_IS_NOT_RESENT 7
#define RESUME_WITHOUT_GAP 8
#define CREDIT_IS_HONOURED 9
#define MODEL_BOUNDS 10

/* A search that never meets a situation proves nothing about it: each is reported once, and run.py wants them all. */
#define SEEN(situation) c_code { static int told; if (!told) { told = 1; printf("seen " #situation "\n"); } }

#define NONE CONNECTIONS
#define BIT(i) (1 << (i))

mtype = { REGISTER, RESUME, ACCEPT, RESUMED, RESET, DATA, ACK, PROBE };
mtype = { DOWN, WAITING, READY };

/* ---- state ---- */

/* A connection is two queues. After a cut nothing more enters; what is inside may still arrive late, until that end is told
 * of the close, and is lost then. An entry is used again only when both ends were told, so its index is a generation:
 * unique among all connections from which either end can still hear. */
chan to_receiver[CONNECTIONS] = [DEPTH] of { mtype, byte, byte };
chan to_sender[CONNECTIONS] = [DEPTH] of { mtype, byte, byte, byte };
bit is_cut[CONNECTIONS];
bit sender_hears[CONNECTIONS];
bit receiver_hears[CONNECTIONS];
byte sessions; /* session ids given out so far */

/* Positions are counts: s_acked is ack_seq + 1, so that 0 says "absent". The frame with id i leaves as seq i - s_base: what a
 * reset returned to the owner is sent again first, and in order, in the next session. */
mtype s_state = DOWN;
byte s_connection = NONE, s_session;
byte s_base;
byte s_acked, s_next; /* frames s_acked .. s_next-1 are retained */
byte s_cursor;        /* the next one to leave on this connection; a resume moves it back */
byte s_held;          /* a bit for each seq the peer said it holds */
byte s_edge;          /* right edge: the first seq beyond the credit */

mtype r_state = DOWN;
byte r_connection = NONE, r_session;
byte r_owned, r_next; /* ack_seq + 1 and last_seen_seq + 1 */
byte r_early;         /* a bit for each seq received beyond a gap */
byte r_body[FRAMES];  /* the ids of those */
byte r_edge = WINDOW, r_window = WINDOW;
byte r_base;          /* the id of seq 0, for the claims alone */
bit r_ack_due, r_told_closed;
bit r_dropped;        /* something beyond the credit was dropped on this connection */

/* The owner behind the receiver: delivered frames that it has not taken responsibility for, and what it did. effects is
 * durable: ids 0 .. effects-1 were carried out, which is also all that the idempotency journal knows. */
chan inbox = [INBOX] of { byte, byte };
byte effects;

byte cuts = CUTS, spurious = SPURIOUS, closes = CLOSES, giveups = GIVEUPS;
byte receiver_crashes = RECEIVER_CRASHES, sender_crashes = SENDER_CRASHES;

hidden byte heard, a, b, c, i, j; /* scratch within one step */
hidden mtype kind, late_kind;
hidden byte late_a, late_b, late_c;

#define done (effects == FRAMES && s_base + s_acked == FRAMES)

/* ---- connections ---- */

#define is_free(n) (!sender_hears[n] && !receiver_hears[n])
#if CONNECTIONS == 3
#define some_free (is_free(0) || is_free(1) || is_free(2))
#define EACH_CONNECTION(action) action(0) action(1) action(2)
#else
#define some_free (is_free(0) || is_free(1))
#define EACH_CONNECTION(action) action(0) action(1)
#endif

inline put_to_receiver(n, k, x, y)
{
  if
  :: is_cut[n] -> skip /* written to a dead connection: lost */
  :: else -> to_receiver[n]!k, x, y
  fi
}

inline put_to_sender(n, k, x, y, z)
{
  if
  :: is_cut[n] -> skip
  :: else -> to_sender[n]!k, x, y, z
  fi
}

inline open_connection()
{
  i = 0;
  do
  :: is_free(i) -> break
  :: else -> i++
  od;
  is_cut[i] = 0;
  sender_hears[i] = 1;
  receiver_hears[i] = 1
}

inline sender_stops_hearing(n)
{
  do
  :: len(to_sender[n]) > 0 -> to_sender[n]?_, _, _, _
  :: else -> break
  od;
  sender_hears[n] = 0;
  is_cut[n] = 1
}

inline receiver_stops_hearing(n)
{
  do
  :: len(to_receiver[n]) > 0 -> to_receiver[n]?_, _, _
  :: else -> break
  od;
  receiver_hears[n] = 0;
  is_cut[n] = 1
}

/* An end that turned away from a connection may still hear from it. One late message is enough to tell whether it is
 * ignored, and those behind it would be ignored the same way: they are dropped here to keep the search small. */
inline keep_one_late_to_sender(n)
{
  if
  :: len(to_sender[n]) > 1 ->
     to_sender[n]?late_kind, late_a, late_b, late_c;
     do
     :: len(to_sender[n]) > 0 -> to_sender[n]?_, _, _, _
     :: else -> break
     od;
     to_sender[n]!late_kind, late_a, late_b, late_c
  :: else -> skip
  fi
}

inline keep_one_late_to_receiver(n)
{
  if
  :: len(to_receiver[n]) > 1 ->
     to_receiver[n]?late_kind, late_a, late_b;
     do
     :: len(to_receiver[n]) > 0 -> to_receiver[n]?_, _, _
     :: else -> break
     od;
     to_receiver[n]!late_kind, late_a, late_b
  :: else -> skip
  fi
}

#include "sender.pml"
#include "receiver.pml"

/* ---- the environment: all the harm, and the moment after which there is none any more ---- */

#define CUT(n) :: d_step { cuts > 0 && !is_cut[n] && !is_free(n) -> cuts--; is_cut[n] = 1 }

active proctype Environment()
{
  do
  EACH_CONNECTION(CUT)
  :: d_step { receiver_crashes > 0 -> /* memory is gone; what was committed stays */
       receiver_crashes--;
       if
       :: len(inbox) > 0 -> SEEN(receiver_crashed_before_owning)
       :: else -> skip
       fi;
       r_window = WINDOW;
       receiver_forgets_session();
       receiver_goes_down();
       do
       :: len(inbox) > 0 -> inbox?_, _
       :: else -> break
       od;
       j = 0;
       do
       :: j < CONNECTIONS && receiver_hears[j] -> receiver_stops_hearing(j); j++
       :: j < CONNECTIONS && !receiver_hears[j] -> j++
       :: else -> break
       od;
       skip
     }
  :: atomic { sender_crashes > 0 -> /* the outbox stays; it may or may not have noted the last acks */
       sender_crashes--;
       if
       :: s_acked = 0
       :: s_acked > 0 -> skip
       fi;
       d_step {
         sender_forgets_session();
         sender_goes_down();
         j = 0;
         do
         :: j < CONNECTIONS && sender_hears[j] -> sender_stops_hearing(j); j++
         :: j < CONNECTIONS && !sender_hears[j] -> j++
         :: else -> break
         od;
         skip
       }
     }
#ifdef PROGRESS
  /* Faults may end early. Without this choice, fairness would force every fault to happen and hide what needs none. */
  :: d_step { cuts + spurious + closes + giveups + receiver_crashes + sender_crashes > 0 ->
       cuts = 0; spurious = 0; closes = 0; giveups = 0; receiver_crashes = 0; sender_crashes = 0
     }
#endif
  :: d_step { done -> SEEN(finished) } /* so that standing still is a deadlock only when something is left to do */
  od
}

#ifdef PROGRESS
ltl progress { []<> done }
#endif
