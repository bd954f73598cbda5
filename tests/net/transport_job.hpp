// A transport under mpirun: what every program of its tests has. One transport for all tests, since MPI
// starts once a process.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>

#include "transport_contract.hpp"

namespace esker::testing {

inline std::unique_ptr<Transport> transport;
inline std::uint64_t stream = 0;  // PE 0's seed, on every PE

/// What a PE throws ends the job: its peers would wait for it.
inline void run(const std::function<void(Transport&)>& body) {
  try {
    body(*transport);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "PE %u: %s\n", transport->pe(), error.what());
    transport->abort(1);
  }
}

TEST(TransportJob, IsOfHealthyPesOnThisHost) {
  run([](Transport& t) {
    EXPECT_LT(t.pe(), t.n_pes());
    EXPECT_GT(t.n_pes(), 1u) << "needs mpirun";
    EXPECT_EQ(t.pes_on_host(), t.n_pes());
    EXPECT_NE(t.name().find("mpi ("), std::string::npos) << t.name();
    EXPECT_EQ(t.find_dead_peer(), "");
    gather(t, {});  // nobody has left meanwhile
  });
}

TEST(TransportJob, FramesArriveWholeAndOnceBetweenAllPairs) {
  run([](Transport& t) { check_exchange(t, stream); });
}

TEST(TransportJob, SendsDoNotFinishBeforeTheirReceiverTakesThem) {
  run([](Transport& t) { check_push_back(t, stream + 1, kLimits.receives); });
}

TEST(TransportJob, HoldsNoMoreFramesThanItsLimitAndLeavesThemAlone) {
  run([](Transport& t) { check_held_frames(t, stream + 2); });
}

TEST(TransportJob, GathersReturnEverybodysBlocksOneAfterTheOther) {
  run([](Transport& t) { check_gathers(t, stream + 3); });
}

TEST(TransportJob, GathersAndFramesDoNotHoldEachOtherUp) {
  run([](Transport& t) { check_gather_beside_frames(t, stream + 4); });
}

TEST(TransportJob, ExchangesBringEachByteToItsPlace) {
  run([](Transport& t) { check_exchanges(t, stream + 5); });
}

TEST(TransportJob, ExchangesAndFramesDoNotHoldEachOtherUp) {
  run([](Transport& t) { check_exchange_beside_frames(t, stream + 6); });
}

/// Collective. MPI was started by connect(), so an orderly close must end it.
inline bool closes_and_ends_mpi() {
  transport->close(true);
  try {
    mpi::find_ownership();
  } catch (const Error& error) {
    return error.kind() == Error::Kind::kNetwork;
  }
  return false;
}

/// `connect` makes the transport that the first argument names; null: none, as that should be.
inline int run_job(int argc, char** argv,
                   const std::function<std::unique_ptr<Transport>(std::string_view)>& connect) {
  ::testing::InitGoogleTest(&argc, argv);
  if (mpi::is_initialised() || mpi::find_ownership() != mpi::Ownership::kOwnThread) {
    std::fputs("MPI runs before connect()\n", stderr);
    return 1;
  }
  transport = connect(argc > 1 ? argv[1] : "");
  if (transport == nullptr) return 0;
  GatherBlock mine;
  mine.values[0] = seed();
  stream = gather(*transport, mine)[0].values[0];
  const int status = RUN_ALL_TESTS();
  if (closes_and_ends_mpi()) return status;
  std::fputs("MPI goes on after an orderly close\n", stderr);
  return 1;
}

}  // namespace esker::testing
