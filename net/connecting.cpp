// Gathers that are waited for.
#include <esker/net/connecting.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
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

std::string first_reason(Transport& transport, const std::string& why) {
  std::array<std::uint64_t, 6> text{};
  std::memcpy(text.data(), why.data(), std::min(why.size(), sizeof text - 1));
  const std::vector<GatherBlock> reasons = gather_now(transport, text);
  for (std::uint32_t pe = 0; pe < transport.n_pes(); ++pe) {
    const auto* const reason = reinterpret_cast<const char*>(reasons[pe].values.data());
    if (*reason != 0) return fmt::format("PE {}: {}", pe, pe == transport.pe() ? why : reason);
  }
  return {};
}

}  // namespace esker
