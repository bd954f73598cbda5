// What the program does to many elements of an array by one call: indices and values in host or device
// memory.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <esker/aggregator/command.hpp>
#include <esker/containers/bounds.hpp>
#include <esker/containers/distribution.hpp>
#include <esker/containers/sending.hpp>
#include <esker/device/platform.hpp>
#include <esker/runtime.hpp>
#include <esker/runtime/collective_calls.hpp>
#include <esker/runtime/collective_values.hpp>

namespace esker::containers {

/// Indices in one piece: std::vector, std::span, SymmetricArray, DeviceArray of integers.
template <class R>
concept IndexRange = esker::detail::Range<R> && std::integral<esker::detail::ElementOf<R>>;
/// Elements of type T in one piece.
template <class R, class T>
concept RangeOf = esker::detail::Range<R> && std::same_as<esker::detail::ElementOf<R>, T>;
template <class R, class T>
concept WritableRangeOf = esker::detail::WritableRange<R> && RangeOf<R, T>;

// Misuse; each aborts the job. `call` is "Array::scatter".
[[noreturn, gnu::cold]] ESKER_API void bad_lengths(const char* call, std::uint64_t indices, const char* what,
                                                   std::uint64_t others);
[[noreturn, gnu::cold]] ESKER_API void bad_index_of_many(const char* call, const std::string& index,
                                                         std::uint64_t position, std::uint64_t count,
                                                         std::uint64_t size);
[[noreturn, gnu::cold]] ESKER_API void bad_pes(const char* call, std::uint32_t pes, std::uint32_t n_pes);

// What is done to the element of index number k: by a lane, where all is in a device's memory, or as a
// message of the program's, whose operands are the words behind the address. `lists` shows where it reads.

ESKER_PASS_BEGIN

template <Operation kOperation, class T>
struct UpdateMany {
  static constexpr std::uint32_t kOperands = sizeof(T) == 16 ? 2 : 1;
  const T* values;

  template <class Array>
  ESKER_HD void run(const WorkItem& item, const Array& array, std::uint64_t i, std::uint64_t k) const {
    if constexpr (kOperation == Operation::kPut) array.put(item, i, values[k]);
    if constexpr (kOperation == Operation::kAdd) array.add(item, i, values[k]);
    if constexpr (kOperation == Operation::kMin) array.min(item, i, values[k]);
    if constexpr (kOperation == Operation::kMax) array.max(item, i, values[k]);
  }
  template <class Function>
  void lists(Function&& function) {
    function(values);
  }
  static Command command() {
    using esker::detail::bytes_operand;
    using esker::detail::number_operand;
    return {kOperation, kOperation == Operation::kPut ? bytes_operand<T>() : number_operand<T>(), 0};
  }
  void write(std::uint64_t k, std::uint64_t* words) const {
    words[0] = 0;
    std::memcpy(words, &values[k], sizeof(T));
  }
  /// Where the element is this PE's, as shmem_put() does.
  void store(std::uint64_t k, T* element) const requires(kOperation == Operation::kPut) {
    esker::detail::store_here(element, values[k]);
  }
};

template <class T>
struct IncMany {
  static constexpr std::uint32_t kOperands = 0;

  template <class Array>
  ESKER_HD void run(const WorkItem& item, const Array& array, std::uint64_t i, std::uint64_t /*k*/) const {
    array.inc(item, i);
  }
  template <class Function>
  void lists(Function&& /*function*/) {}
  static Command command() { return {Operation::kInc, esker::detail::number_operand<T>(), 0}; }
  void write(std::uint64_t /*k*/, std::uint64_t* /*words*/) const {}
};

template <class T>
struct GetMany {
  static constexpr std::uint32_t kOperands = 1;
  T* results;
  std::uint64_t offset;  // of the first, in the heap

  template <class Array>
  ESKER_HD void run(const WorkItem& item, const Array& array, std::uint64_t i, std::uint64_t k) const {
    array.get(item, &results[k], i);
  }
  template <class Function>
  void lists(Function&& /*function*/) {}
  static Command command() { return {Operation::kGet, esker::detail::bytes_operand<T>(), 0}; }
  void write(std::uint64_t k, std::uint64_t* words) const { words[0] = offset + k * sizeof(T); }
};

template <Operation kOperation, class T>
struct FetchMany {
  static constexpr std::uint32_t kOperands = 2;
  T* results;
  std::uint64_t offset;
  const T* values;

  template <class Array>
  ESKER_HD void run(const WorkItem& item, const Array& array, std::uint64_t i, std::uint64_t k) const {
    if constexpr (kOperation == Operation::kFetchAdd) array.fetch_add(item, &results[k], i, values[k]);
    if constexpr (kOperation == Operation::kSwap) array.swap(item, &results[k], i, values[k]);
  }
  template <class Function>
  void lists(Function&& function) {
    function(values);
  }
  static Command command() {
    using esker::detail::bytes_operand;
    using esker::detail::number_operand;
    return {kOperation, kOperation == Operation::kSwap ? bytes_operand<T>() : number_operand<T>(), 0};
  }
  void write(std::uint64_t k, std::uint64_t* words) const {
    words[0] = esker::detail::value_word(values[k]);
    words[1] = offset + k * sizeof(T);
  }
};

template <class T>
struct CompareSwapMany {
  static constexpr std::uint32_t kOperands = 3;
  T* results;
  std::uint64_t offset;
  const T* expected;
  const T* desired;

  template <class Array>
  ESKER_HD void run(const WorkItem& item, const Array& array, std::uint64_t i, std::uint64_t k) const {
    array.compare_swap(item, &results[k], i, expected[k], desired[k]);
  }
  template <class Function>
  void lists(Function&& function) {
    function(expected);
    function(desired);
  }
  static Command command() { return {Operation::kCompareSwap, esker::detail::bytes_operand<T>(), 0}; }
  void write(std::uint64_t k, std::uint64_t* words) const {
    words[0] = esker::detail::value_word(expected[k]);
    words[1] = esker::detail::value_word(desired[k]);
    words[2] = offset + k * sizeof(T);
  }
};

template <class T, class Arguments>
struct CallMany {
  static constexpr std::uint32_t kOperands = Handler<T, Arguments>::kWords - 1;
  Handler<T, Arguments> handler;
  const Arguments* arguments;

  template <class Array>
  ESKER_HD void run(const WorkItem& item, const Array& array, std::uint64_t i, std::uint64_t k) const {
    if (!is_within(item, "array scatter_call", i, array.size())) return;
    const Place at = array.place(i);
    shmem_am(item, handler, &array.part()[at.index], arguments[k], at.pe);
  }
  template <class Function>
  void lists(Function&& function) {
    function(arguments);
  }
  Command command() const { return {Operation::kActiveMessage, Operand::kNone, handler.index}; }
  void write(std::uint64_t k, std::uint64_t* words) const {
    words[kOperands - 1] = 0;
    std::memcpy(words, &arguments[k], sizeof(Arguments));
  }
};

/// A lane an index.
template <class Array, class Index, class Many>
struct EachIndex {
  Array array;
  const Index* indices;
  Many many;
  ESKER_HD void operator()(WorkItem item) const {
    const std::uint64_t k = item.global_id();
    many.run(item, array, static_cast<std::uint64_t>(indices[k]), k);
  }
};

ESKER_PASS_END

/// By messages of the program's, of lists that the host reads.
template <class Array, class Index, class Many>
void send_many(Runtime& rt, const char* call, const Array& array, const Index* indices, std::uint64_t n,
               const Many& many) {
  using T = std::remove_pointer_t<decltype(array.part().data())>;
  using esker::detail::HostMessages;
  const std::uint64_t size = array.size();
  for (std::uint64_t k = 0; k < n; ++k) {
    if (static_cast<std::uint64_t>(indices[k]) >= size) [[unlikely]]
      bad_index_of_many(call, std::to_string(indices[k]), k, n, size);
  }
  const std::uint64_t elements = HostMessages::offset_of(rt, call, "an array's part", array.part().data(),
                                                         array.most() * sizeof(T), alignof(T));
  if constexpr (requires(T * element) { many.store(0, element); }) {
    // Among several PEs a branch for those of this one costs more than their messages.
    if (array.pes() == 1 && rt.heap().on_host()) {
      for (std::uint64_t k = 0; k < n; ++k)
        many.store(k, array.target(static_cast<std::uint64_t>(indices[k])));
      return;
    }
  }
  constexpr std::uint32_t kAtOnce = 256;
  std::uint64_t rows[(1 + Many::kOperands) * kAtOnce];
  for (std::uint64_t first = 0; first < n; first += kAtOnce) {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kAtOnce, n - first));
    for (std::uint32_t i = 0; i < count; ++i) {
      const Place at = array.place(static_cast<std::uint64_t>(indices[first + i]));
      rows[i] = address_word(at.pe, elements + at.index * sizeof(T));
      if constexpr (Many::kOperands > 0) {
        std::uint64_t operands[Many::kOperands];
        many.write(first + i, operands);
        for (std::uint32_t r = 0; r < Many::kOperands; ++r) rows[(1 + r) * count + i] = operands[r];
      }
    }
    HostMessages::post(rt, many.command(), 1 + Many::kOperands, count, rows);
  }
}

/// Where all lists are in a device's memory, its lanes send; else the program does.
template <class Pass, class Array, class Index, class Many>
void do_many(Runtime& rt, const char* call, const Array& array, const Index* indices, std::uint64_t n,
             Many many) {
  if (n == 0) return;
  if (array.pes() > rt.n_pes()) bad_pes(call, array.pes(), rt.n_pes());
  const auto is_on_device = [&](const void* at) { return esker::detail::HostMessages::is_on_device(rt, at); };
  bool all_on_device = is_on_device(indices);
  many.lists([&](const auto* list) { all_on_device = all_on_device && is_on_device(list); });
  if (all_on_device) {
    rt.launch(n, EachIndex<Array, Index, Many>{array, indices, many}, call);
    return;
  }
  std::vector<std::vector<std::byte>> copies;
  const auto bring = [&](auto& list) {
    if (!is_on_device(list)) return;
    auto& copy = copies.emplace_back(n * sizeof *list);
    esker::detail::CollectiveCalls::copy_out(rt, copy.data(), list, copy.size());
    list = reinterpret_cast<std::remove_reference_t<decltype(list)>>(copy.data());
  };
  bring(indices);
  many.lists(bring);
  send_many(rt, call, array, indices, n, many);
}

}  // namespace esker::containers
