// Non-blocking synchronous sends, posted receives, and one gather at a time.
#include <esker/net/mpi/transport.hpp>

#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <sstream>

#include <esker/device/check.hpp>
#include <esker/device/error.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/host.hpp>
#include <esker/net/mpi/communicator.hpp>
#include <esker/net/mpi/exchange.hpp>

namespace esker::mpi {
namespace {

constexpr int kTag = 1;
constexpr std::chrono::milliseconds kPatienceWithCancelled{100};

/// Start of a process in clock ticks since boot, and its state; both 0 if it cannot be looked at.
struct ProcessStatus {
  char state = 0;
  std::uint64_t started = 0;
};

ProcessStatus read_status(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return {};
  // The command in parentheses may hold anything, a ')' too: fields are counted behind the last one.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  ProcessStatus status;
  fields >> status.state;
  std::string skipped;
  for (int i = 0; i < 18; ++i) fields >> skipped;
  fields >> status.started;
  return status;
}

struct Peer {
  std::uint64_t host;
  std::int64_t pid;
  std::uint64_t started;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(TransportLimits limits, MPI_Comm of, std::chrono::seconds patience)
      : limits_{limits}, bytes_each_{(limits.frame_bytes + kLineBytes - 1) / kLineBytes * kLineBytes} {
    int initialised = 0;
    MPI_Initialized(&initialised);
    if (initialised == 0) {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads_), "MPI_Init_thread");
      finalise_ = true;
      if (threads_ < MPI_THREAD_FUNNELED) {
        throw Error(Error::Kind::kNetwork,
                    "this MPI library offers no MPI_THREAD_FUNNELED, which Esker needs");
      }
    } else {
      check(MPI_Query_thread(&threads_), "MPI_Query_thread");
    }
    comm_ = duplicate(of, patience);
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int value = 0;
    check(MPI_Comm_rank(comm_, &value), "MPI_Comm_rank");
    pe_ = static_cast<std::uint32_t>(value);
    check(MPI_Comm_size(comm_, &value), "MPI_Comm_size");
    n_pes_ = static_cast<std::uint32_t>(value);
    world_ranks_ = world_ranks_of(comm_);
    meet_peers();
    gather_memory_ = std::make_unique<GatherMemory>(n_pes_);
    under_way_.resize(n_pes_);
  }

  bool is_for_any_thread() const override { return threads_ >= MPI_THREAD_SERIALIZED; }
  std::uint32_t pe() const override { return pe_; }
  std::uint32_t n_pes() const override { return n_pes_; }
  std::uint32_t world_rank(std::uint32_t of_pe) const override { return world_ranks_[of_pe]; }
  std::uint32_t pes_on_host() const override {
    std::uint32_t count = 0;
    for (const Peer& peer : peers_) count += peer.host == peers_[pe_].host;
    return count;
  }

  std::uint64_t frame_memory_bytes() const override { return receive_bytes(); }

  std::string name() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string_view version(text, static_cast<std::size_t>(length));
    return fmt::format("mpi ({})", version.substr(0, version.find_first_of(",\n")));
  }

  bool try_send(std::uint32_t pe, std::span<const std::byte> bytes, void* token) override {
    // More than a receiver keeps ready would wait in MPI, which looks at all of them each time, and behind
    // them whatever else is for that PE.
    if (under_way_[pe] == limits_.receives) return false;
    MPI_Request request = MPI_REQUEST_NULL;
    // Synchronous: a small frame would otherwise count as sent while it piles up unreceived at its
    // receiver, and nothing would bound how many do.
    check(MPI_Issend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(pe), kTag,
                     comm_, &request),
          "MPI_Issend");
    ++under_way_[pe];
    sends_.push_back(request);
    sent_.push_back({token, pe});
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    if (sends_.empty()) return;
    sent_indices_.resize(sends_.size());
    int done = 0;
    check(MPI_Testsome(static_cast<int>(sends_.size()), sends_.data(), &done, sent_indices_.data(),
                       MPI_STATUSES_IGNORE),
          "MPI_Testsome");
    if (done <= 0) return;
    for (int i = 0; i < done; ++i) {
      Sent& sent = sent_[static_cast<std::size_t>(sent_indices_[static_cast<std::size_t>(i)])];
      tokens.push_back(sent.token);
      --under_way_[sent.pe];
      sent.is_done = true;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      if (sent_[i].is_done) continue;
      sends_[kept] = sends_[i];
      sent_[kept++] = sent_[i];
    }
    sends_.resize(kept);
    sent_.resize(kept);
  }

  std::size_t receive_bytes() const override { return limits_.receives * bytes_each_; }
  void receive_into(const std::shared_ptr<std::byte>& memory) override {
    ESKER_CHECK(requests_.empty(), "MPI receives frames already, and would write into other memory");
    memory_ = memory;
  }
  std::optional<Frame> try_receive() override {
    if (requests_.empty()) post_all();
    if (ready_.empty()) {
      int done = 0;
      const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done,
                                    indices_.data(), statuses_.data());
      if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
      for (int i = 0; i < done; ++i) {  // MPI_UNDEFINED, no active request, is negative
        const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
        if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) {
          check(status.MPI_ERROR, fmt::format("receiving from {}",
                                              name_of(*this, static_cast<std::uint32_t>(status.MPI_SOURCE)))
                                      .c_str());
        }
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        const auto slot = static_cast<std::uint32_t>(indices_[static_cast<std::size_t>(i)]);
        ready_.push_back({{memory_of(slot), static_cast<std::size_t>(bytes)}, slot});
      }
      if (ready_.empty()) return std::nullopt;
    }
    const Frame frame = ready_.front();
    ready_.pop_front();
    return frame;
  }

  void release(const Frame& frame) override { post(frame.slot); }

  void begin_gather(const GatherBlock& mine) override {
    gather_memory_->mine = mine;
    check(MPI_Iallgather(&gather_memory_->mine, sizeof mine, MPI_BYTE, gather_memory_->all.data(),
                         sizeof mine, MPI_BYTE, comm_, &gather_),
          "MPI_Iallgather");
  }

  bool test_gather(std::span<GatherBlock> all) override {
    int done = 0;
    check(MPI_Test(&gather_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) return false;
    std::copy(gather_memory_->all.begin(), gather_memory_->all.end(), all.begin());
    return true;
  }

  void begin_exchange(std::shared_ptr<Exchange> exchange) override {
    moving_ = std::make_unique<Moving>(std::move(exchange));
    moving_->begin(pe_, comm_);
  }
  bool test_exchange() override {
    if (!moving_->test()) return false;
    moving_.reset();
    return true;
  }

  std::string find_dead_peer() override {
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      const Peer& peer = peers_[pe];
      if (pe == pe_ || peer.host != peers_[pe_].host) continue;
      const ProcessStatus status = read_status(peer.pid);
      // This process may be out of descriptors.
      if (status.state == 0 && (kill(static_cast<pid_t>(peer.pid), 0) == 0 || errno != ESRCH)) continue;
      if (status.started != peer.started || status.state == 'Z' || status.state == 'X') {
        return fmt::format("{} (process {}) has died", name_of(*this, pe), peer.pid);
      }
    }
    return {};
  }

  PeerProcess find_process(std::uint32_t pe) const override {
    const Peer& peer = peers_[pe];
    if (peer.host != peers_[pe_].host) return {};
    return {peer.pid, read_status(peer.pid).state};
  }

  std::vector<void*> close(bool orderly) override {
    if (!orderly) return leave();
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      check(MPI_Cancel(&request), "MPI_Cancel");
      check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    check(MPI_Comm_free(&comm_), "MPI_Comm_free");
    if (finalise_) check(MPI_Finalize(), "MPI_Finalize");
    return {};
  }

  [[noreturn]] void abort(int status) override {
    std::fflush(nullptr);
    MPI_Abort(comm_, status);
    std::_Exit(status);
  }

 private:
  /// The program may go on with MPI. A receive can be cancelled, unless its frame is half here; a synchronous
  /// send and a gather cannot, so what they touch stays.
  std::vector<void*> leave() {
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) check(MPI_Cancel(&request), "MPI_Cancel");
    }
    const auto until = std::chrono::steady_clock::now() + kPatienceWithCancelled;
    int all_done = 0;
    do {
      check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all_done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
    } while (all_done == 0 && std::chrono::steady_clock::now() < until);
    const std::lock_guard lock(stays_.mutex);
    if (all_done == 0) stays_.receives.push_back(std::move(memory_));
    if (gather_ != MPI_REQUEST_NULL) stays_.gathers.push_back(std::move(gather_memory_));
    if (moving_) stays_.exchanges.push_back(std::move(moving_));
    std::vector<void*> tokens;
    for (const Sent& sent : sent_) tokens.push_back(sent.token);
    return tokens;
  }

  struct GatherMemory {
    explicit GatherMemory(std::uint32_t n_pes) : all(n_pes) {}
    GatherBlock mine;
    std::vector<GatherBlock> all;
  };
  /// Memory that MPI may touch for as long as the process lives; never freed.
  struct Stays {
    std::mutex mutex;  // Runtimes of one process end side by side
    std::vector<std::shared_ptr<std::byte>> receives;
    std::vector<std::unique_ptr<GatherMemory>> gathers;
    std::vector<std::unique_ptr<Moving>> exchanges;
  };
  static inline Stays& stays_ = *new Stays;

  /// At the first call for frames: over a transport of another kind there is none.
  void post_all() {
    if (memory_ == nullptr) {
      constexpr std::align_val_t kLine{kLineBytes};
      memory_ = {new (kLine) std::byte[receive_bytes()],
                 [](std::byte* bytes) { ::operator delete[](bytes, kLine); }};
    }
    requests_.assign(limits_.receives, MPI_REQUEST_NULL);
    for (std::uint32_t i = 0; i < limits_.receives; ++i) post(i);
    indices_.resize(limits_.receives);
    statuses_.resize(limits_.receives);
  }

  void post(std::uint32_t slot) {
    check(MPI_Irecv(memory_of(slot), static_cast<int>(limits_.frame_bytes), MPI_BYTE, MPI_ANY_SOURCE, kTag,
                    comm_, &requests_[slot]),
          "MPI_Irecv");
  }

  std::byte* memory_of(std::uint32_t slot) const { return memory_.get() + slot * bytes_each_; }

  void meet_peers() {
    const Peer mine{Host::here().identity(), getpid(), read_status(getpid()).started};
    peers_.resize(n_pes_);
    check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, peers_.data(), sizeof mine, MPI_BYTE, comm_),
          "MPI_Allgather");
  }

  const TransportLimits limits_;
  const std::size_t bytes_each_;  // from one frame's memory to the next one's
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool finalise_ = false;
  int threads_ = MPI_THREAD_SINGLE;  // what MPI allows
  std::uint32_t pe_ = 0;
  std::uint32_t n_pes_ = 0;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> world_ranks_;  // by PE

  struct Sent {
    void* token = nullptr;
    std::uint32_t pe = 0;
    bool is_done = false;
  };
  std::vector<MPI_Request> sends_;  // sends_[i] belongs to sent_[i]
  std::vector<Sent> sent_;
  std::vector<std::uint32_t> under_way_;  // sends, by PE
  std::vector<int> sent_indices_;

  std::shared_ptr<std::byte> memory_;  // of the receives
  std::vector<MPI_Request> requests_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::deque<Frame> ready_;

  std::unique_ptr<GatherMemory> gather_memory_;
  MPI_Request gather_ = MPI_REQUEST_NULL;
  std::unique_ptr<Moving> moving_;
};

}  // namespace

Ownership find_ownership() {
  int value = 0;
  MPI_Finalized(&value);
  if (value != 0) throw Error(Error::Kind::kNetwork, "MPI has been finalised; Esker cannot start after that");
  MPI_Initialized(&value);
  if (value == 0) return Ownership::kOwnThread;
  MPI_Query_thread(&value);
  return value == MPI_THREAD_MULTIPLE ? Ownership::kOwnThread : Ownership::kCaller;
}

bool is_initialised() {
  int value = 0;
  MPI_Initialized(&value);
  return value != 0;
}

bool started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::unique_ptr<Transport> connect(TransportLimits limits, std::span<const std::byte> communicator,
                                   std::chrono::seconds patience) {
  return std::make_unique<MpiTransport>(limits, communicator_of(communicator), patience);
}

}  // namespace esker::mpi
