// Fills and flushes the open packages of a group of two lanes with one operation weakened.
//
//     group_blocks_mutant fill-together|open-again none|open-release|open-acquire|done|sent-acquire
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

constexpr std::uint32_t kBlockWords = 2;
using Blocks = GroupBlocks<1, 2, WeakenedAtomic>;
struct Pool {
  std::uint64_t* all;
  std::uint64_t* words(std::uint32_t block) const { return all + block * kBlockWords; }
  static constexpr std::uint32_t block_words() { return kBlockWords; }
};

/// A group of two lanes that act by turns; what tells them so is relaxed and orders nothing.
struct Group {
  std::atomic<std::uint32_t> turn{0};
  Blocks blocks{};
  std::uint64_t memory[2 * kBlockWords] = {};
  Pool pool() { return {memory}; }
};

/// Appends `message`, which opens a block of two columns where none is open. Returns the sum of the messages
/// that this flushes.
std::uint64_t append(Group& group, std::uint64_t message) {
  const std::uint64_t words[1] = {message};
  const std::integral_constant<std::uint32_t, 1> width{};
  const auto most = [](std::uint32_t, std::uint32_t) { return kBlockWords; };
  auto attempt = group.blocks.try_append(group.pool(), 0, 1, width, words);
  if (attempt.left) attempt = group.blocks.make_way(group.pool(), 0, 1, width, words, most);
  if (attempt.complete == Blocks::kNone) return 0;
  std::uint64_t row[kBlockWords] = {};
  (void)group.blocks.copy(group.pool(), LoneLane{}, {0, 1, 0}, attempt.complete,
                          [&](std::uint32_t) { return row; });
  group.blocks.release(attempt.complete);
  return row[0] + row[1];
}

/// Runs act(0) on one thread, act(1) on the other, act(2) on the first, and so on.
template <class Act>
void by_turns(Group& group, std::uint32_t turns, Act act) {
  const auto lane = [&](std::uint32_t first) {
    for (std::uint32_t turn = first; turn < turns; turn += 2) {
      while (group.turn.load(std::memory_order_relaxed) != turn) std::this_thread::yield();
      act(turn);
      group.turn.store(turn + 1, std::memory_order_relaxed);
    }
  };
  std::jthread one(lane, 0);
  std::jthread other(lane, 1);
}

/// One lane opens a block and writes the first column; the other writes the second and flushes both.
bool fill_together() {
  Group group;
  std::uint64_t sum = 0;
  by_turns(group, 2, [&](std::uint32_t turn) {
    const std::uint64_t flushed = append(group, turn + 1);
    if (turn == 1) sum = flushed;
  });
  return sum == 3;
}

/// One lane fills and flushes a block; the other opens it again.
bool open_again() {
  Group group;
  std::uint64_t sums[2] = {};
  by_turns(group, 2, [&](std::uint32_t turn) {
    for (std::uint64_t message = 1; message <= 2; ++message) sums[turn] += append(group, message);
  });
  return sums[0] == 3 && sums[1] == 3;
}

int run(const std::string& story, const std::string& end) {
  static const std::map<std::string, bool (*)()> kStories = {{"fill-together", fill_together},
                                                             {"open-again", open_again}};
  static const std::map<std::string, Weak> kEnds = {{"none", Weak::kNone},
                                                    {"open-release", Weak::kOpenRelease},
                                                    {"open-acquire", Weak::kOpenAcquire},
                                                    {"done", Weak::kDone},
                                                    {"sent-acquire", Weak::kSentAcquire}};
  if (!kStories.contains(story) || !kEnds.contains(end)) {
    std::cerr << "group_blocks_mutant: no story '" << story << "' or no end '" << end << "'\n";
    return 2;
  }
  weak = kEnds.at(end);
  return kStories.at(story)() ? 0 : 1;
}

}  // namespace
}  // namespace esker

int main(int argc, char** argv) {
  if (argc == 3) return esker::run(argv[1], argv[2]);
  std::cerr << "usage: group_blocks_mutant STORY END\n";
  return 2;
}
