// Requests and replies between two PEs as a finite model, for spin: net/apply_requests.cpp and
// docs/reference/progress.md say what the steps are.
//
// Each PE's lane sends its requests to the other PE in buffers of a pool, which has few. A PE's owner, in steps
// that never wait, sends what is closed over a transport that holds few frames a direction, gets a buffer back
// when its receiver has taken the frame, takes frames that arrive, and applies them: a request becomes a reply,
// in a buffer that memory always has. What a reply calls, a continuation, may ask once more, by the same kind
// of buffer. The lane, and the owner between its other steps, may run in any order.
//
// Checked: no state from which nothing moves (spin's invalid end states); in the end each request has its
// reply, and `asked` was never below `answered`, which quiet relies on.
//
// -DBROKEN=... leaves one part of the protocol out; spin must then find an error.
#define REPLY_FROM_POOL 1      // an applier waits for a free buffer of the lane's pool for its reply
#define REPLIES_BOUNDED 2      // an applier waits for one of a few buffers of its own
#define SEND_BEFORE_TAKING 3   // an owner takes no frame while its own have not been sent
#define ASKED_AFTER_SENDING 4  // a request counts when its buffer has left
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef REQUESTS
#define REQUESTS 3  // of each lane
#endif
#define CONTINUATIONS 1  // of each PE: that many replies ask once more
#define BUFFERS 1        // in a lane's pool
#define FRAMES 1         // that the transport holds, a direction
#define REPLY_BUFFERS 1  // of BROKEN == REPLIES_BOUNDED
#define ALL (REQUESTS + CONTINUATIONS)

mtype = { request, reply };
#define OTHER(pe) (1 - (pe))

// A frame, and whether its buffer is of the lane's pool.
chan closed0 = [2 * ALL] of { mtype, bit };  // to be sent
chan closed1 = [2 * ALL] of { mtype, bit };
chan wire0 = [FRAMES] of { mtype, bit };     // to PE 0
chan wire1 = [FRAMES] of { mtype, bit };
byte pool[2];  // free buffers of the lane's
byte own[2];   // free buffers of the applier's, where these are bounded
byte asked[2], answered[2], continued[2], sent[2];

inline count_asked(pe) { asked[pe]++ }

proctype lane(bit pe; chan closed) {
  byte left = REQUESTS;
  do
  :: left > 0 ->
    d_step { pool[pe] > 0 -> pool[pe]-- }  // it may wait here: the only place
#if BROKEN == ASKED_AFTER_SENDING
    closed!request, 1;
    count_asked(pe);
#else
    count_asked(pe);
    closed!request, 1;
#endif
    left--
  :: else -> break
  od
}

// What applying one request or reply does, and how long it waits.
inline apply(pe, what) {
  if
  :: what == request ->
#if BROKEN == REPLY_FROM_POOL
    d_step { pool[pe] > 0 -> pool[pe]-- }
    closed!reply, 1
#elif BROKEN == REPLIES_BOUNDED
    d_step { own[pe] > 0 -> own[pe]-- }
    closed!reply, 0
#else
    closed!reply, 0  // memory grows
#endif
  :: what == reply ->
    if
    :: continued[pe] < CONTINUATIONS ->
      continued[pe]++;
      // The continuation's request counts before the reply that called it.
      count_asked(pe);
      closed!request, 0
    :: else -> skip
    fi;
    d_step { answered[pe]++; assert(answered[pe] <= asked[pe]) }
  fi
}

proctype owner(bit pe; chan closed, out, in) {
  mtype what;
  bit pooled, theirs;
  do
  // A frame leaves. Its buffer is free again when its receiver has taken it, which is modelled there.
  :: nempty(closed) && nfull(out) -> closed?what, pooled; out!what, pooled
  // A frame arrives.
#if BROKEN == SEND_BEFORE_TAKING
  :: empty(closed) && nempty(in) ->
#else
  :: nempty(in) ->
#endif
    in?what, theirs;
    d_step {
      if
      :: theirs -> pool[OTHER(pe)]++
#if BROKEN == REPLIES_BOUNDED
      :: !theirs && what == reply -> own[OTHER(pe)]++
#endif
      :: else -> skip
      fi
    }
    apply(pe, what)
  :: answered[pe] == ALL && answered[OTHER(pe)] == ALL -> break
  od;
  assert(asked[pe] == ALL && empty(closed) && empty(in))
}

init {
  atomic {
    pool[0] = BUFFERS;
    pool[1] = BUFFERS;
    own[0] = REPLY_BUFFERS;
    own[1] = REPLY_BUFFERS;
    run lane(0, closed0);
    run lane(1, closed1);
    run owner(0, closed0, wire1, wire0);
    run owner(1, closed1, wire0, wire1)
  }
}
