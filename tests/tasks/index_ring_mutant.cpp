// Sends elements through a channel's two rings with one end of one release/acquire pair weakened.
//
//     index_ring_mutant channel none|fill-release|fill-acquire|reuse-release|reuse-acquire
//
// Always built with ThreadSanitizer: the machine that runs the tests may order more than the language
// promises, so a weakened ring would deliver there, but a missing happens-before edge is a race report in
// every run. Nothing but the rings may order the two threads, so they share nothing else. The order of a
// ring's other operations is relaxed already; their steps are the business of scripts/model/index_ring.pml.
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <esker/device/lane_group.hpp>
#include <esker/tasks/index_ring.hpp>
#include <esker/tests/queue/weakened_atomic.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kElements = 2;
constexpr std::uint64_t kMessages = 100;

using Ring = tasks::detail::IndexRing<Scope::kSystem, WeakenedAtomic<std::uint64_t>>;

struct alignas(kLineBytes) Line {
  std::uint64_t words[kLineBytes / 8] = {};
};

std::uint32_t pop(const Ring& ring) {
  LoneLane alone;
  std::uint32_t number = 0;
  while (!ring.try_pop(alone, number)) std::this_thread::yield();
  return number;
}
void push(const Ring& ring, std::uint32_t number) {
  LoneLane alone;
  ring.push(alone, number);
}

/// False: an element was wrong.
bool exchange() {
  std::vector<Line> memory(2 * Ring::storage_bytes(kElements) / sizeof(Line) + 2);
  const Ring available(&memory[0], kElements);
  const Ring published(&memory[memory.size() / 2], kElements);
  std::uint64_t elements[kElements] = {};
  for (std::uint32_t e = 0; e < kElements; ++e) push(available, e);
  bool right = true;
  std::jthread producer([&] {
    is_producer = true;
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const std::uint32_t element = pop(available);
      elements[element] = i;
      push(published, element);
    }
  });
  std::jthread consumer([&] {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const std::uint32_t element = pop(published);
      right &= elements[element] == i;
      push(available, element);
    }
  });
  producer.join();
  consumer.join();
  return right;
}

int run(const std::string& rings, const std::string& end) {
  static const std::map<std::string, End> kEnds = {{"none", End::kNone},
                                                   {"fill-release", End::kFillRelease},
                                                   {"fill-acquire", End::kFillAcquire},
                                                   {"reuse-release", End::kReuseRelease},
                                                   {"reuse-acquire", End::kReuseAcquire}};
  if (rings != "channel" || !kEnds.contains(end)) {
    std::cerr << "index_ring_mutant: no rings '" << rings << "' or no end '" << end << "'\n";
    return 2;
  }
  weakened_end = kEnds.at(end);
  return exchange() ? 0 : 1;
}

}  // namespace
}  // namespace esker

int main(int argc, char** argv) {
  if (argc == 3) return esker::run(argv[1], argv[2]);
  std::cerr << "usage: index_ring_mutant channel END\n";
  return 2;
}
