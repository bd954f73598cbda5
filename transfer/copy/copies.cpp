// Whether ranges of a set overlap: in one pass where they are in order, else sorted.
#include <esker/transfer/copy/copies.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t copy;
  bool is_written;

  std::string text() const {
    return fmt::format("copy {} {} [{:#x}, {:#x})", copy, is_written ? "writes" : "reads", begin, end);
  }
};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Error::Kind::kTransfer, "copy_batch: " + why);
}

Range range_of(const Copy& copy, std::size_t index, bool is_written) {
  const auto begin = reinterpret_cast<std::uintptr_t>(is_written ? copy.to : copy.from);
  const char* side = is_written ? "destination" : "source";
  if (begin == 0) refuse(fmt::format("copy {} of {} bytes has no {}", index, copy.bytes, side));
  if (copy.bytes > ~begin) {
    refuse(fmt::format("copy {}: its {} {:#x} and {} bytes go beyond the last address", index, side, begin,
                       copy.bytes));
  }
  return {begin, begin + copy.bytes, index, is_written};
}

/// The common case: destinations in ascending order, all sources before or behind all of them.
bool are_apart(std::span<const Copy> copies) {
  std::uintptr_t first_written = 0, last_written = 0, first_read = ~std::uintptr_t{0}, last_read = 0;
  for (const Copy& copy : copies) {
    if (copy.bytes == 0) continue;
    const auto to = reinterpret_cast<std::uintptr_t>(copy.to);
    const auto from = reinterpret_cast<std::uintptr_t>(copy.from);
    if (to == 0 || from == 0 || copy.bytes > ~to || copy.bytes > ~from || to < last_written) return false;
    if (last_written == 0) first_written = to;
    last_written = to + copy.bytes;
    first_read = std::min(first_read, from);
    last_read = std::max(last_read, from + copy.bytes);
  }
  return last_read <= first_written || last_written <= first_read;
}

}  // namespace

void check_copies(std::span<const Copy> copies) {
  if (are_apart(copies)) return;
  std::vector<Range> ranges;
  ranges.reserve(2 * copies.size());
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].bytes == 0) continue;
    ranges.push_back(range_of(copies[i], i, true));
    ranges.push_back(range_of(copies[i], i, false));
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  // Of the ranges that begin no later, the one of each kind that ends last is the one to meet.
  const Range* written = nullptr;
  const Range* read = nullptr;
  for (const Range& range : ranges) {
    const Range* other = written != nullptr && written->end > range.begin ? written : nullptr;
    if (other == nullptr && range.is_written && read != nullptr && read->end > range.begin) other = read;
    if (other != nullptr) refuse(other->text() + " and " + range.text() + ", which overlap");
    const Range*& last = range.is_written ? written : read;
    if (last == nullptr || last->end < range.end) last = &range;
  }
}

}  // namespace esker::transfer
