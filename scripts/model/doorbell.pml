// Sleeping and ringing across PEs as a finite model, for spin: queue/doorbell.hpp and net/shared say what the
// words mean.
//
// Senders fill a slot each of one receiver, which sleeps between frames; PEs meet in a gather, and sleep until
// all have given. Each access to shared memory is one step, and nobody sleeps for a time alone: a ring that is
// lost is a deadlock. The model is sequentially consistent, as the accesses are; that the store of a change
// must be, too, is RELEASED_STORE: there it may become visible after the load that follows it.
//
// Checked: all frames are taken, and all PEs leave the gather.
//
// -DBROKEN=... leaves one step of the protocol out; spin must then find an error.
#define LOOK_BEFORE_COUNT 1  // a sleeper looks, and then counts itself
#define LATE_NUMBER 2        // it reads the number of rings after it has looked
#define SAME_NUMBER 3        // rings have no number: one before the sleep is lost
#define RELEASED_STORE 4     // of a frame: the sender's load overtakes it
#define RELEASED_GIVING 5    // the same of what a PE gives to a gather
#ifndef BROKEN
#define BROKEN 0
#endif

#define SENDERS 2
#define GIVERS 3
#define RECEIVER GIVERS  // its bell
#define BELLS (GIVERS + 1)

byte sleepers[BELLS], rings[BELLS];
bit is_asleep[BELLS];  // in the kernel
bit filled[SENDERS], given[GIVERS];
byte left;  // agents that have not ended

inline wake(bell) {
#if BROKEN != SAME_NUMBER
  rings[bell]++;
#endif
  is_asleep[bell] = 0
}
inline fall_asleep(bell, seen) {
  d_step {
    if
    :: rings[bell] == seen -> is_asleep[bell] = 1
    :: else -> skip
    fi
  }
  is_asleep[bell] == 0
}

proctype sender(byte me) {
  byte count;
#if BROKEN == RELEASED_STORE
  count = sleepers[RECEIVER];
  filled[me] = 1;
#else
  filled[me] = 1;
  count = sleepers[RECEIVER];
#endif
  if
  :: count != 0 -> wake(RECEIVER)
  :: else -> skip
  fi;
  left--
}

// Takes the first frame that it finds.
inline look_into_slots(found) {
  found = 0;
  for (i : 0 .. SENDERS - 1) {
    if
    :: !found && filled[i] -> filled[i] = 0; found = 1
    :: else -> skip
    fi
  }
}

proctype receiver() {
  byte taken, seen, i;
  bit found;
  do
  :: taken < SENDERS ->
#if BROKEN == LOOK_BEFORE_COUNT
    look_into_slots(found);
#endif
    sleepers[RECEIVER]++;
#if BROKEN != LATE_NUMBER
    seen = rings[RECEIVER];
#endif
#if BROKEN != LOOK_BEFORE_COUNT
    look_into_slots(found);
#endif
#if BROKEN == LATE_NUMBER
    seen = rings[RECEIVER];
#endif
    if
    :: found -> taken++
    :: else -> fall_asleep(RECEIVER, seen)
    fi;
    sleepers[RECEIVER]--;
    d_step { seen = 0; found = 0; i = 0 }
  :: else -> break
  od;
  left--
}

inline look_at_all(all) {
  all = 1;
  for (i : 0 .. GIVERS - 1) {
    if
    :: given[i] -> skip
    :: else -> all = 0
    fi
  }
}

proctype giver(byte me) {
  byte seen, i;
  bit all;
#if BROKEN == RELEASED_GIVING
  look_at_all(all);
  given[me] = 1;
#else
  given[me] = 1;
  look_at_all(all);
#endif
  if
  :: all ->
    for (i : 0 .. GIVERS - 1) {
      seen = sleepers[i];
      if
      :: seen != 0 -> wake(i)
      :: else -> skip
      fi
    }
  :: else -> skip
  fi;
  do
  :: true ->
    sleepers[me]++;
    seen = rings[me];
    look_at_all(all);
    if
    :: all -> skip
    :: else -> fall_asleep(me, seen)
    fi;
    sleepers[me]--;
    if
    :: all -> break
    :: else -> d_step { seen = 0; i = 0 }
    fi
  od;
  left--
}

init {
  byte i;
  left = SENDERS + 1;
  atomic {
    for (i : 0 .. SENDERS - 1) { run sender(i) }
    run receiver()
  }
  left == 0;
  left = GIVERS;
  atomic {
    for (i : 0 .. GIVERS - 1) { run giver(i) }
  }
  left == 0
}
