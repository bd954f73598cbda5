// The collective calls of a Runtime.
#include <esker/runtime/collective_calls.hpp>

#include <span>

#include <esker/runtime/data_collectives.hpp>
#include <esker/runtime/impl.hpp>

namespace esker::detail {

void CollectiveCalls::sync_all(Runtime& rt) { rt.impl_->data().sync_all(); }

void CollectiveCalls::broadcast(Runtime& rt, const ElementType& type, void* values, std::uint64_t n,
                                std::uint32_t root) {
  rt.impl_->data().broadcast(type, values, n, root);
}

void CollectiveCalls::gather(Runtime& rt, const ElementType& type, const void* mine, std::uint64_t n,
                             void* all, std::uint64_t all_n, std::uint32_t root) {
  rt.impl_->data().gather(Collective::kGather, type, mine, n, all, all_n, root);
}

void CollectiveCalls::all_gather(Runtime& rt, const ElementType& type, const void* mine, std::uint64_t n,
                                 void* all, std::uint64_t all_n) {
  rt.impl_->data().gather(Collective::kAllGather, type, mine, n, all, all_n, std::nullopt);
}

void CollectiveCalls::scatter(Runtime& rt, const ElementType& type, const void* all, std::uint64_t all_n,
                              void* mine, std::uint64_t n, std::uint32_t root) {
  rt.impl_->data().scatter(type, all, all_n, mine, n, root);
}

void CollectiveCalls::reduce(Runtime& rt, const ElementType& type, const Combiner& operation, void* values,
                             std::uint64_t n, std::uint32_t root) {
  rt.impl_->data().reduce(Collective::kReduce, type, operation, values, n, root);
}

void CollectiveCalls::all_reduce(Runtime& rt, const ElementType& type, const Combiner& operation,
                                 void* values, std::uint64_t n) {
  rt.impl_->data().reduce(Collective::kAllReduce, type, operation, values, n, std::nullopt);
}

void CollectiveCalls::exclusive_scan(Runtime& rt, const ElementType& type, const Combiner& operation,
                                     void* values, std::uint64_t n, const void* initial) {
  rt.impl_->data().scan(Collective::kScan, type, operation, values, n, initial);
}

std::vector<std::uint64_t> CollectiveCalls::all_to_all(Runtime& rt, const ElementType& type,
                                                       const void* values, std::uint64_t n,
                                                       const std::uint64_t* counts, std::uint64_t n_counts,
                                                       const Destination& into) {
  return rt.impl_->data().all_to_all(Collective::kAllToAll, type, values, n, std::span(counts, n_counts),
                                     into);
}

void CollectiveCalls::copy_out(Runtime& rt, void* to, const void* from, std::size_t bytes) {
  rt.impl_->data().take(to, from, bytes);
}

}  // namespace esker::detail
