// Collective calls on data: broadcast, gather, all_gather, scatter, reduce, all_reduce, exclusive_scan,
// all_to_all, sort, sync_all.
//
//   const double slowest = esker::all_reduce(rt, seconds, esker::Reduction::kMax);
//   std::vector<std::uint64_t> mine = esker::sort(rt, std::move(keys));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/runtime.hpp>
#include <esker/runtime/collective_calls.hpp>
#include <esker/runtime/collective_values.hpp>

namespace esker {

// Contract. Collective: every PE of the Runtime calls, from the thread that constructed it, in the same
// order.
//           - *Values* are a range of elements in one piece, as std::vector, std::span, SymmetricArray and
//             DeviceArray are, in host or device memory; or one element, which comes back as the result.
//             Elements are trivially copyable; what is reduced goes through the host.
//           - Counts, element types, operations and roots must be the same on every PE, unless a call says
//             otherwise. Counts may be beyond 2^31.
//           - Ranges that a call reads and ranges that it writes do not overlap.
// Messages  A collective call completes no message, as in OpenSHMEM: what lanes have sent may be applied
// before,
//           during and after it. Only barrier_all() says that it is. Messages and handlers go on while a PE
//           waits in one. Where the memory is a GPU's, or one that kernels reach, it waits for this PE's
//           kernels.
// Progress  A PE that has its result may return before others have theirs. Only sync_all(), the all_ calls
// and
//           sort wait for every PE.
// Memory    Values travel through buffers of the runtime's, of 16 MiB a PE at most.
// Errors    Error{kContract} on every PE, with everybody's values as they were, if PEs are in different
// calls,
//           or differ in what must be the same, or one has a range of the wrong size: it names two PEs and
//           what each asks for. What an operation throws is thrown on its PE, and ends the job where others
//           wait for its result. Once a PE has died, Error{kNetwork}.

/// Waits until every PE has called it. Completes no message, unlike Runtime::barrier_all(); OpenSHMEM's
/// shmem_sync_all.
inline void sync_all(Runtime& rt) { detail::CollectiveCalls::sync_all(rt); }

/// The root's values to all PEs.
template <detail::WritableRange R>
void broadcast(Runtime& rt, R&& values, std::uint32_t root = 0) {
  detail::CollectiveCalls::broadcast(rt, detail::type_of<R>(), std::data(values), std::size(values), root);
}
template <detail::Element T>
T broadcast(Runtime& rt, T value, std::uint32_t root = 0) {
  detail::CollectiveCalls::broadcast(rt, detail::element_type<T>(), &value, 1, root);
  return value;
}

/// Every PE's values, PE 0's first, to the root's `all`, which has room for just as many; elsewhere it is not
/// used.
template <detail::Range R, detail::WritableRange S>
void gather(Runtime& rt, const R& mine, S&& all, std::uint32_t root = 0) {
  detail::require_same_type<R, S>();
  detail::CollectiveCalls::gather(rt, detail::type_of<R>(), std::data(mine), std::size(mine), std::data(all),
                                  std::size(all), root);
}
/// At the root all values; elsewhere none.
template <detail::Element T>
std::vector<T> gather(Runtime& rt, const T& value, std::uint32_t root = 0) {
  const std::uint64_t n = rt.pe() == root ? rt.n_pes() : 0;
  const auto all = std::make_unique<T[]>(n);  // std::vector<bool> has no data()
  detail::CollectiveCalls::gather(rt, detail::element_type<T>(), &value, 1, all.get(), n, root);
  return std::vector<T>(all.get(), all.get() + n);
}

/// The same, to every PE.
template <detail::Range R, detail::WritableRange S>
void all_gather(Runtime& rt, const R& mine, S&& all) {
  detail::require_same_type<R, S>();
  detail::CollectiveCalls::all_gather(rt, detail::type_of<R>(), std::data(mine), std::size(mine),
                                      std::data(all), std::size(all));
}
template <detail::Element T>
std::vector<T> all_gather(Runtime& rt, const T& value) {
  const auto all = std::make_unique<T[]>(rt.n_pes());
  detail::CollectiveCalls::all_gather(rt, detail::element_type<T>(), &value, 1, all.get(), rt.n_pes());
  return std::vector<T>(all.get(), all.get() + rt.n_pes());
}

/// Of the root's `all`, the first std::size(mine) to PE 0, and so on; elsewhere `all` is not used.
template <detail::Range R, detail::WritableRange S>
void scatter(Runtime& rt, const R& all, S&& mine, std::uint32_t root = 0) {
  detail::require_same_type<R, S>();
  detail::CollectiveCalls::scatter(rt, detail::type_of<R>(), std::data(all), std::size(all), std::data(mine),
                                   std::size(mine), root);
}

// Reductions, element by element: operation(...operation(PE 0's, PE 1's)..., the last PE's). `operation` is a
// Reduction, or a function (T, T) -> T of the program's, the same on every PE. It is associative, and need
// not be commutative. Values are combined in the order of the PEs, but for where the brackets stand, which
// depends on the number of PEs and of values alone: sums of floating-point numbers come out the same in every
// run, and on every PE.

/// The root gets the result; the values of the others stay as they are.
template <detail::WritableRange R, class Operation>
void reduce(Runtime& rt, R&& values, const Operation& operation, std::uint32_t root = 0) {
  using T = detail::ElementOf<R>;
  detail::CollectiveCalls::reduce(rt, detail::element_type<T>(), detail::combiner_for<T>(operation),
                                  std::data(values), std::size(values), root);
}
template <detail::Element T, class Operation>
T reduce(Runtime& rt, T value, const Operation& operation, std::uint32_t root = 0) {
  reduce(rt, std::span<T>(&value, 1), operation, root);
  return value;
}

/// Every PE gets the result.
template <detail::WritableRange R, class Operation>
void all_reduce(Runtime& rt, R&& values, const Operation& operation) {
  using T = detail::ElementOf<R>;
  detail::CollectiveCalls::all_reduce(rt, detail::element_type<T>(), detail::combiner_for<T>(operation),
                                      std::data(values), std::size(values));
}
template <detail::Element T, class Operation>
T all_reduce(Runtime& rt, T value, const Operation& operation) {
  all_reduce(rt, std::span<T>(&value, 1), operation);
  return value;
}

/// Each PE gets `initial`, combined with the values of all PEs before it: on PE 0 `initial` alone.
template <detail::WritableRange R, class Operation>
void exclusive_scan(Runtime& rt, R&& values, const detail::ElementOf<R>& initial,
                    const Operation& operation) {
  using T = detail::ElementOf<R>;
  detail::CollectiveCalls::exclusive_scan(rt, detail::element_type<T>(), detail::combiner_for<T>(operation),
                                          std::data(values), std::size(values), &initial);
}
template <detail::Element T, class Operation>
T exclusive_scan(Runtime& rt, T value, const std::type_identity_t<T>& initial, const Operation& operation) {
  exclusive_scan(rt, std::span<T>(&value, 1), initial, operation);
  return value;
}

/// What all_to_all() has brought: PE 0's first, so many of each PE.
template <class T>
struct Received {
  std::vector<T> values;
  std::vector<std::uint64_t> counts;
};
/// The first counts[0] values to PE 0, the next counts[1] to PE 1, and so on; counts may be any, and their
/// sum is the number of values.
template <detail::Range R>
Received<detail::ElementOf<R>> all_to_all(Runtime& rt, const R& values,
                                          std::span<const std::uint64_t> counts) {
  Received<detail::ElementOf<R>> received;
  received.counts = detail::CollectiveCalls::all_to_all(rt, detail::type_of<R>(), std::data(values),
                                                        std::size(values), counts.data(), counts.size(),
                                                        detail::destination_of(received.values));
  return received;
}
/// The same into memory of the caller's, which has room for at least as many. Returns how many came of each
/// PE.
template <detail::Range R, detail::WritableRange S>
std::vector<std::uint64_t> all_to_all(Runtime& rt, const R& values, std::span<const std::uint64_t> counts,
                                      S&& into) {
  detail::require_same_type<R, S>();
  std::span<detail::ElementOf<S>> room(std::data(into), std::size(into));
  return detail::CollectiveCalls::all_to_all(rt, detail::type_of<R>(), std::data(values), std::size(values),
                                             counts.data(), counts.size(), detail::destination_of(room));
}

/// Sorts the keys of all PEs, ascending, PE 0's first. Of N keys on n PEs, PE k gets those of ranks k * N / n
/// to (k + 1) * N / n - 1: as many as any other PE, or one more or less, whatever the keys are and wherever
/// they were, equal ones included. Each PE may give another number of keys. Floating-point numbers come in
/// the order of IEEE 754's totalOrder: -0 before 0, NaNs at the ends.
///
/// A sample sort whose splitters are exact: each PE sorts its own, PEs find the keys at the boundaries by
/// bisection, and merge what they are sent. Takes the keys' memory once more, on this PE's host and one core.
template <detail::SortableKey T>
std::vector<T> sort(Runtime& rt, std::vector<T> keys) {
  detail::CollectiveCalls::sort(rt, detail::element_type<T>(), detail::kKeyKind<T>, keys.data(), keys.size(),
                                detail::destination_of(keys));
  return keys;
}
/// The same of keys in other memory, a GPU's too, which stays as it is.
template <detail::Range R>
requires detail::SortableKey<detail::ElementOf<R>> std::vector<detail::ElementOf<R>> sort(Runtime& rt,
                                                                                          const R& keys) {
  std::vector<detail::ElementOf<R>> copy(std::size(keys));
  detail::CollectiveCalls::copy_out(rt, copy.data(), std::data(keys), copy.size() * sizeof(copy[0]));
  return sort(rt, std::move(copy));
}

}  // namespace esker
