// The MPI transport, alone or with shared memory on the host, under mpirun.
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>
#include <esker/net/shared/transport.hpp>

#include "hosts.hpp"
#include "transport_job.hpp"

namespace esker::testing {
namespace {

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

bool all_share = false;
bool refuses_sends = false;  // MPI

/// "": MPI alone. "memory": into memory that it is given. "shared": with shared memory. "hosts": with it, on
/// hosts of two PEs. The name of an obstacle: nobody shares. "must_" before it: PE 0 says that all must,
/// which is an error everywhere: null then.
std::unique_ptr<Transport> connect(std::string_view how) {
  TransportLimits limits = kLimits;
  std::unique_ptr<Transport> mpi = mpi::connect(limits);
  if (how.empty()) return mpi;
  if (how == "memory") {
    const std::size_t bytes = mpi->receive_bytes();
    constexpr std::align_val_t kLine{128};
    const std::shared_ptr<std::byte> memory{new (kLine) std::byte[bytes],
                                            [](std::byte* at) { ::operator delete[](at, kLine); }};
    receive_memory = {memory.get(), bytes};
    mpi->receive_into(memory);
    return mpi;
  }
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
  all_share = how == "shared";
  if (shares) {
    const bool has_peer = how != "hosts" || pe % 2 == 1 || pe + 1 < made->n_pes();
    if ((said.find(", shared memory") != std::string::npos) != has_peer) throw std::runtime_error(said);
  } else if (must || wish != Wish::kOff) {
    if (said.find(obstacle->reason) == std::string::npos) throw std::runtime_error(said);
  }
  return made;
}

TEST(SharedTransport, WakesAPeThatSleepsForAFrameOrAGather) {
  if (!all_share) GTEST_SKIP() << "not all PEs share memory";
  run([](Transport& t) { check_bells(t, stream + 5); });
}

TEST(MpiTransport, GoesOnAfterASendThatMpiRefuses) {
  if (transport->writes_in_place(transport->pe())) GTEST_SKIP() << "frames do not go by MPI";
  run([](Transport& t) {
    alignas(8) const std::byte frame[64] = {};
    int refused = 0, sent = 0;
    refuses_sends = true;
    EXPECT_THROW(t.try_send(t.pe(), frame, &refused), Error);
    refuses_sends = false;
    for (std::uint32_t i = 0; i < kLimits.receives; ++i) {
      ASSERT_TRUE(t.try_send(t.pe(), frame, &sent)) << "after " << i;
      poll("the frame", [&] {
        const std::optional<Frame> received = t.try_receive();
        if (received) t.release(*received);
        return received.has_value();
      });
    }
    std::vector<void*> tokens;
    poll("its end", [&] {
      t.poll_sent(tokens);
      return tokens.size() == kLimits.receives;
    });
    EXPECT_EQ(tokens, std::vector<void*>(kLimits.receives, &sent));
  });
}

}  // namespace
}  // namespace esker::testing

// In place of MPI's, which calls the same.
int MPI_Issend(const void* bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
               MPI_Request* request) {
  if (esker::testing::refuses_sends) return MPI_ERR_OTHER;
  return PMPI_Issend(bytes, count, type, to, tag, communicator, request);
}

int main(int argc, char** argv) { return esker::testing::run_job(argc, argv, esker::testing::connect); }
