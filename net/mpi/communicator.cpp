// Calls of MPI about communicators.
#include <esker/net/mpi/communicator.hpp>

#include <fmt/format.h>
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <string_view>
#include <thread>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>

namespace esker::mpi {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(Error::Kind::kNetwork,
              fmt::format("{}: {}", call, std::string_view(text, static_cast<std::size_t>(length))));
}

MPI_Comm communicator_of(std::span<const std::byte> bytes) {
  if (bytes.empty()) return MPI_COMM_WORLD;
  MPI_Comm comm = MPI_COMM_NULL;
  constexpr std::size_t kBytes = sizeof(MPI_Comm);  // NOLINT(bugprone-sizeof-expression): the handle's
  if (bytes.size() != kBytes) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("Runtime: the program's MPI_Comm has {} bytes, and that of Esker's MPI {}: build "
                            "both with the same MPI",
                            bytes.size(), kBytes));
  }
  std::memcpy(&comm, bytes.data(), kBytes);
  return comm;
}

MPI_Comm duplicate(MPI_Comm of, std::chrono::seconds patience) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Comm_idup(of, &made, &request), "MPI_Comm_idup");
  const auto begin = std::chrono::steady_clock::now();
  for (bool is_silent = patience.count() > 0;;) {
    int is_done = 0;
    check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done != 0) return made;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (is_silent && waited >= patience) {
      is_silent = false;
      int rank = 0, ranks = 0;
      MPI_Comm_rank(of, &rank);
      MPI_Comm_size(of, &ranks);
      std::fputs(
          fmt::format(
              "esker: rank {} of {} has waited {} s for the others to make this Runtime: all ranks of a "
              "communicator make it, and those that share several make their Runtimes in one order "
              "(ESKER_HANG_SECONDS; 0: no such warning)\n",
              rank, ranks, patience.count())
              .c_str(),
          stderr);
    }
    // Ranks that come together are there at once; who waits for a late one leaves the core to it.
    if (waited < std::chrono::milliseconds{2}) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
}

std::vector<std::uint32_t> world_ranks_of(MPI_Comm communicator) {
  int size = 0;
  check(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check(MPI_Comm_group(communicator, &group), "MPI_Comm_group");
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  check(MPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data()),
        "MPI_Group_translate_ranks");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    all.push_back(static_cast<std::uint32_t>(in_world[i] == MPI_UNDEFINED ? ranks[i] : in_world[i]));
  return all;
}

void check_communicator(std::span<const std::byte> communicator) {
  MPI_Comm comm = communicator_of(communicator);
  if (comm == MPI_COMM_NULL) {
    throw Error(
        Error::Kind::kConfiguration,
        "Runtime: the communicator is MPI_COMM_NULL: a process that is not in a communicator makes no "
        "Runtime over it");
  }
  int is_between_groups = 0;
  check(MPI_Comm_test_inter(comm, &is_between_groups), "MPI_Comm_test_inter");
  if (is_between_groups != 0) {
    throw Error(
        Error::Kind::kConfiguration,
        "Runtime: the communicator is an intercommunicator, whose ranks are of two groups: merge them "
        "by MPI_Intercomm_merge");
  }
}

}  // namespace esker::mpi
