// How domains hand work on, and how a run of tasks ends, as a finite model for spin: tasks/state.hpp says what the
// words mean, tasks/domain.hpp what is done with them.
//
// DOMAINS domains share a run whose stacks give away bundles, BUNDLES in all, in every way there is. A stack stands
// for all of its levels: it has one join record at a time. Each access to shared memory is one step. The model is
// sequentially consistent: weaker orders are the business of the labelled pairs and of ThreadSanitizer.
//
// Checked: a stack has one owner at most, and is saved before another domain goes on with it; each bundle is finished
// exactly once; the run ends, with every bundle finished (else some domain waits for ever: an invalid end state).
//
// -DBROKEN=... leaves one step of the protocol out; spin must then find an error.
#define SAVE_AFTER_LEAVING 1    // the owner leaves its stack and then saves it
#define COUNT_AFTER_PUT 2       // a bundle is handed over and then counted
#define LEAVE_IN_TWO_STEPS 3    // `left` is read, then written
#define ASK_BEFORE_READING 4    // a domain asks for the next bundle before it has read the last one
#define PROMISE_IN_TWO_STEPS 5  // a word is compared, then written
#define NO_PROMISE 6            // a bundle is filled without a promise
#define NO_JOIN 7               // the owner finishes without what it has given away
#define END_EARLY 8             // the run ends with the first bundle that is finished
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef DOMAINS
#define DOMAINS 3
#endif
#ifndef BUNDLES
#define BUNDLES 4
#endif
#define NONE 15
#define BUSY 0
#define ASKING 1
#define PROMISED 2
#define FULL 3

byte states[DOMAINS];           // the word of a domain
byte bundles[DOMAINS];          // what it is given
byte parent[BUNDLES];           // the stack that gave the bundle
byte left[BUNDLES];             // of a stack's join record: bundles that are out, and its owner
bit has_join[BUNDLES], saved[BUNDLES];
bit ended;
byte made, free;                // bundles so far, the first is the root; and what memory there is for more

// What an observer sees; the protocol reads none of it.
byte owners[BUNDLES], finished[BUNDLES];

inline own(stack) { d_step { owners[stack]++; assert(owners[stack] == 1) } }
inline disown(stack) { owners[stack]-- }

// One fewer is out; `rest` is what is left.
inline leave(stack) {
#if BROKEN == LEAVE_IN_TWO_STEPS
  rest = left[stack] - 1;
  left[stack] = rest
#else
  d_step { left[stack]--; rest = left[stack] }
#endif
}

proctype domain(byte me) {
  byte stack, taker, bundle, rest;
  bit is_free;

idle:
  if
#if BROKEN == ASK_BEFORE_READING
  :: states[me] == FULL -> states[me] = ASKING; stack = bundles[me]
#else
  :: states[me] == FULL -> states[me] = BUSY; stack = bundles[me]
#endif
  :: states[me] == BUSY -> states[me] = ASKING; goto idle
  :: ended -> goto over
  fi;
  own(stack);

work:
  if
  :: skip -> goto done  // it has no more, or nobody asks
  :: free > 0 ->
     d_step { is_free = free > 0; if :: is_free -> free-- :: else fi };  // memory first, then the promise
     if
     :: !is_free -> goto work
     :: else
     fi;
     taker = 0;  // any
     do
     :: taker < DOMAINS - 1 -> taker++
     :: break
     od;
     skip;
#if BROKEN == PROMISE_IN_TWO_STEPS
     is_free = states[taker] == ASKING;
     if :: is_free -> states[taker] = PROMISED :: else fi;
#elif BROKEN == NO_PROMISE
     is_free = states[taker] == ASKING;
#else
     d_step { is_free = states[taker] == ASKING; if :: is_free -> states[taker] = PROMISED :: else fi };
#endif
     if
     :: !is_free -> free++; goto work
     :: else
     fi;
     d_step { bundle = made; made++; parent[bundle] = stack };
#if BROKEN != COUNT_AFTER_PUT
     d_step { left[stack] = (has_join[stack] -> left[stack] + 1 : 2); has_join[stack] = 1 };
#endif
     bundles[taker] = bundle;
     states[taker] = FULL;
#if BROKEN == COUNT_AFTER_PUT
     d_step { left[stack] = (has_join[stack] -> left[stack] + 1 : 2); has_join[stack] = 1 };
#endif
     goto work
  fi;

done:
#if BROKEN != NO_JOIN
  if
  :: has_join[stack] && left[stack] != 1 ->
     disown(stack);
#if BROKEN == SAVE_AFTER_LEAVING
     leave(stack);
     saved[stack] = 1;
#else
     saved[stack] = 1;
     leave(stack);
#endif
     if
     :: rest != 0 -> goto idle
     :: else -> own(stack)
     fi
  :: else
  fi;
#endif

joined:
  skip;
  d_step { has_join[stack] = 0; saved[stack] = 0; left[stack] = 0 };
  if
  :: free > 0 -> goto work  // the level below has work
  :: skip
  fi;
  d_step { finished[stack]++; assert(finished[stack] == 1) };
  disown(stack);
  if
  :: parent[stack] == NONE -> ended = 1; goto over
  :: else -> bundle = parent[stack]
  fi;
#if BROKEN == END_EARLY
  ended = 1;
#endif
  leave(bundle);
  if
  :: rest == 0 ->
     assert(saved[bundle]);
     stack = bundle;
     own(stack);
     goto joined
  :: else -> goto idle
  fi;

over:
  skip
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < DOMAINS -> states[i] = BUSY; bundles[i] = NONE; i++
    :: else -> break
    od;
    parent[0] = NONE;
    made = 1;
    free = BUNDLES - 1;
    bundles[0] = 0;
    states[0] = FULL;
    i = 0;
    do
    :: i < DOMAINS -> run domain(i); i++
    :: else -> break
    od
  }
  ended;
  i = 0;
  do
  :: i < made -> assert(finished[i] == 1); i++
  :: else -> break
  od
}
