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
#define MAILBOXES_BY_NUMBER 4     // a mailbox belongs to a request's place in the ring, not to a domain
#define NO_TAG 5                // a request is promised something before its word is there
#define PROMISE_IN_TWO_STEPS 6  // `promised` is compared, then written
#define NO_JOIN 7               // the owner finishes without what it has given away
#define END_EARLY 8             // the run ends with the first bundle that has no taker
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef DOMAINS
#define DOMAINS 3
#endif
#ifndef BUNDLES
#define BUNDLES 4
#endif
#define SIZE DOMAINS   // places of the ring of requests: no fewer than domains
#define NONE 15
#define TAG(request) ((request) + 1)

byte asked, promised;
byte tags[SIZE], askers[SIZE];  // a request's word: it is written in one step
byte mailboxes[DOMAINS];          // what a domain is given; with MAILBOXES_BY_NUMBER: what a place holds
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
  byte stack, request, taker, bundle, rest;
  bit has_asked, is_free;

idle:
  has_asked = 0;
wait:
  if
#if BROKEN == MAILBOXES_BY_NUMBER
  :: has_asked && mailboxes[request % SIZE] != NONE -> stack = mailboxes[request % SIZE]; mailboxes[request % SIZE] = NONE
#else
  :: mailboxes[me] != NONE -> stack = mailboxes[me]; mailboxes[me] = NONE
#endif
  :: ended -> goto over
  :: !has_asked && mailboxes[me] == NONE ->  // else it would have two bundles on their way
     d_step { request = asked; asked++ };
     d_step { tags[request % SIZE] = TAG(request); askers[request % SIZE] = me };
     has_asked = 1;
     goto wait
  fi;
  own(stack);

work:
  if
  :: skip -> goto done  // it has no more, or nobody asks
  :: free > 0 && asked > promised ->
     d_step { is_free = free > 0; if :: is_free -> free-- :: else fi };  // memory first, then the promise
     if
     :: !is_free -> goto work
     :: else
     fi;
     request = promised;
#if BROKEN == NO_TAG
     is_free = 1;
#else
     is_free = tags[request % SIZE] == TAG(request);
#endif
     taker = askers[request % SIZE];
     if
     :: !is_free -> free++; goto work
     :: else
     fi;
#if BROKEN == PROMISE_IN_TWO_STEPS
     is_free = promised == request;
     promised = request + 1;
#else
     d_step { is_free = promised == request; if :: is_free -> promised = request + 1 :: else fi };
#endif
     if
     :: !is_free -> free++; goto work
     :: else
     fi;
     d_step { bundle = made; made++; parent[bundle] = stack };
#if BROKEN != COUNT_AFTER_PUT
     d_step { left[stack] = (has_join[stack] -> left[stack] + 1 : 2); has_join[stack] = 1 };
#endif
#if BROKEN == MAILBOXES_BY_NUMBER
     mailboxes[request % SIZE] = bundle;
#else
     mailboxes[taker] = bundle;
#endif
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
    :: i < DOMAINS -> mailboxes[i] = NONE; i++
    :: else -> break
    od;
    parent[0] = NONE;
    made = 1;
    free = BUNDLES - 1;
    mailboxes[0] = 0;
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
