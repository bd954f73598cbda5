// Broadcast, gather, scatter, all-to-all: the rounds of each.
#include <esker/runtime/data_collectives.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <esker/device/device.hpp>
#include <esker/device/hash.hpp>

namespace esker {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{8} << 20;  // each way, in a round
constexpr std::size_t kLeastBlockBytes = 4096;               // beyond some thousand PEs it is more
constexpr std::size_t kKeptBytes = std::size_t{64} << 10;    // between calls

std::byte* at(void* values, std::uint64_t bytes) { return static_cast<std::byte*>(values) + bytes; }
const std::byte* at(const void* values, std::uint64_t bytes) {
  return static_cast<const std::byte*>(values) + bytes;
}

std::string in_words(const DataCollectives::Meaning& meaning) {
  std::string text;
  if (meaning.operation.combine != nullptr) {
    text = meaning.operation.is_own ? fmt::format("the operation {} on ", meaning.operation.name)
                                    : fmt::format("the {} of ", meaning.operation.name);
  }
  if (meaning.n) text += fmt::format("{} ", *meaning.n);
  text += meaning.type.name;
  if (meaning.root) text += fmt::format(", root {}", *meaning.root);
  return text;
}

/// The same for equal meanings. Never 0, which stands for a problem.
std::uint64_t hash_of(const DataCollectives::Meaning& meaning) { return hash_text(in_words(meaning)) | 1; }

}  // namespace

// --- Agreement.

std::vector<DataCollectives::Few> DataCollectives::agree(const Meaning& mine, const Few& few) {
  Collectives::Values words{mine.n.value_or(0), mine.problem.empty() ? hash_of(mine) : 0};
  static_assert(sizeof words == 2 * sizeof words[0] + kFewBytes);
  std::memcpy(&words[2], few.data(), kFewBytes);
  const std::vector<GatherBlock> blocks = collectives_.gather(mine.call, words);
  const auto differs = [&](const GatherBlock& block) {
    return block.values[1] == 0 || block.values[1] != blocks[0].values[1] ||
           block.values[0] != blocks[0].values[0];
  };
  if (std::any_of(blocks.begin(), blocks.end(), differs)) throw_differences(mine);
  std::vector<Few> all(blocks.size());
  for (std::size_t pe = 0; pe < blocks.size(); ++pe)
    std::memcpy(all[pe].data(), &blocks[pe].values[2], kFewBytes);
  return all;
}

void DataCollectives::throw_differences(const Meaning& mine) {
  // Each PE's words, cut to a length of so many gathers. The first says what they are.
  constexpr std::size_t kGathers = 6;
  constexpr std::size_t kBytes = sizeof(Collectives::Values);
  const std::string& text = mine.problem.empty() ? in_words(mine) : mine.problem;
  std::vector<std::string> texts(job_.n_pes);
  std::vector<std::optional<Error::Kind>> problems(job_.n_pes);
  for (std::size_t i = 0; i < kGathers; ++i) {
    Collectives::Values words{};
    if (i == 0) {
      words = {mine.problem.empty() ? 0u : 1u, static_cast<std::uint64_t>(mine.kind)};
    } else if (const std::size_t from = (i - 1) * kBytes; from < text.size()) {
      std::memcpy(words.data(), text.data() + from, std::min(kBytes, text.size() - from));
    }
    const std::vector<GatherBlock> blocks = collectives_.gather(mine.call, words);
    for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
      if (i == 0) {
        if (blocks[pe].values[0] != 0) problems[pe] = static_cast<Error::Kind>(blocks[pe].values[1]);
        continue;
      }
      std::array<char, kBytes> part{};
      std::memcpy(part.data(), blocks[pe].values.data(), kBytes);
      texts[pe].append(part.data(), strnlen(part.data(), kBytes));
    }
  }
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    if (problems[pe])
      throw Error(*problems[pe], fmt::format("{}: {}: {}", to_string(mine.call), job_.name(pe), texts[pe]));
  }
  std::uint32_t other = 1;
  while (other + 1 < job_.n_pes && texts[other] == texts[0]) ++other;
  throw Error(Error::Kind::kContract,
              fmt::format("{}: {} asks for {}, {} for {}: these must be the same on every PE",
                          to_string(mine.call), job_.name(other), texts[other], job_.name(0), texts[0]));
}

void DataCollectives::check_root(Meaning* mine) const {
  if (mine->root && *mine->root >= job_.n_pes && mine->problem.empty())
    mine->problem = fmt::format("the root is {}, and there are {} PEs", *mine->root, job_.n_pes);
}

// --- Memory.

void DataCollectives::take(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  const bool on_host =
      !executor_.on_device() || executor_.device().range_of(from).place == MemoryPlace::kPageable;
  if (on_host)
    std::memcpy(to, from, bytes);
  else
    executor_.read(to, static_cast<const std::byte*>(from), bytes);
}

void DataCollectives::give(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  const bool on_host =
      !executor_.on_device() || executor_.device().range_of(to).place == MemoryPlace::kPageable;
  if (on_host)
    std::memcpy(to, from, bytes);
  else
    executor_.write(static_cast<std::byte*>(to), from, bytes);
}

std::size_t DataCollectives::block_bytes() const {
  return std::max(kStagingBytes / job_.n_pes, kLeastBlockBytes);
}

Exchange& DataCollectives::prepare(Exchange::Kind kind, std::uint32_t root, std::size_t block_bytes,
                                   std::size_t send_bytes, std::size_t receive_bytes) {
  if (exchange_ == nullptr) exchange_ = std::make_shared<Exchange>();
  Exchange& e = *exchange_;
  if (send_bytes > Exchange::kMostBytes || receive_bytes > Exchange::kMostBytes) {
    misuse(fmt::format("an exchange of {} and {} bytes: the most is {}", send_bytes, receive_bytes,
                       Exchange::kMostBytes));
  }
  e.kind = kind;
  e.root = root;
  e.block_bytes = block_bytes;
  if (e.send.size() < send_bytes) e.send.resize(send_bytes);
  if (e.receive.size() < receive_bytes) e.receive.resize(receive_bytes);
  return e;
}

void DataCollectives::release_staging() {
  if (exchange_ != nullptr && exchange_->send.size() + exchange_->receive.size() > kKeptBytes)
    exchange_.reset();
}

// --- Movement.

void DataCollectives::broadcast(const ElementType& type, void* values, std::uint64_t n, std::uint32_t root) {
  constexpr Collective kCall = Collective::kBroadcast;
  const CurrentCall::Scope scope(call(), to_string(kCall));
  Meaning mine{kCall, type, n};
  mine.root = root;
  check_root(&mine);
  const std::uint64_t bytes = n * type.bytes;
  Few few{};
  const bool is_root = job_.pe == root;
  if (bytes <= kFewBytes && is_root) take(few.data(), values, bytes);
  const std::vector<Few> all = agree(mine, few);
  if (bytes <= kFewBytes) {
    if (!is_root) give(values, all[root].data(), bytes);
    return;
  }
  together(kCall, [&] {
    for (std::uint64_t from = 0; from < bytes; from += kStagingBytes) {
      const std::size_t size = std::min<std::uint64_t>(kStagingBytes, bytes - from);
      Exchange& e = prepare(Exchange::Kind::kBroadcast, root, size, is_root ? size : 0, is_root ? 0 : size);
      if (is_root) take(e.send.data(), at(values, from), size);
      exchange(kCall);
      if (!is_root) give(at(values, from), e.receive.data(), size);
    }
  });
  release_staging();
}

void DataCollectives::gather(Collective as, const ElementType& type, const void* mine, std::uint64_t n,
                             void* all, std::uint64_t all_n, std::optional<std::uint32_t> root) {
  const CurrentCall::Scope scope(call(), to_string(as));
  const bool receives = !root || job_.pe == *root;
  Meaning meaning{as, type, n};
  meaning.root = root;
  if (receives && all_n != n * job_.n_pes) {
    meaning.problem =
        fmt::format("the result has room for {} elements, and {} PEs give {} each", all_n, job_.n_pes, n);
  }
  check_root(&meaning);
  const std::uint64_t bytes = n * type.bytes;
  Few few{};
  if (bytes <= kFewBytes) take(few.data(), mine, bytes);
  const std::vector<Few> given = agree(meaning, few);
  if (bytes <= kFewBytes) {
    for (std::uint32_t pe = 0; receives && pe < job_.n_pes; ++pe)
      give(at(all, pe * bytes), given[pe].data(), bytes);
    return;
  }
  together(as, [&] {
    for (std::uint64_t from = 0; from < bytes; from += block_bytes()) {
      const std::size_t size = std::min<std::uint64_t>(block_bytes(), bytes - from);
      Exchange& e = prepare(root ? Exchange::Kind::kGather : Exchange::Kind::kAllGather, root.value_or(0),
                            size, size, receives ? size * job_.n_pes : 0);
      take(e.send.data(), at(mine, from), size);
      exchange(as);
      for (std::uint32_t pe = 0; receives && pe < job_.n_pes; ++pe)
        give(at(all, pe * bytes + from), e.receive.data() + pe * size, size);
    }
  });
  release_staging();
}

void DataCollectives::scatter(const ElementType& type, const void* all, std::uint64_t all_n, void* mine,
                              std::uint64_t n, std::uint32_t root) {
  constexpr Collective kCall = Collective::kScatter;
  const CurrentCall::Scope scope(call(), to_string(kCall));
  const bool is_root = job_.pe == root;
  Meaning meaning{kCall, type, n};
  meaning.root = root;
  if (is_root && all_n != n * job_.n_pes) {
    meaning.problem = fmt::format("the root has {} elements, and {} PEs get {} each", all_n, job_.n_pes, n);
  }
  check_root(&meaning);
  agree(meaning);
  const std::uint64_t bytes = n * type.bytes;
  together(kCall, [&] {
    for (std::uint64_t from = 0; from < bytes; from += block_bytes()) {
      const std::size_t size = std::min<std::uint64_t>(block_bytes(), bytes - from);
      Exchange& e = prepare(Exchange::Kind::kScatter, root, size, is_root ? size * job_.n_pes : 0, size);
      for (std::uint32_t pe = 0; is_root && pe < job_.n_pes; ++pe)
        take(e.send.data() + pe * size, at(all, pe * bytes + from), size);
      exchange(kCall);
      give(at(mine, from), e.receive.data(), size);
    }
  });
  release_staging();
}

std::vector<std::uint64_t> DataCollectives::all_to_all(Collective as, const ElementType& type,
                                                       const void* values, std::uint64_t n,
                                                       std::span<const std::uint64_t> counts,
                                                       const Destination& into) {
  const CurrentCall::Scope scope(call(), to_string(as));
  const std::uint32_t n_pes = job_.n_pes;
  Meaning meaning{as, type};
  std::uint64_t sum = 0;
  bool is_too_much = false;
  for (const std::uint64_t count : counts) {
    is_too_much |= count > n - sum;
    sum += is_too_much ? 0 : count;
  }
  if (counts.size() != n_pes) {
    meaning.problem = fmt::format("there are {} counts, and {} PEs", counts.size(), n_pes);
  } else if (is_too_much || sum != n) {
    meaning.problem = fmt::format("the counts come to {} elements, and there are {}",
                                  is_too_much ? "more" : std::to_string(sum), n);
  }
  agree(meaning);

  std::vector<std::uint64_t> received(n_pes);
  const std::vector<std::uint32_t> eight(n_pes, sizeof(std::uint64_t));
  Exchange& e =
      prepare(Exchange::Kind::kAllToAll, 0, 0, n_pes * sizeof(std::uint64_t), n_pes * sizeof(std::uint64_t));
  e.send_bytes = e.receive_bytes = eight;
  std::memcpy(e.send.data(), counts.data(), counts.size_bytes());
  exchange(as);
  std::memcpy(received.data(), e.receive.data(), n_pes * sizeof(std::uint64_t));

  // Whether all have room for what they get, and the most that one PE has for another.
  std::uint64_t to_receive = 0;
  for (const std::uint64_t count : received) to_receive += count;
  void* to = nullptr;
  try {
    to = into.resize(into.object, to_receive);
    if (to == nullptr && to_receive > 0)
      meaning.problem = fmt::format("it gets {} elements, for which the result has no room", to_receive);
  } catch (const std::exception& error) {
    meaning.kind = Error::Kind::kOutOfMemory;
    meaning.problem =
        fmt::format("it gets {} elements of {} bytes: {}", to_receive, type.bytes, error.what());
  }
  Few few{};
  std::uint64_t most = 0;
  for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
    if (pe != job_.pe) most = std::max(most, counts[pe] * type.bytes);
  }
  std::memcpy(few.data(), &most, sizeof most);
  for (const Few& other : agree(meaning, few)) {
    std::uint64_t its = 0;
    std::memcpy(&its, other.data(), sizeof its);
    most = std::max(most, its);
  }

  together(as, [&] {
    std::vector<std::uint64_t> send_at(n_pes), receive_at(n_pes);  // bytes
    for (std::uint32_t pe = 1; pe < n_pes; ++pe) {
      send_at[pe] = send_at[pe - 1] + counts[pe - 1] * type.bytes;
      receive_at[pe] = receive_at[pe - 1] + received[pe - 1] * type.bytes;
    }
    const std::size_t own_bytes = counts[job_.pe] * type.bytes;
    for (std::size_t from = 0; from < own_bytes; from += kStagingBytes) {  // either side may be a GPU's
      const std::size_t size = std::min(kStagingBytes, own_bytes - from);
      const void* const own = at(values, send_at[job_.pe] + from);
      if (!executor_.on_device()) {
        std::memcpy(at(to, receive_at[job_.pe] + from), own, size);
        continue;
      }
      Exchange& staging = prepare(Exchange::Kind::kAllToAll, 0, 0, size, 0);
      take(staging.send.data(), own, size);
      give(at(to, receive_at[job_.pe] + from), staging.send.data(), size);
    }
    for (std::uint64_t from = 0; from < most; from += block_bytes()) {
      const auto part = [&](std::uint64_t count, std::uint32_t pe) {
        const std::uint64_t bytes = pe == job_.pe ? 0 : count * type.bytes;
        return static_cast<std::uint32_t>(bytes > from ? std::min<std::uint64_t>(block_bytes(), bytes - from)
                                                       : 0);
      };
      std::vector<std::uint32_t> sends(n_pes), receives(n_pes);
      std::size_t send_bytes = 0, receive_bytes = 0;
      for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
        send_bytes += sends[pe] = part(counts[pe], pe);
        receive_bytes += receives[pe] = part(received[pe], pe);
      }
      Exchange& round = prepare(Exchange::Kind::kAllToAll, 0, 0, send_bytes, receive_bytes);
      for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
        if (sends[pe] > 0)
          take(round.send.data() + Exchange::start_of(sends, pe), at(values, send_at[pe] + from), sends[pe]);
      }
      round.send_bytes = std::move(sends);
      round.receive_bytes = receives;
      exchange(as);
      for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
        if (receives[pe] > 0)
          give(at(to, receive_at[pe] + from), round.receive.data() + Exchange::start_of(receives, pe),
               receives[pe]);
      }
    }
  });
  release_staging();
  return received;
}

}  // namespace esker
