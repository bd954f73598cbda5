// Random updates of a table in device memory, directly and window by window: what the program calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace esker::bench {

/// Seconds of the two halves of windowed updates; of direct ones, all stands under `apply`.
struct UpdateSeconds {
  double partition = 0, apply = 0;
};

/// A table of 64-bit counters and a list of random addresses in it, on one GPU.
///
/// Updates come in batches, as received buffers do: each is finished before the next begins. Windowed, a
/// batch is first partitioned by address window, so that each window's part of the table stays in the L2
/// cache while its updates are applied.
///
/// Throws std::runtime_error with what the device says.
class Updates {
 public:
  static constexpr std::uint32_t kMostWindows = 1024;

  /// `table_words` <= 2^32; `addresses` is at least every batch that is asked for.
  Updates(std::uint64_t table_words, std::uint64_t addresses);
  ~Updates();
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  /// One atomic add for each of the first `count` addresses, in batches.
  UpdateSeconds direct(std::uint64_t count, std::uint64_t batch);
  /// The same on a second table, with windows of 2^window_words_log2 words: at most kMostWindows of them.
  UpdateSeconds windowed(std::uint64_t count, std::uint64_t batch, std::uint32_t window_words_log2);
  /// Counters in which the two tables differ, plus the difference of the first one's sum from `updates`.
  /// Zeroes both.
  std::uint64_t compare(std::uint64_t updates);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// The GPU's name and the size of its L2 cache.
std::string update_device();
std::uint64_t l2_bytes();

}  // namespace esker::bench
