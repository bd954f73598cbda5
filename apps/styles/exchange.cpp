#include "exchange.hpp"

#include <algorithm>

#if defined(ESKER_APPS_MPI)
#include <mpi.h>
#endif

namespace styles {

#if defined(ESKER_APPS_MPI)

namespace {
bool is_ours = false;  // MPI, to finalise
}

void Exchange::initialise_mpi() {
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised != 0) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  is_ours = true;
  if (provided < MPI_THREAD_MULTIPLE) {
    throw esker::Error(
        esker::Error::Kind::kNetwork,
        "--style coprocessor calls MPI beside the network thread, and this MPI library offers no "
        "MPI_THREAD_MULTIPLE");
  }
}

void Exchange::finalise_mpi() {
  if (is_ours) MPI_Finalize();
  is_ours = false;
}

struct Exchange::Communicator {
  Communicator() { MPI_Comm_dup(MPI_COMM_WORLD, &comm); }
  ~Communicator() { MPI_Comm_free(&comm); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  MPI_Comm comm = MPI_COMM_NULL;
};

#else

void Exchange::initialise_mpi() {}
void Exchange::finalise_mpi() {}

struct Exchange::Communicator {};

#endif

Exchange::Exchange(const esker::Runtime& rt) : pe_{rt.pe()}, n_pes_{rt.n_pes()}, first_(n_pes_ + 1) {
  if (n_pes_ == 1) return;
#if defined(ESKER_APPS_MPI)
  int level = 0;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    throw esker::Error(esker::Error::Kind::kContract, "Exchange: initialise_mpi() comes before the Runtime");
  communicator_ = std::make_unique<Communicator>();
#else
  throw esker::Error(esker::Error::Kind::kConfiguration,
                     "--style coprocessor exchanges queues over MPI, which this build is without; configure "
                     "with -DESKER_MPI=ON");
#endif
}

Exchange::~Exchange() = default;

std::span<const std::byte> Exchange::block_from(std::uint32_t pe) const {
  return std::span(received_).subspan(first_[pe], first_[pe + 1] - first_[pe]);
}

bool Exchange::swap(std::span<const std::vector<std::byte>> blocks, bool more) {
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    if (pe == pe_ || blocks[pe].empty()) continue;
    ++blocks_sent_;
    bytes_sent_ += blocks[pe].size();
  }
  if (n_pes_ == 1) {
    received_ = blocks[0];
    first_ = {0, received_.size()};
    return more;
  }
#if defined(ESKER_APPS_MPI)
  struct Announced {
    int bytes;
    int more;
  };
  std::vector<Announced> out(n_pes_), in(n_pes_);
  std::vector<int> send_counts(n_pes_), send_first(n_pes_), receive_counts(n_pes_), receive_first(n_pes_);
  sent_.clear();
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    send_counts[pe] = static_cast<int>(blocks[pe].size());
    send_first[pe] = static_cast<int>(sent_.size());
    out[pe] = {send_counts[pe], more ? 1 : 0};
    sent_.insert(sent_.end(), blocks[pe].begin(), blocks[pe].end());
  }
  MPI_Alltoall(out.data(), sizeof(Announced), MPI_BYTE, in.data(), sizeof(Announced), MPI_BYTE,
               communicator_->comm);
  bool any = false;
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    receive_counts[pe] = in[pe].bytes;
    receive_first[pe] = static_cast<int>(first_[pe]);
    first_[pe + 1] = first_[pe] + static_cast<std::size_t>(in[pe].bytes);
    any = any || in[pe].more != 0;
  }
  received_.resize(first_[n_pes_]);
  MPI_Alltoallv(sent_.data(), send_counts.data(), send_first.data(), MPI_BYTE, received_.data(),
                receive_counts.data(), receive_first.data(), MPI_BYTE, communicator_->comm);
  return any;
#else
  return more;  // not reached: the constructor has thrown
#endif
}

}  // namespace styles
