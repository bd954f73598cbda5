// What a kernel needs of the runtime: where the heap is, how many PEs there are, and the way to the package
// queue.
#pragma once

#include <cstdint>

#include <esker/aggregator/command.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/handler.hpp>
#include <esker/queue/package_queue.hpp>
#if defined(ESKER_DEVICE_COMPILER)
#include <esker/net/gpu/sink.hpp>
#endif

namespace esker {

class PeerHeaps;
class Tracer;
namespace detail {
struct BlockCall;
struct BytesCall;
}  // namespace detail

/// How a host producer waits: it lends itself to aggregation and progress meanwhile. The runtime's.
class ProducerServices {
 public:
  /// One step of aggregation or progress on the caller's thread. Throws Error if the runtime has failed.
  virtual void help() = 0;
  /// Until the slot of `ticket` is empty. Throws Error if the runtime has failed.
  virtual void wait_empty(PackageQueue& queue, std::uint64_t ticket) = 0;
  /// Where Config::pending_messages bounds them: counts `messages` more as pending, before they are
  /// published. False, with nothing counted: not now. What has nothing else pending is never refused.
  virtual bool try_claim_pending(std::uint64_t messages) = 0;
  /// Until that succeeds.
  virtual void claim_pending(std::uint64_t messages) = 0;
  /// Of the messages claimed, so many are not published after all.
  virtual void unclaim_pending(std::uint64_t messages) = 0;
  /// Closes what keeps messages from leaving. Whoever waits calls it again and again: others publish
  /// meanwhile.
  virtual void flush_pending() = 0;
  /// A package of `count` messages of `command` is about to be published / has been.
  virtual void will_publish(Command command, std::uint32_t count) = 0;
  virtual void has_published() = 0;
  /// It stands for so many more calls, of which `remote` are to other PEs.
  virtual void has_combined(std::uint64_t calls, std::uint64_t remote) = 0;
  /// A block of a group of lanes; a lane's bytes for a handler, of which one message is claimed.
  virtual void start_block(const detail::BlockCall& call, const Caller& caller) = 0;
  virtual void send_bytes(const detail::BytesCall& call, const Caller& caller) = 0;

 protected:
  ~ProducerServices() = default;
};

namespace detail {
/// Trivially copyable; kernels take it by value. Valid while its Runtime lives.
struct KernelContext {
  HeapView heap;
  std::uint32_t pe = 0;
  std::uint32_t n_pes = 1;         // destinations: more than there are PEs in the one-node projection
  std::uint32_t most_columns = 0;  // messages a package may hold; 0: as many as fit
  PackageQueue queue;
  ProducerServices* services = nullptr;    // host only
  const gpu::PeState* pe_state = nullptr;  // where kernels run on a GPU; in its memory
  bool is_reserved = false;                // there: Runtime::reserve_for() has been called
  std::uint32_t bins = 0;                  // host only: packages that a group there keeps open
  Tracer* tracer = nullptr;                // host only; null: off
  PeerHeaps* peer_heaps = nullptr;         // host only; null: all gets travel
};
}  // namespace detail

}  // namespace esker
