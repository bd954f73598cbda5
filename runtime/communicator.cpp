// Groups of processes and of threads.
#include <esker/config.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <esker/aggregator/command.hpp>
#include <esker/device/error.hpp>
#include <esker/net/loopback/transport.hpp>
#include <esker/runtime/pe_group.hpp>

namespace esker {
namespace {

/// The handle as bytes, since not every build has MPI's headers.
class Processes final : public detail::PeGroup {
 public:
  explicit Processes(std::vector<std::byte> mpi_comm) : mpi_comm_{std::move(mpi_comm)} {}
  Medium medium(const Config& config) const override { return over_communicator(mpi_comm_, config); }

 private:
  const std::vector<std::byte> mpi_comm_;
};

/// Threads of this process. Each Runtime is over a world of its own: the k-th one that a PE makes meets the
/// k-th one of the others.
class ThreadWorlds {
 public:
  explicit ThreadWorlds(std::uint32_t n) : made_(n) {}

  std::shared_ptr<loopback::World> next(std::uint32_t pe) {
    const std::lock_guard lock(mutex_);
    Open& open = open_[made_[pe]++];
    if (open.world == nullptr) open.world = std::make_shared<loopback::World>(size());
    std::shared_ptr<loopback::World> world = open.world;
    if (++open.taken == size()) open_.erase(made_[pe] - 1);
    return world;
  }

 private:
  struct Open {
    std::shared_ptr<loopback::World> world;
    std::uint32_t taken = 0;  // by so many PEs
  };
  std::uint32_t size() const { return static_cast<std::uint32_t>(made_.size()); }

  std::mutex mutex_;
  std::vector<std::uint64_t> made_;     // guarded by mutex_; Runtimes, by PE
  std::map<std::uint64_t, Open> open_;  // guarded by mutex_; by number: some PEs have not come yet
};

class Threads final : public detail::PeGroup {
 public:
  Threads(std::shared_ptr<ThreadWorlds> worlds, std::uint32_t pe) : worlds_{std::move(worlds)}, pe_{pe} {}

  Medium medium(const Config& config) const override {
    if (config.transport == TransportKind::kMpi || config.transport == TransportKind::kUcx) {
      throw Error(
          Error::Kind::kConfiguration,
          "Runtime: its PEs are threads of this process, and the transport is to be mpi or ucx: leave "
          "--transport out");
    }
    // Taken by the call, and kept for as long as the transport.
    return {[worlds = worlds_, pe = pe_,
             world = std::shared_ptr<loopback::World>{}](const TransportLimits& limits) mutable {
              world = worlds->next(pe);
              return world->connect(pe, limits);
            },
            true};
  }

 private:
  const std::shared_ptr<ThreadWorlds> worlds_;
  const std::uint32_t pe_;
};

}  // namespace

Communicator::Communicator(const void* mpi_comm, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(mpi_comm);
  group_ = std::make_shared<const Processes>(std::vector<std::byte>(first, first + bytes));
}

std::vector<Communicator> Communicator::threads(std::uint32_t n) {
  if (n == 0 || n > kMaxPes) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("Communicator::threads: {} PEs; legal are 1 to {}", n, kMaxPes));
  }
  const auto worlds = std::make_shared<ThreadWorlds>(n);
  std::vector<Communicator> all;
  for (std::uint32_t pe = 0; pe < n; ++pe)
    all.push_back(Communicator(std::make_shared<const Threads>(worlds, pe)));
  return all;
}

}  // namespace esker
