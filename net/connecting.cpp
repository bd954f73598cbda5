// Gathers that are waited for.
#include <esker/net/connecting.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>

#include <esker/device/error.hpp>

namespace esker {
namespace {
constexpr std::chrono::milliseconds kLookForDeadEvery{500};
}

std::vector<GatherBlock> gather_now(Transport& transport, const std::array<std::uint64_t, 6>& values,
                                    const std::function<void()>& meanwhile) {
  GatherBlock mine;
  mine.values = values;
  std::vector<GatherBlock> all(transport.n_pes());
  transport.begin_gather(mine);
  auto look = std::chrono::steady_clock::now() + kLookForDeadEvery;
  while (!transport.test_gather(all)) {
    if (meanwhile) meanwhile();
    std::this_thread::yield();
    if (std::chrono::steady_clock::now() < look) continue;
    look = std::chrono::steady_clock::now() + kLookForDeadEvery;
    if (const std::string dead = transport.find_dead_peer(); !dead.empty())
      throw Error(Error::Kind::kNetwork, dead);
  }
  return all;
}

void close_and_rethrow(Transport& transport) {
  const std::exception_ptr cause = std::current_exception();
  try {
    transport.close(false);
  } catch (const std::exception&) {  // since that went wrong before
  }
  std::rethrow_exception(cause);
}

bool must_some(Transport& transport, Wish mine) {
  const std::vector<GatherBlock> wishes = gather_now(transport, {mine == Wish::kMust ? 1u : 0u});
  return std::any_of(wishes.begin(), wishes.end(), [](const auto& wish) { return wish.values[0] != 0; });
}

std::vector<std::vector<std::byte>> gather_bytes(Transport& transport, std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> all;
  std::size_t longest = 0;
  for (const GatherBlock& block : gather_now(transport, {mine.size()})) {
    all.emplace_back(block.values[0]);
    longest = std::max(longest, all.back().size());
  }
  std::array<std::uint64_t, 6> piece{};
  const auto bytes_at = [&](std::size_t at, std::size_t size) {
    return at < size ? std::min(sizeof piece, size - at) : 0;
  };
  for (std::size_t at = 0; at < longest; at += sizeof piece) {
    if (const std::size_t bytes = bytes_at(at, mine.size())) std::memcpy(piece.data(), &mine[at], bytes);
    const std::vector<GatherBlock> pieces = gather_now(transport, piece);
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
      if (const std::size_t bytes = bytes_at(at, all[pe].size()))
        std::memcpy(&all[pe][at], pieces[pe].values.data(), bytes);
    }
  }
  return all;
}

std::string first_reason(Transport& transport, const std::string& why) {
  const auto reasons = gather_bytes(transport, std::as_bytes(std::span(why)));
  for (std::size_t pe = 0; pe < reasons.size(); ++pe) {
    const std::string_view reason(reinterpret_cast<const char*>(reasons[pe].data()), reasons[pe].size());
    if (!reason.empty())
      return fmt::format("{}: {}", name_of(transport, static_cast<std::uint32_t>(pe)), reason);
  }
  return {};
}

}  // namespace esker
