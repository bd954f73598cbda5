// What a kernel of a plan says of its operands, and how it is called. Private to Plan, whose header includes
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <esker/device/device.hpp>
#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>
#include <esker/device/stream.hpp>

namespace esker::transfer {

/// An operand of a plan: Plan::operand<T>().
template <class T>
struct PlanOperand {
  std::uint32_t number = 0;
  std::size_t size = 0;  // elements
};

enum class Access { kRead, kWrite, kUpdate };

namespace detail {

/// A kernel, at the addresses of its operands.
using DeviceFunction = std::function<void(const Device&, const Stream&, void* const*)>;
using HostFunction = std::function<void(void* const*)>;

template <class T, Access How>
struct Use {
  using Element = std::conditional_t<How == Access::kRead, const T, T>;
  static constexpr Access kAccess = How;
  std::uint32_t number;
  std::size_t size;

  std::uint64_t bytes() const { return size * sizeof(T); }
};

template <class... Use>
struct Uses {
  std::tuple<Use...> all;
};

/// Pointers to operands, as a kernel's argument.
template <class... Element>
struct Pointers {};
template <class First, class... Rest>
struct Pointers<First, Rest...> {
  First* first;
  Pointers<Rest...> rest;
};
inline Pointers<> pointers_from(void* const*, Pointers<>*) { return {}; }
template <class First, class... Rest>
Pointers<First, Rest...> pointers_from(void* const* at, Pointers<First, Rest...>*) {
  return {static_cast<First*>(*at), pointers_from(at + 1, static_cast<Pointers<Rest...>*>(nullptr))};
}

template <class Kernel, class... Bound>
ESKER_HD void call_lane(const Kernel& kernel, Lane lane, const Pointers<>&, Bound*... bound) {
  kernel(lane, bound...);
}
template <class Kernel, class First, class... Rest, class... Bound>
ESKER_HD void call_lane(const Kernel& kernel, Lane lane, const Pointers<First, Rest...>& pointers,
                        Bound*... bound) {
  call_lane(kernel, lane, pointers.rest, bound..., pointers.first);
}

/// A kernel with the addresses of its operands.
template <class Kernel, class... Element>
struct BoundKernel {
  Kernel kernel;
  Pointers<Element...> pointers;
  ESKER_HD void operator()(Lane lane) const { call_lane(kernel, lane, pointers); }
};

template <class Kernel, class... Use>
inline constexpr bool kIsLaneKernel = std::is_invocable_v<const Kernel&, Lane, typename Use::Element*...>;
template <class Function, class... Use>
inline constexpr bool kIsOnStream =
    std::is_invocable_v<Function&, const Stream&, std::span<typename Use::Element>...>;
template <class Function, class... Use>
inline constexpr bool kIsOnHost = std::is_invocable_v<Function&, std::span<typename Use::Element>...>;

/// Calls `function` with what precedes, then a span of each operand.
template <class Function, class... Use, std::size_t... I, class... Before>
void call_with_spans(Function& function, const Uses<Use...>& uses, void* const* at, std::index_sequence<I...>,
                     const Before&... before) {
  function(before..., std::span<typename Use::Element>(static_cast<typename Use::Element*>(at[I]),
                                                       std::get<I>(uses.all).size)...);
}

/// Elements of the first operand that it writes; of its first one where it writes none.
template <class... Use>
std::uint64_t lanes_of(const Uses<Use...>& uses) {
  std::uint64_t lanes = 0;
  bool is_found = false;
  const auto look = [&](const auto& use, Access access) {
    if (!is_found && (access != Access::kRead || lanes == 0)) lanes = use.size;
    is_found = is_found || access != Access::kRead;
  };
  std::apply([&](const auto&... use) { (look(use, std::remove_cvref_t<decltype(use)>::kAccess), ...); },
             uses.all);
  return lanes;
}

}  // namespace detail

/// What a kernel reads, writes, and changes in place; it gets them in the order in which they are named.
template <class... T>
detail::Uses<detail::Use<T, Access::kRead>...> reads(const PlanOperand<T>&... operands) {
  return {{detail::Use<T, Access::kRead>{operands.number, operands.size}...}};
}
template <class... T>
detail::Uses<detail::Use<T, Access::kWrite>...> writes(const PlanOperand<T>&... operands) {
  return {{detail::Use<T, Access::kWrite>{operands.number, operands.size}...}};
}
template <class... T>
detail::Uses<detail::Use<T, Access::kUpdate>...> updates(const PlanOperand<T>&... operands) {
  return {{detail::Use<T, Access::kUpdate>{operands.number, operands.size}...}};
}

}  // namespace esker::transfer
