// A program that owns MPI goes on after a transport has left without its peers: nothing may be written into,
// or sent from, memory that the transport has given back. Arguments: the size of a frame; "ucx" if frames go
// by UCX.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <esker/net/mpi/transport.hpp>
#if ESKER_TEST_UCX
#include <esker/net/ucx/transport.hpp>
#endif

namespace {

constexpr std::uint32_t kReceives = 32;
constexpr std::byte kFree{0x5a};
constexpr std::byte kOnTheWay{0x33};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

struct Delete {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{128}); }
};
/// Blocks like the transport's, so that the allocator gives out those that the transport gave back.
class Blocks {
 public:
  Blocks(std::uint32_t n, std::size_t bytes) : bytes_{bytes} {
    for (std::uint32_t i = 0; i < n; ++i) {
      blocks_.emplace_back(new (std::align_val_t{128}) std::byte[bytes]);
      std::fill_n(blocks_.back().get(), bytes, kFree);
    }
  }
  bool untouched() const {
    return std::all_of(blocks_.begin(), blocks_.end(), [this](const auto& block) {
      return std::all_of(block.get(), block.get() + bytes_, [](std::byte b) { return b == kFree; });
    });
  }

 private:
  std::size_t bytes_;
  std::vector<std::unique_ptr<std::byte[], Delete>> blocks_;
};

std::unique_ptr<esker::Transport> connect(std::size_t bytes, bool by_ucx) {
#if ESKER_TEST_UCX
  if (by_ucx)
    return esker::ucx::connect(esker::mpi::connect({bytes, kReceives}), {bytes, kReceives},
                               esker::Wish::kMust);
#endif
  require(!by_ucx, "UCX is not built");
  return esker::mpi::connect({bytes, kReceives});
}

/// PE 1 leaves with receives and a gather under way; PE 0 sends to it and gathers afterwards.
void leave_one_by_one(std::size_t bytes, bool by_ucx, int pe) {
  auto transport = connect(bytes, by_ucx);
  MPI_Barrier(MPI_COMM_WORLD);
  if (pe == 1) {
    require(!transport->try_receive(), "PE 1 has received something");
    transport->begin_gather({});
    require(transport->close(false).empty(), "PE 1 has sent nothing");
    transport.reset();
    const Blocks mine(4 * kReceives, bytes);
    const Blocks together(4, kReceives * bytes);
    const Blocks small(4 * kReceives, 2 * sizeof(esker::GatherBlock));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);  // MPI makes progress in here
    require(mine.untouched() && together.untouched(),
            "a frame was written into memory that PE 1's transport had given back");
    require(small.untouched(), "a gather was written into memory that PE 1's transport had given back");
    return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<std::byte> frame(bytes, kOnTheWay);
  std::vector<void*> tokens;
  std::vector<void*> sent;
  for (std::uint32_t i = 0; i < kReceives && transport->try_send(1, frame, frame.data() + i); ++i)
    sent.push_back(frame.data() + i);
  require(sent.size() >= (by_ucx ? 1 : kReceives), fmt::format("PE 0 can send {} frames", sent.size()));
  transport->begin_gather({});
  std::vector<esker::GatherBlock> all(2);
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{300};
       std::chrono::steady_clock::now() < until;) {  // long enough for what could arrive
    transport->poll_sent(tokens);
    (void)transport->test_gather(all);
  }
  require(tokens.empty(), fmt::format("{} sends have finished that nobody receives", tokens.size()));
  require(transport->close(false) == sent, "close() does not name the sends that MPI may still read");
  transport.reset();
  MPI_Barrier(MPI_COMM_WORLD);
}

/// The program's own messages still arrive.
void sum_by_mpi() {
  int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  require(sum == 2, fmt::format("MPI_Allreduce gives {} instead of 2", sum));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int pe = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &pe);
  try {
    leave_one_by_one(std::stoul(argc > 1 ? argv[1] : "1024"), argc > 2, pe);
    sum_by_mpi();
  } catch (const std::exception& error) {
    std::fputs(fmt::format("PE {}: {}\n", pe, error.what()).c_str(), stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
