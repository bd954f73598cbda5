// The MPI transport, alone or with shared memory on the host, under mpirun. One transport
// for all tests, since MPI starts once a process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>
#include <esker/net/shared/transport.hpp>

#include "hosts.hpp"
#include "transport_contract.hpp"

namespace esker::testing {
namespace {

std::unique_ptr<Transport> transport;
std::uint64_t stream = 0;  // PE 0's seed, on every PE

/// What a PE throws ends the job: its peers would wait for it.
void run(const std::function<void(Transport&)>& body) {
  try {
    body(*transport);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "PE %u: %s\n", transport->pe(), error.what());
    transport->abort(1);
  }
}

TEST(Mpi, IsOneJobOfHealthyPesOnThisHost) {
  run([](Transport& t) {
    EXPECT_LT(t.pe(), t.n_pes());
    EXPECT_GT(t.n_pes(), 1u) << "needs mpirun";
    EXPECT_EQ(t.pes_on_host(), t.n_pes());
    EXPECT_EQ(t.name().rfind("mpi (", 0), 0u) << t.name();
    EXPECT_EQ(t.find_dead_peer(), "");
    gather(t, {});  // nobody has left meanwhile
  });
}

TEST(Mpi, FramesArriveWholeAndOnceBetweenAllPairs) {
  run([](Transport& t) { check_exchange(t, stream); });
}

TEST(Mpi, SendsDoNotFinishBeforeTheirReceiverTakesThem) {
  run([](Transport& t) { check_push_back(t, stream + 1, kLimits.receives); });
}

TEST(Mpi, HoldsNoMoreFramesThanItsLimitAndLeavesThemAlone) {
  run([](Transport& t) { check_held_frames(t, stream + 2); });
}

TEST(Mpi, GathersReturnEverybodysBlocksOneAfterTheOther) {
  run([](Transport& t) { check_gathers(t, stream + 3); });
}

TEST(Mpi, GathersAndFramesDoNotHoldEachOtherUp) {
  run([](Transport& t) { check_gather_beside_frames(t, stream + 4); });
}

/// This process has so little of a resource, until this ends.
class Limit {
 public:
  Limit(decltype(RLIMIT_NOFILE) resource, rlim_t most) : resource_{resource} {
    getrlimit(resource, &before_);
    const rlimit less{most, before_.rlim_max};
    setrlimit(resource, &less);
  }
  ~Limit() { setrlimit(resource_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  decltype(RLIMIT_NOFILE) resource_;
  rlimit before_{};
};

/// What keeps PE 1 from sharing memory, and what everybody hears of it.
struct Obstacle {
  std::string_view name, reason;
};
constexpr Obstacle kObstacles[] = {{"descriptors", "PE 1: memfd_create: Too many open files"},
                                   {"filesize", "PE 1: files may have 4096 bytes"},
                                   {"off", "PE 1: it has --peer-memory off"},
                                   {"frames", "bytes of rings"}};

/// "": MPI alone. "shared": with shared memory. "hosts": with it, on hosts of two PEs. The name of an
/// obstacle: nobody shares. "must_" before it: PE 0 says that all must, which is an error everywhere: null
/// then.
std::unique_ptr<Transport> connect(std::string_view how) {
  TransportLimits limits = kLimits;
  std::unique_ptr<Transport> mpi = mpi::connect(limits);
  if (how.empty()) return mpi;
  const std::uint32_t pe = mpi->pe();
  const bool must = how.rfind("must_", 0) == 0;
  if (must) how.remove_prefix(5);
  const auto* const obstacle = std::find_if(std::begin(kObstacles), std::end(kObstacles),
                                            [&](const Obstacle& one) { return one.name == how; });
  const bool shares = obstacle == std::end(kObstacles);
  if (shares && how != "shared" && how != "hosts") throw std::runtime_error("no such case");
  if (how == "hosts") mpi = std::make_unique<Hosts>(std::move(mpi));
  if (how == "frames" && pe == 1) limits.frame_bytes += 64;
  auto wish = must && pe == 0 ? Wish::kMust : Wish::kIfAllCan;
  if (how == "off" && pe == 1) wish = Wish::kOff;
  std::unique_ptr<Transport> made;
  std::string said;
  {
    std::optional<Limit> limit;
    if (how == "descriptors" && pe == 1) {
      limit.emplace(RLIMIT_NOFILE, 0);
      if (mpi->find_dead_peer() != "")
        throw std::runtime_error("a peer that cannot be looked at is not dead");
    }
    if (how == "filesize" && pe == 1) limit.emplace(RLIMIT_FSIZE, 4096);
    try {
      made = shared::connect(std::move(mpi), limits, wish);
      said = made->name();
    } catch (const Error& error) {
      said = error.what();
    }
  }
  if (must != (made == nullptr)) throw std::runtime_error(said);
  if (shares) {
    const bool has_peer = how != "hosts" || pe % 2 == 1 || pe + 1 < made->n_pes();
    if ((said.find(", shared memory") != std::string::npos) != has_peer) throw std::runtime_error(said);
  } else if (must || wish != Wish::kOff) {
    if (said.find(obstacle->reason) == std::string::npos) throw std::runtime_error(said);
  }
  return made;
}

/// Collective. MPI was started by connect(), so an orderly close must end it.
bool closes_and_ends_mpi() {
  transport->close(true);
  try {
    mpi::find_ownership();
  } catch (const Error& error) {
    return error.kind() == Error::Kind::kNetwork;
  }
  return false;
}

}  // namespace
}  // namespace esker::testing

int main(int argc, char** argv) {
  using namespace esker::testing;
  ::testing::InitGoogleTest(&argc, argv);
  if (esker::mpi::is_initialised() || esker::mpi::find_ownership() != esker::mpi::Ownership::kOwnThread) {
    std::fputs("MPI runs before connect()\n", stderr);
    return 1;
  }
  const std::string_view how = argc > 1 ? argv[1] : "";
  transport = connect(how);
  if (transport == nullptr) return 0;  // as expected
  esker::GatherBlock mine;
  mine.values[0] = seed();
  stream = gather(*transport, mine)[0].values[0];
  const int status = RUN_ALL_TESTS();
  if (!closes_and_ends_mpi()) {
    std::fputs("MPI goes on after an orderly close\n", stderr);
    return 1;
  }
  return status;
}
