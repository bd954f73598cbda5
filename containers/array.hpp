// Array: elements by a global index, on the PEs that a distribution names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/containers/bounds.hpp>
#include <esker/containers/distribution.hpp>
#include <esker/containers/file.hpp>
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

  /// Local. Calls visit(i, element) for each of this PE's elements, wherever the heap stands: copies, in
  /// order of their global indices.
  template <class Visit>
  void for_each_local(Runtime& rt, Visit visit) const {
    std::vector<T> chunk;
    for (std::uint64_t first = 0; first < this->count(rt.pe()); first += chunk.size()) {
      chunk.resize(std::min(file_chunk(sizeof(T)), this->count(rt.pe()) - first));
      rt.heap().read(elements_, first, std::span<T>(chunk));
      for (std::uint64_t k = 0; k < chunk.size(); ++k)
        visit(this->global_index(rt.pe(), first + k), std::as_const(chunk[k]));
    }
  }
  /// Local. Writes value_at(i) to each of this PE's elements. Requires that no operation for them is under
  /// way.
  template <class ValueAt>
  void fill(Runtime& rt, ValueAt value_at) const {
    std::vector<T> chunk;
    for (std::uint64_t first = 0; first < this->count(rt.pe()); first += chunk.size()) {
      chunk.resize(std::min(file_chunk(sizeof(T)), this->count(rt.pe()) - first));
      for (std::uint64_t k = 0; k < chunk.size(); ++k)
        chunk[k] = value_at(this->global_index(rt.pe(), first + k));
      rt.heap().write(elements_, first, std::span<const T>(chunk));
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
    std::vector<T> elements;
    for (std::uint64_t first = writer.first(); first < end; first += elements.size()) {
      elements.resize(std::min(chunk.size(), end - first));
      rt.launch(elements.size(), GetRow{*this, chunk, first}, "Array::save");
      rt.quiet();
      rt.heap().read(chunk, 0, std::span<T>(elements));
      writer.write(std::as_bytes(std::span<const T>(elements)));
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
    const auto chunk = rt.heap().allocate<T>(reader.chunk());
    std::vector<T> elements(chunk.size());
    for (std::uint64_t first = reader.next();;) {
      const std::uint64_t count = reader.read(std::as_writable_bytes(std::span<T>(elements)));
      if (count == 0) break;
      rt.heap().write(chunk, 0, std::span<const T>(elements).first(count));
      rt.launch(count, PutRow{array, chunk, first}, "Array::load");
      rt.quiet();
      first += count;
    }
    rt.barrier_all();
    rt.heap().free(chunk);
    reader.close_for(rt, array);
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
  SymmetricArray<T> elements_;
};

}  // namespace esker::containers
