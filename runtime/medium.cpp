// MPI, UCX beside it, or loopback.
#include <esker/runtime/medium.hpp>

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/net/loopback/transport.hpp>
#include <esker/runtime/launcher.hpp>

#if ESKER_WITH_MPI
#include <esker/net/mpi/transport.hpp>
#include <esker/net/shared/transport.hpp>
#endif
#if ESKER_WITH_UCX
#include <esker/net/ucx/transport.hpp>
#endif

namespace esker {
namespace {

/// Gives `transport` back, unless its one PE is one of several processes that a launcher has started: as many
/// jobs would each do all the work, and each verify it.
std::unique_ptr<Transport> not_one_of_many(std::unique_ptr<Transport> transport, const char* what_to_do) {
  if (transport->n_pes() > 1) return transport;
  const auto launched = find_launched_processes();
  if (!launched) return transport;
  const std::string name = transport->name();
  transport->close(true);
  throw Error(
      Error::Kind::kConfiguration,
      fmt::format("Runtime: {}={} says that a launcher has started {} processes, but this one is alone "
                  "over {}: {}; if each is to be a job of its own, unset {}",
                  launched->variable, launched->processes, launched->processes, name, what_to_do,
                  launched->variable));
}

#if ESKER_WITH_MPI
// A Runtime of this process has initialised MPI, and finalises it at its end.
std::atomic<bool> mpi_is_a_runtimes{false};

Wish wish_of(PeerMemory peer_memory) {
  switch (peer_memory) {
    case PeerMemory::kOff:
      return Wish::kOff;
    case PeerMemory::kOn:
      return Wish::kMust;
    default:
      return Wish::kIfAllCan;
  }
}

#if ESKER_WITH_UCX
Wish wish_of(TransportKind transport) {
  switch (transport) {
    case TransportKind::kMpi:
      return Wish::kOff;
    case TransportKind::kUcx:
      return Wish::kMust;
    default:
      return Wish::kIfAllCan;
  }
}
#endif

/// Collective. By UCX between hosts, and between PEs of a host that share no memory.
std::unique_ptr<Transport> connect_hosts(std::unique_ptr<Transport> mpi, TransportKind transport,
                                         PeerMemory peer_memory, TransportLimits limits) {
#if ESKER_WITH_UCX
  const Wish ucx = wish_of(transport);
  const bool is_one_host = mpi->pes_on_host() == mpi->n_pes();
  bool does_without = false;
  try {
    does_without = is_one_host && !must_some(*mpi, ucx);
  } catch (...) {
    close_and_rethrow(*mpi);
  }
  if (does_without) {
    // There shared memory is all that it takes.
    return shared::connect(
        std::move(mpi), limits, wish_of(peer_memory),
        [&](std::unique_ptr<Transport> alone) { return ucx::connect(std::move(alone), limits, ucx); });
  }
  mpi = ucx::connect(std::move(mpi), limits, ucx);
#else
  (void)transport;
#endif
  return shared::connect(std::move(mpi), limits, wish_of(peer_memory));
}

void refuse_a_runtimes_mpi() {
  if (!mpi_is_a_runtimes.load()) return;
  throw Error(Error::Kind::kConfiguration,
              "Runtime: an earlier Runtime of this process has initialised MPI for itself, and MPI cannot be "
              "initialised again: keep one Runtime for the whole program, or call MPI_Init_thread with "
              "MPI_THREAD_MULTIPLE before the first Runtime and MPI_Finalize after the last");
}

Medium over_mpi(const Config& config) {
  refuse_a_runtimes_mpi();
  const auto ownership = mpi::find_ownership();
  return {[transport = config.transport, peer_memory = config.peer_memory,
           patience = std::chrono::seconds{config.hang_seconds}](const TransportLimits& limits) {
            // Not before: what is refused until here has touched no MPI.
            mpi_is_a_runtimes.store(!mpi::is_initialised());
            std::unique_ptr<Transport> mpi =
                not_one_of_many(mpi::connect(limits, {}, patience),
                                "start it by that MPI's own mpirun, or build Esker with the launcher's MPI");
            return connect_hosts(std::move(mpi), transport, peer_memory, limits);
          },
          ownership == mpi::Ownership::kOwnThread};
}
#endif

}  // namespace

Medium choose_medium(const Config& config) {
#if ESKER_WITH_MPI
  const bool use_mpi =
      config.transport == TransportKind::kMpi || config.transport == TransportKind::kUcx ||
      (config.transport == TransportKind::kAuto && (mpi::started_by_launcher() || mpi::is_initialised()));
  if (use_mpi) return over_mpi(config);
  const char* const what_to_do = config.transport == TransportKind::kLoopback
                                     ? "use --transport mpi, or leave --transport out"
                                     : "use --transport mpi";
#else
  const char* const what_to_do = "this library was built without MPI; configure it with -DESKER_MPI=ON";
#endif
  auto world = std::make_shared<loopback::World>(1);
  return {[world, what_to_do](const TransportLimits& limits) {
            return not_one_of_many(world->connect(0, limits), what_to_do);
          },
          true};
}

Medium over_communicator(const std::vector<std::byte>& mpi_comm, const Config& config) {
#if ESKER_WITH_MPI
  if (config.transport == TransportKind::kLoopback) {
    throw Error(
        Error::Kind::kConfiguration,
        "Runtime: its PEs are those of an MPI communicator, and the transport is to be loopback: leave "
        "--transport out");
  }
  refuse_a_runtimes_mpi();
  const auto ownership = mpi::find_ownership();
  if (!mpi::is_initialised()) {
    throw Error(Error::Kind::kConfiguration,
                "Runtime: the program has a communicator, and has not initialised MPI: call MPI_Init_thread "
                "before, and MPI_Finalize after the last Runtime");
  }
  mpi::check_communicator(mpi_comm);
  return {[mpi_comm, transport = config.transport, peer_memory = config.peer_memory,
           patience = std::chrono::seconds{config.hang_seconds}](const TransportLimits& limits) {
            return connect_hosts(mpi::connect(limits, mpi_comm, patience), transport, peer_memory, limits);
          },
          ownership == mpi::Ownership::kOwnThread};
#else
  (void)mpi_comm;
  (void)config;
  throw Error(Error::Kind::kConfiguration,
              "Runtime: this library was built without MPI, and the program has a communicator of MPI's; "
              "configure it with -DESKER_MPI=ON");
#endif
}

}  // namespace esker
