// The host's package queue as a sink for lanes on the host.
#pragma once

#include <cstdint>

#include <esker/aggregator/command.hpp>
#include <esker/device/group.hpp>
#include <esker/device/packing.hpp>
#include <esker/queue/package_queue.hpp>
#include <esker/runtime/device_context.hpp>

#if defined(ESKER_ON_CPU)

namespace esker {

/// The package queue as elections see it (concept Sink, device/packing.hpp).
class ESKER_API PackageSink {
 public:
  /// With a lane of a group, a wait for pending messages lets its siblings run: one of them may hold the
  /// ticket that such a message waits behind.
  explicit PackageSink(const detail::KernelContext& context, const GroupLane* lane = nullptr)
      : context_{&context}, lane_{lane} {}

  std::uint32_t columns(std::uint32_t words) const {
    const std::uint32_t fit = context_->queue.columns(words);
    return context_->most_columns == 0 || fit < context_->most_columns ? fit : context_->most_columns;
  }
  std::uint64_t reserve(std::uint32_t packages) {
    if (context_->most_columns != 0) claim(std::uint64_t{packages} * context_->most_columns);
    next_ = queue().reserve(packages);
    end_ = next_ + packages;
    return next_;
  }
  bool was_empty(std::uint64_t ticket) const { return queue().was_empty(ticket); }
  /// One step of waiting: some aggregation or progress, then the other lanes of the group.
  template <class L>
  void pause(const L& lane) {
    context_->services->help();
    lane.yield();
  }
  /// For lanes that have no siblings on their thread.
  void wait_empty(std::uint64_t ticket) {
    if (!queue().was_empty(ticket)) context_->services->wait_empty(queue(), ticket);
  }
  std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return context_->queue.row(ticket, words, r);
  }
  std::uint32_t pe() const { return context_->pe; }
  void has_combined(std::uint64_t calls, std::uint64_t remote) {
    context_->services->has_combined(calls, remote);
  }
  /// PeerHeaps::serve_gets().
  std::uint32_t serve_gets(std::uint32_t command, std::uint64_t* rows, std::uint32_t columns,
                           std::uint32_t count);
  void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words, std::uint32_t count);
  /// A lane of a group ends, perhaps cancelled, since a sibling has thrown: packages that it has reserved and
  /// not published are published without messages. Later tickets would wait for them for ever.
  void end() noexcept {
    if (next_ != end_) publish_nothing();
  }
  /// Past the queue.
  void send_bytes(const detail::BytesCall& call, const Caller& caller) {
    if (context_->most_columns != 0) claim(1);
    context_->services->send_bytes(call, caller);
  }

 private:
  void publish_nothing() noexcept;
  // A view: its methods change shared memory, not the view.
  PackageQueue& queue() const { return const_cast<PackageQueue&>(context_->queue); }

  void claim(std::uint64_t messages) {
    ProducerServices& services = *context_->services;
    if (lane_ == nullptr) return services.claim_pending(messages);
    while (!services.try_claim_pending(messages)) {
      services.flush_pending();
      pause(*lane_);
    }
  }

  const detail::KernelContext* context_;
  const GroupLane* lane_;
  std::uint64_t next_ = 0, end_ = 0;  // tickets reserved and not published
};

static_assert(Sink<PackageSink>);

}  // namespace esker

#endif
