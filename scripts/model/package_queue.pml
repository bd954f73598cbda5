// The package queue as a finite model, for spin: queue/package_queue.hpp says what the words mean.
//
// Producers send PACKAGES packages each and wait for a slot with was_empty(); consumers poll with
// try_peek() until all have arrived. Each access to shared memory is one step. The model is sequentially
// consistent: what weaker orders may do is the business of tests/queue/queue_mutant.cpp.
//
// Checked: a slot has at most one agent in it; each package arrives whole and exactly once; no agent
// waits for ever (an invalid end state, or a cycle that breaks the claim `arrives`).
//
// -DBROKEN=... leaves one step of the protocol out; spin must then find an error.
#define RELEASE_BEFORE_READ 1   // the consumer frees the slot and then reads it
#define PUBLISH_BEFORE_WRITE 2  // the producer announces the package and then writes it
#define NO_WAIT 3               // the producer does not look whether the slot is empty
#define NO_ROUND 4              // the turn word is a full bit: rounds look alike
#define RESERVE_IN_TWO_STEPS 5  // the tail is read, then written
#define PEEK_IN_TWO_STEPS 6     // the head is compared, then written
#define NO_RELEASE 7            // the consumer keeps the slot
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef PACKAGES
#define PACKAGES 3
#endif
#define TOTAL (PRODUCERS * PACKAGES)
#define SLOT(ticket) ((ticket) % SLOTS)
#if BROKEN == NO_ROUND
#define EMPTY(ticket) 0
#define RELEASED(ticket) 0
#else
#define EMPTY(ticket) (2 * ((ticket) / SLOTS))
#define RELEASED(ticket) (EMPTY(ticket) + 2)
#endif
#define FULL(ticket) (EMPTY(ticket) + 1)

byte tail, head;                    // the counters
byte turn[SLOTS];                   // the slots' turn words
byte first[SLOTS], second[SLOTS];   // the slots' payload: two words, equal in a whole package

// What an observer sees; the protocol reads none of it.
byte agents[SLOTS];  // how many are between taking a slot and handing it on
bit published[TOTAL], arrived[TOTAL];
byte arrivals;
byte watched;  // some package, chosen at the start: what holds for it holds for all

inline enter(slot) { d_step { agents[slot]++; assert(agents[slot] == 1) } }
inline leave(slot) { agents[slot]-- }

inline write(slot, package) {
  first[slot] = package;
  second[slot] = package
}

inline publish(ticket, package) {
  d_step {
    turn[SLOT(ticket)] = FULL(ticket);
    published[package] = 1
  }
}

inline read(slot) {
  one = first[slot];
  two = second[slot];
  d_step {
    assert(one == two);       // whole
    assert(published[one]);
    assert(!arrived[one]);    // at most once; `arrivals` makes it exactly once
    arrived[one] = 1;
    one = 0;
    two = 0
  }
}

proctype producer(byte id) {
  byte ticket, sent;
  do
  :: sent < PACKAGES ->
#if BROKEN == RESERVE_IN_TWO_STEPS
    ticket = tail;
    tail = ticket + 1;
#else
    d_step { ticket = tail; tail++ }
#endif
#if BROKEN != NO_WAIT
    turn[SLOT(ticket)] == EMPTY(ticket);
#endif
    enter(SLOT(ticket));
#if BROKEN == PUBLISH_BEFORE_WRITE
    publish(ticket, id * PACKAGES + sent);
    write(SLOT(ticket), id * PACKAGES + sent);
    leave(SLOT(ticket));
#else
    write(SLOT(ticket), id * PACKAGES + sent);
    leave(SLOT(ticket));
    publish(ticket, id * PACKAGES + sent);
#endif
    sent++
  :: else -> break
  od
}

proctype consumer() {
  byte ticket, seen, one, two;
  do
  :: arrivals < TOTAL ->
    ticket = head;
    do
    :: seen = turn[SLOT(ticket)];
      if
#if BROKEN == NO_ROUND
      :: seen != FULL(ticket) -> goto nothing
#else
      :: seen < FULL(ticket) -> goto nothing
      :: seen > FULL(ticket) -> ticket = head  // another consumer took it meanwhile
#endif
      :: seen == FULL(ticket) ->
#if BROKEN == PEEK_IN_TWO_STEPS
        if
        :: head == ticket -> head = ticket + 1; break
        :: else -> ticket = head
        fi
#else
        if
        :: d_step { head == ticket -> head = ticket + 1 }; break
        :: d_step { head != ticket -> ticket = head }
        fi
#endif
      fi
    od;
    enter(SLOT(ticket));
#if BROKEN == RELEASE_BEFORE_READ
    turn[SLOT(ticket)] = RELEASED(ticket);
    read(SLOT(ticket));
    leave(SLOT(ticket));
#else
    read(SLOT(ticket));
    leave(SLOT(ticket));
#if BROKEN != NO_RELEASE
    turn[SLOT(ticket)] = RELEASED(ticket);
#endif
#endif
    arrivals++;
nothing:
    skip;
    d_step { ticket = 0; seen = 0 }  // forgotten values are not different states
  :: else -> break
  od
}

init {
  byte i;
  select(watched : 0 .. TOTAL - 1);
  atomic {
    for (i : 0 .. PRODUCERS - 1) { run producer(i) }
    for (i : 0 .. CONSUMERS - 1) { run consumer() }
    i = 0
  }
}

ltl arrives { <> published[watched] && [] (published[watched] -> <> arrived[watched]) }
