// The ring of numbers as a finite model, for spin: tasks/index_ring.hpp says what the words mean.
//
// Agents pop numbers and push them again, as lanes do with elements of a channel that are free. A lane has one
// number at a time; a wave pops, and pushes, up to two together. Each access to shared memory is one step. The
// model is sequentially consistent: what weaker orders may do is the business of
// tests/tasks/index_ring_mutant.cpp.
//
// Checked: a number has at most one holder, and is popped once for each time that it was pushed; no entry is
// written before its number was popped; in the end all numbers are in the ring.
//
// -DBROKEN=... leaves one step of the protocol out; spin must then find an error.
#define TAIL_IN_TWO_STEPS 1  // a ticket is read, and then taken
#define HEAD_IN_TWO_STEPS 2  // the head is compared, and then moved
#define MOVE_BEFORE_READ 3   // the head is moved, and then the entry is read
#define NO_CHECK 4           // the entry at the head is taken, written or not
#define NO_ROUND 5           // a written entry has no round: rounds look alike
#define SHORT_RING 6         // there are more numbers than entries
#define PAST_A_GAP 7         // a wave takes the second entry though the first is not written
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef LANES
#define LANES 2
#endif
#ifndef TURNS
#define TURNS 2  // of each agent: a pop that got something, and a push
#endif
#define SIZE 2   // entries
#if BROKEN == SHORT_RING
#define NUMBERS (SIZE + 1)
#else
#define NUMBERS SIZE
#endif
#define ENTRY(ticket) ((ticket) % SIZE)
#define ROUND(ticket) ((ticket) / SIZE + 1)
#if BROKEN == NO_CHECK
#define IS_THERE(seen, ticket) true
#elif BROKEN == NO_ROUND
#define IS_THERE(seen, ticket) (seen != 0)
#else
#define IS_THERE(seen, ticket) (seen == ROUND(ticket))
#endif

byte tail, head;                     // the counters
byte written[SIZE], number[SIZE];    // an entry's word: {round, number}, 0: never written

// What an observer sees; the protocol reads none of it.
bit unread[SIZE];      // written, and not popped
bit held[NUMBERS];     // by an agent
byte turns_left;

inline write(ticket, what) {
  d_step {
    assert(!unread[ENTRY(ticket)]);
    unread[ENTRY(ticket)] = 1;
    written[ENTRY(ticket)] = ROUND(ticket);
    number[ENTRY(ticket)] = what
  }
}
inline take_tickets(ticket, many) {
#if BROKEN == TAIL_IN_TWO_STEPS
  ticket = tail;
  tail = ticket + many
#else
  d_step { ticket = tail; tail = tail + many }
#endif
}
inline look(ticket, seen, what) {
  d_step { seen = written[ENTRY(ticket)]; what = number[ENTRY(ticket)] }
}
// What was popped, of an observer's view.
inline got(ticket, what) {
  assert(unread[ENTRY(ticket)]);
  unread[ENTRY(ticket)] = 0;
  assert(!held[what]);
  held[what] = 1
}

proctype lane() {
  byte ticket, seen, mine, turns;
  do
  :: turns < TURNS ->
    ticket = head;
#if BROKEN == MOVE_BEFORE_READ
    if
    :: d_step { head == ticket && head < tail -> head = ticket + 1 }
    :: else -> goto nothing
    fi;
    look(ticket, seen, mine);
    d_step { got(ticket, mine) }
#else
    look(ticket, seen, mine);
    if
    :: IS_THERE(seen, ticket) -> skip
    :: else -> goto nothing
    fi;
#if BROKEN == HEAD_IN_TWO_STEPS
    if
    :: head == ticket -> skip
    :: else -> goto nothing
    fi;
    d_step { head = ticket + 1; got(ticket, mine) }
#else
    if
    :: d_step { head == ticket -> head = ticket + 1; got(ticket, mine) }
    :: d_step { head != ticket -> seen = 0 }; goto nothing  // it tries again, as all do
    fi;
#endif
#endif
    held[mine] = 0;
    take_tickets(ticket, 1);
    write(ticket, mine);
    turns++;
nothing:
    skip;
    d_step { ticket = 0; seen = 0; mine = 0 }  // forgotten values are not different states
  :: else -> break
  od;
  turns_left--
}

// Two lanes that reserve together. They look at their entries, and write them, in any order.
proctype wave() {
  byte ticket, seen[2], mine[2], turns, count;
  do
  :: turns < TURNS ->
    ticket = head;
    if
    :: look(ticket, seen[0], mine[0]); look(ticket + 1, seen[1], mine[1])
    :: look(ticket + 1, seen[1], mine[1]); look(ticket, seen[0], mine[0])
    fi;
    d_step {
      count = 0;
      if
      :: IS_THERE(seen[0], ticket) -> count = (IS_THERE(seen[1], ticket + 1) -> 2 : 1)
#if BROKEN == PAST_A_GAP
      :: !IS_THERE(seen[0], ticket) && IS_THERE(seen[1], ticket + 1) -> count = 2
#endif
      :: else -> skip
      fi
    }
    if
    :: count == 0 -> goto nothing
    :: else -> skip
    fi;
    if
    :: d_step {
        head == ticket -> head = ticket + count;
        got(ticket, mine[0]);
        if
        :: count == 2 -> got(ticket + 1, mine[1])
        :: else -> skip
        fi
      }
    :: d_step { head != ticket -> count = 0 }; goto nothing
    fi;
    d_step {
      held[mine[0]] = 0;
      if
      :: count == 2 -> held[mine[1]] = 0
      :: else -> skip
      fi
    }
    take_tickets(ticket, count);
    if
    :: count == 1 -> write(ticket, mine[0])
    :: count == 2 -> write(ticket, mine[0]); write(ticket + 1, mine[1])
    :: count == 2 -> write(ticket + 1, mine[1]); write(ticket, mine[0])
    fi;
    turns++;
nothing:
    skip;
    d_step { ticket = 0; seen[0] = 0; seen[1] = 0; mine[0] = 0; mine[1] = 0; count = 0 }
  :: else -> break
  od;
  turns_left--
}

// Brings one more number.
proctype pusher(byte what) {
  byte ticket;
  take_tickets(ticket, 1);
  write(ticket, what);
  turns_left--
}

init {
  byte i;
  turns_left = LANES + 1 + NUMBERS - SIZE;
  atomic {
    for (i : 0 .. SIZE - 1) { write(i, i) }
    tail = SIZE;
#if BROKEN == SHORT_RING
    run pusher(SIZE);
#endif
    for (i : 0 .. LANES - 1) { run lane() }
    run wave();
    i = 0
  }
  turns_left == 0;
  d_step {
    assert(tail - head == NUMBERS);
    for (i : head .. tail - 1) {
      assert(written[ENTRY(i)] == ROUND(i) && !held[number[ENTRY(i)]]);
      held[number[ENTRY(i)]] = 1
    }
  }
}
