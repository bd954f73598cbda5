// What the templates of <esker/collectives.hpp> call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/runtime/element_type.hpp>

namespace esker {

class Runtime;

namespace detail {

/// Contract. As the templates'. Addresses are of host or of device memory; `n` and what is like it counts
///           elements.
class ESKER_API CollectiveCalls {
 public:
  static void sync_all(Runtime& rt);
  static void broadcast(Runtime& rt, const ElementType& type, void* values, std::uint64_t n,
                        std::uint32_t root);
  static void gather(Runtime& rt, const ElementType& type, const void* mine, std::uint64_t n, void* all,
                     std::uint64_t all_n, std::uint32_t root);
  static void all_gather(Runtime& rt, const ElementType& type, const void* mine, std::uint64_t n, void* all,
                         std::uint64_t all_n);
  static void scatter(Runtime& rt, const ElementType& type, const void* all, std::uint64_t all_n, void* mine,
                      std::uint64_t n, std::uint32_t root);
  static void reduce(Runtime& rt, const ElementType& type, const Combiner& operation, void* values,
                     std::uint64_t n, std::uint32_t root);
  static void all_reduce(Runtime& rt, const ElementType& type, const Combiner& operation, void* values,
                         std::uint64_t n);
  static void exclusive_scan(Runtime& rt, const ElementType& type, const Combiner& operation, void* values,
                             std::uint64_t n, const void* initial);
  static std::vector<std::uint64_t> all_to_all(Runtime& rt, const ElementType& type, const void* values,
                                               std::uint64_t n, const std::uint64_t* counts,
                                               std::uint64_t n_counts, const Destination& into);
  /// Sorts the `n` keys in the host's memory at `keys`, which `into` owns too and has resized.
  static void sort(Runtime& rt, const ElementType& type, KeyKind kind, void* keys, std::uint64_t n,
                   const Destination& into);
  /// Local. From host or device memory.
  static void copy_out(Runtime& rt, void* to, const void* from, std::size_t bytes);
};

}  // namespace detail
}  // namespace esker
