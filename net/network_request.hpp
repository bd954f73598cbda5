// What the user's thread asks of the network's owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <esker/net/transport.hpp>

namespace esker {

/// Contract. One at a time. The user's thread writes all but `all` and `done`, and touches nothing more until
///           `done`; the owner writes those two.
struct NetworkRequest {
  enum class Kind {
    kGather,    // `mine` to every PE's `all`
    kQuiet,     // every message that this PE has sent is applied
    kExchange,  // of `exchange`
    kBarrier,   // every message that any PE has sent is applied, those of handlers too
  };
  /// Words of `mine.values` that Completion fills in a barrier; the user's thread has the others.
  enum BarrierValue : std::uint8_t { kApplied, kSent, kMaySend, kNotFinal, kBarrierValues };

  Kind kind;
  const char* call;  // the user's, for reports
  GatherBlock mine;  // kBarrier and kGather: collective and sequence set
  std::uint64_t flush_epoch =
      0;  // kQuiet and kBarrier: of the aggregators' flush that the user's thread asked for
  std::shared_ptr<Exchange> exchange;  // kExchange
  std::vector<GatherBlock> all;        // kBarrier and kGather: one a PE
  std::atomic<bool> done{false};       // [done] release by the owner / acquire by the user's thread
};

}  // namespace esker
