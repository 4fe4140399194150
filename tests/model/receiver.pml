/* The receiving end: order, duplicates, credit, acks, its side of the handshake, and the owner behind it. Included by
 * window.pml. */

inline receiver_forgets_session()
{
  r_session = 0; r_owned = 0; r_next = 0; r_early = 0; r_base = 0;
  r_ack_due = 0; r_told_closed = 0; r_dropped = 0;
  r_edge = r_window;
  i = 0;
  do
  :: i < FRAMES -> r_body[i] = 0; i++
  :: else -> break
  od;
  skip
}

inline receiver_turns_away()
{
  if
  :: r_connection != NONE -> keep_one_late_to_receiver(r_connection)
  :: else -> skip
  fi;
  r_connection = NONE
}

inline receiver_goes_down() { receiver_turns_away(); r_state = DOWN; r_ack_due = 0; r_told_closed = 0; r_dropped = 0 }

inline receiver_starts_session(session)
{
  receiver_forgets_session();
  r_session = session
}

/* The last acks may have been lost with the old connection, and nothing else would ever repeat them. */
inline receiver_is_ready()
{
  r_state = READY;
#ifndef MUTANT_NO_ACK_ON_RESUME
  r_ack_due = 1;
#endif
  r_dropped = 0
}

inline receiver_delivers()
{
  do
  :: r_next < FRAMES && (r_early >> r_next) & 1 ->
     if
     :: r_next == 0 -> r_base = r_body[0]
     :: else -> skip
     fi;
     receiver_delivers_one(r_next);
     r_next++
  :: else -> break
  od;
  skip
}

inline receiver_delivers_one(seq)
{
  CLAIM(DELIVERED_ONCE_IN_ORDER, seq == r_next && r_body[seq] == r_base + seq); /* WIN-4 */
  CLAIM(MODEL_BOUNDS, len(inbox) < INBOX);
  inbox!r_session, r_body[seq];
  r_early = r_early & ~BIT(seq);
  r_body[seq] = 0
}

inline receiver_takes_data(seq, id)
{
  r_ack_due = 1;
  if
#ifndef MUTANT_DUPLICATE_DELIVERED
  :: seq < r_next || (r_early >> seq) & 1 -> SEEN(duplicate_dropped) /* WIN-6 */
#endif
#ifndef MUTANT_ACCEPT_BEYOND_CREDIT
  :: seq >= r_next && seq >= r_edge && !((r_early >> seq) & 1) -> /* WIN-7 */
#ifdef RETREAT
     SEEN(dropped_beyond_credit);
#else
     CLAIM(CREDIT_IS_HONOURED, false);
#endif
     r_dropped = 1
#endif
  :: else ->
     CLAIM(HELD_WITHIN_CREDIT, seq < r_edge || seq < r_next);
     r_early = r_early | BIT(seq);
     r_body[seq] = id;
     if
     :: seq > r_next -> SEEN(held_beyond_a_gap) /* WIN-5 */
     :: else -> skip
     fi;
#ifdef MUTANT_DUPLICATE_DELIVERED
     if
     :: seq < r_next -> receiver_delivers_one(seq)
     :: else -> skip
     fi;
#endif
#ifdef MUTANT_DELIVER_OUT_OF_ORDER
     if
     :: seq > r_next -> receiver_delivers_one(seq)
     :: else -> skip
     fi;
#endif
     receiver_delivers()
  fi
}

inline receiver_hears_message(n)
{
  to_receiver[n]?kind, a, b;
  if
#ifndef RECEIVER_DIALS
  :: kind == REGISTER || kind == RESUME ->
     if
#ifndef MUTANT_UNKNOWN_SESSION_RESUMED
     :: kind == RESUME && a != r_session -> /* RES-7 */
        SEEN(unknown_session_refused);
        put_to_sender(n, RESET, 0, 0, 0)
#endif
     :: else ->
        if
        :: r_connection != NONE -> /* FEN-2: the newest wins */
           SEEN(connection_superseded);
           if
           :: len(to_sender[r_connection]) < DEPTH -> put_to_sender(r_connection, RESET, 0, 0, 0)
           :: else -> skip
           fi;
           is_cut[r_connection] = 1;
           receiver_turns_away()
        :: else -> skip
        fi;
        r_connection = n;
        if
        :: kind == REGISTER ->
           sessions++;
           receiver_starts_session(sessions);
           put_to_sender(n, ACCEPT, r_session, 0, r_edge)
        :: else ->
           CLAIM(RESUME_WITHOUT_GAP, b <= r_next);
           put_to_sender(n, RESUMED, 0, r_next, r_edge - r_owned)
        fi;
        receiver_is_ready()
     fi
  :: n == r_connection && kind == RESET ->
     receiver_forgets_session();
     receiver_goes_down()
#else
  :: n == r_connection && r_state == WAITING && kind == ACCEPT ->
     receiver_starts_session(a);
     receiver_is_ready()
  :: n == r_connection && r_state == WAITING && kind == RESUMED ->
     CLAIM(RESUME_WITHOUT_GAP, b <= r_next);
     receiver_is_ready()
  :: n == r_connection && kind == RESET ->
     receiver_forgets_session();
     receiver_goes_down();
     receiver_stops_hearing(n)
#endif
#ifdef MUTANT_NO_FENCE_ON_DATA
  :: kind == DATA && r_state == READY -> receiver_takes_data(a, b)
#else
  :: kind == DATA && r_state == READY && n == r_connection -> receiver_takes_data(a, b)
#endif
  :: kind == PROBE && r_state == READY && n == r_connection -> r_ack_due = 1
  :: else -> SEEN(late_message_ignored_by_receiver) /* FEN-1 */
  fi
}

inline receiver_hears_close(n)
{
  receiver_stops_hearing(n);
  if
#ifdef MUTANT_NO_FENCE_ON_CLOSE
  :: r_connection != NONE -> receiver_goes_down()
#else
  :: n == r_connection -> receiver_goes_down()
#endif
  :: n != r_connection && r_connection != NONE -> SEEN(late_close_ignored_by_receiver) /* FEN-1 */
  :: else -> skip
  fi
}

#define MESSAGE_TO_RECEIVER(n) :: receiver_hears[n] && len(to_receiver[n]) > 0 -> heard = n
#define CLOSE_TO_RECEIVER(n) :: receiver_hears[n] && is_cut[n] -> heard = n

#ifdef MUTANT_ACK_BEFORE_OWNED
#define ack_position r_next
#else
#define ack_position r_owned /* ACK-1 */
#endif

active proctype Receiver()
{
  do
  :: atomic { if EACH_CONNECTION(MESSAGE_TO_RECEIVER) fi; d_step { receiver_hears_message(heard) } }
  :: atomic { if EACH_CONNECTION(CLOSE_TO_RECEIVER) fi; d_step { receiver_hears_close(heard) } }
#ifdef RECEIVER_DIALS
  :: d_step { r_connection != NONE && is_cut[r_connection] -> receiver_goes_down() }
  :: d_step { r_state == DOWN && some_free ->
       open_connection();
       r_connection = i;
       r_state = WAITING;
       if
       :: r_session == 0 -> to_sender[i]!REGISTER, 0, 0, 0
       :: else -> to_sender[i]!RESUME, r_session, r_next, r_edge - r_owned
       fi
     }
#endif
  :: d_step { r_state == READY && r_ack_due && len(to_sender[r_connection]) < DEPTH ->
       r_ack_due = 0;
       a = ack_position;
       b = ((BIT(r_next) - 1) | r_early) >> a; /* ACK-2 */
       if
       :: r_edge > a -> c = r_edge - a
       :: else -> c = 0
       fi;
       r_told_closed = (c == 0);
       put_to_sender(r_connection, ACK, a, b, c)
     }
  od
}

/* ---- the owner ---- */

inline edge_follows_owner() /* WIN-10: it never moves back */
{
  if
  :: r_owned + r_window > r_edge -> r_edge = r_owned + r_window
  :: else -> skip
  fi
}

active proctype Owner()
{
  do
  /* To commit the effect with its journal entry, and only then to let it be acknowledged, is one step. */
  :: d_step { len(inbox) > 0 ->
       inbox?a, b;
       if
#ifndef MUTANT_NO_JOURNAL
       :: b < effects -> SEEN(journal_answered) /* IDM-1 */
#endif
       :: else ->
          CLAIM(EFFECT_ONCE_IN_ORDER, b == effects);
          effects++
       fi;
       if
       :: a == r_session ->
          r_owned++;
          edge_follows_owner();
          r_ack_due = (r_state == READY)
       :: else -> SEEN(owned_after_its_session_ended)
       fi
     }
  :: d_step { closes > 0 && r_window > 0 ->
       closes--;
       r_window = 0;
#ifdef RETREAT
       r_edge = r_owned
#endif
     }
  :: d_step { r_window == 0 ->
       r_window = WINDOW;
       edge_follows_owner();
#ifndef SILENT
       if
       :: r_told_closed && r_state == READY -> r_ack_due = 1 /* WIN-12 */
       :: else -> skip
       fi
#endif
     }
  od
}
