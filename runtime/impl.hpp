// The parts of a Runtime put together. Private to runtime/.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <esker/aggregator/aggregator.hpp>
#include <esker/config.hpp>
#include <esker/device/hash.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/network.hpp>
#include <esker/queue/package_memory.hpp>
#include <esker/runtime.hpp>
#include <esker/runtime/hang_inquiry.hpp>
#include <esker/runtime/hang_watch.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/lane_workers.hpp>
#include <esker/runtime/medium.hpp>
#include <esker/runtime/network_owner.hpp>
#include <esker/runtime/trace_file.hpp>

namespace esker {

using Clock = std::chrono::steady_clock;

inline constexpr std::uint32_t kReceives = 16;      // frames that a transport keeps ready to receive
inline constexpr std::uint32_t kLeastBuffers = 32;  // in an aggregator's pool: two MiB under way by default
inline constexpr std::uint64_t kGrownLimitBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMpiBytesAPeer = 256 * 1024;  // what Open MPI comes to use for a peer
inline constexpr std::chrono::microseconds kLongestNap{1000};
// Where --node-buffer-bytes leaves it open (docs/design/aggregation.md).
inline constexpr std::uint32_t kNodeBufferBytes = 64 << 10;
inline constexpr std::uint32_t kNodeBufferBytesOnDevice = 256 << 10;
inline constexpr std::chrono::seconds kPartingPatience{2};

inline std::string in_mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// What a gather is for, so that PEs in different calls notice.
enum class Collective : std::uint32_t { kStart = 1, kAllocate, kFree, kRegister, kBarrier, kReduce, kEnd };
const char* to_string(Collective collective);

using detail::Medium;
/// MPI under a launcher or where the program has initialised it, else one PE over loopback.
Medium choose_medium(const Config& config);

class Runtime::Impl final : public SymmetricHeap, public ProducerServices, private Supervisor {
 public:
  Impl(const Config& config, Medium medium)
      : config_{resolved(config)},
        owner_{medium.own_thread,
               [this, connect = std::move(medium.connect)] {
                 return connect({config_.node_buffer_bytes, kReceives});
               },
               "starting"},
        pe_{owner_.transport().pe()},
        n_pes_{owner_.transport().n_pes()},
        inquiry_{pe_, n_pes_, hang_limit()},
        transport_name_{owner_.transport().name()},
        trace_{config_.trace, pe_, n_pes_, config_.package_slots},
        device_{open_device()},
        memory_{make_heap()},
        queue_memory_{device_ ? 1 : config.package_slots, config.package_bytes} {
    if (n_pes_ > kMaxPes || destinations() > kMaxPes) {
      throw Error(Error::Kind::kConfiguration, fmt::format("{} PEs: a message can name {}", n_pes_, kMaxPes));
    }
    set_thread_name(fmt::format("PE {}", pe_));
    make_context();
    const std::uint32_t buffers = std::max(config_.buffers_per_destination * destinations(), kLeastBuffers);
    const NetworkSettings settings{
        destinations(),        aggregators() * buffers + 1024, config_.node_buffer_bytes,
        config_.apply_helpers, config_.aggregation_timeout,    kGrownLimitBytes,
        trace_.tracer()};
    network_ = std::make_unique<Network>(settings, owner_.transport(), handlers_, memory_.base(),
                                         memory_.end(), failure_, bell_);
    network_->set_device(device_.get(), heap_on_device());
    aggregators_ = std::make_unique<Aggregators>(
        AggregatorSettings{aggregators(), pe_, destinations(), config_.node_buffer_bytes, buffers,
                           config_.aggregation_timeout, config_.aggregation_max_age, config_.aggregate,
                           device_ != nullptr, trace_.tracer()},
        context_.queue, *network_);
    network_->set_aggregators(aggregators_.get());
    network_->set_published(device_ ? &aggregators_->messages_counter() : &published_);
    network_->set_supervisor(this);
    pool_bytes_ = std::uint64_t{aggregators()} * buffers * config_.node_buffer_bytes;
    workers_ = std::make_unique<LaneWorkers>(lane_threads(), context_, fmt::format("PE {}", pe_));
    owner_.run(*network_, [this] { look_around(); });
    try {
      start_together();
    } catch (...) {
      end(true);
      throw;
    }
  }

  ~Impl() {
    // Threads first, then the network, then the pools whose buffers it may still hold.
    if (aggregators_) aggregators_->stop();
    if (device_ && !device_->abandon(std::chrono::seconds{config_.hang_seconds})) {
      std::fprintf(stderr, "esker: PE %u: %s; a kernel still runs after %u s, and the process ends\n", pe_,
                   failure_.is_set() ? failure_.message().c_str() : "the job has ended",
                   config_.hang_seconds);
      std::_Exit(EXIT_FAILURE);
    }
    network_.reset();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void end(bool in_exception) noexcept {
    if (ended_) return;
    ended_ = true;
    const std::string why = thrown_.empty() ? "" : ": " + thrown_;
    bool orderly = false;
    try {
      if (!failure_.is_set()) {
        // Without an exception a slow peer is waited for, as in any barrier. With one, peers may never
        // come: then they are told.
        if (in_exception) give_up_at_ = Clock::now() + kPartingPatience;
        barrier(Collective::kEnd, in_exception);
        if (device_) part_from_peers();
        orderly = true;
      }
    } catch (const std::exception& error) {
      if (!in_exception) say("at the end of Runtime", error);
      failure_.set(Error::Kind::kNetwork, fmt::format("PE {} has left the job by an exception{}", pe_, why));
      network_->bell().ring();
    }
    try {
      owner_.stop(orderly);
    } catch (const std::exception& error) {
      say("closing the network", error);
    }
    set_thread_name({});
  }

  // --- Calls of the user's thread.

  void quiet() {
    const Call call(*this, "quiet");
    new_request(NetworkRequest::Kind::kQuiet, "quiet");
    request_.flush_epoch = aggregators_->request_flush();
    serve();
  }

  /// `leaves`: by an exception, so that peers in other calls need not wonder about the order of theirs.
  void barrier(Collective collective, bool leaves = false) {
    const Call call(*this, to_string(collective));
    new_request(NetworkRequest::Kind::kBarrier, to_string(collective));
    request_.mine = block(collective);
    request_.mine.values[2] = calls_handlers_.exchange(false, std::memory_order_relaxed) ? 1 : 0;
    request_.mine.values[kLeaves] = leaves ? 1 : 0;
    request_.flush_epoch = aggregators_->request_flush();
    serve();
    require_same_call();
  }

  /// Every PE's values; collective.
  std::vector<GatherBlock> gather(Collective collective, const std::array<std::uint64_t, 6>& values) {
    const Call call(*this, to_string(collective));
    new_request(NetworkRequest::Kind::kGather, to_string(collective));
    request_.mine = block(collective);
    request_.mine.values = values;
    serve();
    require_same_call();
    return request_.all;
  }

  bool runs_on_device() const { return device_ != nullptr; }
  void* stream() const { return device_ ? device_->stream() : nullptr; }
  /// Where lanes run on a GPU.
  gpu::Occupancy& occupancy() const { return device_->occupancy(); }
  void reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t scratch_bytes) {
    if (!device_) return;  // such a kernel does not run
    const std::string refusal = device_->occupancy().reserve(kernel, group_lanes, scratch_bytes);
    if (!refusal.empty()) throw Error(Error::Kind::kDevice, "reserve_for: " + refusal);
    context_.is_reserved = true;
  }
  std::string device_name() const { return device_ ? device_->name() : "cpu"; }
  void* begin_launch(const char* name) {
    failure_.raise_if_set();
    calls_.fetch_add(1, std::memory_order_relaxed);
    Tracer* const tracer = trace_.tracer();
    if (tracer != nullptr) launching_.emplace(tracer, TraceWhat::kLaunch, tracer->keep(name));
    device_->begin_launch(name);
    return device_->stream();
  }
  void end_launch(const std::string& error) {
    launching_.reset();
    device_->end_launch(error);
  }

  void run_groups(const LaunchShape& shape, const char* name, const detail::GroupFunction& function) {
    failure_.raise_if_set();
    if (shape.group_lanes == 0 || shape.wave_lanes == 0)
      misuse("launch: a group and a wave have at least one lane");
    const Call call(*this, name, true);
    Tracer* const tracer = trace_.tracer();
    if (tracer != nullptr) name = tracer->keep(name);
    TraceSpan span(tracer, TraceWhat::kLaunch, name);
    if (span.is_on()) span.set_values({static_cast<std::uint32_t>(shape.groups()), 0, 0, 0});
    aggregators_->set_producing(true);
    struct Done {
      Aggregators& aggregators;
      ~Done() { aggregators.set_producing(false); }
    } const done{*aggregators_};
    try {
      workers_->run(
          shape.groups(), function, [this] { return owner_.step_if_caller(); }, name);
    } catch (...) {
      throw_with_kernel(name);
    }
    failure_.raise_if_set();
  }

  std::uint16_t add_handler(HandlerTable::Entry entry) {
    const std::uint64_t hash = hash_text(entry.name);
    const std::string name = entry.name;
    const auto blocks = gather(Collective::kRegister, {hash, entry.words, entry.target_bytes,
                                                       entry.target_alignment, handler_count_, 0});
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      const auto& other = blocks[pe].values;
      if (other == blocks[0].values) continue;
      throw Error(
          Error::Kind::kHandler,
          fmt::format("register_handler '{}': PE {} and PE 0 register different handlers as number {}: {} a "
                      "message of {} words for a target of {} bytes here, {} words for {} bytes there",
                      name, pe, handler_count_ + 1,
                      other[0] == blocks[0].values[0] ? "same name," : "another name,", other[1], other[2],
                      blocks[0].values[1], blocks[0].values[2]));
    }
    const auto next = static_cast<std::uint32_t>(handler_count_) + 1;
    if (device_ && next <= HandlerTable::kMaxHandlers) {
      device_->add_handler(next, entry);
      context_.bins = device_->bins();
    }
    entry.device = nullptr;
    const std::uint32_t index = handlers_.add(std::move(entry));
    if (index > HandlerTable::kMaxHandlers) {
      throw Error(Error::Kind::kHandler, fmt::format("register_handler '{}': there are {} handlers already",
                                                     name, HandlerTable::kMaxHandlers));
    }
    ++handler_count_;
    gather(Collective::kRegister, {});  // known everywhere before the first message for it
    return static_cast<std::uint16_t>(index);
  }

  template <class T>
  void all_reduce(std::span<T> values, Reduction reduction) {
    // Before the first five values stands what the PEs must agree on; later gathers carry six.
    const std::uint64_t mine =
        values.size() << 3 | (std::is_same_v<T, double> ? 4u : 0u) | static_cast<std::uint64_t>(reduction);
    for (std::size_t at = 0; at == 0 || at < values.size();) {
      const std::size_t head = at == 0 ? 1 : 0;
      const std::size_t n = std::min<std::size_t>(6 - head, values.size() - at);
      std::array<std::uint64_t, 6> words{mine};
      if (n > 0) std::memcpy(words.data() + head, values.data() + at, n * sizeof(T));
      const auto blocks = gather(Collective::kReduce, words);
      if (head == 1) require_same_reduction(blocks);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
          T other;
          std::memcpy(&other, &blocks[pe].values[head + i], sizeof other);
          T& value = values[at + i];
          if (pe == 0)
            value = other;
          else if (reduction == Reduction::kSum)
            value += other;
          else
            value = reduction == Reduction::kMin ? std::min(value, other) : std::max(value, other);
        }
      }
      if (n == 0) break;
      at += n;
    }
  }

  // --- SymmetricHeap.

  std::byte* base() const override { return memory_.base(); }
  std::uint64_t limit_bytes() const override { return memory_.limit_bytes(); }
  std::uint64_t allocated_bytes() const override { return memory_.allocated_bytes(); }

  void* allocate_bytes(std::uint64_t count, std::size_t element_bytes) override {
    // What would overflow is more than any heap has; every PE sees the same numbers and refuses alike.
    const bool countable = count <= memory_.limit_bytes() / element_bytes;
    const std::uint64_t bytes = countable ? count * element_bytes : 0;
    const std::uint64_t available = device_ ? memory_.limit_bytes() : available_host_bytes() / pes_on_host_;
    const auto blocks = gather(Collective::kAllocate, {count, element_bytes, available, 0, 0, 0});
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      const auto& other = blocks[pe].values;
      if (other[0] == blocks[0].values[0] && other[1] == blocks[0].values[1]) continue;
      throw Error(Error::Kind::kContract,
                  fmt::format("heap().allocate: PE {} asks for {} elements of {} bytes, PE 0 for {} of {}",
                              pe, other[0], other[1], blocks[0].values[0], blocks[0].values[1]));
    }
    const auto offset = countable ? memory_.find(bytes) : std::nullopt;
    if (!offset) {
      throw Error(
          Error::Kind::kOutOfMemory,
          fmt::format("heap().allocate: {} elements of {} bytes do not fit: {} of the symmetric heap's {} on "
                      "each PE are taken; raise --heap-bytes (ESKER_HEAP_BYTES)",
                      count, element_bytes, in_mib(memory_.allocated_bytes()),
                      in_mib(memory_.limit_bytes())));
    }
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      if (blocks[pe].values[2] < bytes) {
        throw Error(
            Error::Kind::kOutOfMemory,
            fmt::format(
                "heap().allocate: {} on each PE are more than the {} that PE {}'s share of its host's "
                "memory has left; use fewer PEs a host or a smaller problem",
                in_mib(bytes), in_mib(blocks[pe].values[2]), pe));
      }
    }
    const bool taken = memory_.take(*offset, bytes);
    refresh_heap();  // before any PE can send to it
    const auto results = gather(Collective::kAllocate, {taken ? 1u : 0u, 0, 0, 0, 0, 0});
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      if (results[pe].values[0] == 1) continue;
      if (taken) memory_.release(*offset);
      throw Error(Error::Kind::kOutOfMemory,
                  fmt::format("heap().allocate: PE {}'s host has no {} left", pe, in_mib(bytes)));
    }
    return memory_.base() + *offset;
  }

  bool on_host() const override { return !heap_on_device(); }
  void copy_out(void* to, const void* from, std::uint64_t bytes) override {
    copy(to, from, from, bytes, "heap().read");
  }
  void copy_in(void* to, const void* from, std::uint64_t bytes) override {
    copy(to, from, to, bytes, "heap().write");
  }

  void free_bytes(void* at) override {
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(at) - memory_.base());
    const auto blocks = gather(Collective::kFree, {offset, 0, 0, 0, 0, 0});
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      if (blocks[pe].values[0] == blocks[0].values[0]) continue;
      throw Error(Error::Kind::kContract, fmt::format("heap().free: PE {} frees offset {:#x}, PE 0 {:#x}", pe,
                                                      blocks[pe].values[0], blocks[0].values[0]));
    }
    if (!memory_.release(offset))
      misuse(fmt::format("heap().free: nothing is allocated at offset {:#x}", offset));
  }

  // --- ProducerServices: lanes on any worker.

  void help() override {
    failure_.raise_if_set();
    if (!lanes_helped_.load(std::memory_order_relaxed)) lanes_helped_.store(true, std::memory_order_relaxed);
    aggregators_->help();
    if (std::this_thread::get_id() == user_thread_) owner_.step_if_caller();
  }

  void wait_empty(PackageQueue& queue, std::uint64_t ticket) override {
    wait(
        "a free slot in the package queue", [&] { return queue.was_empty(ticket); }, true);
  }

  bool try_claim_pending(std::uint64_t messages) override {
    std::uint64_t claimed = claimed_.load(std::memory_order_relaxed);
    do {
      if (!may_claim(claimed, messages)) return false;
    } while (!claimed_.compare_exchange_weak(claimed, claimed + messages, std::memory_order_relaxed));
    return true;
  }
  void claim_pending(std::uint64_t messages) override {
    while (!try_claim_pending(messages)) {
      wait(
          "pending messages to leave (pending_messages)",
          [&] { return may_claim(claimed_.load(std::memory_order_relaxed), messages); }, true,
          [this] { flush_pending(); });
    }
  }
  void unclaim_pending(std::uint64_t messages) override {
    claimed_.fetch_sub(messages, std::memory_order_relaxed);
  }
  void flush_pending() override {
    // What other lanes have published since, and what handlers have sent, is waited for too.
    const std::uint64_t published = published_.load(std::memory_order_relaxed);
    if (flushed_published_.exchange(published, std::memory_order_relaxed) != published)
      aggregators_->request_flush();
    network_->flush_handlers();
  }

  void will_publish(Command command, std::uint32_t count) override {
    if (network_->was_congested()) {
      wait(
          "handlers' messages to leave", [&] { return !network_->was_congested(); }, true);
    }
    if (command.operation == Operation::kActiveMessage)
      calls_handlers_.store(true, std::memory_order_relaxed);
    published_.fetch_add(count, std::memory_order_release);
  }

  void has_published() override {
    if (context_.queue.was_occupied() >= context_.queue.slots() / 2) aggregators_->ring();
  }

  void has_combined(std::uint64_t calls, std::uint64_t remote) override {
    combined_local_.fetch_add(calls - remote, std::memory_order_relaxed);
    combined_remote_.fetch_add(remote, std::memory_order_relaxed);
  }

  // --- What there is.

  int exceptions_at_start() const { return exceptions_at_start_; }
  std::uint32_t pe() const { return pe_; }
  std::uint32_t n_pes() const { return n_pes_; }
  const Config& config() const { return config_; }
  std::uint32_t host_threads() const { return workers_count_; }
  const detail::KernelContext& context() const { return context_; }
  const std::string& transport_name() const { return transport_name_; }

  Statistics statistics() const {
    Statistics s;
    const DeviceTraffic on_device = device_ ? device_->traffic() : DeviceTraffic{};
    s.messages_by_handlers = network_->sent_by_handlers() + on_device.by_handlers;
    s.messages_published = device_ ? aggregators_->messages() + network_->sent_by_progress() +
                                         on_device.sent - on_device.by_handlers
                                   : published_.load(std::memory_order_relaxed);
    s.messages_local = network_->messages_local() + on_device.local;
    s.messages_remote = network_->messages_remote() + on_device.sent - on_device.local;
    s.messages_direct = on_device.direct;
    s.combined_local = combined_local_.load(std::memory_order_relaxed);
    s.combined_remote = combined_remote_.load(std::memory_order_relaxed);
    s.messages_applied = network_->applied();
    s.packages = aggregators_->packages() + on_device.packages;
    s.buffers_sent = network_->buffers_shipped() + on_device.packages;
    s.bytes_sent = network_->bytes_shipped() + on_device.bytes;
    s.handler_memory_peak_bytes = network_->grown_peak_bytes();
    return s;
  }

  StageStatistics stage_statistics() const { return read_stages(network_->stages(), trace_.tracer()); }

  std::uint64_t declared_memory_bytes() const { return declared_bytes_; }

 private:
  /// What goes wrong at the end has nobody left to be thrown to.
  void say(const char* when, const std::exception& error) const noexcept {
    std::fprintf(stderr, "esker: PE %u: %s: %s\n", pe_, when, error.what());
  }

  /// Marks the user's thread as inside a call, for reports, and refuses calls after a failure.
  class Call {
   public:
    Call(Impl& impl, const char* name, bool is_kernel = false) : impl_{impl} {
      impl_.failure_.raise_if_set();
      impl_.thrown_.clear();
      impl_.calls_.fetch_add(1, std::memory_order_relaxed);
      const std::lock_guard lock(impl_.call_mutex_);
      impl_.call_ = {name, Clock::now(), is_kernel};
    }
    ~Call() {
      {
        const std::lock_guard lock(impl_.call_mutex_);
        impl_.call_.name = nullptr;
      }
      impl_.calls_.fetch_add(1, std::memory_order_relaxed);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Impl& impl_;
  };

  /// Valid, and with what is for the runtime to choose.
  static Config resolved(Config config) {
    validate(config);
    if (config.node_buffer_bytes == 0) {
      const bool on_device = config.device != DeviceKind::kCpu && count_devices() > 0;
      config.node_buffer_bytes = on_device ? kNodeBufferBytesOnDevice : kNodeBufferBytes;
    }
    return config;
  }

  std::uint32_t destinations() const {
    return config_.project_pes != 0 ? config_.project_pes : owner_.transport().n_pes();
  }

  std::unique_ptr<DeviceEngine> open_device();
  HeapMemory make_heap();
  void link_peers();
  void part_from_peers();
  bool heap_on_device() const { return device_ && config_.heap != HeapKind::kHost; }
  std::uint32_t aggregators() const { return device_ ? config_.device_aggregators : config_.aggregators; }

  void copy(void* to, const void* from, const void* in_heap, std::uint64_t bytes, const char* call) {
    failure_.raise_if_set();
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(in_heap) - memory_.base());
    const std::uint64_t end = memory_.end().load(std::memory_order_relaxed);
    if (offset > end || bytes > end - offset) {
      misuse(fmt::format("{}: {} bytes at heap offset {} are outside the symmetric heap of {} bytes", call,
                         bytes, static_cast<std::int64_t>(offset), end));
    }
    if (bytes == 0) return;  // of an empty span, which may have no address
    if (!device_) {
      std::memcpy(to, from, bytes);
    } else if (in_heap == from) {
      device_->read(offset, to, bytes);
    } else {
      device_->write(offset, from, bytes);
    }
  }

  /// Cores that this PE was bound to; where it was not, its share of all.
  std::uint32_t lane_threads() const {
    cpu_set_t set;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const auto usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const auto share = static_cast<std::uint32_t>(usable) / (usable < online ? 1 : pes_on_host_);
    workers_count_ = config_.cpu_threads != 0 ? config_.cpu_threads : std::max(1u, share);
    return workers_count_;
  }

  void make_context() {
    context_.queue = device_ ? device_->host_queue() : queue_memory_.queue();
    if (device_) context_.pe_state = device_->pe_state();
    context_.pe = pe_;
    context_.n_pes = destinations();
    context_.services = this;
    context_.tracer = trace_.tracer();
    if (config_.pending_messages != 0) {
      // Two packages in flight and one being filled, on each worker.
      context_.most_columns = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
          config_.pending_messages / (4 * std::uint64_t{lane_threads()}), 1, 1u << 16));
    }
    refresh_heap();
  }

  void refresh_heap() {
    context_.heap = {memory_.base(), memory_.end().load(std::memory_order_relaxed)};
    if (device_) device_->set_heap_end(context_.heap.bytes);
  }

  static constexpr std::size_t kLeaves = 4;  // of a barrier's values, the first that is not the network's

  GatherBlock block(Collective collective) {
    GatherBlock mine;
    mine.collective = static_cast<std::uint32_t>(collective);
    mine.sequence = ++collectives_;
    return mine;
  }

  static bool leaves(const GatherBlock& block) {
    return block.collective == static_cast<std::uint32_t>(Collective::kEnd) && block.values[kLeaves] != 0;
  }

  void require_same_call() {
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      const GatherBlock& other = request_.all[pe];
      if (other.collective == request_.mine.collective && other.sequence == request_.mine.sequence) continue;
      if (leaves(other) && !leaves(request_.mine)) {
        const auto until = Clock::now() + kPartingPatience;
        wait(
            "the reason why a PE has left", [&] { return Clock::now() >= until; }, false);  // throws it
        throw Error(Error::Kind::kNetwork, fmt::format("PE {} has left the job by an exception", pe));
      }
      throw Error(
          Error::Kind::kContract,
          fmt::format("PE {} is in {} (its collective call number {}) while PE {} is in {} (number {}): "
                      "collective calls must come in the same order on every PE",
                      pe_, request_.call, request_.mine.sequence, pe,
                      to_string(static_cast<Collective>(other.collective)), other.sequence));
    }
  }

  /// What all_reduce() gathers first: the number of values, their type and the operation.
  void require_same_reduction(const std::vector<GatherBlock>& blocks) const {
    const auto in_words = [](std::uint64_t word) {
      constexpr std::array<const char*, 4> kNames{"sum", "minimum", "maximum", "unknown reduction"};
      return fmt::format("the {} of {} {}", kNames[word & 3], word >> 3,
                         (word & 4) != 0 ? "doubles" : "64-bit integers");
    };
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      if (blocks[pe].values[0] == blocks[0].values[0]) continue;
      throw Error(
          Error::Kind::kContract,
          fmt::format("all_reduce: PE {} asks for {}, PE 0 for {}: these must be the same on every PE", pe,
                      in_words(blocks[pe].values[0]), in_words(blocks[0].values[0])));
    }
  }

  void new_request(NetworkRequest::Kind kind, const char* call) {
    request_.kind = kind;
    request_.call = call;
    request_.done.store(false, std::memory_order_relaxed);
  }
  void serve() {
    network_->post(&request_);
    call_waits_.store(true, std::memory_order_relaxed);
    struct Done {
      std::atomic<bool>& waits;
      ~Done() { waits.store(false, std::memory_order_relaxed); }
    } const done{call_waits_};
    wait(
        request_.call, [&] { return request_.done.load(std::memory_order_acquire); }, false);  // [done]
  }

  struct Nothing {
    void operator()() const {}
  };
  /// The one wait of host threads: lends itself to aggregation and, where it owns the network, to
  /// progress; then naps. Throws what the runtime has failed with. `meanwhile` is called again and again.
  template <class Ready, class Meanwhile = Nothing>
  void wait(const char* what, Ready ready, bool from_lane, Meanwhile meanwhile = {}) {
    const TraceSpan span(trace_.tracer(), TraceWhat::kWait, what);
    Backoff backoff{kLongestNap, device_ ? Backoff::kYieldsBesideADevice : Backoff::kYields};
    bool marked = false;
    while (!ready()) {
      if (failure_.is_set()) {
        if (marked) waiting_lanes_.fetch_sub(1, std::memory_order_relaxed);
        failure_.raise_if_set();
      }
      meanwhile();
      bool moved = aggregators_->help();
      if (std::this_thread::get_id() == user_thread_) moved |= owner_.step_if_caller();
      if (moved) {
        backoff.reset();
        continue;
      }
      if (network_->has_news()) network_->bell().ring();  // what is waited for may hang on it
      if (from_lane && !marked) {
        marked = true;
        waiting_lanes_.fetch_add(1, std::memory_order_relaxed);
      }
      if (backoff.napping()) {
        check_for_hang();
        if (give_up_at_ && Clock::now() > *give_up_at_) {
          throw Error(Error::Kind::kNetwork, fmt::format("{}: the other PEs have not come", what));
        }
      }
      backoff.wait(bell_, [&] { return ready() || failure_.is_set(); });
    }
    if (marked) waiting_lanes_.fetch_sub(1, std::memory_order_relaxed);
  }

  bool may_claim(std::uint64_t claimed, std::uint64_t messages) const {
    // Handlers' messages depart too, at times before they are counted as sent: the difference has a sign.
    const auto pending =
        static_cast<std::int64_t>(claimed + network_->sent_by_handlers() - network_->departed());
    // What lies open in each worker's outbox counts too: it has been generated.
    const std::uint64_t staged = std::uint64_t{context_.most_columns} * (workers_count_ - 1);
    return pending <= 0 ||
           static_cast<std::uint64_t>(pending) + staged + messages <= config_.pending_messages;
  }

  [[noreturn]] void throw_with_kernel(const char* kernel);
  void start_together();
  // supervision.cpp.
  void look_around();
  void look_at_peers();
  void look_for_hang(Clock::time_point now);
  void check_for_hang();
  void end_hanging();
  void report_hang(const std::string& headline, bool network_stuck = false);
  void broadcast_hang_report();
  void heard_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) override;
  void heard_question(std::uint32_t pe) override;
  void heard_answer(std::uint32_t pe, std::uint64_t value, std::string_view text) override;
  PeStatus status(Clock::time_point now);  // without the words
  std::string doing() const;
  StageSnapshot snapshot() const;
  std::uint64_t activity() const;
  std::chrono::milliseconds hang_limit() const { return std::chrono::seconds{config_.hang_seconds}; }

  const Config config_;
  Failure failure_;
  Doorbell bell_;    // for the user's thread and lanes
  HangWatch hang_;   // watches messages and calls
  HangWatch stuck_;  // watches the network's owner
  HandlerTable handlers_;
  std::uint64_t handler_count_ = 0;
  mutable std::uint32_t workers_count_ = 1;
  std::uint32_t pes_on_host_ = 1;
  NetworkOwner owner_;
  const std::uint32_t pe_;
  const std::uint32_t n_pes_;
  HangInquiry inquiry_;  // the network owner's
  const std::string transport_name_;
  TraceFile trace_;                       // written at its end: after every thread's
  std::unique_ptr<DeviceEngine> device_;  // null: lanes run on the CPU
  HeapMemory memory_;
  PackageMemory queue_memory_;
  detail::KernelContext context_;
  std::optional<TraceSpan> launching_;  // between begin_launch() and end_launch()
  std::unique_ptr<Network> network_;
  std::unique_ptr<Aggregators> aggregators_;
  std::unique_ptr<LaneWorkers> workers_;
  std::uint64_t pool_bytes_ = 0;
  std::uint64_t declared_bytes_ = 0;
  std::uint32_t collectives_ = 0;
  // What the last call threw, if that was a kernel's: peers hear of it if this PE leaves.
  std::string thrown_;
  // A member: a call that gives up leaves it behind for the network's owner to drop.
  NetworkRequest request_{};
  const std::thread::id user_thread_ = std::this_thread::get_id();
  std::optional<Clock::time_point> give_up_at_;
  bool ended_ = false;

  std::atomic<std::uint64_t> published_{0};
  std::atomic<bool> calls_handlers_{false};  // lanes have sent active messages since the last barrier
  std::atomic<std::uint64_t> combined_local_{0};
  std::atomic<std::uint64_t> combined_remote_{0};
  std::atomic<std::uint64_t> flushed_published_{0};  // published_ when a waiting lane last had it flushed
  std::atomic<std::uint64_t> claimed_{0};  // messages that lanes have published or hold a ticket for
  std::atomic<std::uint32_t> waiting_lanes_{0};
  std::atomic<bool> call_waits_{false};  // the user's thread waits for others
  mutable std::mutex call_mutex_;        // also keeps a kernel's name from going while it is read
  struct {
    const char* name = nullptr;  // null: outside Esker
    Clock::time_point since;
    bool is_kernel = false;
  } call_;                                 // guarded by call_mutex_
  std::atomic<bool> lanes_helped_{false};  // lanes of groups wait for room, or did a moment ago
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> hang_reported_{false};
  Clock::time_point next_look_at_peers_;  // the network owner's
  bool found_dead_peer_ = false;          // the network owner's
  bool group_lanes_wait_ = false;         // the network owner's: lanes_helped_ since it last looked
  bool hang_broadcast_ = false;           // the network owner's
  const int exceptions_at_start_ = std::uncaught_exceptions();
};

}  // namespace esker
