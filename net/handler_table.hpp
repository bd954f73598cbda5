// The active-message handlers of a PE.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include <esker/aggregator/wire.hpp>
#include <esker/net/handler.hpp>

namespace esker {

/// The handlers of this PE; index i + 1 stands in the command.
///
/// Contract. add() before messages for the handler can arrive: registration is collective and ends in a
///           barrier. At most kMaxHandlers.
class HandlerTable final : public wire::HandlerWords {
 public:
  static constexpr std::uint32_t kMaxHandlers = esker::kMaxHandlers;

  using Entry = HandlerEntry;

  HandlerTable() { entries_.reserve(kMaxHandlers); }

  /// Returns the handler's index; kMaxHandlers + 1 if the table is full.
  std::uint32_t add(Entry entry) {
    const auto count = count_.load(std::memory_order_relaxed);
    if (count == kMaxHandlers) return kMaxHandlers + 1;
    entries_.push_back(std::move(entry));
    count_.store(count + 1, std::memory_order_release);  // [entry]
    return count + 1;
  }
  /// Null: no such handler. Any thread.
  const Entry* find(std::uint16_t handler) const {
    const auto count = count_.load(std::memory_order_acquire);  // [entry]
    return handler >= 1 && handler <= count ? entries_.data() + (handler - 1) : nullptr;
  }
  std::uint32_t words_of_handler(std::uint16_t handler) const override {
    const Entry* entry = find(handler);
    return entry == nullptr ? 0 : entry->words;
  }
  bool takes_bytes(std::uint16_t handler) const override {
    const Entry* entry = find(handler);
    return entry != nullptr && entry->words == 0;
  }

 private:
  std::vector<Entry> entries_;  // reserved in full: an entry never moves
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace esker
