// How a run of a task graph ends, as a finite model for spin: GraphState in tasks/graph_state.hpp says what `open`
// means, tasks/graph_domain.hpp what is done with it.
//
// DOMAINS domains run ELEMENTS elements, which come from one seed in every way there is: each of them spawns any
// number of others, into its domain's own buffer or into what all share; of a buffer GIFTS in all are shared later.
// Channels are one, and have place for all: what is full goes to memory that is shared or to a stack that is the
// domain's own, and so it is one of these two again. Each access to shared memory is one step. The model is
// sequentially consistent: weaker orders are the business of the labelled pairs and of ThreadSanitizer.
//
// Checked: nothing runs and nothing is shared after the end; each element runs once; the run ends (else the domains
// wait for ever: an invalid end state).
//
// -DBROKEN=... leaves one step of the protocol out; spin must then find an error.
#define COUNT_AFTER_PUBLISH 1  // an element can be taken before it is counted
#define SETTLE_AT_ONCE 2       // a domain settles what it takes before it has run it
#define SETTLE_WITH_MORE 3     // a domain settles though its own buffer has elements
#define SETTLE_IN_TWO_STEPS 4  // `open` is read, then written
#define SETTLE_ONE 5           // a domain settles one of the elements that it has taken
#define COUNT_OWN 6            // what a domain shares of its own is no longer owed by it
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef DOMAINS
#define DOMAINS 3
#endif
#ifndef ELEMENTS
#define ELEMENTS 4
#endif
#ifndef GIFTS
#define GIFTS 2
#endif

byte open, shared;  // elements that are shared and not finished; that can be taken
bit ended;

// What an observer sees; the protocol reads none of it.
byte made, ran;  // elements in all, and of them those that have run
byte gifts;

// An element becomes one that domains share.
inline put() {
  assert(!ended);
#if BROKEN == COUNT_AFTER_PUBLISH
  shared++;
  open++
#else
  open++;
  shared++
#endif
}

// `owed` elements are finished, and all that came of them.
inline settle(number) {
#if BROKEN == SETTLE_IN_TWO_STEPS
  rest = open - number;
  open = rest;
#else
  d_step { open = open - number; rest = open };
#endif
  owed = owed - number;
  if
  :: rest == 0 -> ended = 1
  :: else
  fi
}

proctype domain() {
  byte own, owed, rest;
  bit got;

  do
  :: own > 0 ->  // run one
     d_step { own--; ran++; assert(!ended) };
     do
     :: made < ELEMENTS -> d_step { if :: made < ELEMENTS -> made++; got = 1 :: else -> got = 0 fi };
        if
        :: got -> own++
        :: got -> put()
        :: else
        fi
     :: break
     od
  :: own > 1 && gifts < GIFTS ->  // another has nothing: give one
     gifts++;
     own--;
     put();
#if BROKEN == COUNT_OWN
     if :: owed > 0 -> settle(1) :: else fi
#endif
  :: shared > 0 ->
     d_step { got = shared > 0; if :: got -> shared-- :: else fi };
     if
     :: got ->
        own++;
        owed++;
#if BROKEN == SETTLE_AT_ONCE
        settle(1)
#endif
     :: else
     fi
#if BROKEN == SETTLE_WITH_MORE
  :: owed > 0 -> settle(owed)
#elif BROKEN == SETTLE_ONE
  :: own == 0 && owed > 0 -> settle(1); owed = 0
#else
  :: own == 0 && owed > 0 -> settle(owed)
#endif
  :: ended && own == 0 && owed == 0 -> break
  od
}

init {
  byte i;
  atomic {
    made = 1;
    open = 1;
    shared = 1;
    i = 0;
    do
    :: i < DOMAINS -> run domain(); i++
    :: else -> break
    od
  }
  ended;
  assert(ran == made && shared == 0)
}
