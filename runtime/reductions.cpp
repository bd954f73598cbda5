// Reductions and scans. PEs give their values whole where these are few; else each PE combines one slice of
// all, which costs no more on many PEs than on two.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <esker/runtime/data_collectives.hpp>

namespace esker {
namespace {

constexpr std::size_t kWholeBytes = std::size_t{64} << 10;  // of all PEs: beyond, slices
constexpr std::size_t kSliceBytes = std::size_t{4} << 20;   // of all slices of a round
constexpr std::size_t kLeastSliceBytes = 4096;

std::byte* at(void* values, std::uint64_t bytes) { return static_cast<std::byte*>(values) + bytes; }

DataCollectives::Meaning meaning_of(Collective as, const detail::ElementType& type,
                                    const detail::Combiner& operation, std::uint64_t n) {
  DataCollectives::Meaning mine{as, type, n, operation};
  if (operation.combine == nullptr) mine.problem = fmt::format("there is no such reduction of {}", type.name);
  return mine;
}

}  // namespace

std::optional<std::vector<std::byte>> DataCollectives::gather_few(const Meaning& mine, const void* values,
                                                                  std::size_t bytes) {
  Few few{};
  if (bytes <= kFewBytes) take(few.data(), values, bytes);
  const std::vector<Few> given = agree(mine, few);
  if (bytes * job_.n_pes > kWholeBytes) return std::nullopt;
  std::vector<std::byte> all(bytes * job_.n_pes);
  if (bytes <= kFewBytes) {
    for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe)
      std::copy_n(given[pe].data(), bytes, all.data() + pe * bytes);
    return all;
  }
  together(mine.call, [&] {
    Exchange& e = prepare(Exchange::Kind::kAllGather, 0, bytes, bytes, all.size());
    take(e.send.data(), values, bytes);
    exchange(mine.call);
    std::copy_n(e.receive.data(), all.size(), all.data());
  });
  return all;
}

template <class Combine, class Finish>
void DataCollectives::in_slices(Collective as, const ElementType& type, const void* values, std::uint64_t n,
                                Back back, std::uint32_t root, Combine combine, Finish finish) {
  const std::uint32_t n_pes = job_.n_pes;
  const std::uint64_t most = std::max<std::uint64_t>(
      1, std::max(kSliceBytes / n_pes, kLeastSliceBytes) / type.bytes);  // elements of a slice
  for (std::uint64_t first = 0; first < n; first += most * n_pes) {
    const std::uint64_t here = std::min(most * n_pes, n - first);
    const std::uint64_t slice = (here + n_pes - 1) / n_pes;
    const std::size_t slice_bytes = slice * type.bytes;
    Exchange& e =
        prepare(Exchange::Kind::kAllToAll, 0, slice_bytes, n_pes * slice_bytes, n_pes * slice_bytes);
    e.send_bytes.assign(n_pes, static_cast<std::uint32_t>(slice_bytes));
    e.receive_bytes = e.send_bytes;
    take(e.send.data(), static_cast<const std::byte*>(values) + first * type.bytes, here * type.bytes);
    exchange(as);
    // The last slices may be shorter, or empty.
    combine(e, slice_bytes, std::min(slice, here - std::min(here, job_.pe * slice)));
    if (back == Back::kToAll) e.kind = Exchange::Kind::kAllGather;
    if (back == Back::kToRoot) e.kind = Exchange::Kind::kGather;
    e.root = root;
    exchange(as);
    if (back != Back::kToRoot || job_.pe == root) finish(e.receive.data(), first, here);
  }
}

void DataCollectives::reduce(Collective as, const ElementType& type, const Combiner& operation, void* values,
                             std::uint64_t n, std::optional<std::uint32_t> root) {
  const CurrentCall::Scope scope(call(), to_string(as));
  Meaning mine = meaning_of(as, type, operation, n);
  mine.root = root;
  check_root(&mine);
  const std::size_t bytes = n * type.bytes;
  if (auto all = gather_few(mine, values, bytes)) {
    if (root && job_.pe != *root) return;
    for (std::uint32_t pe = 1; pe < job_.n_pes; ++pe)
      operation.combine(operation.function, all->data(), all->data() + pe * bytes, n);
    return give(values, all->data(), bytes);
  }
  together(as, [&] {
    in_slices(
        as, type, values, n, root ? Back::kToRoot : Back::kToAll, root.value_or(0),
        [&](Exchange& e, std::size_t slice_bytes, std::uint64_t elements) {
          for (std::uint32_t pe = 1; pe < job_.n_pes; ++pe)
            operation.combine(operation.function, e.receive.data(), e.receive.data() + pe * slice_bytes,
                              elements);
          std::memcpy(e.send.data(), e.receive.data(), elements * type.bytes);
        },
        [&](const std::byte* result, std::uint64_t first, std::uint64_t elements) {
          give(at(values, first * type.bytes), result, elements * type.bytes);
        });
  });
  release_staging();
}

void DataCollectives::scan(Collective as, const ElementType& type, const Combiner& operation, void* values,
                           std::uint64_t n, const void* initial) {
  const CurrentCall::Scope scope(call(), to_string(as));
  const Meaning mine = meaning_of(as, type, operation, n);
  const std::size_t bytes = n * type.bytes;
  if (auto all = gather_few(mine, values, bytes)) {
    for (std::uint32_t pe = 1; pe < job_.pe; ++pe)
      operation.combine(operation.function, all->data(), all->data() + pe * bytes, n);
    return give_scanned(type, operation, values, all->data(), n, initial);
  }
  together(as, [&] {
    in_slices(
        as, type, values, n, Back::kToEach, 0,
        [&](Exchange& e, std::size_t slice_bytes, std::uint64_t elements) {
          // For each PE what those before it come to. What is for PE 0 it does not use.
          for (std::uint32_t pe = 1; pe < job_.n_pes; ++pe) {
            std::memcpy(e.send.data() + pe * slice_bytes, e.receive.data(), elements * type.bytes);
            operation.combine(operation.function, e.receive.data(), e.receive.data() + pe * slice_bytes,
                              elements);
          }
        },
        [&](const std::byte* before, std::uint64_t first, std::uint64_t elements) {
          give_scanned(type, operation, at(values, first * type.bytes), before, elements, initial);
        });
  });
  release_staging();
}

void DataCollectives::give_scanned(const ElementType& type, const Combiner& operation, void* to,
                                   const std::byte* before, std::uint64_t n, const void* initial) const {
  std::vector<std::byte> result(n * type.bytes);
  for (std::uint64_t i = 0; i < n; ++i) std::memcpy(result.data() + i * type.bytes, initial, type.bytes);
  if (job_.pe > 0) operation.combine(operation.function, result.data(), before, n);
  give(to, result.data(), result.size());
}

}  // namespace esker
