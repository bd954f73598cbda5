// Sorting 32-bit words by tasks that a whole wave runs.
//
// A range is divided into 256 buckets by a byte of its words, the highest first, and each bucket is a range
// again. Ranges lie one after the other, so neighbouring buckets that are small together are one leaf, which
// a wave sorts in its scratchpad. A range of many words is divided by many waves: tasks count the words of
// chunks, a continuation makes the sums starts of buckets, tasks move the words of chunks, a continuation
// goes on with the buckets. Order within a bucket does not matter yet, so chunks take their places in it by
// atomics.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/lane.hpp>
#include <esker/tasks.hpp>

namespace sorting {

inline constexpr std::uint32_t kBuckets = 256, kLevels = 4;
inline constexpr std::uint32_t kLeafWords = 2048;        // that a wave sorts at once, a power of two
inline constexpr std::uint32_t kChunkWords = 32 * 1024;  // that a wave counts, or moves

/// Where the words are, and what is known of ranges that are being divided. In the device's memory.
struct Plan {
  std::uint32_t* words[2];  // ranges of level l are in words[l % 2]; what is sorted is in words[0]
  std::uint32_t* starts;    // kBuckets a table: of a range's buckets, from the range's start
  esker::DeviceAtomic<std::uint32_t>* cursors;  // kBuckets a table: counts, and then where the next word goes
  std::uint32_t* counts;                        // kBuckets a chunk
  std::uint32_t n;

  // Tables: one for level 0, one a bucket of it, and one for as many ranges as can be larger than a leaf; of
  // level 3, where buckets are sorted, for those larger than a chunk. Two such ranges start in different
  // pieces of that size.
  ESKER_HD static std::uint32_t table_of(std::uint32_t level, std::uint32_t bucket, std::uint32_t first,
                                         std::uint32_t n) {
    if (level == 1) return 1 + bucket;
    if (level == 2) return 1 + kBuckets + first / kLeafWords;
    return 1 + kBuckets + n / kLeafWords + 1 + first / kChunkWords;
  }
  static std::size_t tables(std::uint32_t n) {
    return 1 + kBuckets + n / kLeafWords + 1 + n / kChunkWords + 1;
  }
  static std::size_t chunk_places(std::uint32_t n) { return std::size_t{2} * (n / kChunkWords + 1); }
};

struct Sort {
  enum Step : std::uint16_t { kRange, kCount, kMove, kDivided };
  using Result = void;
  static constexpr bool kJoins = true, kWholeWave = true;
  static constexpr int kMaxSpawns = 4;
  union Scratch {
    esker::GroupAtomic<std::uint32_t> counts[kBuckets];
    std::uint32_t words[kLeafWords];
  };
  static constexpr std::size_t kScratchBytes = sizeof(Scratch);

  const Plan* plan;
  std::uint32_t first, n;  // the range
  std::uint32_t table;
  std::uint32_t from, to;  // the range's chunks (kCount, kMove) or buckets (kDivided) that this task is for
  Step step;
  std::uint16_t level;  // bytes in which the range's words are equal

  ESKER_HD static Sort all(const Plan* plan, std::uint32_t n) { return {plan, 0, n, 0, 0, 0, kRange, 0}; }

  ESKER_HD void operator()(auto& task) const {
    if (step == kRange) return sort(task);
    if (step == kDivided) return sort_buckets(task);
    if (to - from > 1) return split(task);
    if (step == kCount) return count_chunk(task);
    move_chunk(task);
  }

 private:
  template <class Task>
  static constexpr bool kIsAlone = std::remove_reference_t<Task>::kLanes == 1;

  ESKER_HD const std::uint32_t* source() const { return plan->words[level % 2] + first; }
  ESKER_HD std::uint32_t* target() const { return plan->words[(level + 1) % 2] + first; }
  ESKER_HD std::uint32_t bucket_of(std::uint32_t word) const {
    return word >> (24 - 8 * level) & (kBuckets - 1);
  }
  ESKER_HD std::uint32_t chunks() const { return (n + kChunkWords - 1) / kChunkWords; }
  ESKER_HD Sort part(Step next, std::uint32_t begin, std::uint32_t end) const {
    return {plan, first, n, table, begin, end, next, level};
  }
  /// Into kMaxSpawns parts, or one each.
  ESKER_HD void split(auto& task) const {
    const std::uint32_t all = to - from, parts = all < kMaxSpawns ? all : kMaxSpawns;
    for (std::uint32_t p = 0; p < parts; ++p)
      task.spawn(part(step, from + all * p / parts, from + all * (p + 1) / parts));
  }

  ESKER_HD void sort(auto& task) const {
    if (n <= kLeafWords) return sort_leaf(task);
    if (n <= kChunkWords) return divide_alone(task);
    task.for_each(kBuckets, [&](std::uint32_t b) { cursor(b).store_relaxed(0); });
    task.spawn(part(kCount, 0, chunks())).then([range = *this](auto& counted) {
      range.sum_up(
          counted, [&](std::uint32_t b) { return range.cursor(b).load_relaxed(); },
          [&](std::uint32_t b, std::uint32_t start) {
            range.cursor(b).store_relaxed(start);
            range.start(b) = start;
          });
      counted.spawn(range.part(kMove, 0, range.chunks())).then([range](auto& moved) {
        if (range.level + 1u < kLevels) moved.spawn(range.part(kDivided, 0, kBuckets));
      });
    });
  }

  /// One wave counts and moves all of the range.
  ESKER_HD void divide_alone(auto& task) const {
    Scratch& scratch = task.template scratch<Scratch>();
    count(task, scratch, source(), n);
    sum_up(
        task, [&](std::uint32_t b) { return scratch.counts[b].load_relaxed(); },
        [&](std::uint32_t b, std::uint32_t start_of_b) {
          scratch.counts[b].store_relaxed(start_of_b);
          if (level + 1u < kLevels) start(b) = start_of_b;
        });
    task.sync();
    move(task, scratch, source(), n);
    if (level + 1u < kLevels) task.spawn(part(kDivided, 0, kBuckets));
  }

  ESKER_HD void count_chunk(auto& task) const {
    Scratch& scratch = task.template scratch<Scratch>();
    count(task, scratch, source() + from * kChunkWords, words_of_chunk());
    task.for_each(kBuckets, [&](std::uint32_t b) {
      const std::uint32_t count = scratch.counts[b].load_relaxed();
      counts()[b] = count;
      if (count != 0) (void)cursor(b).fetch_add_relaxed(count);
    });
  }
  ESKER_HD void move_chunk(auto& task) const {
    Scratch& scratch = task.template scratch<Scratch>();
    task.for_each(kBuckets, [&](std::uint32_t b) {
      const std::uint32_t count = counts()[b];
      scratch.counts[b].store_relaxed(count == 0 ? 0 : cursor(b).fetch_add_relaxed(count));
    });
    task.sync();
    move(task, scratch, source() + from * kChunkWords, words_of_chunk());
  }

  ESKER_HD void sort_buckets(auto& task) const {
    const std::uint32_t begin = start(from), end = to == kBuckets ? n : start(to);
    if (begin == end) return;
    const auto below = static_cast<std::uint16_t>(level + 1);
    const std::uint32_t at = first + begin;
    const Sort range{plan, at, end - begin, Plan::table_of(below, from, at, plan->n), 0, 0, kRange, below};
    if (range.n <= kLeafWords) return range.sort_leaf(task);
    if (to - from > 1) return split(task);
    range.sort(task);
  }

  // --- What waves do with words.

  ESKER_HD std::uint32_t& start(std::uint32_t bucket) const {
    return plan->starts[table * kBuckets + bucket];
  }
  ESKER_HD esker::DeviceAtomic<std::uint32_t>& cursor(std::uint32_t bucket) const {
    return plan->cursors[table * kBuckets + bucket];
  }
  ESKER_HD std::uint32_t words_of_chunk() const {
    const std::uint32_t left = n - from * kChunkWords;
    return left < kChunkWords ? left : kChunkWords;
  }
  /// Of this chunk. A piece of kChunkWords has at most one chunk that starts a range, and one that does not:
  /// a range that is divided into chunks is larger than one.
  ESKER_HD std::uint32_t* counts() const {
    const std::uint32_t piece = (first + from * kChunkWords) / kChunkWords;
    return plan->counts + (2 * piece + (from == 0 ? 0 : 1)) * std::size_t{kBuckets};
  }

  /// function(word) for each, with many words of a lane under way at a time.
  ESKER_HD static void for_words(auto& task, const std::uint32_t* words, std::uint32_t count,
                                 auto&& function) {
    constexpr std::uint32_t kLanes = std::remove_reference_t<decltype(task)>::kLanes, kTogether = 16;
    std::uint32_t i = task.lane();
    for (; i + (kTogether - 1) * kLanes < count; i += kTogether * kLanes) {
      std::uint32_t some[kTogether];
      for (std::uint32_t u = 0; u < kTogether; ++u) some[u] = words[i + u * kLanes];
      for (std::uint32_t u = 0; u < kTogether; ++u) function(some[u]);
    }
    for (; i < count; i += kLanes) function(words[i]);
  }
  /// Adds 1, and returns what was there.
  template <class Task>
  ESKER_HD static std::uint32_t next(esker::GroupAtomic<std::uint32_t>& word) {
    if constexpr (kIsAlone<Task>) {
      const std::uint32_t before = word.load_relaxed();
      word.store_relaxed(before + 1);
      return before;
    } else {
      return word.fetch_add_relaxed(1);
    }
  }
  template <class Task>
  ESKER_HD void count(Task& task, Scratch& scratch, const std::uint32_t* words, std::uint32_t some) const {
    task.for_each(kBuckets, [&](std::uint32_t b) { scratch.counts[b].store_relaxed(0); });
    task.sync();
    for_words(task, words, some,
              [&](std::uint32_t word) { (void)next<Task>(scratch.counts[bucket_of(word)]); });
    task.sync();
  }
  template <class Task>
  ESKER_HD void move(Task& task, Scratch& scratch, const std::uint32_t* words, std::uint32_t some) const {
    std::uint32_t* const to_words = target();
    for_words(task, words, some,
              [&](std::uint32_t word) { to_words[next<Task>(scratch.counts[bucket_of(word)])] = word; });
  }
  /// write(b, sum of read() over the buckets below b).
  ESKER_HD static void sum_up(auto& task, auto&& read, auto&& write) {
    std::uint32_t before = 0;
    for (std::uint32_t b = task.lane(); b < kBuckets; b += task.kLanes) {
      const std::uint32_t value = read(b);
      write(b, before + task.wave().prefix_sum(value));
      before += task.wave().reduce(value, esker::Sum{});
    }
  }

  /// Sorts up to kLeafWords, wherever they are, into words[0].
  template <class Task>
  ESKER_HD void sort_leaf(Task& task) const {
    std::uint32_t* const out = plan->words[0] + first;
    if constexpr (kIsAlone<Task>) {
      if (level % 2 != 0) std::copy(source(), source() + n, out);
      std::sort(out, out + n);
    } else {
      std::uint32_t* const words = task.template scratch<Scratch>().words;
      std::uint32_t size = 2;
      while (size < n) size *= 2;
      const std::uint32_t* const in = source();
      task.for_each(size, [&](std::uint32_t i) { words[i] = i < n ? in[i] : ~0u; });
      task.sync();
      for (std::uint32_t run = 2; run <= size; run *= 2) {
        for (std::uint32_t apart = run / 2; apart > 0; apart /= 2) {
          exchange(task, words, size / 2, run, apart);
          task.sync();
        }
      }
      task.for_each(n, [&](std::uint32_t i) { out[i] = words[i]; });
    }
  }
  /// One step of a bitonic sort.
  template <class Task>
  ESKER_HD static void exchange(Task& task, std::uint32_t* words, std::uint32_t pairs, std::uint32_t run,
                                std::uint32_t apart) {
    constexpr std::uint32_t kLanes = Task::kLanes, kTogether = 8;
    for (std::uint32_t t = task.lane(); t < pairs; t += kTogether * kLanes) {
      std::uint32_t at[kTogether], a[kTogether], b[kTogether];
      for (std::uint32_t u = 0; u < kTogether; ++u) {
        const std::uint32_t pair = t + u * kLanes;
        at[u] = 2 * pair - (pair & (apart - 1));
        if (pair >= pairs) continue;
        a[u] = words[at[u]];
        b[u] = words[at[u] + apart];
      }
      for (std::uint32_t u = 0; u < kTogether; ++u) {
        if (t + u * kLanes >= pairs) continue;
        const std::uint32_t low = a[u] < b[u] ? a[u] : b[u], high = a[u] < b[u] ? b[u] : a[u];
        const bool goes_up = (at[u] & run) == 0;
        words[at[u]] = goes_up ? low : high;
        words[at[u] + apart] = goes_up ? high : low;
      }
    }
  }
};

}  // namespace sorting
