// sort: 32-bit words in order (thesis, 4.5.1, by another method: see sort_task.hpp).
//
// Verified by what it must be: each word is at least the one before it, and the words are those that were
// given, by their number and by the sum and the exclusive or of a hash of each.
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "sort_task.hpp"

namespace {

/// splitmix64: a hash of x, and a stream of random words over x = seed, seed + 1, ...
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

std::vector<std::uint32_t> make_words(std::uint32_t n, const std::string& keys, std::uint64_t seed) {
  std::vector<std::uint32_t> words(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto random = static_cast<std::uint32_t>(mix(seed * 0x100000000u + i));
    if (keys == "uniform") words[i] = random;
    if (keys == "equal") words[i] = 0x1234567;
    if (keys == "sorted") words[i] = i;
    if (keys == "reversed") words[i] = n - i;
    // Most of them in few buckets, of all levels.
    if (keys == "skewed") words[i] = random >> (random % 32) | (random % 8 == 0 ? 0xffffff00u : 0);
  }
  return words;
}

struct Contents {
  std::uint64_t sum = 0, exclusive = 0;
  bool operator==(const Contents&) const = default;
};
Contents contents_of(const std::vector<std::uint32_t>& words) {
  Contents contents;
  for (const std::uint32_t word : words) {
    const std::uint64_t hash = mix(word);
    contents.sum += hash;
    contents.exclusive ^= hash;
  }
  return contents;
}

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t n = 0;
  std::string keys = "uniform";
  esker::CommandLine line("esker-sort", "Sorts 32-bit words, by tasks that a whole wave runs.");
  o.add_to(line);
  line.add("n", &n, "words; 0: as --size says")
      .add("keys", &keys, "what they are", {"uniform", "equal", "sorted", "reversed", "skewed"});
  const esker::Device device = o.parse(line, argc, argv);
  if (n > 1u << 31) harness::usage("--n is at most 2^31");
  if (n == 0) n = o.size == "small" ? 1'000'000 : o.size == "medium" ? 16'000'000 : 100'000'000;
  const auto count = static_cast<std::uint32_t>(n);
  const auto words = make_words(count, keys, o.seed);
  const Contents contents = contents_of(words);

  const std::size_t tables = sorting::Plan::tables(count), places = sorting::Plan::chunk_places(count);
  const auto memory = device.memory<std::uint32_t>(2 * n + (2 * tables + places) * sorting::kBuckets,
                                                   {"words to sort, and starts of buckets", false});
  const auto plan = device.memory<sorting::Plan>(1, {"where the words are"});
  std::uint32_t* const starts = memory.data() + 2 * n;
  std::uint32_t* const cursors = starts + tables * sorting::kBuckets;
  const sorting::Plan host_plan{{memory.data(), memory.data() + n},
                                starts,
                                reinterpret_cast<esker::DeviceAtomic<std::uint32_t>*>(cursors),
                                cursors + tables * sorting::kBuckets,
                                count};
  device.copy(plan.data(), &host_plan, sizeof host_plan);

  esker::tasks::ForkJoin<sorting::Sort> tasks(device, o.task_options());
  std::vector<std::uint32_t> sorted(n);
  const auto measured = task_apps::measure(
      o,
      [&] {
        device.copy(memory.data(), words.data(), n * sizeof(std::uint32_t));
        tasks.run(sorting::Sort::all(plan.data(), count));
        if (!o.verify) return true;
        device.copy(sorted.data(), memory.data(), n * sizeof(std::uint32_t));
        for (std::size_t i = 1; i < n; ++i) {
          if (sorted[i] < sorted[i - 1]) return false;
        }
        return contents_of(sorted) == contents;
      },
      [&]() -> const auto& { return tasks.report(); });
  return task_apps::finish(o, device, "sort", measured, static_cast<double>(n), "words",
                           {{"n", n}, {"keys", keys}, {"device_bytes", memory.size_bytes()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-sort", argc, argv, run); }
