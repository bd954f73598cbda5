// Waits for words of this PE's heap.
#include <fmt/format.h>

#include <atomic>
#include <string>

#include <esker/device/error.hpp>
#include <esker/runtime/impl.hpp>

namespace esker {
namespace {

bool compares(std::uint64_t a, Comparison comparison, std::uint64_t b) {
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    case Comparison::kGreaterEqual:
      return a >= b;
  }
  return false;
}

const char* symbol(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return "==";
    case Comparison::kNotEqual:
      return "!=";
    case Comparison::kLess:
      return "<";
    case Comparison::kLessEqual:
      return "<=";
    case Comparison::kGreater:
      return ">";
    case Comparison::kGreaterEqual:
      return ">=";
  }
  return "?";
}

/// Words of the heap that a call looks at.
class Words {
 public:
  Words(LaneExecutor& executor, const HeapView& heap, const char* call,
        std::span<const std::uint64_t* const> words)
      : executor_{executor}, words_{words} {
    if (words.empty()) misuse(fmt::format("Runtime::{}: there is no word to wait for", call));
    for (const std::uint64_t* const word : words) {
      const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(word) - heap.base);
      if (detail::is_outside(heap.bytes, offset, 8) || offset % 8 != 0)
        detail::bad_host_target(call, detail::TargetOf::kCall, offset, 8, 8, heap.bytes, 0, 1);
    }
    what_ = fmt::format("{} of the word at heap offset {}{}", call,
                        reinterpret_cast<const std::byte*>(words[0]) - heap.base,
                        words.size() == 1 ? "" : fmt::format(" and {} more", words.size() - 1));
  }

  std::uint64_t read(std::size_t at) const {
    if (executor_.heap_on_host()) {
      // Whoever sees the signal sees what was put before it.
      return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(words_[at]))
          .load(std::memory_order_acquire);  // [signal]
    }
    std::uint64_t value = 0;
    executor_.read(&value, reinterpret_cast<const std::byte*>(words_[at]), sizeof value);
    return value;
  }
  /// The first word that compares so: the number of words if none does.
  std::size_t find(Comparison comparison, std::uint64_t value) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      found_ = read(i);
      if (compares(found_, comparison, value)) return i;
    }
    return words_.size();
  }
  std::size_t size() const { return words_.size(); }
  std::uint64_t found() const { return found_; }
  /// For reports, as it is now.
  std::string describe(Comparison comparison, std::uint64_t value) const {
    return fmt::format("{} to be {} {}, which was {}", what_, symbol(comparison), value, read(0));
  }

 private:
  LaneExecutor& executor_;
  const std::span<const std::uint64_t* const> words_;
  std::string what_;
  std::uint64_t found_ = 0;
};

std::size_t wait_for(Collectives& collectives, Words& words, bool on_device, Comparison comparison,
                     std::uint64_t value) {
  std::size_t at = words.size();
  const std::string what = words.describe(comparison, value);
  collectives.wait_for(
      what.c_str(), [&] { return (at = words.find(comparison, value)) < words.size(); }, on_device);
  return at;
}

}  // namespace

std::uint64_t Runtime::wait_until(const std::uint64_t* word, Comparison comparison, std::uint64_t value) {
  Words words(impl_->executor(), context().heap, "wait_until", {&word, 1});
  wait_for(impl_->collectives(), words, !impl_->executor().heap_on_host(), comparison, value);
  return words.found();
}

std::size_t Runtime::wait_any(std::span<const std::uint64_t* const> all, Comparison comparison,
                              std::uint64_t value) {
  Words words(impl_->executor(), context().heap, "wait_any", all);
  return wait_for(impl_->collectives(), words, !impl_->executor().heap_on_host(), comparison, value);
}

bool Runtime::test(const std::uint64_t* word, Comparison comparison, std::uint64_t value) {
  Words words(impl_->executor(), context().heap, "test", {&word, 1});
  if (words.find(comparison, value) == 0) return true;
  if (impl_->executor().heap_on_host()) {
    impl_->sender().close();
    (void)impl_->waits().help_or_raise();
  } else {
    quiet();
  }
  return words.find(comparison, value) == 0;
}

}  // namespace esker
