// What the templates of <esker/collectives.hpp> take: ranges, elements, operations.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

#include <esker/runtime.hpp>
#include <esker/runtime/element_type.hpp>

namespace esker::detail {

/// Elements in one piece, anywhere.
template <class R>
concept Range = requires(R& range) {
  *std::data(range);
  std::size(range);
}
&&std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*std::data(std::declval<R&>()))>>;
template <class R>
using ElementOf = std::remove_cvref_t<decltype(*std::data(std::declval<R&>()))>;
template <class R>
concept WritableRange =
    Range<R> && !std::is_const_v<std::remove_reference_t<decltype(*std::data(std::declval<R&>()))>>;

/// One that a call takes and gives back by itself.
template <class T>
concept Element = std::is_trivially_copyable_v<T> && !Range<T> && !std::is_pointer_v<T>;

template <class T>
concept SortableKey = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class R>
constexpr ElementType type_of() {
  static_assert(alignof(ElementOf<R>) <= alignof(std::max_align_t), "elements are not over-aligned");
  return element_type<ElementOf<R>>();
}
template <class R, class S>
constexpr void require_same_type() {
  static_assert(std::is_same_v<ElementOf<R>, ElementOf<S>>, "both ranges are of one type of elements");
}

/// Functions that stand for the Reductions.
struct Least {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};

template <class T>
Combiner combiner_for(const Reduction& reduction) {
  static_assert(std::is_arithmetic_v<T>, "a Reduction is of numbers; give a function of two elements");
  static constexpr std::plus<> kPlus;
  static constexpr std::multiplies<> kTimes;
  static constexpr Least kLeast;
  static constexpr Greatest kGreatest;
  switch (reduction) {
    case Reduction::kSum:
      return combiner_of<T>(kPlus, "sum");
    case Reduction::kProduct:
      return combiner_of<T>(kTimes, "product");
    case Reduction::kMin:
      return combiner_of<T>(kLeast, "minimum");
    case Reduction::kMax:
      return combiner_of<T>(kGreatest, "maximum");
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    static constexpr std::bit_and<> kBitAnd;
    static constexpr std::bit_or<> kBitOr;
    static constexpr std::bit_xor<> kBitXor;
    switch (reduction) {
      case Reduction::kAnd:
        return combiner_of<T>(kBitAnd, "bitwise and");
      case Reduction::kOr:
        return combiner_of<T>(kBitOr, "bitwise or");
      case Reduction::kXor:
        return combiner_of<T>(kBitXor, "exclusive or");
      default:
        break;
    }
  }
  return {"unknown reduction"};  // which the call refuses
}
template <class T, class Function>
requires std::is_invocable_r_v<T, const Function&, const T&, const T&> Combiner
combiner_for(const Function& function) {
  return combiner_of<T>(function);
}

template <class T>
Destination destination_of(std::vector<T>& vector) {
  return {&vector, [](void* object, std::uint64_t n) -> void* {
            auto& values = *static_cast<std::vector<T>*>(object);
            values.resize(n);
            return values.data();
          }};
}
/// Of memory that has its size.
template <class T>
Destination destination_of(std::span<T>& room) {
  return {&room, [](void* object, std::uint64_t n) -> void* {
            const auto& values = *static_cast<std::span<T>*>(object);
            return n <= values.size() ? values.data() : nullptr;
          }};
}

}  // namespace esker::detail
