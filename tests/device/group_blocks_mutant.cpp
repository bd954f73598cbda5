// Fills and flushes the open packages of a group of two lanes with one operation weakened.
//
//     group_blocks_mutant large|small none|open-release|open-acquire|done|sent-acquire
//
// Large blocks are mostly filled by both lanes, small ones are mostly opened again at once: each shows what
// the other would hide behind other pairs.
//
// Always built with ThreadSanitizer: a missing happens-before edge is a race report in every run. Nothing but
// the blocks may order the two threads, so they share nothing else.
#include <atomic>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <type_traits>

#include <esker/device/group_blocks.hpp>
#include <esker/device/lane_group.hpp>

namespace esker {
namespace {

enum class Weak { kNone, kOpenRelease, kOpenAcquire, kDone, kSentAcquire };
Weak weak = Weak::kNone;  // set before the threads start

template <class T>
class WeakenedAtomic : public GroupAtomic<T> {
  using Base = GroupAtomic<T>;

 public:
  T load_acquire() const { return weak == Weak::kOpenAcquire ? this->load_relaxed() : Base::load_acquire(); }
  void store_release(T desired) {
    if (weak == Weak::kOpenRelease) {
      this->store_relaxed(desired);
    } else {
      Base::store_release(desired);
    }
  }
  T fetch_add_acq_rel(T delta) {
    return weak == Weak::kDone ? this->fetch_add_relaxed(delta) : Base::fetch_add_acq_rel(delta);
  }
  bool compare_exchange_acquire(T& expected, T desired) {
    return weak == Weak::kSentAcquire ? this->compare_exchange_relaxed(expected, desired)
                                      : Base::compare_exchange_acquire(expected, desired);
  }
};

constexpr std::uint32_t kBlocks = 2, kMostWords = 8, kMessages = 20000;
std::uint32_t block_words_here = kMostWords;  // set before the threads start
using Blocks = GroupBlocks<1, kBlocks, WeakenedAtomic>;
struct Pool {
  std::uint64_t* all;
  std::uint64_t* words(std::uint32_t block) const { return all + block * kMostWords; }
  static std::uint32_t block_words() { return block_words_here; }
};

struct Group {
  std::atomic<int> arrived{0};  // relaxed, so that it orders nothing: both lanes begin at about the same time
  Blocks blocks{};
  std::uint64_t pool[kBlocks * kMostWords] = {};
};

/// Appends messages of two commands by turns and returns the sum of what this lane has flushed.
std::uint64_t fill(Group& group) {
  const Pool pool{group.pool};
  const LoneLane alone;
  std::uint64_t sum = 0;
  const auto flush = [&](std::uint32_t index) {
    std::uint64_t rows[kMostWords] = {};
    const std::uint32_t count =
        group.blocks.copy(pool, alone, {0, 1, 0}, index, [&](std::uint32_t) { return rows; });
    group.blocks.release(index);
    for (std::uint32_t i = 0; i < count; ++i) sum += rows[i];
  };
  const auto wait = [](std::uint32_t polls) {
    std::this_thread::yield();
    return polls;
  };
  const auto most = [](std::uint32_t, std::uint32_t) { return ~0u; };
  group.arrived.fetch_add(1, std::memory_order_relaxed);
  while (group.arrived.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
  for (std::uint32_t m = 0; m < kMessages; ++m) {
    const std::uint64_t words[1] = {1};
    const std::uint32_t command = 1 + m % 7 / 6;
    const auto attempt =
        group.blocks.try_append(pool, 0, command, std::integral_constant<std::uint32_t, 1>{}, words);
    (void)group.blocks.append_slowly(pool, alone, 0, command, 1, words, attempt, most, flush, wait);
  }
  return sum;
}

int run(const std::string& what, const std::string& end) {
  static const std::map<std::string, Weak> kEnds = {{"none", Weak::kNone},
                                                    {"open-release", Weak::kOpenRelease},
                                                    {"open-acquire", Weak::kOpenAcquire},
                                                    {"done", Weak::kDone},
                                                    {"sent-acquire", Weak::kSentAcquire}};
  if ((what != "large" && what != "small") || !kEnds.contains(end)) {
    std::cerr << "group_blocks_mutant: no size '" << what << "' or no end '" << end << "'\n";
    return 2;
  }
  weak = kEnds.at(end);
  if (what == "small") block_words_here = 2;
  Group group;
  std::uint64_t sums[2] = {};
  {
    std::jthread first([&] { sums[0] = fill(group); });
    std::jthread second([&] { sums[1] = fill(group); });
  }
  std::uint64_t left = 0;
  if (const std::uint32_t index = group.blocks.close(0); index != Blocks::kNone) {
    std::uint64_t rows[kMostWords];
    left = group.blocks.copy(Pool{group.pool}, LoneLane{}, {0, 1, 0}, index,
                             [&](std::uint32_t) { return rows; });
  }
  return sums[0] + sums[1] + left == 2 * kMessages ? 0 : 1;
}

}  // namespace
}  // namespace esker

int main(int argc, char** argv) {
  if (argc == 3) return esker::run(argv[1], argv[2]);
  std::cerr << "usage: group_blocks_mutant SIZE END\n";
  return 2;
}
