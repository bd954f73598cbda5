// How a loop of a pipeline's stages ends, as a finite model for spin: docs/design/exact-end.md has the argument,
// RunView::try_end_loop() in pipeline/run_view.hpp is the code.
//
// Two sides, host and device, of WORKERS workers each. The topic of a side holds what its workers take, and what
// they emit goes to either topic, so the stages form a loop. An external producer puts INPUTS items into the host's
// topic, with pauses of any length (bubbles), and closes. A worker that runs an item emits any number of others;
// there are ITEMS in all. Each side has two counters that only grow and that only this side writes: `created`
// counts what it has put into topics, `finished` what it has run. Each access to shared memory is one step. The
// model is sequentially consistent: weaker orders are the business of the labelled pairs and of ThreadSanitizer.
//
// Checked: when a worker ends the run, no item is in a topic, none is being run, and none comes later (safety); the
// run ends, whatever the order of steps, as long as each process goes on (the claim `arrives`).
//
// -DBROKEN=... leaves one step of the protocol out; spin must then find an error.
#define CREATED_FIRST 1          // `created` is read before `finished`
#define SIDE_BY_SIDE 2           // both counters of one side are read before those of the other
#define NOT_ARMED 3              // the check does not wait until the external producer has closed
#define FINISHED_FIRST 4         // an item counts as finished before what it emits counts as created
#define CREATED_AFTER_PUBLISH 5  // an item can be taken before it counts as created
#define CLOSED_EARLY 6           // the external producer closes before its last item counts as created
#ifndef BROKEN
#define BROKEN 0
#endif

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef INPUTS
#define INPUTS 2
#endif
#ifndef ITEMS
#define ITEMS 4
#endif

byte created[2];   // a side; the external producer counts with the host
byte finished[2];
byte topic[2];     // items that can be taken
bit closed, ended;

// What an observer sees; the protocol reads none of it.
byte made, running;  // emitted items so far; items that a worker has taken and not run to their end

inline put(side, to) {
  assert(!ended);
#if BROKEN == CREATED_AFTER_PUBLISH
  topic[to]++;
  created[side]++
#else
  created[side]++;
  topic[to]++
#endif
}

proctype external() {
  byte i;
  do
  :: i < INPUTS ->
#if BROKEN == CLOSED_EARLY
     if :: i == INPUTS - 1 -> closed = 1 :: else fi;
#endif
     put(0, 0);
     i++
  :: else -> break
  od;
  closed = 1
}

#if BROKEN == NOT_ARMED
#define ARMED true
#else
#define ARMED closed
#endif

inline check() {
#if BROKEN == CREATED_FIRST
  sum_created = created[0];
  sum_created = sum_created + created[1];
  sum_finished = finished[0];
  sum_finished = sum_finished + finished[1];
#elif BROKEN == SIDE_BY_SIDE
  sum_finished = finished[0];
  sum_created = created[0];
  sum_finished = sum_finished + finished[1];
  sum_created = sum_created + created[1];
#else
  sum_finished = finished[0];
  sum_finished = sum_finished + finished[1];
  sum_created = created[0];
  sum_created = sum_created + created[1];
#endif
  if
  :: sum_finished == sum_created ->
     d_step { ended = 1; assert(running == 0 && topic[0] == 0 && topic[1] == 0) }
  :: else
  fi;
  sum_finished = 0;
  sum_created = 0
}

proctype worker(byte side) {
  bit got;
  byte sum_finished, sum_created;

  do
  :: topic[side] > 0 ->
     d_step { got = topic[side] > 0; if :: got -> topic[side]--; running++ :: else fi };
     if
     :: got ->
        got = 0;
        assert(!ended);
#if BROKEN == FINISHED_FIRST
        finished[side]++;
#endif
        do
        :: made < ITEMS - INPUTS ->
           d_step { got = made < ITEMS - INPUTS; if :: got -> made++ :: else fi };
           if
           :: got -> put(side, 0)
           :: got -> put(side, 1)
           :: else
           fi;
           got = 0
        :: break
        od;
#if BROKEN == FINISHED_FIRST
        running--
#else
        atomic { running--; finished[side]++ }
#endif
     :: else
     fi
  :: topic[side] == 0 && ARMED && !ended -> check()  // idle
  :: ended -> break
  od
}

init {
  byte i;
  atomic {
    run external();
    i = 0;
    do
    :: i < WORKERS -> run worker(0); run worker(1); i++
    :: else -> break
    od
  }
}

ltl arrives { <> ended }
