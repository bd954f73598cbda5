// The MPI transport, alone or with shared memory on the host, under mpirun. One transport
// for all tests, since MPI starts once a process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
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

/// PE 1 has no descriptor left for shared memory, until this ends.
class NoDescriptors {
 public:
  explicit NoDescriptors(bool here) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    if (here) setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// "": MPI alone. "shared": with shared memory. "hosts": with it, on hosts of two PEs. "refused": PE 1
/// cannot, so nobody does. "must": PE 1 cannot and PE 0 says that all must, which is an error everywhere:
/// null then.
std::unique_ptr<Transport> connect(std::string_view how) {
  std::unique_ptr<Transport> mpi = mpi::connect(kLimits);
  if (how.empty()) return mpi;
  const bool shares = how == "shared" || how == "hosts";
  const std::uint32_t pe = mpi->pe();
  if (how == "hosts") mpi = std::make_unique<Hosts>(std::move(mpi));
  std::unique_ptr<Transport> made;
  try {
    const NoDescriptors none(!shares && pe == 1);
    made = shared::connect(std::move(mpi), kLimits, how == "must" && pe == 0 ? Wish::kMust : Wish::kIfAllCan);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (how == "must" && text.find("PE 1: memfd_create: Too many open files") != std::string::npos)
      return nullptr;
    throw;
  }
  const bool has_peer = how != "hosts" || pe % 2 == 1 || pe + 1 < made->n_pes();
  if ((made->name().find("shared memory") != std::string::npos) != (shares && has_peer))
    throw std::runtime_error("it is " + made->name());
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
  if (how == "must") return transport == nullptr ? 0 : 1;
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
