// Which of MPI's collectives does what.
#include <esker/net/mpi/exchange.hpp>

#include <cstddef>

#include <esker/net/mpi/communicator.hpp>

namespace esker::mpi {
namespace {

void count_bytes(const std::vector<std::uint32_t>& bytes, std::vector<int>* counts,
                 std::vector<int>* starts) {
  int at = 0;
  for (const std::uint32_t n : bytes) {
    counts->push_back(static_cast<int>(n));
    starts->push_back(at);
    at += static_cast<int>(n);
  }
}

}  // namespace

void Moving::begin(std::uint32_t pe, MPI_Comm communicator) {
  using Kind = Exchange::Kind;
  Exchange& e = *exchange_;
  const auto block = static_cast<int>(e.block_bytes);
  const auto root = static_cast<int>(e.root);
  std::byte* const send = e.send.data();
  std::byte* const receive = e.receive.data();
  switch (e.kind) {
    case Kind::kBroadcast:
      return check(MPI_Ibcast(pe == e.root ? send : receive, block, MPI_BYTE, root, communicator, &request_),
                   "MPI_Ibcast");
    case Kind::kGather:
      return check(
          MPI_Igather(send, block, MPI_BYTE, receive, block, MPI_BYTE, root, communicator, &request_),
          "MPI_Igather");
    case Kind::kAllGather:
      return check(MPI_Iallgather(send, block, MPI_BYTE, receive, block, MPI_BYTE, communicator, &request_),
                   "MPI_Iallgather");
    case Kind::kScatter:
      return check(
          MPI_Iscatter(send, block, MPI_BYTE, receive, block, MPI_BYTE, root, communicator, &request_),
          "MPI_Iscatter");
    case Kind::kAllToAll:
      count_bytes(e.send_bytes, &send_counts_, &send_starts_);
      count_bytes(e.receive_bytes, &receive_counts_, &receive_starts_);
      return check(
          MPI_Ialltoallv(send, send_counts_.data(), send_starts_.data(), MPI_BYTE, receive,
                         receive_counts_.data(), receive_starts_.data(), MPI_BYTE, communicator, &request_),
          "MPI_Ialltoallv");
  }
}

bool Moving::test() {
  int done = 0;
  check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace esker::mpi
