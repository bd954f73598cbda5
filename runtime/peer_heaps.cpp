// Offers of segments by a gather, and loads in bulk.
#include <esker/runtime/peer_heaps.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

#include <esker/aggregator/operations.hpp>
#include <esker/net/handler.hpp>

namespace esker {
namespace {

/// 16 bytes are two halves.
template <class T>
void copy_word(std::byte* to, const std::byte* from) {
  if constexpr (std::is_same_v<T, Bytes16>) {
    copy_word<std::uint64_t>(to, from);
    copy_word<std::uint64_t>(to + 8, from + 8);
  } else {
    auto* const source = reinterpret_cast<T*>(const_cast<std::byte*>(from));
    const T value = std::atomic_ref<T>(*source).load(std::memory_order_relaxed);
    std::atomic_ref<T>(*reinterpret_cast<T*>(to)).store(value, std::memory_order_relaxed);
  }
}

}  // namespace

std::string PeerHeaps::open(const JobShape& job, HeapMemory& heap, Collectives& collectives, bool peers_too) {
  pe_ = job.pe;
  bases_.assign(job.n_pes, nullptr);
  bases_[job.pe] = heap.base();
  const shared::SegmentFile mine = heap.segment() != nullptr ? heap.segment()->file() : shared::SegmentFile{};
  const auto offers =
      collectives.gather(Collective::kStart, {static_cast<std::uint64_t>(mine.number), mine.inode});
  std::string why = heap.why_private();
  for (std::uint32_t pe = 0; pe < job.n_pes && peers_too; ++pe) {
    if (pe == job.pe || job.process(pe) == 0) continue;
    const shared::SegmentFile file{static_cast<std::int64_t>(offers[pe].values[0]), offers[pe].values[1]};
    auto peer = std::make_unique<shared::Segment>(heap.limit_bytes());
    std::string why_not = file.number < 0 ? "its heap is private" : peer->open(job.process(pe), file);
    if (why_not.empty()) {
      bases_[pe] = peer->at();
      peers_.push_back(std::move(peer));
    } else if (why.empty()) {
      why = job.name(pe) + ": " + std::move(why_not);
    }
  }
  collectives.gather(Collective::kStart, {});  // all have opened it
  if (heap.segment() != nullptr) heap.segment()->close_file();
  return why;
}

std::uint32_t PeerHeaps::serve_gets(Command command, std::uint64_t* rows, std::uint32_t columns,
                                    std::uint32_t count) {
  if (command.operation != Operation::kGet || command.handler != 0) return count;
  return with_request(command, [&]<Operation, class T>() { return serve<T>(rows, rows + columns, count); });
}

template <class T>
std::uint32_t PeerHeaps::serve(std::uint64_t* address, std::uint64_t* result, std::uint32_t count) {
  constexpr std::uint32_t kAhead = 24;  // lines under way, as in the loops of appliers
  std::byte* const own = bases_[pe_];
  const auto source = [&](std::uint32_t i) -> const std::byte* {
    const std::byte* const base = bases_[address[i] >> kOffsetBits];
    return base == nullptr ? nullptr : base + (address[i] & kOffsetMask);
  };
  for (std::uint32_t i = 0; i < std::min(kAhead, count); ++i) __builtin_prefetch(source(i));
  std::uint32_t left = 0, local = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(source(i + kAhead));
    const std::byte* const from = source(i);
    if (from == nullptr) {
      address[left] = address[i];
      result[left++] = result[i];
      continue;
    }
    local += address[i] >> kOffsetBits == pe_ ? 1 : 0;
    copy_word<T>(own + result[i], from);
  }
  local_gets_.fetch_add(local, std::memory_order_relaxed);
  remote_gets_.fetch_add(count - left - local, std::memory_order_relaxed);
  return left;
}

}  // namespace esker
