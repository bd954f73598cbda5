// A sample sort with exact splitters, as in Cheng, Shah, Gilbert and Edelman, "A Novel Parallel Sorting
// Algorithm for Contemporary Architectures" (2007): local sort, bisection for the keys at the boundaries, one
// all-to-all, a merge of as many runs as there are PEs.
#include <fmt/format.h>

#include <algorithm>
#include <boost/sort/pdqsort/pdqsort.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <esker/runtime/collective_calls.hpp>
#include <esker/runtime/data_collectives.hpp>
#include <esker/runtime/impl.hpp>

namespace esker {
namespace {

using Kind = detail::KeyKind;
constexpr Collective kCall = Collective::kSort;
__extension__ using Key128 = unsigned __int128;

/// Keys as unsigned numbers of the same order, and back.
template <class Key>
class Order {
 public:
  explicit Order(Kind kind)
      : kind_{kind},
        bits_{static_cast<Key>(~Key{0})},
        sign_{static_cast<Key>(Key{1} << (sizeof(Key) * 8 - 1))} {
    if constexpr (sizeof(Key) == sizeof(Key128)) {
      if (kind != Kind::kExtended) return;
      sign_ = Key{1} << 79;
      bits_ = (Key{1} << 80) - 1;
    }
  }
  bool changes_keys() const { return kind_ != Kind::kUnsigned; }
  Key number(Key key) const { return turned(key, (key & sign_) != 0); }
  Key key(Key number) const { return turned(number, (number & sign_) == 0); }

 private:
  Key turned(Key key, bool is_negative) const {
    const bool all_bits = is_negative && kind_ != Kind::kSigned;
    return static_cast<Key>((all_bits ? ~key : key ^ sign_) & bits_);
  }

  const Kind kind_;
  Key bits_;  // those that count
  Key sign_;
};

template <class Key>
constexpr detail::ElementType key_type() {
  return {sizeof(Key), "keys"};
}

template <class Key>
class Sort {
 public:
  Sort(DataCollectives& collectives, Kind kind) : collectives_{collectives}, order_{kind} {}

  void run(Key* keys, std::uint64_t n, const detail::Destination& into) {
    for (std::uint64_t i = 0; order_.changes_keys() && i < n; ++i) keys[i] = order_.number(keys[i]);
    boost::sort::pdqsort_branchless(keys, keys + n, std::less<Key>{});
    if (n_pes() > 1) {
      const std::vector<std::uint64_t> counts = divide(keys, n);
      std::unique_ptr<Key[]> received;
      const detail::Destination to_buffer{&received, [](void* object, std::uint64_t size) -> void* {
                                            auto& buffer = *static_cast<std::unique_ptr<Key[]>*>(object);
                                            buffer.reset(new Key[size]);
                                            return buffer.get();
                                          }};
      const std::vector<std::uint64_t> runs =
          collectives_.all_to_all(kCall, key_type<Key>(), keys, n, counts, to_buffer);
      n = 0;
      for (const std::uint64_t run : runs) n += run;
      keys = static_cast<Key*>(into.resize(into.object, n));
      merge(received.get(), keys, runs);
    }
    for (std::uint64_t i = 0; order_.changes_keys() && i < n; ++i) keys[i] = order_.key(keys[i]);
  }

 private:
  struct Span {  // of one PE's keys
    std::uint64_t n = 0;
    Key least = std::numeric_limits<Key>::max();
    Key greatest = 0;
  };

  std::uint32_t n_pes() const { return collectives_.job().n_pes; }

  template <class T, class Function>
  void reduce(std::vector<T>& values, const Function& function) {
    collectives_.reduce(kCall, detail::element_type<T>(), detail::combiner_of<T>(function), values.data(),
                        values.size(), std::nullopt);
  }

  /// How many of this PE's keys go to each PE: what stands between the boundaries, which are at ranks
  /// k * N / n_pes of all keys.
  std::vector<std::uint64_t> divide(const Key* keys, std::uint64_t n) {
    std::vector<Span> all(n_pes());
    Span mine;
    mine.n = n;
    if (n > 0) {
      mine.least = keys[0];
      mine.greatest = keys[n - 1];
    }
    collectives_.gather(kCall, {sizeof(Span), "spans"}, &mine, 1, all.data(), all.size(), std::nullopt);
    Span total;
    for (const Span& span : all) {
      total.n += span.n;
      total.least = std::min(total.least, span.least);
      total.greatest = std::max(total.greatest, span.greatest);
    }
    if (total.n == 0) return std::vector<std::uint64_t>(n_pes());
    std::vector<std::uint64_t> ranks;
    for (std::uint64_t k = 1; k < n_pes(); ++k) ranks.push_back(rank_of_boundary(k, total.n));
    const std::vector<Key> splitters = find_splitters(keys, n, ranks, total);
    std::vector<std::uint64_t> cuts = cut(keys, n, ranks, splitters);
    cuts.push_back(n);
    for (std::size_t pe = cuts.size() - 1; pe > 0; --pe) cuts[pe] -= cuts[pe - 1];
    return cuts;
  }

  std::uint64_t rank_of_boundary(std::uint64_t k, std::uint64_t total) const {
    return static_cast<std::uint64_t>(Key128{k} * total / n_pes());
  }

  /// For each rank the greatest key that no more than so many keys of all PEs are less than. All PEs bisect
  /// alike; keys have as many bits as there are rounds.
  std::vector<Key> find_splitters(const Key* keys, std::uint64_t n, const std::vector<std::uint64_t>& ranks,
                                  const Span& total) {
    std::vector<Key> low(ranks.size(), total.least);
    std::vector<Key> high(ranks.size(), total.greatest);
    std::vector<Key> middle(ranks.size());
    std::vector<std::uint64_t> less(ranks.size());
    while (low != high) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const Key half = static_cast<Key>((high[i] - low[i]) / 2);
        middle[i] = static_cast<Key>(low[i] + half + static_cast<Key>((high[i] - low[i]) % 2));
        less[i] = static_cast<std::uint64_t>(std::lower_bound(keys, keys + n, middle[i]) - keys);
      }
      reduce(less, std::plus<>{});
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (low[i] == high[i]) continue;
        if (less[i] <= ranks[i]) low[i] = middle[i];
        if (less[i] == ranks[i]) high[i] = middle[i];  // the boundary is between two keys
        if (less[i] > ranks[i]) high[i] = static_cast<Key>(middle[i] - 1);
      }
    }
    return low;
  }

  /// Where this PE's keys are cut. Of keys that equal a splitter the first PEs give theirs to the left, as
  /// many as are missing there.
  std::vector<std::uint64_t> cut(const Key* keys, std::uint64_t n, const std::vector<std::uint64_t>& ranks,
                                 const std::vector<Key>& splitters) {
    std::vector<std::uint64_t> cuts, equal;
    for (const Key& splitter : splitters) {
      const auto [first, last] = std::equal_range(keys, keys + n, splitter);
      cuts.push_back(static_cast<std::uint64_t>(first - keys));
      equal.push_back(static_cast<std::uint64_t>(last - first));
    }
    std::vector<std::uint64_t> less = cuts;
    std::vector<std::uint64_t> equal_before = equal;
    reduce(less, std::plus<>{});
    const std::uint64_t none = 0;
    const std::plus<> plus;
    collectives_.scan(kCall, detail::element_type<std::uint64_t>(), detail::combiner_of<std::uint64_t>(plus),
                      equal_before.data(), equal_before.size(), &none);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::uint64_t to_left = ranks[i] - less[i];
      const std::uint64_t left_of_others = std::min(to_left, equal_before[i]);
      cuts[i] += std::min(equal[i], to_left - left_of_others);
    }
    return cuts;
  }

  /// Neighbours in pairs, until there is one run, which is in `to`.
  void merge(Key* from, Key* to, const std::vector<std::uint64_t>& runs) {
    Key* const result = to;
    std::vector<std::uint64_t> ends;
    for (const std::uint64_t run : runs) {
      if (run > 0) ends.push_back((ends.empty() ? 0 : ends.back()) + run);
    }
    if (ends.empty()) return;
    while (ends.size() > 1) {
      std::vector<std::uint64_t> merged;
      for (std::size_t i = 0; i < ends.size(); i += 2) {
        const std::uint64_t first = i == 0 ? 0 : ends[i - 1];
        const std::uint64_t last = ends[std::min(i + 1, ends.size() - 1)];
        std::merge(from + first, from + ends[i], from + ends[i], from + last, to + first);
        merged.push_back(last);
      }
      ends = std::move(merged);
      std::swap(from, to);
    }
    if (from != result) std::copy(from, from + ends[0], result);
  }

  DataCollectives& collectives_;
  const Order<Key> order_;
};

/// Keys of this many bytes. A copy onto themselves makes them objects of the other type, and costs nothing.
template <class Key>
void sort_as(DataCollectives& collectives, Kind kind, void* keys, std::uint64_t n,
             const detail::Destination& into) {
  if (n > 0) std::memmove(keys, keys, n * sizeof(Key));
  Sort<Key>(collectives, kind).run(static_cast<Key*>(keys), n, into);
}

}  // namespace

void detail::CollectiveCalls::sort(Runtime& rt, const ElementType& type, KeyKind kind, void* keys,
                                   std::uint64_t n, const Destination& into) {
  DataCollectives& collectives = rt.impl_->data();
  const CurrentCall::Scope scope(collectives.call(), to_string(kCall));
  collectives.agree({kCall, type});
  collectives.together(kCall, [&] {
    switch (type.bytes) {
      case 1:
        return sort_as<std::uint8_t>(collectives, kind, keys, n, into);
      case 2:
        return sort_as<std::uint16_t>(collectives, kind, keys, n, into);
      case 4:
        return sort_as<std::uint32_t>(collectives, kind, keys, n, into);
      case 8:
        return sort_as<std::uint64_t>(collectives, kind, keys, n, into);
      default:
        return sort_as<Key128>(collectives, kind, keys, n, into);
    }
  });
}

}  // namespace esker
