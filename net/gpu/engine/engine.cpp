// The engine of one PE's GPU: its parts, put together.
#include <atomic>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/engine/diagnostics.hpp>
#include <esker/net/gpu/engine/frames.hpp>
#include <esker/net/gpu/engine/handlers.hpp>
#include <esker/net/gpu/engine/heap.hpp>
#include <esker/net/gpu/engine/host_queues.hpp>
#include <esker/net/gpu/engine/launcher.hpp>
#include <esker/net/gpu/engine/opened_device.hpp>
#include <esker/net/gpu/engine/pe_state_memory.hpp>
#include <esker/net/gpu/engine/peers.hpp>
#include <esker/net/gpu/engine/progress_driver.hpp>
#include <esker/net/gpu/fault_report.hpp>
#include <optional>

namespace esker {
namespace gpu {
namespace {

/// Ordering. [links] what link() stores about links  happens before  other threads ask for them
class Engine final : public DeviceEngine {
 public:
  explicit Engine(const DeviceSettings& settings)
      : settings_{settings},
        device_{settings.rank_on_host},
        heap_{device_, settings_},
        queues_{device_.device(), settings_},
        memory_{device_, settings.pe, settings.n_pes},
        peers_{settings_, device_.device()},
        launcher_{device_, handlers_.registry(), memory_.for_progress_kernels(),
                  settings.pes_on_host > device_.devices()},
        progress_{launcher_, memory_.host(), handlers_.registry()} {
    if (settings_.heap_on_device) frames_.emplace(device_, settings_.pe, settings_.frame_bytes);
    PeState& state = memory_.state();
    state.heap = {heap_.base(), 0};
    queues_.fill_in(state);
    if (frames_) frames_->fill_in(state);
    memory_.publish();
  }
  ~Engine() override {
    progress_.starter().stop();
    device_.finish();
    if (peers_.is_exposed()) heap_.keep();
  }

  const Device& device() const override { return device_.device(); }
  void* stream() const override { return device_.user_stream(); }

  std::byte* heap_base() const override { return heap_.base(); }
  std::uint64_t heap_limit() const override { return heap_.limit_bytes(); }
  void clear(std::uint64_t offset, std::uint64_t bytes) override { heap_.clear(offset, bytes); }
  void read(std::uint64_t offset, void* to, std::uint64_t bytes) override { heap_.read(offset, to, bytes); }
  void write(std::uint64_t offset, const void* from, std::uint64_t bytes) override {
    heap_.write(offset, from, bytes);
  }
  void copy(void* to, const void* from, std::uint64_t bytes) override {
    device_.use();
    device_.copy(to, from, bytes, device_.block_stream(), "copying a block");
  }
  std::uint64_t bytes_a_step(std::uint32_t /*without_messages*/) const override {
    return std::uint64_t{1} << 20;
  }
  void wait_for_copies() override { device_.wait_for(device_.block_stream(), "copying a block"); }
  std::byte* reached_heap(std::uint32_t pe) const override {
    const PeState& state = memory_.state();
    for (std::uint32_t link = 0; link < links(); ++link) {
      if (state.pe_of[link] == pe) return state.heap_of[link];
    }
    return nullptr;
  }
  void set_heap_end(std::uint64_t bytes) override { memory_.set_heap_end(heap_.base(), bytes); }

  PackageQueue host_queue() const override { return memory_.state().host_queue; }
  PackageQueue progress_queue() const override { return memory_.state().progress_queue; }
  const PeState* pe_state() const override { return memory_.for_kernels(); }
  std::uint32_t bins() const override { return memory_.state().bins(); }

  InboxOffer offer() override {
    device_.use();
    return peers_.offer(heap_.base());
  }
  std::uint64_t open_peers(const std::vector<InboxOffer>& offers, bool use_peers) override {
    device_.use();
    return peers_.open(offers, use_peers);
  }
  std::uint32_t link(const std::vector<std::uint64_t>& opened) override {
    device_.use();
    const std::uint32_t links = peers_.link(opened, memory_.state());
    links_.store(links, std::memory_order_release);  // [links]
    device_.occupancy().set_sharers(peers_.sharers());
    memory_.publish();
    if (settings_.heap_on_device && peers_.requests_arrive()) {
      if (peers_.requests_arrive_in_packages()) prepare_for_handlers();  // replies go the way of theirs
      load(kRequests, code_for_requests());
    }
    return links;
  }
  std::string why_not_linked() const override { return peers_.why_not_linked(); }
  void close_peers() override {
    device_.use();
    peers_.close();
  }
  void retract_offer() override { peers_.retract_offer(); }
  std::uint32_t links() const override { return links_.load(std::memory_order_acquire); }  // [links]
  std::uint32_t pe_of_link(std::uint32_t link) const override { return memory_.state().pe_of[link]; }

  void add_handler(std::uint32_t index, const HandlerTable::Entry& entry) override {
    device_.use();
    if (!settings_.heap_on_device) return;  // the host applies
    Handlers::check(entry);
    prepare_for_handlers();
    load(index, *entry.device);
  }

  void begin_launch(const char* kernel) override {
    device_.use();
    device_.set_kernel(kernel);
  }
  void end_launch(const std::string& error) override {
    if (!error.empty()) throw Error(Error::Kind::kDevice, "kernel '" + device_.kernel_name() + "': " + error);
    progress_.starter().note_launch();
  }
  bool was_running() override { return device_.was_running(); }
  bool abandon(std::chrono::seconds patience) override {
    memory_.announce_abandoned();
    return device_.try_wait_for_all(patience);
  }

  std::shared_ptr<std::byte> receive_memory(std::size_t bytes) override {
    return frames_->receive_memory(bytes);
  }
  bool try_submit(ApplyJob& job) override {
    if (!frames_->try_submit(job)) return false;
    publish();
    return true;
  }
  bool step(bool wanted, bool handlers, ReplySink& replies) override {
    check_for_fault();
    if (!settings_.heap_on_device) return false;  // the host applies
    const bool collected = frames_->collect(memory_.host(), replies);
    const bool moved = progress_.step(wanted, handlers, frames_->in_flight());
    if (collected || moved) publish();
    return collected || moved;
  }
  bool is_under_way() const override { return progress_.is_under_way() || frames_in_flight() > 0; }
  void expect_progress() override { progress_.starter().expect(); }
  std::uint64_t progress_started() const override { return progress_.started(); }
  bool has_completed_since(std::uint64_t progress) const override {
    return !settings_.heap_on_device || progress_.has_completed_since(progress, frames_in_flight());
  }
  bool has_called_handlers() const override { return memory_.host().calls_handlers.load_relaxed() != 0; }
  void complete_round() override { progress_.complete_round(); }
  bool take_drain_request() override { return progress_.take_drain_request() && settings_.heap_on_device; }
  std::uint64_t sent_to(std::uint32_t link) const override {
    return progress_.snapshot().totals.sent_to[link];
  }
  std::uint64_t applied_from(std::uint32_t link) const override {
    return progress_.snapshot().totals.applied_from[link];
  }

  DeviceTraffic traffic() const override { return diagnostics_.traffic(); }
  std::string was_doing() const override {
    return diagnostics_.describe(device_.kernel_name(), {memory_.state().pe_of, links()});
  }

 private:
  void prepare_for_handlers() {
    if (handlers_.prepare(device_.device(), memory_.state())) memory_.publish();
  }
  void load(std::uint32_t index, const HandlerOnDevice& code) {
    device_.occupancy().require_guests();
    handlers_.add(index, code, device_.occupancy());
  }
  std::uint32_t frames_in_flight() const { return frames_ ? frames_->in_flight() : 0; }
  void check_for_fault() const {
    const HostWords& host = memory_.host();
    if (host.fault.load_acquire() == 0) return;  // [fault]
    raise_fault(host.report, {device_.kernel_name(), settings_.n_pes, memory_.heap_end()});
  }
  void publish() {
    diagnostics_.publish({progress_.started(), progress_.ended(), frames_in_flight(), progress_.was_quiet(),
                          progress_.snapshot()});
  }

  const DeviceSettings settings_;
  OpenedDevice device_;
  Heap heap_;
  HostQueues queues_;
  PeStateMemory memory_;
  Peers peers_;
  std::atomic<std::uint32_t> links_{0};  // without the one to itself
  std::optional<Frames> frames_;
  Handlers handlers_;
  Launcher launcher_;
  ProgressDriver progress_;  // its thread uses what stands above
  Diagnostics diagnostics_;
};

}  // namespace
}  // namespace gpu

std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSettings& settings) {
  if (detail::count_gpus() == 0) return nullptr;
  return std::make_unique<gpu::Engine>(settings);
}

}  // namespace esker
