// The questions that quiet and barrier_all ask each stage that messages pass, wherever it runs.
#pragma once

#include <chrono>
#include <cstdint>

#include <esker/net/network_request.hpp>

namespace esker {

/// One place that messages pass on their way from a lane to the heap: lanes and aggregators, handlers on the
/// host, the transport, a GPU. Completion knows stages by these questions alone; a job without a GPU has no
/// stage for one.
///
/// State    idle -> begin() -> rounds of flush(), flushed(), drained(), counts -> end() -> idle. A call that
///          a failure cuts short has no end(); the next one begins all the same.
/// Contract The network's owner makes every call, but for those that are marked. Completion asks stages in
///          the order in which messages flow, and calls flush() of a stage when those before it are
///          flushed().
///          - Quiet: once every stage was flushed(), ask_peers(), then have_peers_applied() until it holds.
///            Then it waits until as many replies are applied here, answered(), as requests have been sent,
///            asked(): answered() of all stages is read before asked() of any.
///          - Barrier: once all are drained(), and still flushed(), the counts of all PEs are gathered.
///          Invariants of the counters, over all stages of all PEs:
///          - Both only grow, and each message is counted once in sent() of one stage, and once in applied().
///          - A message is counted in sent() before its effects can be seen, so before it is in applied().
///            What a handler sends is counted before the message that the handler was called for is in
///            applied(). So a reader of applied() of all stages, and then of sent() of all, never misses a
///            message.
///          - Where may_send() is false on every PE and all counts are final, sent() does not grow: sums that
///            are equal once mean that all is applied. Else they must be equal twice running, unchanged.
/// Ordering What was sent before the call happens before begin() (see [request]).
/// Progress No call waits. step() does the stage's work while it drains.
/// Errors   Whatever the stage's work throws fails the job.
class CompletionStage {
 public:
  virtual ~CompletionStage() = default;

  /// Does what is due. Before each of Completion's steps, in calls or not. True if something moved.
  virtual bool step() { return false; }

  /// A quiet or a barrier begins: from here to end() the stage hands on what it has, full or not.
  virtual void begin(const NetworkRequest& /*call*/) {}
  /// Hands on what it holds now. Not called of the first stage: the user's thread has flushed the aggregators
  /// in its call, and a GPU empties itself when kernels end.
  virtual void flush() {}
  /// All that it held at flush() has left it, or is what drained() waits for. In a barrier it may become
  /// false again while the stages behind it drain: then the flush is repeated, from the first stage on.
  virtual bool flushed() { return true; }
  /// Nothing is under way in it.
  virtual bool drained() { return true; }
  /// The flush is repeated: nothing that was seen before it counts.
  virtual void start_over() {}
  /// Why it is not flushed(): a literal, for reports.
  virtual const char* waits_for() const = 0;

  /// Messages that it has applied, and those that producers in it have sent; any thread.
  virtual std::uint64_t applied() const { return 0; }
  virtual std::uint64_t sent() const { return 0; }
  /// Of those sent, requests, which are counted before their replies; and replies that it has applied. Only
  /// quiet asks: a barrier counts a request and its reply as messages, like those of a handler.
  virtual std::uint64_t asked() const { return 0; }
  virtual std::uint64_t answered() const { return 0; }
  /// Handlers, or requests, may send when they are applied: since the last barrier some have been sent here.
  virtual bool may_send() const { return false; }
  /// Its counts hold all that its producers have sent. A GPU's do not before a progress kernel has run that
  /// began when the kernels of all PEs had ended: a barrier's first round is the rendezvous that tells.
  virtual bool is_final() const { return true; }

  /// Quiet: asks peers how far they have applied what this PE has sent through this stage.
  virtual void ask_peers() {}
  virtual bool have_peers_applied() { return true; }

  /// In a barrier's gather some PE says that handlers may run.
  virtual void heard_may_send() {}
  /// The call ends. `all_applied`: it was a barrier, and all that any PE has sent is applied.
  virtual void end(bool /*all_applied*/) {}

  /// The longest that the owner may sleep when nothing moves; `in_call`: the user's thread waits.
  virtual std::chrono::microseconds longest_nap(bool /*in_call*/) const {
    return std::chrono::microseconds::max();
  }
  /// Racy, any thread: not flushed() because of work of this PE's own that needs no other PE.
  virtual bool was_working() const { return false; }
};

}  // namespace esker
