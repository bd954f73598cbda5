// Requests to the network's owner, and whether PEs agree on what they are in.
#include <esker/runtime/collectives.hpp>

#include <fmt/format.h>

#include <thread>
#include <utility>

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
    case Collective::kEnd:
      return "~Runtime";
    case Collective::kSync:
      return "sync_all";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kGather:
      return "gather";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kReduce:
      return "reduce";
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kScan:
      return "exclusive_scan";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kSort:
      return "sort";
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
  waits_.wait("a word of the heap", ready, false);  // a trace keeps its texts, and `what` ends with the call
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

void Collectives::exchange(Collective collective, std::shared_ptr<Exchange> exchange) {
  const CurrentCall::Scope call(call_, to_string(collective));
  const Network::Driving driving(waits_.drives());
  new_request(NetworkRequest::Kind::kExchange, to_string(collective));
  request_.exchange = std::move(exchange);
  serve();
  request_.exchange.reset();
}

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
      throw Error(Error::Kind::kNetwork, fmt::format("{} has left the job by an exception", job_.name(pe)));
    }
    throw Error(Error::Kind::kContract,
                fmt::format("{} is in {} (its collective call number {}) while {} is in {} (number {}): "
                            "collective calls must come in the same order on every PE",
                            job_.name(), request_.call, request_.mine.sequence, job_.name(pe),
                            to_string(static_cast<Collective>(other.collective)), other.sequence));
  }
}

}  // namespace esker
