// What lanes can do together: the concept, its operations and their non-interfering values.
#pragma once

#include <concepts>
#include <cstdint>
#include <esker/device/platform.hpp>
#include <limits>
#include <type_traits>

namespace esker {

/// A lane's place among the lanes that raised a flag.
struct Position {
  std::uint32_t index;  // raised flags in lower lanes
  std::uint32_t total;  // raised flags in the view
  std::uint32_t last;   // index() of the highest lane that raised its flag; 0 if total is 0
};

/// What a lane hands in: a value of 1 to 8 bytes.
template <class T>
concept LaneValue = std::is_arithmetic_v<T>;

// Operations for reduce(). identity() is the non-interfering value that stands in for an inactive lane
// (thesis, section 5.3.2).
struct Sum {
  static constexpr const char* kName = "reduce(sum)";
  template <class T>
  ESKER_HD static constexpr T identity() {
    return T{0};
  }
  template <class T>
  ESKER_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Min {
  static constexpr const char* kName = "reduce(min)";
  template <class T>
  ESKER_HD static constexpr T identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
  }
  template <class T>
  ESKER_HD constexpr T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  static constexpr const char* kName = "reduce(max)";
  template <class T>
  ESKER_HD static constexpr T identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class T>
  ESKER_HD constexpr T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct And {
  static constexpr const char* kName = "reduce(and)";
  template <std::integral T>
  ESKER_HD static constexpr T identity() {
    return static_cast<T>(~T{0});
  }
  template <std::integral T>
  ESKER_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  static constexpr const char* kName = "reduce(or)";
  template <std::integral T>
  ESKER_HD static constexpr T identity() {
    return T{0};
  }
  template <std::integral T>
  ESKER_HD constexpr T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

/// One of these, or another that has an identity of this type.
template <class Op, class T>
concept LaneOperation = requires(const Op op, T value) {
  { Op::template identity<T>() } -> std::convertible_to<T>;
  { op(value, value) } -> std::convertible_to<T>;
  { Op::kName } -> std::convertible_to<const char*>;
};

namespace detail {
/// Says in the compiler's first line what is legal: of a concept it says that much later.
template <class Op, class T>
struct LaneOperationOrError {
  static_assert(
      LaneOperation<Op, T>,
      "reduce() takes one of esker::Sum, Min and Max, for integers also And and Or: inactive lanes stand "
      "for its identity, which std::plus and its like lack");
  static constexpr bool value = LaneOperation<Op, T>;
};
template <class Op, class T>
concept CheckedLaneOperation = LaneOperationOrError<Op, T>::value;
}  // namespace detail

/// A view of lanes that run collectives together: a wave, a group, the members of a fine-grain
/// barrier, the lanes that happen to be converged.
///
/// Contract. Every operation but index() and size() is collective: every live lane of the view calls
/// it, in the same order. A lane that returned from the kernel no longer takes part. An inactive lane
/// calls too and hands in a non-interfering value (software predication); every caller gets the result.
///   position_among(flag)            the lane's place among the raised flags
///   prefix_sum(value, active)       sum over the active lower lanes
///   reduce(value, op, active)       over the active lanes; op.identity() if there are none
///   broadcast(value, from)          value of lane `from`, which must be live
///
/// Ordering. Only sync() orders memory: accesses before it happen before accesses after it.
template <class G>
concept LaneGroup = requires(G view, bool flag, std::uint64_t value, std::uint32_t from) {
  { view.index() } -> std::same_as<std::uint32_t>;  // < size()
  { view.size() } -> std::same_as<std::uint32_t>;   // lanes that the view started with
  { view.position_among(flag) } -> std::same_as<Position>;
  { view.prefix_sum(value, flag) } -> std::same_as<std::uint64_t>;
  { view.reduce(value, Sum{}, flag) } -> std::same_as<std::uint64_t>;
  { view.broadcast(value, from) } -> std::same_as<std::uint64_t>;
  { view.sync() } -> std::same_as<void>;
};

/// A view of one lane.
class LoneLane {
 public:
  ESKER_HD std::uint32_t index() const { return 0; }
  ESKER_HD std::uint32_t size() const { return 1; }
  ESKER_HD Position position_among(bool flag) const { return {0, flag ? 1u : 0u, 0}; }
  template <LaneValue T>
  ESKER_HD T prefix_sum(T, bool = true) const {
    return T{0};
  }
  template <LaneValue T, detail::CheckedLaneOperation<T> Op>
  ESKER_HD T reduce(T value, Op, bool active = true) const {
    return active ? value : Op::template identity<T>();
  }
  template <LaneValue T>
  ESKER_HD T broadcast(T value, std::uint32_t) const {
    return value;
  }
  ESKER_HD void sync() const {}
  // Not part of LaneGroup, as gpu::Wave has them:
  template <LaneValue T>
  ESKER_HD T of_leader(T value) const {
    return value;
  }
  template <LaneValue T>
  ESKER_HD T of_first(bool, T value) const {
    return value;
  }
  ESKER_HD bool any(bool flag) const { return flag; }
};

namespace detail {

/// Values cross lanes as 64-bit words.
template <LaneValue T>
ESKER_HD std::uint64_t to_word(T value) {
  std::uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof value);
  return word;
}
template <LaneValue T>
ESKER_HD T from_word(std::uint64_t word) {
  T value;
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace detail

}  // namespace esker
