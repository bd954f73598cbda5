// Runtimes over communicators of a program's own, and collective calls over processes. Under mpirun; the
// argument is the level that the program initialises MPI at: multiple, or funneled.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <esker/config.hpp>
#include <esker/mpi.hpp>

#include "collective_bodies.hpp"

namespace esker::testing {
namespace {

int world_rank = 0;
int world_size = 0;

Config small_config() {
  Config config = Config::from_environment();
  config.heap_bytes = 4 << 20;
  config.huge_pages = false;
  config.package_bytes = 1024;
  config.package_slots = 2;
  config.node_buffer_bytes = 1024;
  config.buffers_per_destination = 2;
  config.cpu_threads = 1;
  config.hang_seconds = 60;
  config.startup = StartupPrint::kQuiet;
  return config;
}

/// What a PE throws ends the job: its peers would wait for it.
void run(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", world_rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/// A communicator of MPI's that is freed at the end; none where this process is in none.
class Split {
 public:
  Split(int color, int key) { MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm_); }
  ~Split() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  Split(const Split&) = delete;
  Split& operator=(const Split&) = delete;
  MPI_Comm comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Every PE counts on every PE of its Runtime.
void count(Runtime& rt, std::uint64_t lanes) {
  const auto words = rt.heap().allocate<std::uint64_t>(1);
  rt.launch(lanes * rt.n_pes(), [=](WorkItem item) {
    shmem_inc(item, &words[0], static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
  });
  rt.barrier_all();
  EXPECT_EQ(words[0], lanes * rt.n_pes());
  EXPECT_EQ(all_reduce(rt, words[0], Reduction::kSum), lanes * rt.n_pes() * rt.n_pes());
  rt.heap().free(words);
}

class Calls : public ::testing::TestWithParam<CollectiveCase> {};
TEST_P(Calls, GiveWhatALoopOverThePesGives) {
  run([] {
    Runtime rt(MPI_COMM_WORLD, small_config());
    EXPECT_EQ(rt.n_pes(), static_cast<std::uint32_t>(world_size));
    GetParam().body(rt);
  });
}
INSTANTIATE_TEST_SUITE_P(OverProcesses, Calls, ::testing::ValuesIn(kCollectiveCases),
                         [](const auto& test) { return test.param.name; });

TEST(Mismatches, AreErrorsEverywhereThatNameBothSidesAndTheJobGoesOn) {
  if (world_size < 2) return;
  run([] {
    Runtime rt(MPI_COMM_WORLD, small_config());
    for (const Mismatch& mismatch : kMismatches)
      check_mismatch(rt, mismatch, "PE " + std::to_string(world_size - 1));
  });
}

TEST(Communicators, MayBeHalvesOfTheJobAtATime) {
  run([] {
    const Split half(world_rank % 2, world_rank);
    for (int round = 0; round < 2; ++round) {
      Runtime rt(half.comm(), small_config());
      EXPECT_EQ(rt.pe(), static_cast<std::uint32_t>(world_rank / 2));
      count(rt, world_rank % 2 == 0 ? 300 : 500);
    }
  });
}

TEST(Communicators, MayHavePesInCommonAndBeOfSeveralRuntimesAtATime) {
  run([] {
    const Split half(world_rank % 2, world_rank);
    const Split reversed(0, -world_rank);
    Runtime everybody(MPI_COMM_WORLD, small_config());
    Runtime some(half.comm(), small_config());
    Runtime again(MPI_COMM_WORLD, small_config());
    Runtime backwards(reversed.comm(), small_config());
    Runtime alone(MPI_COMM_SELF, small_config());
    EXPECT_EQ(backwards.pe(), static_cast<std::uint32_t>(world_size - 1 - world_rank));
    EXPECT_EQ(alone.n_pes(), 1u);
    for (Runtime* rt : {&everybody, &some, &again, &backwards, &alone, &some, &everybody}) count(*rt, 200);
    sorts_of_a_range(some);
    sorts_of_a_range(backwards);
    count(again, 200);
  });
}

TEST(Communicators, MayBeOfSomePesAlone) {
  run([] {
    const Split first_two(world_rank < 2 ? 0 : MPI_UNDEFINED, world_rank);
    if (world_rank < 2) {
      Runtime rt(first_two.comm(), small_config());
      count(rt, 100);
      return;
    }
    try {
      Runtime rt(first_two.comm(), small_config());
      ADD_FAILURE() << "MPI_COMM_NULL is none to make a Runtime over";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kConfiguration);
      EXPECT_NE(std::string(error.what()).find("MPI_COMM_NULL"), std::string::npos) << error.what();
    }
  });
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Communicators, OfTwoGroupsAreRefused) {
  if (world_size < 2) return;
  run([] {
    const Split half(world_rank % 2, world_rank);
    MPI_Comm between = MPI_COMM_NULL;
    MPI_Intercomm_create(half.comm(), 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &between);
    try {
      Runtime rt(between, small_config());
      ADD_FAILURE() << "an intercommunicator has PEs";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("MPI_Intercomm_merge"), std::string::npos) << error.what();
    }
    MPI_Comm_free(&between);
  });
}

TEST(Communicators, RefuseTheTransportOfOneProcess) {
  run([] {
    Config config = small_config();
    config.transport = TransportKind::kLoopback;
    EXPECT_THROW(Runtime(MPI_COMM_WORLD, config), Error);
  });
}

TEST(Communicators, DoNotMixWithWhatTheProgramSendsOverThem) {
  run([] {
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    Runtime rt(mine, small_config());
    // Under every tag that a transport may use, before Esker's and taken after it.
    constexpr int kTags = 8;
    const int next = (world_rank + 1) % world_size;
    std::vector<int> sent(kTags), got(kTags, -1);
    std::vector<MPI_Request> requests(2 * kTags);
    for (int tag = 0; tag < kTags; ++tag) {
      sent[tag] = world_rank * 100 + tag;
      MPI_Isend(&sent[tag], 1, MPI_INT, next, tag, mine, &requests[tag]);
    }
    count(rt, 500);
    sorts_of_a_range(rt);
    for (int tag = 0; tag < kTags; ++tag)
      MPI_Irecv(&got[tag], 1, MPI_INT, MPI_ANY_SOURCE, tag, mine, &requests[kTags + tag]);
    MPI_Waitall(2 * kTags, requests.data(), MPI_STATUSES_IGNORE);
    for (int tag = 0; tag < kTags; ++tag)
      EXPECT_EQ(got[tag], (world_rank + world_size - 1) % world_size * 100 + tag);
    MPI_Comm_free(&mine);  // the Runtime has its own
    count(rt, 100);
  });
}

TEST(Communicators, NameWorldRanksWhereTheyDiffer) {
  if (world_size < 2) return;
  run([] {
    const Split reversed(0, -world_rank);
    Runtime rt(reversed.comm(), small_config());
    const auto name = [](int pe) {
      const int rank = world_size - 1 - pe;
      return "PE " + std::to_string(pe) + (rank == pe ? "" : " (world rank " + std::to_string(rank) + ")");
    };
    for (const Mismatch& mismatch : kMismatches) {
      if (std::string(mismatch.name) == "Count") {
        const Mismatch named{
            mismatch.name, mismatch.body, {"LAST asks for the sum of 8", name(0) + " for the sum of 7"}};
        check_mismatch(rt, named, name(world_size - 1));
      }
    }
  });
}

TEST(Communicators, GoOnWhereThatOfOthersFails) {
  if (world_size < 4) return;
  run([] {
    const Split half(world_rank % 2, world_rank);
    Runtime everybody(MPI_COMM_WORLD, small_config());
    try {
      Runtime rt(half.comm(), small_config());
      count(rt, 50);
      if (world_rank == 2) throw std::runtime_error("no more");
      if (world_rank % 2 == 0) {
        std::vector<int> values(100'000);
        broadcast(rt, values);
        ADD_FAILURE() << "PE 1 has left";
      }
      count(rt, 50);
    } catch (const Error& error) {
      EXPECT_EQ(world_rank % 2, 0) << error.what();
      EXPECT_NE(std::string(error.what()).find("PE 1 (world rank 2) has left"), std::string::npos)
          << error.what();
    } catch (const std::runtime_error&) {
      EXPECT_EQ(world_rank, 2);
    }
    count(everybody, 100);
  });
}

}  // namespace
}  // namespace esker::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int wanted =
      argc > 1 && std::string(argv[1]) == "funneled" ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &esker::testing::world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &esker::testing::world_size);
  const int status = RUN_ALL_TESTS();
  MPI_Finalize();
  return status;
}
