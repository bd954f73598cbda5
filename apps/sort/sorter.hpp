// Words to sort, the program that sorts them, and what they must be afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "sort_task.hpp"

namespace sorting {

/// splitmix64: a hash of x, and a stream of random words over x = seed, seed + 1, ...
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

inline std::vector<std::uint32_t> make_words(std::uint32_t n, const std::string& keys, std::uint64_t seed) {
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

/// What words are, in whatever order: the sum and the exclusive or of a hash of each.
struct Contents {
  std::uint64_t sum = 0, exclusive = 0;
  bool operator==(const Contents&) const = default;
};
inline Contents contents_of(const std::vector<std::uint32_t>& words) {
  Contents contents;
  for (const std::uint32_t word : words) {
    const std::uint64_t hash = mix(word);
    contents.sum += hash;
    contents.exclusive ^= hash;
  }
  return contents;
}
/// Whether each word is at least the one before it, and the words are those that were given.
inline bool is_sorted(const std::vector<std::uint32_t>& words, const Contents& given) {
  return std::is_sorted(words.begin(), words.end()) && contents_of(words) == given;
}

/// The memory of n words on a device and what sorts them, any number of times.
class Sorter {
 public:
  Sorter(const esker::Device& device, std::uint32_t n, const esker::tasks::Options& options)
      : n_{n},
        memory_{device.memory<std::uint32_t>(
            2 * std::size_t{n} + (2 * Plan::tables(n) + Plan::chunk_places(n)) * kBuckets,
            {"words to sort, and starts of buckets", false})},
        plan_{device.memory<Plan>(1, {"where the words are"})},
        tasks_{device, options} {
    std::uint32_t* const starts = memory_.data() + 2 * std::size_t{n};
    std::uint32_t* const cursors = starts + Plan::tables(n) * kBuckets;
    const Plan plan{{memory_.data(), memory_.data() + n},
                    starts,
                    reinterpret_cast<esker::DeviceAtomic<std::uint32_t>*>(cursors),
                    cursors + Plan::tables(n) * kBuckets,
                    n};
    device.copy(plan_.data(), &plan, sizeof plan);
  }

  /// What run() sorts, on the device.
  std::uint32_t* words() { return memory_.data(); }
  void run() { tasks_.run(Sort::all(plan_.data(), n_)); }
  const esker::tasks::Report& report() const { return tasks_.report(); }
  std::size_t device_bytes() const { return memory_.size_bytes(); }

 private:
  const std::uint32_t n_;
  esker::DeviceArray<std::uint32_t> memory_;
  esker::DeviceArray<Plan> plan_;
  esker::tasks::ForkJoin<Sort> tasks_;
};

}  // namespace sorting
