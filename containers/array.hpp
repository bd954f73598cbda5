// Array: elements by a global index, on the PEs that a distribution names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/containers/array_operations.hpp>
#include <esker/containers/bounds.hpp>
#include <esker/containers/distribution.hpp>
#include <esker/containers/file.hpp>
#include <esker/containers/or_free.hpp>
#include <esker/containers/sending.hpp>
#include <esker/device/platform.hpp>
#include <esker/runtime.hpp>

namespace esker::containers {

/// A distributed array. Trivially copyable: kernels and handlers take it by value.
///
/// Contract. Operations take the sender first, a lane, a handler's context or the Runtime, then what the
/// shmem_
///           call of their name takes, with a global index in place of target and PE, and are what that call
///           is: they return at once, and quiet() or barrier_all() says when they are applied. Other
///           operations are shmem_ calls with target(i) and owner(i).
/// Errors.   An index that is not below size() aborts the job with the values, in builds without NDEBUG and
///           where ESKER_CHECK_BOUNDS is 1; elsewhere it is some element, or a target that is refused.
template <class T, class Distribution = Block>
class Array : public Distribution {
 public:
  Array() = default;
  /// Collective. `size` elements of all PEs, of zeros. Errors as of SymmetricHeap::allocate().
  static Array allocate(Runtime& rt, std::uint64_t size) {
    Array array;
    static_cast<Distribution&>(array) = Distribution(size, rt.n_pes());
    array.elements_ = rt.heap().allocate<T>(std::max<std::uint64_t>(1, array.most()));
    return array;
  }
  /// Collective. Requires that no operation is under way (barrier_all).
  void free(Runtime& rt) { rt.heap().free(std::exchange(elements_, {})); }

  /// The local address that stands for element `i` on its owner.
  ESKER_HD T* target(std::uint64_t i) const { return &elements_[this->local_index(i)]; }
  /// This PE's elements, as local_index() counts them; those from count(pe) on are nobody's.
  ESKER_HD SymmetricArray<T> part() const { return elements_; }

  template <class Context, class... Election>
  ESKER_HD void put(Context&& context, std::uint64_t i, std::type_identity_t<T> value,
                    Election&&... election) const {
    if (!is_within(context, "array put", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.put(&elements_[at.index], value, at.pe);
    } else {
      shmem_put(context, &elements_[at.index], value, at.pe, std::forward<Election>(election)...);
    }
  }
  template <class Context, class... Election>
  ESKER_HD void inc(Context&& context, std::uint64_t i, Election&&... election) const {
    if (!is_within(context, "array inc", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.inc(&elements_[at.index], at.pe);
    } else {
      shmem_inc(context, &elements_[at.index], at.pe, std::forward<Election>(election)...);
    }
  }
  template <class Context, class... Election>
  ESKER_HD void add(Context&& context, std::uint64_t i, std::type_identity_t<T> value,
                    Election&&... election) const {
    if (!is_within(context, "array add", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.add(&elements_[at.index], value, at.pe);
    } else {
      shmem_add(context, &elements_[at.index], value, at.pe, std::forward<Election>(election)...);
    }
  }
  template <class Context, class... Election>
  ESKER_HD void min(Context&& context, std::uint64_t i, std::type_identity_t<T> value,
                    Election&&... election) const {
    if (!is_within(context, "array min", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.min(&elements_[at.index], value, at.pe);
    } else {
      shmem_min(context, &elements_[at.index], value, at.pe, std::forward<Election>(election)...);
    }
  }
  template <class Context, class... Election>
  ESKER_HD void max(Context&& context, std::uint64_t i, std::type_identity_t<T> value,
                    Election&&... election) const {
    if (!is_within(context, "array max", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.max(&elements_[at.index], value, at.pe);
    } else {
      shmem_max(context, &elements_[at.index], value, at.pe, std::forward<Election>(election)...);
    }
  }

  /// `result`: a T* in this PE's heap, or then(handler, target, arguments).
  template <class Context, class Result, class... Election>
  ESKER_HD void get(Context&& context, Result result, std::uint64_t i, Election&&... election) const {
    if (!is_within(context, "array get", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.get(result, static_cast<const T*>(&elements_[at.index]), at.pe);
    } else {
      shmem_get(context, result, static_cast<const T*>(&elements_[at.index]), at.pe,
                std::forward<Election>(election)...);
    }
  }
  template <class Context, class Result, class... Election>
  ESKER_HD void fetch_add(Context&& context, Result result, std::uint64_t i, std::type_identity_t<T> value,
                          Election&&... election) const {
    if (!is_within(context, "array fetch_add", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.fetch_add(result, &elements_[at.index], value, at.pe);
    } else {
      shmem_fetch_add(context, result, &elements_[at.index], value, at.pe,
                      std::forward<Election>(election)...);
    }
  }
  template <class Context, class Result, class... Election>
  ESKER_HD void swap(Context&& context, Result result, std::uint64_t i, std::type_identity_t<T> value,
                     Election&&... election) const {
    if (!is_within(context, "array swap", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.swap(result, &elements_[at.index], value, at.pe);
    } else {
      shmem_swap(context, result, &elements_[at.index], value, at.pe, std::forward<Election>(election)...);
    }
  }
  template <class Context, class Result, class... Election>
  ESKER_HD void compare_swap(Context&& context, Result result, std::uint64_t i,
                             std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                             Election&&... election) const {
    if (!is_within(context, "array compare_swap", i, this->size())) return;
    const Place at = this->place(i);
    if constexpr (kIsProgram<Context>) {
      context.compare_swap(result, &elements_[at.index], expected, desired, at.pe);
    } else {
      shmem_compare_swap(context, result, &elements_[at.index], expected, desired, at.pe,
                         std::forward<Election>(election)...);
    }
  }

  // The program's operations on many elements by one call: what put(), add(), get() and the others above do,
  // for each k to element indices[k], with values[k].
  //
  // Contract. Local: any PE may call alone. Messages gather and leave as the program's others do
  //           (HostOperations). An index may come again: each time counts, and of several puts one stands.
  // Memory.   Indices are integers of any type. All lists are std::vector, std::span, SymmetricArray,
  //           DeviceArray, or what else has std::data() and std::size(), and of one length. Results are in
  //           this PE's part of the heap. Indices and values may be anywhere, and are the caller's again on
  //           return. Exception: where they are all in a GPU's memory its lanes send, on stream(), and read
  //           them until that kernel has ended, as after quiet().
  // Errors.   Misuse, before anything is sent: another length; an index that is not below size(), which lanes
  //           check as they do in other operations. Error{kDevice} where lanes send, as of launch().

  /// results[k] becomes element indices[k].
  template <IndexRange Indices, WritableRangeOf<T> Results, class Pass = esker::detail::Pass>
  void gather(Runtime& rt, const Indices& indices, Results&& results) const {
    static_assert(Putable<T>, "elements of 1, 2, 4, 8 or 16 bytes are gathered");
    static constexpr const char* kCall = "Array::gather";
    if (const auto offset = offset_of_results(rt, kCall, indices, results))
      do_many<Pass>(rt, kCall, *this, std::data(indices), std::size(indices),
                    GetMany<T>{std::data(results), *offset});
  }
  /// A fetch_add() each: results[k] becomes what was there before.
  template <IndexRange Indices, RangeOf<T> Values, WritableRangeOf<T> Results,
            class Pass = esker::detail::Pass>
  void gather_fetch_add(Runtime& rt, const Indices& indices, const Values& values, Results&& results) const {
    static_assert(Number32Or64<T>, "numbers of 4 or 8 bytes are added");
    fetch_many<Operation::kFetchAdd, Pass>(rt, "Array::gather_fetch_add", indices, values, results);
  }
  template <IndexRange Indices, RangeOf<T> Values, WritableRangeOf<T> Results,
            class Pass = esker::detail::Pass>
  void gather_swap(Runtime& rt, const Indices& indices, const Values& values, Results&& results) const {
    static_assert(Swappable<T>, "elements of 4 or 8 bytes are swapped");
    fetch_many<Operation::kSwap, Pass>(rt, "Array::gather_swap", indices, values, results);
  }
  template <IndexRange Indices, RangeOf<T> Expected, RangeOf<T> Desired, WritableRangeOf<T> Results,
            class Pass = esker::detail::Pass>
  void gather_compare_swap(Runtime& rt, const Indices& indices, const Expected& expected,
                           const Desired& desired, Results&& results) const {
    static_assert(Swappable<T>, "elements of 4 or 8 bytes are swapped");
    static constexpr const char* kCall = "Array::gather_compare_swap";
    require_length(kCall, indices, "expected values", expected);
    require_length(kCall, indices, "desired values", desired);
    if (const auto offset = offset_of_results(rt, kCall, indices, results))
      do_many<Pass>(rt, kCall, *this, std::data(indices), std::size(indices),
                    CompareSwapMany<T>{std::data(results), *offset, std::data(expected), std::data(desired)});
  }

  /// A put() each.
  template <IndexRange Indices, RangeOf<T> Values, class Pass = esker::detail::Pass>
  void scatter(Runtime& rt, const Indices& indices, const Values& values) const {
    update_many<Operation::kPut, Pass>(rt, "Array::scatter", indices, values);
  }
  template <IndexRange Indices, class Pass = esker::detail::Pass>
  void scatter_inc(Runtime& rt, const Indices& indices) const {
    static_assert(Integer32Or64<T>, "integers of 4 or 8 bytes are incremented");
    do_many<Pass>(rt, "Array::scatter_inc", *this, std::data(indices), std::size(indices), IncMany<T>{});
  }
  template <IndexRange Indices, RangeOf<T> Values, class Pass = esker::detail::Pass>
  void scatter_add(Runtime& rt, const Indices& indices, const Values& values) const {
    update_many<Operation::kAdd, Pass>(rt, "Array::scatter_add", indices, values);
  }
  template <IndexRange Indices, RangeOf<T> Values, class Pass = esker::detail::Pass>
  void scatter_min(Runtime& rt, const Indices& indices, const Values& values) const {
    update_many<Operation::kMin, Pass>(rt, "Array::scatter_min", indices, values);
  }
  template <IndexRange Indices, RangeOf<T> Values, class Pass = esker::detail::Pass>
  void scatter_max(Runtime& rt, const Indices& indices, const Values& values) const {
    update_many<Operation::kMax, Pass>(rt, "Array::scatter_max", indices, values);
  }
  /// Calls the handler with each element where it stands, and arguments[k].
  template <class Arguments, IndexRange Indices, RangeOf<Arguments> Values, class Pass = esker::detail::Pass>
  void scatter_call(Runtime& rt, Handler<T, Arguments> handler, const Indices& indices,
                    const Values& arguments) const {
    static constexpr const char* kCall = "Array::scatter_call";
    require_length(kCall, indices, "arguments", arguments);
    if (handler.index == 0) bad_handler(kCall);
    do_many<Pass>(rt, kCall, *this, std::data(indices), std::size(indices),
                  CallMany<T, Arguments>{handler, std::data(arguments)});
  }

  /// Local. Calls visit(i, element) for each of this PE's elements, wherever the heap stands: copies, in
  /// order of their global indices.
  template <class Visit>
  void for_each_local(Runtime& rt, Visit visit) const {
    const std::uint64_t mine = this->count(rt.pe());
    const Chunk<T> chunk(file_chunk(sizeof(T), mine));
    for (std::uint64_t first = 0; first < mine; first += chunk.size()) {
      const std::span<T> part = chunk.first(mine - first);
      rt.heap().read(elements_, first, part);
      for (std::uint64_t k = 0; k < part.size(); ++k)
        visit(this->global_index(rt.pe(), first + k), std::as_const(part[k]));
    }
  }
  /// Local. Writes value_at(i) to each of this PE's elements. Requires that no operation for them is under
  /// way.
  template <class ValueAt>
  void fill(Runtime& rt, ValueAt value_at) const {
    const std::uint64_t mine = this->count(rt.pe());
    const Chunk<T> chunk(file_chunk(sizeof(T), mine));
    for (std::uint64_t first = 0; first < mine; first += chunk.size()) {
      const std::span<T> part = chunk.first(mine - first);
      for (std::uint64_t k = 0; k < part.size(); ++k)
        part[k] = value_at(this->global_index(rt.pe(), first + k));
      rt.heap().write(elements_, first, std::span<const T>(part));
    }
  }

  /// Collective. Writes all elements to one file, which arrays of any distribution on any number of PEs load.
  /// Operations are complete (barrier_all). Errors: Error{kConfiguration}, alike on every PE.
  template <class Pass = esker::detail::Pass>
  void save(Runtime& rt, const std::string& file) const {
    static_assert(Putable<T>, "elements of 1, 2, 4, 8 or 16 bytes go to files");
    const auto begin_of = [&](std::uint64_t pe) {
      const std::uint64_t share = this->size() / rt.n_pes();
      return pe * share + std::min(pe, this->size() % rt.n_pes());
    };
    const std::uint64_t end = begin_of(rt.pe() + 1);
    FileWriter writer(rt, "Array::save", file, kContents, end - begin_of(rt.pe()));
    const auto chunk =
        rt.heap().allocate<T>(file_chunk(sizeof(T), (this->size() + rt.n_pes() - 1) / rt.n_pes()));
    const Chunk<T> copies(chunk.size());
    for (std::uint64_t first = writer.first(); first < end; first += copies.size()) {
      const std::span<T> elements = copies.first(end - first);
      rt.launch(elements.size(), GetRow{*this, chunk, first}, "Array::save");
      rt.quiet();
      rt.heap().read(chunk, 0, elements);
      writer.write(std::as_bytes(elements));
    }
    rt.heap().free(chunk);
    writer.close();
  }
  /// Collective. A new array of a file's elements. Errors: Error{kConfiguration}, alike on every PE, for a
  /// file that cannot be read, is damaged or holds something else.
  template <class Pass = esker::detail::Pass>
  static Array load(Runtime& rt, const std::string& file) {
    static_assert(Putable<T>, "elements of 1, 2, 4, 8 or 16 bytes go to files");
    FileReader reader(rt, "Array::load", file, kContents);
    Array array = allocate(rt, reader.records());
    or_free(rt, array, [&] {
      const auto chunk = rt.heap().allocate<T>(reader.chunk());
      const Chunk<T> elements(chunk.size());
      for (std::uint64_t first = reader.next();;) {
        const std::uint64_t count = reader.read(std::as_writable_bytes(elements.first(elements.size())));
        if (count == 0) break;
        rt.heap().write(chunk, 0, std::span<const T>(elements.first(count)));
        rt.launch(count, PutRow{array, chunk, first}, "Array::load");
        rt.quiet();
        first += count;
      }
      rt.barrier_all();
      rt.heap().free(chunk);
      reader.close();
    });
    return array;
  }

 private:
  static constexpr FileContents kContents{FileKind::kArray, {}, FileType::of<T>()};

  // The library's own kernels. nvcc takes no private type for one.
 public:
  /// A lane an element: elements first, first + 1, ... into a row, or out of it.
  struct GetRow {
    Array array;
    SymmetricArray<T> row;
    std::uint64_t first;
    ESKER_HD void operator()(WorkItem item) const {
      array.get(item, &row[item.global_id()], first + item.global_id());
    }
  };
  struct PutRow {
    Array array;
    SymmetricArray<T> row;
    std::uint64_t first;
    ESKER_HD void operator()(WorkItem item) const {
      array.put(item, first + item.global_id(), row[item.global_id()]);
    }
  };

 private:
  template <class Indices, class List>
  static void require_length(const char* call, const Indices& indices, const char* what, const List& list) {
    if (std::size(list) != std::size(indices)) bad_lengths(call, std::size(indices), what, std::size(list));
  }
  /// In the heap; nothing where there are no indices.
  template <class Indices, class Results>
  static std::optional<std::uint64_t> offset_of_results(Runtime& rt, const char* call, const Indices& indices,
                                                        Results& results) {
    require_length(call, indices, "results", results);
    if (std::size(indices) == 0) return std::nullopt;
    return esker::detail::HostMessages::offset_of(rt, call, "a range of results", std::data(results),
                                                  std::size(results) * sizeof(T), sizeof(T));
  }
  template <Operation kOperation, class Pass, class Indices, class Values>
  void update_many(Runtime& rt, const char* call, const Indices& indices, const Values& values) const {
    static_assert(kOperation == Operation::kPut ? Putable<T> : Number32Or64<T>,
                  "elements of 1, 2, 4, 8 or 16 bytes are put, and numbers of 4 or 8 added or compared");
    require_length(call, indices, "values", values);
    do_many<Pass>(rt, call, *this, std::data(indices), std::size(indices),
                  UpdateMany<kOperation, T>{std::data(values)});
  }
  template <Operation kOperation, class Pass, class Indices, class Values, class Results>
  void fetch_many(Runtime& rt, const char* call, const Indices& indices, const Values& values,
                  Results& results) const {
    require_length(call, indices, "values", values);
    if (const auto offset = offset_of_results(rt, call, indices, results))
      do_many<Pass>(rt, call, *this, std::data(indices), std::size(indices),
                    FetchMany<kOperation, T>{std::data(results), *offset, std::data(values)});
  }

  SymmetricArray<T> elements_;
};

}  // namespace esker::containers
