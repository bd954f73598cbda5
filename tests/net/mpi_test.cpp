// The MPI transport, alone or with shared memory on the host (argument "shared"), under mpirun. One transport
// for all tests, since MPI starts once a process.
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>
#include <esker/net/shared/transport.hpp>

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
  transport = esker::mpi::connect(kLimits);
  if (argc > 1 && std::string_view(argv[1]) == "shared") {
    std::string why_not;
    transport = esker::shared::connect(std::move(transport), kLimits, &why_not);
    if (!why_not.empty()) {
      std::fprintf(stderr, "no shared memory: %s\n", why_not.c_str());
      return 1;
    }
  }
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
