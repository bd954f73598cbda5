// Requests and what their replies must be, as collective checks.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <esker/runtime.hpp>

#include "../device/gtest.hpp"
#include "updates.hpp"

namespace esker::testing {

inline constexpr std::uint64_t kRequests = kSimulated ? 80 : kUpdates;  // of each PE, in each check

/// Collective. Each lane gets a random word of a random PE.
template <class T>
void check_gets(Runtime& rt, const std::string& what) {
  const std::uint64_t stream = seed() + std::hash<std::string>{}(what);
  const auto source = rt.heap().allocate<T>(kRequests);
  const auto results = rt.heap().allocate<T>(kRequests);
  std::vector<T> mine;
  for (std::uint64_t k = 0; k < kRequests; ++k) mine.push_back(value_put<T>(stream, rt.pe(), k));
  rt.heap().write(source, 0, std::span<const T>(mine));
  rt.barrier_all();
  rt.launch(
      kRequests,
      [=] ESKER_LAMBDA(WorkItem item) {
        const std::uint64_t k = item.global_id();
        const Draw d = draw(stream, item.pe(), k, item.n_pes(), kRequests);
        shmem_get(item, &results[k], &source[d.index], d.pe);
      },
      "gets");
  rt.quiet();
  const std::vector<T> got = rt.heap().read(results);
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 0; k < kRequests; ++k) {
    const Draw d = draw(stream, rt.pe(), k, rt.n_pes(), kRequests);
    const T expected = value_put<T>(stream, d.pe, d.index);
    wrong += std::memcmp(&got[k], &expected, sizeof expected) != 0 ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << what << " on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(results);
  rt.heap().free(source);
}

enum class Fetch { kInc, kAdd, kAnd, kOr, kXor, kSwap };

/// Requests to one word, and the order in which they can have been applied: what each brings back says how
/// many came before it (of a swap: which one did).
template <class T>
struct Fetches {
  static constexpr std::uint64_t kWords = 3;
  static constexpr std::uint64_t kBits = sizeof(T) * 8;
  static constexpr std::uint64_t kStep = 3;

  Fetch fetch;
  std::uint64_t stream;
  std::uint64_t lanes;  // of all PEs
  SymmetricArray<T> targets;
  SymmetricArray<T> results;
  SymmetricArray<std::uint32_t> seen;  // of each target, how often a reply said so many

  struct Aim {
    std::uint32_t pe;
    std::uint64_t word;
    std::uint64_t bit;  // where each lane has a bit of its own
  };
  ESKER_HD bool is_by_bits() const {
    return fetch == Fetch::kAnd || fetch == Fetch::kOr || fetch == Fetch::kXor;
  }
  ESKER_HD std::uint64_t words() const { return is_by_bits() ? lanes / kBits + 1 : kWords; }
  ESKER_HD Aim aim(std::uint32_t pe, std::uint64_t k, std::uint32_t n_pes) const {
    if (is_by_bits()) {
      const std::uint64_t id = pe * kRequests + k;
      return {static_cast<std::uint32_t>(id / kBits % n_pes), id / kBits, id % kBits};
    }
    const Draw d = draw(stream, pe, k, n_pes, kWords);
    return {d.pe, d.index, 0};
  }
  ESKER_HD static T id(std::uint32_t pe, std::uint64_t k) { return static_cast<T>(1 + pe * kRequests + k); }
  ESKER_HD static std::uint64_t ones(T value) {
    std::uint64_t count = 0;
    for (auto rest = static_cast<std::make_unsigned_t<T>>(value); rest != 0; rest &= rest - 1) ++count;
    return count;
  }

  template <class Item>
  ESKER_HD void ask(Item&& item) const {
    const std::uint64_t k = item.global_id();
    const Aim a = aim(item.pe(), k, item.n_pes());
    T* const result = &results[k];
    T* const target = &targets[a.word];
    const T bit = static_cast<T>(T{1} << a.bit);
    if (fetch == Fetch::kInc) shmem_fetch_inc(item, result, target, a.pe);
    if (fetch == Fetch::kAdd) shmem_fetch_add(item, result, target, kStep, a.pe);
    if (fetch == Fetch::kAnd) shmem_fetch_and(item, result, target, static_cast<T>(~bit), a.pe);
    if (fetch == Fetch::kOr) shmem_fetch_or(item, result, target, bit, a.pe);
    if (fetch == Fetch::kXor) shmem_fetch_xor(item, result, target, bit, a.pe);
    if (fetch == Fetch::kSwap) shmem_swap(item, result, target, id(item.pe(), k), a.pe);
  }
  ESKER_HD std::uint64_t place(T result) const {
    if (fetch == Fetch::kAdd) return static_cast<std::uint64_t>(result) / kStep;
    if (fetch == Fetch::kAnd) return kBits - ones(result);
    if (is_by_bits()) return ones(result);
    return static_cast<std::uint64_t>(result);
  }
  /// Where `seen` counts that.
  ESKER_HD std::uint32_t* count(std::uint64_t word, std::uint64_t place) const {
    const std::uint64_t most = is_by_bits() ? kBits + 1 : lanes + 1;
    return &seen[word * most + (place < most ? place : most - 1)];
  }
};

/// Collective.
template <class T>
void check_fetches(Runtime& rt, const std::string& what, Fetch fetch) {
  Fetches<T> f{fetch, seed() + std::hash<std::string>{}(what), kRequests * rt.n_pes(), {}, {}, {}};
  const std::uint64_t words = f.words(), places = f.is_by_bits() ? f.kBits + 1 : f.lanes + 1;
  f.targets = rt.heap().allocate<T>(words);
  f.results = rt.heap().allocate<T>(kRequests);
  f.seen = rt.heap().allocate<std::uint32_t>(words * places);
  const std::vector<T> initial(words, fetch == Fetch::kAnd ? static_cast<T>(-1) : T{0});
  rt.heap().write(f.targets, 0, std::span<const T>(initial));
  rt.barrier_all();
  rt.launch(
      kRequests, [=] ESKER_LAMBDA(WorkItem item) { f.ask(item); }, "fetches");
  rt.quiet();
  rt.launch(
      kRequests,
      [=] ESKER_LAMBDA(WorkItem item) {
        const std::uint64_t k = item.global_id();
        const auto a = f.aim(item.pe(), k, item.n_pes());
        shmem_inc(item, f.count(a.word, f.place(f.results[k])), a.pe);
      },
      "counts");
  rt.barrier_all();
  std::vector<std::uint64_t> asked(words);
  std::vector<std::uint32_t> expected(words * places);
  const std::vector<T> last = rt.heap().read(f.targets);
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t k = 0; k < kRequests; ++k) {
      const auto a = f.aim(pe, k, rt.n_pes());
      if (a.pe != rt.pe()) continue;
      ++asked[a.word];
      if (fetch == Fetch::kSwap) ++expected[a.word * places + static_cast<std::size_t>(f.id(pe, k))];
    }
  }
  for (std::uint64_t word = 0; word < words; ++word) {
    if (fetch == Fetch::kSwap) {
      if (asked[word] == 0) continue;
      ++expected[word * places];                        // the first of all found 0,
      --expected[word * places + f.place(last[word])];  // and the last one's value is still there
    } else {
      EXPECT_EQ(f.place(last[word]), asked[word]) << what;
      for (std::uint64_t before = 0; before < asked[word]; ++before) expected[word * places + before] = 1;
    }
  }
  EXPECT_EQ(rt.heap().read(f.seen), expected) << what << " on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(f.seen);
  rt.heap().free(f.results);
  rt.heap().free(f.targets);
}

template <class T>
void check_all_fetches(Runtime& rt, const std::string& type) {
  check_fetches<T>(rt, "fetch inc " + type, Fetch::kInc);
  check_fetches<T>(rt, "fetch add " + type, Fetch::kAdd);
  check_fetches<T>(rt, "fetch and " + type, Fetch::kAnd);
  check_fetches<T>(rt, "fetch or " + type, Fetch::kOr);
  check_fetches<T>(rt, "fetch xor " + type, Fetch::kXor);
  check_fetches<T>(rt, "swap " + type, Fetch::kSwap);
}

/// Collective. Of all that find 0 in a word one is the first, and the rest hear of that one.
template <class T>
void check_compare_swaps(Runtime& rt) {
  constexpr std::uint64_t kWords = 5;
  const auto words = rt.heap().allocate<T>(kWords);
  const auto results = rt.heap().allocate<T>(kRequests);
  const auto last = rt.heap().allocate<T>(kRequests);
  const auto firsts = rt.heap().allocate<std::uint32_t>(kWords);
  const auto aim = [] ESKER_LAMBDA(std::uint32_t pe, std::uint64_t k, std::uint32_t n_pes) {
    return draw(1, pe, k, n_pes, kWords);
  };
  rt.launch(
      kRequests,
      [=] ESKER_LAMBDA(WorkItem item) {
        const std::uint64_t k = item.global_id();
        const Draw d = aim(item.pe(), k, item.n_pes());
        shmem_compare_swap(item, &results[k], &words[d.index], T{0}, Fetches<T>::id(item.pe(), k), d.pe);
      },
      "compare and swap");
  rt.barrier_all();
  rt.launch(
      kRequests,
      [=] ESKER_LAMBDA(WorkItem item) {
        const std::uint64_t k = item.global_id();
        const Draw d = aim(item.pe(), k, item.n_pes());
        shmem_get(item, &last[k], &words[d.index], d.pe);
        if (results[k] == T{0}) shmem_inc(item, &firsts[d.index], d.pe);
      },
      "who was first");
  rt.barrier_all();
  const std::vector<T> got = rt.heap().read(results), now = rt.heap().read(last);
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 0; k < kRequests; ++k)
    wrong += (got[k] == T{0} ? Fetches<T>::id(rt.pe(), k) : got[k]) != now[k] ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  for (const std::uint32_t count : rt.heap().read(firsts)) EXPECT_EQ(count, 1u);
  rt.barrier_all();
  rt.heap().free(firsts);
  rt.heap().free(last);
  rt.heap().free(results);
  rt.heap().free(words);
}

template <class T>
struct Arrived {
  T value;
  std::uint32_t lane;
  std::uint8_t again;
};

struct Heard {
  std::uint32_t calls;
  std::uint32_t wrong;
};

/// Collective. A handler runs where the lane is, once, with the value and what the lane sent along.
template <class T>
void check_continuations(Runtime& rt, const std::string& what) {
  const std::uint64_t stream = seed() + std::hash<std::string>{}(what);
  const auto source = rt.heap().allocate<T>(kRequests);
  const auto heard = rt.heap().allocate<Heard>(kRequests);
  std::vector<T> mine;
  for (std::uint64_t k = 0; k < kRequests; ++k) mine.push_back(value_put<T>(stream, rt.pe(), k));
  rt.heap().write(source, 0, std::span<const T>(mine));
  const std::uint32_t n_pes = rt.n_pes();
  const auto handler = rt.register_handler<Heard, Arrived<T>>(
      what, [=] ESKER_LAMBDA(HandlerContext & context, Heard & at, const Arrived<T>& arrived) {
        const Draw d = draw(stream, context.pe(), arrived.lane, n_pes, kRequests);
        const T expected = value_put<T>(stream, d.pe, d.index);
        const auto* const a = reinterpret_cast<const unsigned char*>(&expected);
        const auto* const b = reinterpret_cast<const unsigned char*>(&arrived.value);
        bool same = arrived.again == arrived.lane % 200 && &at == &heard[arrived.lane];
        for (std::size_t i = 0; i < sizeof(T); ++i) same = same && a[i] == b[i];
        ++at.calls;
        at.wrong += same ? 0 : 1;
      });
  rt.barrier_all();
  rt.launch(kRequests, [=] ESKER_LAMBDA(WorkItem item) {
    const auto k = static_cast<std::uint32_t>(item.global_id());
    const Draw d = draw(stream, item.pe(), k, item.n_pes(), kRequests);
    shmem_get(item, then(handler, &heard[k], {T{}, k, static_cast<std::uint8_t>(k % 200)}), &source[d.index],
              d.pe);
  });
  rt.barrier_all();
  std::uint64_t wrong = 0;
  for (const Heard& at : rt.heap().read(heard)) wrong += at.calls == 1 && at.wrong == 0 ? 0 : 1;
  EXPECT_EQ(wrong, 0u) << what << " on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(heard);
  rt.heap().free(source);
}

struct Try {
  std::uint64_t value;  // that the word held
  std::uint64_t expected;
  std::uint32_t pe;
};

/// Collective. Adds by compare and swap, again and again until nobody has come in between.
inline void check_compare_swap_loops(Runtime& rt) {
  constexpr std::uint64_t kLanes = 60;
  const auto word = rt.heap().allocate<std::uint64_t>(1);
  const auto done = rt.heap().allocate<std::uint64_t>(1);
  const auto handler = rt.register_handler<std::uint64_t, Try>(
      "try again", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & count, const Try& tried,
                                    Handler<std::uint64_t, Try> self) {
        if (tried.value == tried.expected) {
          ++count;
          return;
        }
        shmem_compare_swap(context, then(self, &count, {0, tried.value, tried.pe}), &word[0], tried.value,
                           tried.value + 1, tried.pe);
      });
  rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
    const auto pe = static_cast<std::uint32_t>(item.global_id() % item.n_pes());
    shmem_compare_swap(item, then(handler, &done[0], {0, 0, pe}), &word[0], 0, 1, pe);
  });
  rt.barrier_all();
  const std::uint64_t a_pe = (kLanes + rt.n_pes() - 1 - rt.pe()) / rt.n_pes();
  EXPECT_EQ(rt.heap().read(word)[0], a_pe * rt.n_pes());
  EXPECT_EQ(rt.heap().read(done)[0], kLanes);
  rt.barrier_all();
  rt.heap().free(done);
  rt.heap().free(word);
}

}  // namespace esker::testing
