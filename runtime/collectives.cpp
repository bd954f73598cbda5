// Requests to the network's owner, and whether PEs agree on what they are in.
#include <esker/runtime/collectives.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <type_traits>

namespace esker {
namespace {

// Of a barrier's values, the first that is not the network's: this PE leaves by an exception.
constexpr std::size_t kLeaves = NetworkRequest::kBarrierValues;

bool leaves(const GatherBlock& block) {
  return block.collective == static_cast<std::uint32_t>(Collective::kEnd) && block.values[kLeaves] != 0;
}

// Of a word in device memory, which takes a copy.
constexpr std::chrono::microseconds kBetweenLooks{20};

/// Says that the user's thread waits for others.
class Waiting {
 public:
  explicit Waiting(std::atomic<bool>& flag) : flag_{flag}, before_{flag.exchange(true)} {}
  ~Waiting() { flag_.store(before_, std::memory_order_relaxed); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::atomic<bool>& flag_;
  const bool before_;
};

template <class T>
T combine(T a, T b, Reduction reduction) {
  if (reduction == Reduction::kSum) return a + b;
  return reduction == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}

}  // namespace

const char* to_string(Collective collective) {
  switch (collective) {
    case Collective::kStart:
      return "Runtime";
    case Collective::kAllocate:
      return "heap().allocate";
    case Collective::kFree:
      return "heap().free";
    case Collective::kRegister:
      return "register_handler";
    case Collective::kBarrier:
      return "barrier_all";
    case Collective::kReduce:
      return "all_reduce";
    case Collective::kEnd:
      return "~Runtime";
  }
  return "no collective call of Esker";
}

void Collectives::quiet() {
  const CurrentCall::Scope call(call_, "quiet");
  const Network::Driving driving(waits_.drives());
  serve_quiet();
}

void Collectives::serve_quiet() {
  new_request(NetworkRequest::Kind::kQuiet, "quiet");
  request_.flush_epoch = aggregators_.request_flush();
  serve();
}

void Collectives::wait_for(const char* what, const std::function<bool()>& ready, bool on_device) {
  const CurrentCall::Scope call(call_, what);
  const Network::Driving driving(waits_.drives());
  sender_.close();
  if (on_device) {
    const Waiting waiting(waiting_);
    while (!ready()) {
      serve_quiet();
      std::this_thread::sleep_for(kBetweenLooks);
    }
    return;
  }
  const Network::Watching watching(network_);
  const Waiting waiting(waiting_);
  waits_.wait(what, ready, false);
}

void Collectives::barrier(Collective collective, bool leaves) {
  const CurrentCall::Scope call(call_, to_string(collective));
  const Network::Driving driving(waits_.drives());
  new_request(NetworkRequest::Kind::kBarrier, to_string(collective));
  request_.mine = new_block(collective);
  request_.mine.values[kLeaves] = leaves ? 1 : 0;
  request_.flush_epoch = aggregators_.request_flush();
  serve();
  require_same_call();
}

std::vector<GatherBlock> Collectives::gather(Collective collective, const Values& values) {
  const CurrentCall::Scope call(call_, to_string(collective));
  const Network::Driving driving(waits_.drives());
  new_request(NetworkRequest::Kind::kGather, to_string(collective));
  request_.mine = new_block(collective);
  request_.mine.values = values;
  serve();
  require_same_call();
  return request_.all;
}

template <class T>
void Collectives::all_reduce(std::span<T> values, Reduction reduction) {
  // Before the first five values stands what the PEs must agree on; later gathers carry six.
  const std::uint64_t mine =
      values.size() << 3 | (std::is_same_v<T, double> ? 4u : 0u) | static_cast<std::uint64_t>(reduction);
  for (std::size_t at = 0; at == 0 || at < values.size();) {
    const std::size_t head = at == 0 ? 1 : 0;
    const std::size_t n = std::min<std::size_t>(6 - head, values.size() - at);
    Values words{mine};
    if (n > 0) std::memcpy(words.data() + head, values.data() + at, n * sizeof(T));
    const auto blocks = gather(Collective::kReduce, words);
    if (head == 1) require_same_reduction(blocks);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
        T other;
        std::memcpy(&other, &blocks[pe].values[head + i], sizeof other);
        T& value = values[at + i];
        value = pe == 0 ? other : combine(value, other, reduction);
      }
    }
    if (n == 0) break;
    at += n;
  }
}

template void Collectives::all_reduce(std::span<std::uint64_t> values, Reduction reduction);
template void Collectives::all_reduce(std::span<double> values, Reduction reduction);

GatherBlock Collectives::new_block(Collective collective) {
  GatherBlock mine;
  mine.collective = static_cast<std::uint32_t>(collective);
  mine.sequence = ++calls_;
  return mine;
}

void Collectives::new_request(NetworkRequest::Kind kind, const char* call) {
  sender_.close();
  request_.kind = kind;
  request_.call = call;
  request_.done.store(false, std::memory_order_relaxed);
}

void Collectives::serve() {
  network_.post(&request_);
  const Waiting waiting(waiting_);
  waits_.wait(
      request_.call, [&] { return request_.done.load(std::memory_order_acquire); }, false);  // [done]
}

void Collectives::require_same_call() {
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    const GatherBlock& other = request_.all[pe];
    if (other.collective == request_.mine.collective && other.sequence == request_.mine.sequence) continue;
    if (leaves(other) && !leaves(request_.mine)) {
      const auto until = WaitLoop::Clock::now() + kPartingPatience;
      waits_.wait(
          "the reason why a PE has left", [&] { return WaitLoop::Clock::now() >= until; },
          false);  // throws it
      throw Error(Error::Kind::kNetwork, fmt::format("PE {} has left the job by an exception", pe));
    }
    throw Error(
        Error::Kind::kContract,
        fmt::format("PE {} is in {} (its collective call number {}) while PE {} is in {} (number {}): "
                    "collective calls must come in the same order on every PE",
                    job_.pe, request_.call, request_.mine.sequence, pe,
                    to_string(static_cast<Collective>(other.collective)), other.sequence));
  }
}

/// What all_reduce() gathers first: the number of values, their type and the operation.
void Collectives::require_same_reduction(const std::vector<GatherBlock>& blocks) const {
  const auto in_words = [](std::uint64_t word) {
    constexpr std::array<const char*, 4> kNames{"sum", "minimum", "maximum", "unknown reduction"};
    return fmt::format("the {} of {} {}", kNames[word & 3], word >> 3,
                       (word & 4) != 0 ? "doubles" : "64-bit integers");
  };
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    if (blocks[pe].values[0] == blocks[0].values[0]) continue;
    throw Error(Error::Kind::kContract,
                fmt::format("all_reduce: PE {} asks for {}, PE 0 for {}: these must be the same on every PE",
                            pe, in_words(blocks[pe].values[0]), in_words(blocks[0].values[0])));
  }
}

}  // namespace esker
