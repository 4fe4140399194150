/* The sending end: window, credit, replay, timers, and its side of the handshake. Included by window.pml. */

#define is_held(seq) ((s_held >> (seq)) & 1)
#define has_more (s_cursor < s_next || s_base + s_next < FRAMES)
#ifdef MUTANT_SEND_BEYOND_CREDIT
#define has_credit true
#else
#define has_credit (s_cursor < s_edge) /* WIN-2 */
#endif

/* Where a timer has work to do: nothing is under way on a live connection, so nothing else will happen. */
#define is_stalled (s_state == READY && !is_cut[s_connection] && len(to_receiver[s_connection]) == 0 && \
                    len(to_sender[s_connection]) == 0 && !r_ack_due)
#define missing ((BIT(s_cursor) - BIT(s_acked)) & ~s_held) /* sent, and the peer did not say that it holds them */
#define must_repair (r_dropped && missing != 0)
#ifdef MUTANT_PROBE_STARVES_TIMER
#define may_probe true
#else
#define may_probe (!must_repair)
#endif

/* Everything that ack_seq does not cover goes back to the owner, who sends it again in the next session (RTX-5). */
inline sender_forgets_session()
{
  if
  :: s_acked < s_next -> SEEN(unacked_returned_to_owner)
  :: else -> skip
  fi;
#ifdef MUTANT_RESET_DROPS_UNACKED
  s_base = s_base + s_next;
#else
  s_base = s_base + s_acked;
#endif
  s_session = 0; s_acked = 0; s_next = 0; s_cursor = 0; s_held = 0; s_edge = 0
}

inline sender_turns_away()
{
  if
  :: s_connection != NONE -> keep_one_late_to_sender(s_connection)
  :: else -> skip
  fi;
  s_connection = NONE
}

inline sender_goes_down() { sender_turns_away(); s_state = DOWN }

inline sender_starts_session(session, credit)
{
  sender_forgets_session();
  s_session = session;
  s_edge = credit
}

inline sender_raises_edge(edge)
{
  if
  :: edge > s_edge -> s_edge = edge
  :: else -> skip
  fi
}

/* The cursor never rests on a frame that is freed, or that the peer holds. */
inline sender_skips_held()
{
  do
  :: s_cursor < s_next && s_cursor < s_acked -> s_cursor++
#ifndef MUTANT_REPLAY_RESENDS_HELD
  :: s_cursor < s_next && s_cursor >= s_acked && is_held(s_cursor) -> SEEN(replay_skipped_held); s_cursor++
#endif
  :: else -> break
  od;
  skip
}

/* The peer holds everything below last_seen, so sending goes on there (RES-4). Nothing is freed by it. The credit counts from
 * the ack_seq that this side knows: a lower edge than the peer meant, never a higher one. */
inline sender_resumes(last_seen, credit)
{
  CLAIM(ACK_WITHIN_SENT, last_seen <= s_next);
  s_held = s_held | (BIT(last_seen) - 1);
#ifdef MUTANT_RESUME_FREES
  s_acked = last_seen;
  CLAIM(FREED_ONLY_WHEN_OWNED, s_base + s_acked <= effects);
#endif
#ifdef MUTANT_CREDIT_FROM_LAST_SEEN
  sender_raises_edge(last_seen + credit);
#else
  sender_raises_edge(s_acked + credit);
#endif
  s_cursor = last_seen;
#ifdef MUTANT_REPLAY_SKIPS_ONE
  s_cursor = last_seen + (last_seen < s_next);
#endif
#ifdef MUTANT_REPLAY_RESENDS_HELD
  s_cursor = s_acked;
#endif
  sender_skips_held()
}

inline sender_takes_ack(owned, bits, credit)
{
  CLAIM(ACK_WITHIN_SENT, owned <= s_next && ((bits << owned) >> s_next) == 0);
  if
  :: owned < s_acked -> skip /* ACK-5. Queues keep order and old ones are fenced, so only a fault gets here. */
  :: else ->
#ifdef MUTANT_BITMAP_OFF_BY_ONE
     s_held = s_held | ((bits << (owned + 1)) & (BIT(s_next) - 1));
#else
     s_held = s_held | (bits << owned);
#endif
     sender_raises_edge(owned + credit);
     s_acked = owned;
#ifdef MUTANT_FREE_ON_BIT
     do
     :: s_acked < s_next && is_held(s_acked) -> s_acked++
     :: else -> break
     od;
#endif
     CLAIM(FREED_ONLY_WHEN_OWNED, s_base + s_acked <= effects); /* ACK-1, ACK-3, WIN-8 */
     s_held = s_held & ~(BIT(s_acked) - 1);
     sender_skips_held()
  fi
}

inline transmit(seq)
{
  CLAIM(SENT_WITHIN_CREDIT, seq < s_edge);
  CLAIM(HELD_IS_NOT_RESENT, !is_held(seq)); /* ACK-3 */
  put_to_receiver(s_connection, DATA, seq, s_base + seq)
}

inline sender_hears_message(n)
{
  to_sender[n]?kind, a, b, c;
  if
#ifdef RECEIVER_DIALS
  :: kind == REGISTER || kind == RESUME ->
     if
     :: kind == RESUME && a != s_session ->
        SEEN(unknown_session_refused);
        put_to_receiver(n, RESET, 0, 0)
     :: kind == RESUME && a == s_session && b < s_acked ->
        /* It waited on an old connection while frames were freed on a newer one. Refused, and the session stays as it is. */
        CLAIM(RESUME_WITHOUT_GAP, is_cut[n]);
        SEEN(late_resume_refused);
        put_to_receiver(n, RESET, 0, 0)
     :: else ->
        if
        :: s_connection != NONE -> /* FEN-2: the newest wins */
           SEEN(connection_superseded);
           if
           :: len(to_receiver[s_connection]) < DEPTH -> put_to_receiver(s_connection, RESET, 0, 0)
           :: else -> skip
           fi;
           is_cut[s_connection] = 1;
           sender_turns_away()
        :: else -> skip
        fi;
        s_connection = n;
        s_state = READY;
        if
        :: kind == REGISTER ->
           sessions++;
           sender_starts_session(sessions, 0);
           put_to_receiver(n, ACCEPT, s_session, 0)
        :: else ->
           sender_resumes(b, c);
           put_to_receiver(n, RESUMED, 0, s_acked)
        fi
     fi
#else
  :: n == s_connection && s_state == WAITING && kind == ACCEPT ->
     sender_starts_session(a, c);
     s_state = READY
  :: n == s_connection && s_state == WAITING && kind == RESUMED ->
     sender_resumes(b, c);
     s_state = READY
  :: n == s_connection && kind == RESET ->
     sender_forgets_session();
     sender_goes_down();
     sender_stops_hearing(n)
#endif
#ifdef MUTANT_NO_FENCE_ON_ACK
  :: kind == ACK && s_state == READY -> sender_takes_ack(a, b, c)
#else
  :: kind == ACK && s_state == READY && n == s_connection -> sender_takes_ack(a, b, c)
#endif
  :: else -> SEEN(late_message_ignored_by_sender) /* FEN-1 */
  fi
}

inline sender_hears_close(n)
{
  sender_stops_hearing(n);
  if
#ifdef MUTANT_NO_FENCE_ON_CLOSE
  :: s_connection != NONE -> sender_goes_down()
#else
  :: n == s_connection -> sender_goes_down()
#endif
  :: n != s_connection && s_connection != NONE -> SEEN(late_close_ignored_by_sender) /* FEN-1 */
  :: else -> skip
  fi
}

#define MESSAGE_TO_SENDER(n) :: sender_hears[n] && len(to_sender[n]) > 0 -> heard = n
#define CLOSE_TO_SENDER(n) :: sender_hears[n] && is_cut[n] -> heard = n

active proctype Sender()
{
  do
  :: atomic { if EACH_CONNECTION(MESSAGE_TO_SENDER) fi; d_step { sender_hears_message(heard) } }
  :: atomic { if EACH_CONNECTION(CLOSE_TO_SENDER) fi; d_step { sender_hears_close(heard) } }
#ifndef RECEIVER_DIALS
  /* It notices a dead connection before it was told of the close, and the old one may still speak. */
  :: d_step { s_connection != NONE && is_cut[s_connection] -> sender_goes_down() }
  :: d_step { s_state == DOWN && some_free ->
       open_connection();
       s_connection = i;
       s_state = WAITING;
       if
       :: s_session == 0 -> to_receiver[i]!REGISTER, 0, 0
       :: else -> to_receiver[i]!RESUME, s_session, s_acked
       fi
     }
#endif
  /* Replay and new frames leave the same way. */
  :: d_step { s_state == READY && has_more && has_credit && len(to_receiver[s_connection]) < DEPTH ->
       transmit(s_cursor);
       s_cursor++;
       if
       :: s_cursor > s_next -> s_next = s_cursor
       :: else -> SEEN(frame_replayed); sender_skips_held()
       fi
     }
  /* The retransmission timer (RTX-3) where it is needed: a frame was dropped for want of credit, and for that alone. */
  :: d_step { is_stalled && must_repair ->
       SEEN(timer_repaired);
       i = s_acked;
       do
       :: is_held(i) -> i++
       :: else -> break
       od;
       transmit(i)
     }
  /* The same timer where it was too fast. */
  :: d_step { s_state == READY && spurious > 0 && s_acked < s_cursor && !is_held(s_acked) &&
              len(to_receiver[s_connection]) < DEPTH ->
       spurious--;
       transmit(s_acked)
     }
#ifndef MUTANT_NO_PROBE
  :: d_step { is_stalled && may_probe && has_more && !has_credit -> /* WIN-11 */
       SEEN(window_probed);
       to_receiver[s_connection]!PROBE, 0, 0
     }
#endif
  :: d_step { s_session != 0 && giveups > 0 -> /* RTX-4: the reset may or may not arrive before the close */
       giveups--;
       if
       :: s_state == READY && len(to_receiver[s_connection]) < DEPTH -> put_to_receiver(s_connection, RESET, 0, 0)
       :: else -> skip
       fi;
       if
       :: s_connection != NONE -> is_cut[s_connection] = 1
       :: else -> skip
       fi;
       sender_forgets_session();
       sender_goes_down()
     }
  od
}
