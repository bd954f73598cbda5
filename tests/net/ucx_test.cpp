// The UCX transport, alone or with shared memory on hosts of two PEs, under mpirun. One transport for all
// tests, since MPI starts once a process.
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>
#include <esker/net/shared/transport.hpp>
#include <esker/net/ucx/transport.hpp>

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

TEST(Ucx, IsOneJobOfHealthyPesOnThisHost) {
  run([](Transport& t) {
    EXPECT_LT(t.pe(), t.n_pes());
    EXPECT_GT(t.n_pes(), 1u) << "needs mpirun";
    EXPECT_EQ(t.pes_on_host(), t.n_pes());
    EXPECT_NE(t.name().find("mpi ("), std::string::npos) << t.name();
    EXPECT_EQ(t.find_dead_peer(), "");
    gather(t, {});  // nobody has left meanwhile
  });
}

TEST(Ucx, FramesArriveWholeAndOnceBetweenAllPairs) {
  run([](Transport& t) { check_exchange(t, stream); });
}

TEST(Ucx, SendsDoNotFinishBeforeTheirReceiverTakesThem) {
  run([](Transport& t) { check_push_back(t, stream + 1, kLimits.receives); });
}

TEST(Ucx, HoldsNoMoreFramesThanItsLimitAndLeavesThemAlone) {
  run([](Transport& t) { check_held_frames(t, stream + 2); });
}

TEST(Ucx, GathersReturnEverybodysBlocksOneAfterTheOther) {
  run([](Transport& t) { check_gathers(t, stream + 3); });
}

TEST(Ucx, GathersAndFramesDoNotHoldEachOtherUp) {
  run([](Transport& t) { check_gather_beside_frames(t, stream + 4); });
}

TEST(Ucx, FrameBeyondTheLimitIsAnErrorWithBothSizes) {
  if (transport->name().rfind("ucx", 0) != 0) GTEST_SKIP() << "it is " << transport->name();
  run([](Transport& t) {
    const std::vector<std::byte> frame(kLimits.frame_bytes + 1);
    try {
      t.try_send((t.pe() + 2) % t.n_pes(), frame, nullptr);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kNetwork);
      EXPECT_NE(std::string(error.what()).find("a frame of 1001 bytes is longer than 1000"),
                std::string::npos)
          << error.what();
    }
    gather(t, {});
  });
}

/// "": UCX alone. "hosts": with shared memory on hosts of two PEs. "refused": PE 1 does not want it, so
/// nobody uses it. "must", "cannot": the same, and there is no such transport of UCX's, and PE 0 says that
/// all must use it: an error everywhere, null.
std::unique_ptr<Transport> connect(std::string_view how) {
  std::unique_ptr<Transport> mpi = mpi::connect(kLimits);
  Wish wish = how == "refused" ? Wish::kIfAllCan : Wish::kMust;
  if ((how == "refused" || how == "must") && mpi->pe() == 1) wish = Wish::kOff;
  try {
    std::unique_ptr<Transport> ucx = ucx::connect(std::move(mpi), kLimits, wish);
    if ((ucx->name().find("ucx") == std::string::npos) != (how == "refused"))
      throw std::runtime_error("it is " + ucx->name());
    if (how != "hosts") return ucx;
    return shared::connect(std::make_unique<Hosts>(std::move(ucx)), kLimits, Wish::kMust);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (how == "must" && text.find("PE 1: it has --transport mpi") != std::string::npos) return nullptr;
    if (how == "cannot" && text.find("PE 0: UCX: ucp_init: ") != std::string::npos) return nullptr;
    throw;
  }
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
  const std::string_view how = argc > 1 ? argv[1] : "";
  transport = connect(how);
  if (how == "must" || how == "cannot") return transport == nullptr ? 0 : 1;
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
