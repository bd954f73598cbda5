// Bag: elements in no order, spread over the PEs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/containers/file.hpp>
#include <esker/containers/hash.hpp>
#include <esker/containers/or_free.hpp>
#include <esker/containers/overflow.hpp>
#include <esker/containers/sending.hpp>
#include <esker/lane.hpp>
#include <esker/runtime.hpp>

namespace esker::containers {

namespace detail {

ESKER_PASS_BEGIN

/// The handler of insert: the target counts the elements that have come, so each gets a slot of its own.
template <class T>
struct Append {
  static constexpr std::uint64_t kOwnershipBytes = 0;
  SymmetricArray<T> elements;

  ESKER_HD void operator()(HandlerContext&, std::uint64_t& count, const T& element) const {
    const std::uint64_t at = reinterpret_cast<DeviceAtomic<std::uint64_t>&>(count).fetch_add_relaxed(1);
    if (at < elements.size()) elements[at] = element;
  }
};

ESKER_PASS_END

}  // namespace detail

/// A distributed bag, to which elements are added. Trivially copyable: kernels and handlers take it by value.
///
/// Contract. insert() returns at once, adds the element exactly once, and is complete when quiet() on its PE
///           or barrier_all() has returned.
/// Errors.   Elements for which a PE has no room are lost, and counted: size(), check(), save() and
///           for_each_local() then throw an Error{kOutOfMemory} that says how large the bag must be.
template <class T>
class Bag {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxArgumentBytes,
                "elements of a bag are trivially copyable and have up to 64 bytes: each is a message");

 public:
  Bag() = default;
  /// Collective. Room for `capacity` elements on each PE; registers a handler. `name` is a literal, for
  /// reports.
  template <class Pass = esker::detail::Pass>
  static Bag allocate(Runtime& rt, const char* name, std::uint64_t capacity) {
    Bag bag;
    bag.name_ = name;
    bag.elements_ = rt.heap().allocate<T>(std::max<std::uint64_t>(1, capacity));
    or_free(rt, bag, [&] {
      bag.count_ = rt.heap().allocate<std::uint64_t>(1);
      bag.append_ = rt.register_handler<std::uint64_t, T>(std::string(name) + ".insert",
                                                          detail::Append<T>{bag.elements_});
    });
    return bag;
  }
  /// Collective. Requires that no operation is under way (barrier_all).
  void free(Runtime& rt) {
    rt.heap().free(std::exchange(elements_, {}));
    if (count_.data() != nullptr) rt.heap().free(std::exchange(count_, {}));  // else allocate() has failed
  }

  /// By lanes, handlers and the Runtime: on a PE that is about random, by the element and the lane, so that
  /// equal elements that a handler or the Runtime inserts are all on one PE; or on PE `pe`.
  template <class Context>
  ESKER_HD void insert(Context&& context, const T& element) const {
    std::uint64_t random = hash_of(element);
    if constexpr (requires { context.global_id(); }) random = mix(random + context.global_id());
    insert(context, element, static_cast<std::uint32_t>(multiply(random, context.n_pes()).high));
  }
  template <class Context>
  ESKER_HD void insert(Context&& context, const T& element, std::uint32_t pe) const {
    call(context, append_, &count_[0], element, pe);
  }

  /// Local. Calls visit(element) for each of this PE's, wherever the heap stands: copies. Operations are
  /// complete (barrier_all).
  template <class Visit>
  void for_each_local(Runtime& rt, Visit visit) const {
    if (const std::uint64_t count = local_size(rt); count > elements_.size()) throw_overflow(rt.pe(), count);
    for_each_local_chunk(rt, [&](std::span<const T> chunk) {
      for (const T& element : chunk) visit(element);
    });
  }
  /// Local. A kernel with a lane for each of this PE's elements: calls function(item, element), a WorkItem
  /// and a T&. No operation is under way meanwhile. As Runtime::launch() it may return before the kernel has
  /// ended.
  template <class Function, class Pass = esker::detail::Pass>
  void launch_local(Runtime& rt, const Function& function, const char* name) const {
    const std::uint64_t count = local_size(rt);
    if (count > elements_.size()) throw_overflow(rt.pe(), count);
    if (count > 0) rt.launch(count, EachElement<Function>{elements_, function}, name);
  }
  /// Local. Elements that this PE was sent, those that found no room among them; collective: of all PEs.
  std::uint64_t local_size(Runtime& rt) const { return rt.heap().read(count_)[0]; }
  std::uint64_t size(Runtime& rt) const {
    check(rt);
    std::uint64_t all[1] = {local_size(rt)};
    rt.all_reduce(all, Reduction::kSum);
    return all[0];
  }
  /// Collective. Error{kOutOfMemory} on every PE if elements were lost.
  void check(Runtime& rt) const {
    std::uint64_t most[1] = {local_size(rt)};
    rt.all_reduce(most, Reduction::kMax);
    if (most[0] <= elements_.size()) return;
    std::uint64_t which[1] = {local_size(rt) == most[0] ? rt.pe() : rt.n_pes()};
    rt.all_reduce(which, Reduction::kMin);
    throw_overflow(static_cast<std::uint32_t>(which[0]), most[0]);
  }
  /// Collective. Takes all elements out. Operations are complete (barrier_all).
  void clear(Runtime& rt) const {
    const std::uint64_t zero[1] = {0};
    rt.heap().write(count_, 0, std::span<const std::uint64_t>(zero));
    rt.barrier_all();
  }

  /// Collective. Writes all elements to one file, which any number of PEs load. Operations are complete
  /// (barrier_all). Errors: Error{kConfiguration}, alike on every PE, where it cannot be written.
  void save(Runtime& rt, const std::string& file) const {
    check(rt);
    FileWriter writer(rt, "Bag::save", file, kContents, local_size(rt));
    for_each_local_chunk(rt, [&](std::span<const T> chunk) { writer.write(std::as_bytes(chunk)); });
    writer.close();
  }
  /// Collective. A new bag of a file's elements, about as many on each PE, with room for them, or for
  /// `capacity` on each, which is more. Registers a handler. Errors: Error{kConfiguration}, alike on every
  /// PE, for a file that cannot be read, is damaged or holds something else.
  template <class Pass = esker::detail::Pass>
  static Bag load(Runtime& rt, const char* name, const std::string& file, std::uint64_t capacity = 0) {
    FileReader reader(rt, "Bag::load", file, kContents);
    const std::uint64_t most = (reader.records() + rt.n_pes() - 1) / rt.n_pes();
    Bag bag = allocate(rt, name, std::max(capacity, most));
    const Chunk<T> chunk(reader.chunk());
    std::uint64_t count = 0;
    while (const std::uint64_t more = reader.read(std::as_writable_bytes(chunk.first(chunk.size())))) {
      rt.heap().write(bag.elements_, count, std::span<const T>(chunk.first(more)));
      count += more;
    }
    const std::uint64_t here[1] = {count};
    rt.heap().write(bag.count_, 0, std::span<const std::uint64_t>(here));
    or_free(rt, bag, [&] { reader.close(); });
    rt.barrier_all();
    return bag;
  }

 private:
  static constexpr FileContents kContents{FileKind::kBag, {}, FileType::of<T>()};

  // The library's own kernel. nvcc takes no private type for one.
 public:
  template <class Function>
  struct EachElement {
    SymmetricArray<T> elements;
    Function function;
    ESKER_HD void operator()(WorkItem item) const { function(item, elements[item.global_id()]); }
  };

 private:
  [[noreturn]] void throw_overflow(std::uint32_t pe, std::uint64_t came) const {
    throw Error(Error::Kind::kOutOfMemory, message_of_bag(name_, pe, came, elements_.size()));
  }
  template <class Visit>
  void for_each_local_chunk(Runtime& rt, Visit visit) const {
    const std::uint64_t count = local_size(rt);
    const Chunk<T> chunk(file_chunk(sizeof(T), count));
    for (std::uint64_t first = 0; first < count; first += chunk.size()) {
      const std::span<T> part = chunk.first(count - first);
      rt.heap().read(elements_, first, part);
      visit(std::span<const T>(part));
    }
  }

  SymmetricArray<std::uint64_t> count_;
  SymmetricArray<T> elements_;
  Handler<std::uint64_t, T> append_;
  const char* name_ = "";
};

}  // namespace esker::containers
