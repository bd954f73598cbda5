// A Runtime's life: set-up, the last barrier, and in which order parts go.
#include <esker/runtime/impl.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/runtime/peer_heaps.hpp>
#include <esker/runtime/start_up.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kReceives = 16;  // frames that a transport keeps ready to receive
constexpr std::uint64_t kGrownLimitBytes = std::uint64_t{1} << 30;

/// Node buffers for what the program itself sends.
std::uint32_t host_buffers(const JobShape& job) { return 2 * job.destinations; }

}  // namespace

Runtime::Impl::Impl(const Config& config, Medium medium)
    : config_{resolved(config)},
      owner_{medium.own_thread,
             [this, connect = std::move(medium.connect)] {
               return connect({config_.node_buffer_bytes, kReceives});
             },
             "starting"},
      job_{job_of(config_, owner_.transport())},
      lane_threads_{lane_threads(config_, job_)},
      transport_name_{owner_.transport().name()},
      trace_{config_.trace, job_.pe, job_.n_pes, config_.package_slots},
      executor_{make_executor(config_, job_)},
      memory_{executor_->make_heap()},
      queue_{make_context()},
      network_{make_network()},
      aggregators_{make_aggregators()},
      blocks_{job_, memory_, executor_->block_memory(), failure_, *network_, config_.node_buffer_bytes},
      call_{failure_},
      waits_{failure_, bell_,          *aggregators_,   *network_,
             owner_,   lanes_.waiting, trace_.tracer(), [this] { supervision_.check_for_hang(); }},
      producers_{context_,      config_.pending_messages,
                 lane_threads_, lanes_,
                 failure_,      *aggregators_,
                 *network_,     waits_,
                 blocks_},
      sender_{{job_.pe, job_.destinations, config_.node_buffer_bytes, host_buffers(job_),
               config_.aggregation_timeout, trace_.tracer()},
              *executor_,
              context_,
              *network_,
              waits_,
              producers_,
              failure_},
      collectives_{job_, call_, *aggregators_, sender_, *network_, waits_},
      data_{job_, collectives_, *executor_},
      heap_{job_, memory_, *executor_, context_, collectives_, failure_},
      workers_{lane_threads_, context_, job_.name()},
      launches_{workers_, *executor_, call_, *aggregators_, sender_, owner_, failure_, trace_.tracer()},
      supervision_{{config_, job_, failure_, bell_, owner_, *network_, *aggregators_, workers_, *executor_,
                    queue_, lanes_, producers_, call_, collectives_, waits_, trace_}} {
  name_before_ = set_thread_name(job_.name());
  connect();
  owner_.run(
      *network_, [this] { supervision_.poll(); }, [this] { supervision_.check_for_hang(); });
  try {
    start_together();
  } catch (...) {
    end(true);
    throw;
  }
}

Runtime::Impl::~Impl() {
  // Threads first, then the network, then the pools whose buffers it may still hold.
  aggregators_->stop();
  if (!executor_->abandon(std::chrono::seconds{config_.hang_seconds})) {
    std::fprintf(stderr, "esker: %s: %s; a kernel still runs after %u s, and the process ends\n",
                 job_.name().c_str(), failure_.is_set() ? failure_.message().c_str() : "the job has ended",
                 config_.hang_seconds);
    std::_Exit(EXIT_FAILURE);
  }
  network_.reset();
}

PackageQueue Runtime::Impl::make_context() {
  const PackageQueue queue = executor_->make_queue(context_);
  context_.pe = job_.pe;
  context_.n_pes = job_.destinations;
  context_.services = &producers_;
  context_.tracer = trace_.tracer();
  context_.most_columns = Producers::columns_within(config_.pending_messages, lane_threads_);
  refresh_heap(context_, memory_, *executor_);
  return queue;
}

std::unique_ptr<Network> Runtime::Impl::make_network() {
  const NetworkSettings settings{
      job_.destinations,
      executor_->aggregators() * buffers_a_pool(config_, job_) + host_buffers(job_) + 1024,
      config_.node_buffer_bytes,
      config_.apply_helpers,
      config_.aggregation_timeout,
      kGrownLimitBytes,
      trace_.tracer()};
  return std::make_unique<Network>(settings, owner_.transport(), handlers_.table(), memory_.base(),
                                   memory_.end(), failure_, bell_);
}

std::unique_ptr<Aggregators> Runtime::Impl::make_aggregators() {
  const AggregatorSettings settings{executor_->aggregators(),
                                    job_.pe,
                                    job_.destinations,
                                    config_.node_buffer_bytes,
                                    buffers_a_pool(config_, job_),
                                    config_.aggregation_timeout,
                                    config_.aggregation_max_age,
                                    config_.aggregate,
                                    executor_->on_device(),
                                    trace_.tracer()};
  return std::make_unique<Aggregators>(settings, queue_, *network_);
}

void Runtime::Impl::connect() {
  network_->add_program(sender_);
  network_->add_lanes(*aggregators_, executor_->published(lanes_, *aggregators_), lanes_.call_handlers,
                      lanes_.waiting);
  executor_->attach(*network_);
  network_->set_supervisor(supervision_);
}

void Runtime::Impl::start_together() {
  const std::uint64_t pool_bytes =
      std::uint64_t{executor_->aggregators()} * buffers_a_pool(config_, job_) * config_.node_buffer_bytes +
      owner_.transport().frame_memory_bytes();
  declared_bytes_ = agree(config_, job_, collectives_, memory_, pool_bytes);
  executor_->link_peers(memory_, collectives_, context_);
  print_start_up(config_, job_,
                 {*executor_, lane_threads_, transport_name_, owner_.has_own_thread(), memory_.limit_bytes(),
                  declared_bytes_});
}

void Runtime::Impl::end(bool in_exception) noexcept {
  if (ended_) return;
  ended_ = true;
  const std::string why = call_.thrown().empty() ? "" : ": " + call_.thrown();
  bool orderly = false;
  try {
    if (!failure_.is_set()) {
      // Without an exception a slow peer is waited for, as in any barrier. With one, peers may never
      // come: then they are told.
      if (in_exception) waits_.give_up_at(WaitLoop::Clock::now() + kPartingPatience);
      collectives_.barrier(Collective::kEnd, in_exception);
      executor_->part_from_peers(collectives_);
      orderly = true;
    }
  } catch (const std::exception& error) {
    if (!in_exception) say("at the end of Runtime", error);
    failure_.set(Error::Kind::kNetwork,
                 fmt::format("{} has left the job by an exception{}", job_.name(), why));
    network_->bell().ring();
  }
  try {
    owner_.stop(orderly);
  } catch (const std::exception& error) {
    say("closing the network", error);
  }
  set_thread_name(name_before_);
}

void Runtime::Impl::say(const char* when, const std::exception& error) const noexcept {
  std::fprintf(stderr, "esker: %s: %s: %s\n", job_.name().c_str(), when, error.what());
}

Statistics Runtime::Impl::statistics() const {
  const DeviceTraffic past_host = executor_->traffic();
  const Shipping& shipping = network_->shipping();
  Statistics s;
  s.messages_by_handlers = network_->sent_by_handlers() + past_host.by_handlers;
  s.messages_published = executor_->published(lanes_, *aggregators_).load(std::memory_order_relaxed) +
                         network_->sent_by_progress() + past_host.sent - past_host.by_handlers +
                         sender_.sent();
  s.messages_local = shipping.messages_local() + past_host.local;
  s.messages_remote = shipping.messages_remote() + past_host.sent - past_host.local;
  s.messages_direct = past_host.direct;
  if (const PeerHeaps* const heaps = context_.peer_heaps; heaps != nullptr) {
    s.messages_published += heaps->local_gets() + heaps->remote_gets();
    s.messages_local += heaps->local_gets();
    s.messages_remote += heaps->remote_gets();
    s.messages_direct += heaps->remote_gets();
  }
  s.combined_local = producers_.combined_local();
  s.combined_remote = producers_.combined_remote();
  s.messages_applied = network_->applied();
  s.packages = aggregators_->packages() + past_host.packages;
  s.buffers_sent = shipping.buffers_shipped() + past_host.packages;
  s.bytes_sent = shipping.bytes_shipped() + past_host.bytes;
  s.handler_memory_peak_bytes = shipping.grown().peak_bytes();
  return s;
}

}  // namespace esker
