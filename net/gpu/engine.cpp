// One PE's GPU: its memory, frames of the network, progress kernels.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <esker/device/gpu/api.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/links.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/net/gpu/progress_kernel.hpp>
#include <esker/queue/waiting.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace esker {
namespace gpu {
namespace {

constexpr std::uint32_t kProgressSlots = 256;  // the owner empties them at every step
constexpr std::uint32_t kChunkMessages = 256;  // as few as serve many waves
constexpr std::uint64_t kPinnedHeapBytes = std::uint64_t{1}
                                           << 30;  // page-locked all at once: a second a few GiB

/// A package queue from the device to the host, each side's counter where that side is.
struct QueueMemory {
  QueueMemory() = default;
  QueueMemory(std::uint32_t n, std::uint32_t package_bytes, const std::string& what)
      : slots(PackageQueue::storage_bytes(n, package_bytes), what),
        head(sizeof(PackageQueue::Counter), "a counter"),
        tail(sizeof(PackageQueue::Counter), "a counter"),
        queue(tail.as<PackageQueue::Counter>(), head.as<PackageQueue::Counter>(), slots.as<std::byte>(), n,
              package_bytes) {}
  PinnedMemory slots, head;
  DeviceMemory tail;
  PackageQueue queue;
};

/// Ordering.
///   [handler]  what add_handler() stores     happens before  progress kernels are chosen and started for
///   that handler [links]    what link() says of links     happens before  the owner asks for them
/// What lanes share is copied in the order of the streams on which it is read (publish_pe_state()).
class Engine final : public DeviceEngine {
 public:
  explicit Engine(const DeviceSettings& settings)
      : settings_{settings}, device_{static_cast<int>(settings.rank_on_host % device_count())} {
    const std::uint32_t devices = device_count();
    use_device();
    Properties properties{};
    require(ESKER_GPU(GetDeviceProperties)(&properties, device_), "reading the device's properties");
    name_ = fmt::format("{}: {}, GPU {} of {}", kBackend, properties.name, device_, devices);
    if (settings.pes_on_host > devices) occupancy_.expect_unplanned();  // other PEs' kernels
    plain_scratch_bytes_ = load_plain_progress_kernel(occupancy_);
    constexpr auto kOfHandlers = static_cast<std::uint32_t>(sizeof(ProgressLists));
    progress_guest_ =
        occupancy_.add_guest({"progress kernels, which call handlers and serve other PEs",
                              plain_scratch_bytes_ + kOfHandlers + kLeastProgressPool, kGroupsHeld});
    int least = 0;
    int greatest = 0;
    require(ESKER_GPU(DeviceGetStreamPriorityRange)(&least, &greatest), "reading stream priorities");
    for (Stream* stream : {&user_stream_, &copy_stream_, &progress_stream_}) {
      const int priority = stream == &progress_stream_ ? greatest : least;
      require(ESKER_GPU(StreamCreateWithPriority)(stream, ESKER_GPU(StreamNonBlocking), priority),
              "making a stream");
    }
    make_heap(devices);
    make_queues();
    make_pe_state();
    starter_ = std::jthread([this](const std::stop_token& stopping) { run_starter(stopping); });
  }

  ~Engine() override {
    starter_.request_stop();
    starter_wake_.notify_all();
    starter_.join();
    (void)ESKER_GPU(SetDevice)(device_);
    (void)ESKER_GPU(DeviceSynchronize)();
    for (const Stream stream : {user_stream_, copy_stream_, progress_stream_})
      (void)ESKER_GPU(StreamDestroy)(stream);
    if (links_.is_exposed()) device_heap_.keep();
  }

  std::string name() const override { return name_; }
  std::byte* heap_base() const override { return heap_base_; }
  std::uint64_t heap_limit() const override { return heap_limit_; }

  void clear(std::uint64_t offset, std::uint64_t bytes) override {
    use_device();
    require(ESKER_GPU(MemsetAsync)(heap_base_ + offset, 0, bytes, user_stream_), "clearing the heap");
    wait_for(user_stream_, "clearing the heap");
  }
  void read(std::uint64_t offset, void* to, std::uint64_t bytes) override {
    copy(to, heap_base_ + offset, bytes, "reading the heap");
  }
  void write(std::uint64_t offset, const void* from, std::uint64_t bytes) override {
    copy(heap_base_ + offset, from, bytes, "writing the heap");
  }
  void set_heap_end(std::uint64_t bytes) override {
    pe_state_.heap = {heap_base_, bytes};
    heap_end_.store(bytes, std::memory_order_relaxed);
    use_device();
    require(ESKER_GPU(MemcpyAsync)(fault_taken_.as<std::byte>() + 3 * kLineBytes, &bytes, sizeof bytes,
                                   ESKER_GPU(MemcpyDefault), user_stream_),
            "copying the heap's end");
    publish_pe_state();
  }

  PackageQueue host_queue() const override { return pe_state_.host_queue; }
  PackageQueue progress_queue() const override { return pe_state_.progress_queue; }
  const PeState* pe_state() const override { return pe_state_memory_.as<PeState>(); }

  InboxOffer offer() override {
    use_device();
    return links_.offer(heap_base_);
  }
  std::uint64_t open_peers(const std::vector<InboxOffer>& offers, bool use_peers) override {
    use_device();
    return links_.open(offers, use_peers);
  }
  std::uint32_t link(const std::vector<std::uint64_t>& opened) override {
    use_device();
    const std::uint32_t peers = links_.link(opened, pe_state_);
    peers_.store(peers, std::memory_order_release);  // [links]
    occupancy_.set_sharers(links_.sharers());
    publish_pe_state();
    return peers;
  }
  std::string why_not_linked() const override { return links_.why_not_linked(); }
  void close_peers() override {
    use_device();
    links_.close();
  }
  void let_memory_go() override { links_.set_free(); }

  void add_handler(std::uint32_t index, const HandlerTable::Entry& entry) override {
    use_device();
    if (!settings_.heap_on_device) return;  // the host applies
    if (entry.device == nullptr) {
      throw Error(
          Error::Kind::kHandler,
          fmt::format("register_handler '{}': the heap is on a GPU, and this source was not compiled for it; "
                      "compile it with the device's compiler, or use --heap host",
                      entry.name));
    }
    if (!handler_slots_) {
      handler_slots_ =
          DeviceMemory(kHandlerShards * HandlerQueue::storage_bytes(kHandlerSlots, kHandlerSlotBytes),
                       "what handlers send");
      handler_shards_ = DeviceMemory(kHandlerShards * sizeof(HandlerShard), "counters");
      ownership_locks_ = DeviceMemory(kOwnershipLocks * sizeof(std::uint32_t), "locks of ownership blocks");
      pe_state_.ownership_locks = ownership_locks_.as<DeviceAtomic<std::uint32_t>>();
      pe_state_.handler_shards = handler_shards_.as<HandlerShard>();
      pe_state_.handler_slots = handler_slots_.as<std::byte>();
      publish_pe_state();
    }
    occupancy_.require_guests();
    const std::size_t known = handlers_known_.load(std::memory_order_relaxed);
    handlers_[known] = {*entry.device, index, entry.device->load(occupancy_)};
    handlers_known_.store(known + 1, std::memory_order_release);  // [handler]
  }

  std::uint32_t bins() const override { return pe_state_.bins(); }
  Occupancy& occupancy() override { return occupancy_; }

  void* stream() const override { return user_stream_; }
  void begin_launch(const char* kernel) override {
    use_device();
    kernel_.store(kernel, std::memory_order_relaxed);
  }
  void end_launch(const std::string& error) override {
    if (!error.empty())
      throw Error(Error::Kind::kDevice, fmt::format("kernel '{}': {}", kernel_name(), error));
    launches_.fetch_add(1, std::memory_order_release);
    starter_wake_.notify_one();
  }

  bool abandon(std::chrono::seconds patience) override {
    (void)ESKER_GPU(SetDevice)(device_);
    static constexpr std::uint32_t kAbandoned = 1;
    (void)ESKER_GPU(MemcpyAsync)(fault_taken_.as<std::byte>() + 4 * kLineBytes, &kAbandoned,
                                 sizeof kAbandoned, ESKER_GPU(MemcpyDefault), copy_stream_);
    const auto until = std::chrono::steady_clock::now() + patience;
    for (const Stream stream : {user_stream_, copy_stream_, progress_stream_}) {
      while (ESKER_GPU(StreamQuery)(stream) == ESKER_GPU(ErrorNotReady)) {
        if (patience.count() > 0 && std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
    }
    (void)ESKER_GPU(GetLastError)();
    return true;
  }

  bool was_running() override {
    use_device();
    const ApiError error = ESKER_GPU(StreamQuery)(user_stream_);
    if (error == ESKER_GPU(ErrorNotReady)) {
      (void)ESKER_GPU(GetLastError)();
      return true;
    }
    if (error != ESKER_GPU(Success)) {
      throw Error(Error::Kind::kDevice,
                  fmt::format("kernel '{}' failed on {}: {}", kernel_name(), name_, text_of(error)));
    }
    return false;
  }

  bool try_submit(ApplyJob& job) override {
    use_device();
    if (free_frames_.empty()) return false;
    const std::uint32_t f = free_frames_.back();
    std::byte* const staged = staging_.as<std::byte>() + f * slot_bytes_;
    const std::uint32_t chunks = stage(job, staged);
    if (chunks == 0) {  // nothing to apply
      job.left.store(0, std::memory_order_relaxed);
      return true;
    }
    std::byte* const slot = frames_.as<std::byte>() + f * slot_bytes_;
    const std::size_t at = table_bytes_ - chunks * sizeof(Chunk);
    require(ESKER_GPU(MemcpyAsync)(slot + at, staged + at, chunks * sizeof(Chunk) + job.header.bytes,
                                   ESKER_GPU(MemcpyDefault), copy_stream_),
            "copying a frame to the device");
    FrameInFlight& frame = frame_of_[f];
    frame.job = &job;
    frame.generation = (frame.generation + 1) & 0xffffff;
    job.left.store(1, std::memory_order_relaxed);
    std::uint64_t* const cursor = cursors_.as<std::uint64_t>() + f;
    *cursor = FrameTurn::pack(frame.generation, chunks);
    require(ESKER_GPU(MemcpyAsync)(&turns_.as<FrameTurn>()[f].cursor, cursor, sizeof *cursor,
                                   ESKER_GPU(MemcpyDefault), copy_stream_),
            "publishing a frame");
    free_frames_.pop_back();
    ++frames_out_;
    let_see();
    return true;
  }

  bool step(bool wanted, bool handlers) override {
    check_for_fault();
    if (!settings_.heap_on_device) return false;  // the host applies
    with_handlers_ = handlers;
    bool moved = false;
    if (starter_failed_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(starter_mutex_);
      throw Error(*starter_failure_);
    }
    for (std::uint32_t f = 0; frames_out_ > 0 && f < kFrames; ++f) {
      FrameInFlight& frame = frame_of_[f];
      if (frame.job == nullptr || host().frame_done[f].load_acquire() != frame.generation)
        continue;  // [frame]
      std::exchange(frame.job, nullptr)->left.store(0, std::memory_order_release);
      free_frames_.push_back(f);
      --frames_out_;
      moved = true;
    }
    if (progress_ended_ < progress_started_) {
      if (host().progress_kernel.load_acquire() != progress_started_) return moved;  // [progress]
      progress_ended_ = progress_started_;
      const std::uint64_t packages = snapshot_.totals.packages;
      std::memcpy(&snapshot_, &host().snapshot, sizeof snapshot_);
      // What handlers here have sent waits there for a progress kernel, if nobody there sends.
      if (snapshot_.totals.packages != packages) peers_wanted_.store(true, std::memory_order_relaxed);
      publish_traffic();
      was_quiet_ = snapshot_.moved == 0 && snapshot_.handler_backlog == 0 && snapshot_.waiting == 0;
      again_ = !was_quiet_;
      let_see();
      moved = true;
      again_at_ = std::chrono::steady_clock::now() + kBetweenUnwanted;
    }
    if (!wanted && frames_out_ == 0 && (!again_ || std::chrono::steady_clock::now() < again_at_))
      return moved;
    frames_at_start_ = frames_out_;
    ++progress_started_;
    let_see();
    choose_handler();
    {
      const std::lock_guard lock(starter_mutex_);
      progress_asked_.store(progress_started_, std::memory_order_release);
    }
    starter_wake_.notify_one();
    return true;
  }

  bool is_under_way() const override { return progress_ended_ < progress_started_ || frames_out_ > 0; }
  bool has_called_handlers() const override { return host().calls_handlers.load_relaxed() != 0; }
  void settle() override {
    host().calls_handlers.store_relaxed(0);
    // A PE that has come out of the barrier before this one may have sent what a progress kernel has seen
    // already.
    again_ = snapshot_.handler_backlog > 0 || snapshot_.waiting != 0;
  }
  void expect_progress() override {
    {
      const std::lock_guard lock(starter_mutex_);
      expects_progress_.store(true, std::memory_order_relaxed);
    }
    starter_wake_.notify_one();
  }
  std::uint64_t progress_started() const override { return progress_started_; }
  bool settled_since(std::uint64_t progress) const override {
    if (!settings_.heap_on_device) return true;
    return progress_ended_ > progress && (was_quiet_ || !with_handlers_) && frames_out_ == 0 &&
           frames_at_start_ == 0;
  }
  std::uint32_t links() const override { return peers_.load(std::memory_order_acquire); }  // [links]
  std::uint32_t pe_of_link(std::uint32_t link) const override { return pe_state_.pe_of[link]; }
  std::uint64_t sent_to(std::uint32_t link) const override { return snapshot_.totals.sent_to[link]; }
  std::uint64_t applied_from(std::uint32_t link) const override {
    return snapshot_.totals.applied_from[link];
  }
  bool take_starving() override {
    bool wanted = peers_wanted_.exchange(false, std::memory_order_acq_rel);
    if (host().starving.load_relaxed() != 0) {
      host().starving.store_relaxed(0);
      wanted = true;
    }
    return wanted && settings_.heap_on_device;
  }
  DeviceTraffic traffic() const override {
    return {sent_.load(std::memory_order_relaxed),       local_.load(std::memory_order_relaxed),
            applied_.load(std::memory_order_relaxed),    direct_.load(std::memory_order_relaxed),
            packages_.load(std::memory_order_relaxed),   bytes_.load(std::memory_order_relaxed),
            by_handlers_.load(std::memory_order_relaxed)};
  }

  std::string was_doing() const override {
    const Seen seen = [this] {
      const std::lock_guard lock(seen_mutex_);
      return seen_;
    }();
    const Totals& t = seen.snapshot.totals;
    std::string text = fmt::format(
        "kernel '{}'; progress kernel {} of {} ended, the last {}; {} frames on the device; by the last {} "
        "messages sent past "
        "the host ({} to itself), {} applied, {} of handlers not sent on",
        kernel_name(), seen.progress_ended, seen.progress_started,
        seen.was_quiet ? "found nothing" : "found something", seen.frames_out, t.sent, t.local, t.applied,
        seen.snapshot.handler_backlog);
    for (std::uint32_t link = 0; link < links(); ++link) {
      text += fmt::format("; PE {}: {} to it, {} from it applied", pe_state_.pe_of[link], t.sent_to[link],
                          t.applied_from[link]);
    }
    return text;
  }

 private:
  struct FrameInFlight {
    ApplyJob* job = nullptr;
    std::uint64_t generation = 0;
  };
  static constexpr std::chrono::milliseconds kBetweenQueries{1};
  // After a progress kernel; waking takes longer than the progress kernel.
  static constexpr std::chrono::microseconds kAwake{Backoff::kYieldsBesideADevice > 0 ? 200 : 0};
  // Between progress kernels that nobody waits for: a barrier is likely to end, and to say that nothing is
  // left.
  static constexpr std::chrono::microseconds kBetweenUnwanted{50};

  /// Of the handlers whose messages the last progress kernel has left, the next in turn; where it has left
  /// none, the same as before.
  void choose_handler() {
    const std::size_t known = handlers_known_.load(std::memory_order_acquire);  // [handler]
    for (std::size_t i = 1; i <= known; ++i) {
      const std::size_t next = (handler_ + i) % known;
      if ((snapshot_.waiting & waiting_bit(handlers_[next].index + 1)) == 0) continue;
      handler_ = next;
      return;
    }
  }
  HostWords& host() const { return *host_words_.as<HostWords>(); }
  std::string kernel_name() const {
    const char* name = kernel_.load(std::memory_order_relaxed);
    return name == nullptr ? "none of Esker's" : name;
  }
  /// In each call: every thread has its own current device, and the user may change it.
  void use_device() const { require(ESKER_GPU(SetDevice)(device_), fmt::format("using GPU {}", device_)); }
  void copy(void* to, const void* from, std::uint64_t bytes, const char* what) {
    use_device();
    require(ESKER_GPU(MemcpyAsync)(to, from, bytes, ESKER_GPU(MemcpyDefault), user_stream_), what);
    wait_for(user_stream_, what);
  }
  void wait_for(Stream stream, const char* what) {
    const ApiError error = ESKER_GPU(StreamSynchronize)(stream);
    if (error != ESKER_GPU(Success)) {
      throw Error(Error::Kind::kDevice, fmt::format("{}: kernel '{}' failed on {}: {}", what, kernel_name(),
                                                    name_, text_of(error)));
    }
  }

  void make_heap(std::uint32_t devices) {
    std::size_t free = 0;
    std::size_t total = 0;
    require(ESKER_GPU(MemGetInfo)(&free, &total), "asking for the device's memory");
    heap_limit_ = settings_.heap_bytes;
    if (heap_limit_ == 0) {
      const std::uint32_t sharers = (settings_.pes_on_host + devices - 1) / devices;
      heap_limit_ = settings_.heap_on_device ? free / 2 / std::max(1u, sharers) : kPinnedHeapBytes;
    }
    constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;
    heap_limit_ = (heap_limit_ + kUnit - 1) / kUnit * kUnit;
    const std::string what =
        fmt::format("the symmetric heap (heap_bytes; {} MiB are free on {})", free >> 20, name_);
    if (settings_.heap_on_device) {
      device_heap_ = DeviceMemory(heap_limit_, what, false);
      heap_base_ = device_heap_.as<std::byte>();
    } else {
      pinned_heap_ = PinnedMemory(heap_limit_, what, false);
      heap_base_ = pinned_heap_.as<std::byte>();
    }
  }

  void make_queues() {
    host_queue_ = QueueMemory(settings_.package_slots, settings_.package_bytes, "the package queue");
    pe_state_.host_queue = host_queue_.queue;
    if (!settings_.heap_on_device) return;  // there are no progress kernels
    progress_queue_ = QueueMemory(std::min(settings_.package_slots, kProgressSlots), settings_.package_bytes,
                                  "the package queue of progress kernels");
    pe_state_.progress_queue = progress_queue_.queue;
  }

  void make_pe_state() {
    host_words_ = PinnedMemory(sizeof(HostWords), "words shared with the device");
    totals_ = DeviceMemory(sizeof(Totals), "counters");
    fault_taken_ = DeviceMemory(5 * kLineBytes, "counters");
    pe_state_memory_ = DeviceMemory(sizeof(PeState), "what lanes share");
    progress_state_memory_ = DeviceMemory(sizeof(PeState), "what lanes of progress kernels share");
    pe_state_.heap = {heap_base_, 0};
    pe_state_.pe = settings_.pe;
    pe_state_.n_pes = settings_.n_pes;
    pe_state_.totals = totals_.as<Totals>();
    pe_state_.host = host_words_.as<HostWords>();
    pe_state_.fault_taken = fault_taken_.as<DeviceAtomic<std::uint32_t>>();
    pe_state_.progress_groups =
        reinterpret_cast<DeviceAtomic<std::uint32_t>*>(fault_taken_.as<std::byte>() + kLineBytes);
    pe_state_.progress_result =
        reinterpret_cast<ProgressResult*>(fault_taken_.as<std::byte>() + 2 * kLineBytes);
    pe_state_.abandoned =
        reinterpret_cast<DeviceAtomic<std::uint32_t>*>(fault_taken_.as<std::byte>() + 4 * kLineBytes);
    pe_state_.heap_end = reinterpret_cast<std::uint64_t*>(fault_taken_.as<std::byte>() + 3 * kLineBytes);
    if (settings_.heap_on_device) {
      // A run of n messages is at most 1 + n / kChunkMessages chunks.
      constexpr std::size_t kLeastRunBytes = sizeof(wire::RunHeader) + sizeof(std::uint64_t);
      const std::size_t most_chunks = settings_.frame_bytes / kLeastRunBytes +
                                      settings_.frame_bytes / sizeof(std::uint64_t) / kChunkMessages;
      table_bytes_ = whole_lines(most_chunks * sizeof(Chunk));
      slot_bytes_ = table_bytes_ + whole_lines(settings_.frame_bytes);
      turns_ = DeviceMemory(kFrames * sizeof(FrameTurn), "frames' turns");
      frames_ = DeviceMemory(kFrames * slot_bytes_, "frames");
      staging_ = PinnedMemory(kFrames * slot_bytes_, "frames on their way");
      cursors_ = PinnedMemory(kFrames * sizeof(std::uint64_t), "frames' turns on their way");
      pe_state_.frames = frames_.as<std::byte>();
      pe_state_.frame_bytes = slot_bytes_;
      pe_state_.frame_at = table_bytes_;
      pe_state_.frame_turns = turns_.as<FrameTurn>();
      for (std::uint32_t f = 0; f < kFrames; ++f) free_frames_.push_back(f);
    }
    publish_pe_state();
  }

  /// One copy for kernels and one for progress kernels, each written in the order of the stream on which they
  /// run: a lane that reads it never meets one that is half written.
  void publish_pe_state() {
    static constexpr const char* kWhat = "copying what lanes share";
    use_device();
    for (const auto& [memory, stream] :
         {std::pair{&pe_state_memory_, user_stream_}, {&progress_state_memory_, progress_stream_}}) {
      require(ESKER_GPU(MemcpyAsync)(memory->as<void>(), &pe_state_, sizeof pe_state_,
                                     ESKER_GPU(MemcpyDefault), stream),
              kWhat);
      wait_for(stream, kWhat);
    }
  }

  static std::size_t whole_lines(std::size_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }

  /// Copies the frame into pinned memory, its chunks in front. Returns their number.
  std::uint32_t stage(const ApplyJob& job, std::byte* staged) const {
    std::byte* const frame = staged + table_bytes_;
    auto* chunk = reinterpret_cast<Chunk*>(frame);
    std::memcpy(frame, job.frame, job.header.bytes);
    std::uint32_t chunks = 0;
    wire::RunReader reader(job.frame);
    wire::Run run;
    while (reader.next(run)) {
      for (std::uint32_t first = 0; first < run.count; first += kChunkMessages) {
        const auto at =
            static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(run.address + first) - job.frame);
        ++chunks;
        *--chunk = {run.command.word(),
                    run.words,
                    std::min(kChunkMessages, run.count - first),
                    run.count,
                    static_cast<std::uint32_t>(table_bytes_) + at,
                    job.header.source};
      }
    }
    return chunks;
  }

  /// The starter's thread: what it asks of the device may wait for a kernel that waits for the network's
  /// owner, while another thread of the program is in a call that waits for the device, such as freeing
  /// memory.
  void run_starter(const std::stop_token& stopping) {
    std::uint64_t started = 0;
    std::chrono::steady_clock::time_point awake_until, look_at;
    while (!stopping.stop_requested()) {
      std::uint64_t asked = 0;
      const auto now = std::chrono::steady_clock::now();
      if (now < awake_until) {
        sched_yield();
        asked = progress_asked_.load(std::memory_order_acquire);
      } else {
        std::unique_lock lock(starter_mutex_);
        // With nothing under way it need not look.
        const bool looks = launches_.load(std::memory_order_acquire) != launches_ended_ ||
                           started != host().progress_kernel.load_relaxed();
        starter_wake_.wait_until(lock, stopping, now + (looks ? kBetweenQueries : 20 * kBetweenQueries), [&] {
          return progress_asked_.load(std::memory_order_relaxed) != started ||
                 expects_progress_.load(std::memory_order_relaxed);
        });
        asked = progress_asked_.load(std::memory_order_relaxed);
      }
      if (expects_progress_.exchange(false, std::memory_order_relaxed))
        awake_until = std::chrono::steady_clock::now() + kAwake;
      try {
        use_device();
        if (asked != started || now >= look_at) {
          look_for_the_end(started);
          look_at = now + kBetweenQueries;
        }
        if (asked != started) {
          start_progress_kernel(asked);
          started = asked;
          // A barrier asks for one after the other.
          awake_until = std::chrono::steady_clock::now() + kAwake;
        }
      } catch (...) {
        const std::lock_guard lock(starter_mutex_);
        starter_failure_.emplace(current_error("starting progress kernels on the GPU"));
        starter_failed_.store(true, std::memory_order_release);
        return;
      }
    }
  }
  void start_progress_kernel(std::uint64_t number) {
    const bool beside_kernel = launches_.load(std::memory_order_acquire) != launches_ended_;
    const auto* const progress_state = progress_state_memory_.as<PeState>();
    // Each applies what is not for a handler, and what is for one of them. Further groups than fit beside a
    // kernel would begin when these have ended, and until then nobody would poll their mailboxes
    // (docs/design/progress-kernels-and-occupancy.md).
    std::string error;
    if (handlers_known_.load(std::memory_order_acquire) == 0) {  // [handler]
      const auto turn =
          occupancy_.guest_turn(progress_guest_, beside_kernel, plain_scratch_bytes_, kLeastProgressPool);
      error = start_plain_progress_kernel(progress_state, number, {turn.groups, turn.lent_bytes},
                                          progress_stream_);
    } else {
      const KnownHandler& next = handlers_[handler_];
      const auto turn =
          occupancy_.guest_turn(progress_guest_, beside_kernel, next.scratch_bytes, kLeastProgressPool);
      error = next.code.start_progress_kernel(next.index, progress_state, number,
                                              {turn.groups, turn.lent_bytes}, progress_stream_);
    }
    if (!error.empty())
      throw Error(Error::Kind::kDevice, fmt::format("a progress kernel on {}: {}", name_, error));
  }
  /// What a kernel has left in mailboxes is applied though nobody asks: its end wakes this PE's progress
  /// kernels and its peers'.
  void look_for_the_end(std::uint64_t started) {
    const std::uint64_t launches = launches_.load(std::memory_order_acquire);
    if (launches != launches_ended_) {
      if (was_running()) return;
      launches_ended_ = launches;
      peers_wanted_.store(true, std::memory_order_release);
    }
    if (started == 0 || host().progress_kernel.load_acquire() == started) return;
    const ApiError error = ESKER_GPU(StreamQuery)(progress_stream_);
    if (error == ESKER_GPU(Success) || error == ESKER_GPU(ErrorNotReady)) return;
    throw Error(Error::Kind::kDevice, fmt::format("kernel '{}' or a progress kernel failed on {}: {}",
                                                  kernel_name(), name_, text_of(error)));
  }

  void check_for_fault() {
    if (host().fault.load_acquire() == 0) return;  // [fault]
    const HostWords::Report& r = host().report;
    const std::string who = r.is_handler != 0 ? std::string("in a handler")
                                              : fmt::format("by lane {} of group {} of kernel '{}'", r.lane,
                                                            r.group, kernel_name());
    switch (r.fault) {
      case Fault::kBadPe:
        misuse(fmt::format("{} {}: PE {} is not below {}", r.call, who, r.pe, settings_.n_pes));
      case Fault::kBadTarget:
        misuse(fmt::format(
            "{} {}: a target of {} bytes at heap offset {} is outside the symmetric heap of {} bytes", r.call,
            who, r.bytes, static_cast<std::int64_t>(r.offset), heap_end_.load(std::memory_order_relaxed)));
      case Fault::kMisaligned:
        misuse(fmt::format(
            "{} {}: a target of {} bytes at heap offset {}, for PE {}, is not aligned to {} bytes", r.call,
            who, r.bytes, r.offset, r.pe, r.alignment));
      case Fault::kNoHandler:
        misuse(
            fmt::format("{} {}: the Handler is a default one, which stands for no handler; send what "
                        "Runtime::register_handler() has returned",
                        r.call, who));
      case Fault::kNotReserved:
        misuse(fmt::format(
            "KernelItem: lane {} of group {} of a kernel of the program's own sends, and nothing is "
            "reserved for that kernel: call rt.reserve_for(kernel, group_lanes) before its first "
            "launch",
            r.lane, r.group));
      case Fault::kHandlersOutrun:
        throw Error(
            Error::Kind::kOutOfMemory,
            fmt::format(
                "one of the device's queues for what handlers send holds {} messages that nothing has "
                "sent on yet, and no more fit: each message makes more than one new one, faster than "
                "they are applied",
                r.offset));
      default:
        throw Error(
            Error::Kind::kNetwork,
            fmt::format(
                "a buffer from PE {}: an operation of {} bytes at heap offset {:#x}, which is misaligned "
                "or outside (the heap's allocated part ends at {:#x})",
                r.pe, r.bytes, r.offset, heap_end_.load(std::memory_order_relaxed)));
    }
  }

  void publish_traffic() {
    const Totals& t = snapshot_.totals;
    sent_.store(t.sent, std::memory_order_relaxed);
    local_.store(t.local, std::memory_order_relaxed);
    applied_.store(t.applied, std::memory_order_relaxed);
    direct_.store(t.direct, std::memory_order_relaxed);
    packages_.store(t.packages, std::memory_order_relaxed);
    bytes_.store(t.bytes, std::memory_order_relaxed);
    by_handlers_.store(t.by_handlers, std::memory_order_relaxed);
  }

  void let_see() {
    const std::lock_guard lock(seen_mutex_);
    seen_ = {progress_started_, progress_ended_, frames_out_, was_quiet_, snapshot_};
  }

  const DeviceSettings settings_;
  const int device_;
  std::string name_;
  Stream user_stream_ = nullptr;
  Stream copy_stream_ = nullptr;
  Stream progress_stream_ = nullptr;  // first in line for room on the device
  Occupancy occupancy_{limits_of(device_)};
  Occupancy::GuestId progress_guest_ = 0;
  std::uint32_t plain_scratch_bytes_ = 0;  // of a group of the progress kernel without handlers
  std::atomic<std::uint32_t> peers_{0};    // links but the one to itself; their PEs stand: [links]
  DeviceMemory device_heap_;
  PinnedMemory pinned_heap_;
  QueueMemory host_queue_, progress_queue_;
  std::byte* heap_base_ = nullptr;
  std::uint64_t heap_limit_ = 0;
  std::atomic<std::uint64_t> heap_end_{0};  // pe_state_'s, for the owner's reports
  PinnedMemory host_words_, staging_, cursors_;
  DeviceMemory frames_, totals_, fault_taken_, pe_state_memory_, progress_state_memory_, turns_;
  DeviceMemory handler_slots_, handler_shards_, ownership_locks_;
  Links links_{settings_, device_};
  PeState pe_state_{};  // the host's copy
  std::atomic<const char*> kernel_{nullptr};
  struct KnownHandler {
    HandlerOnDevice code;
    std::uint32_t index;
    std::uint32_t scratch_bytes;  // of a group of its progress kernel, beside the pool
  };
  // In full from the start: the owner and the starter read while registration adds.
  const std::unique_ptr<KnownHandler[]> handlers_ =
      std::make_unique<KnownHandler[]>(HandlerTable::kMaxHandlers);
  std::atomic<std::size_t> handlers_known_{0};

  // The network owner's.
  std::size_t table_bytes_ = 0;  // in front of a frame
  std::size_t slot_bytes_ = 0;
  std::vector<std::uint32_t> free_frames_;
  std::array<FrameInFlight, kFrames> frame_of_;
  std::uint32_t frames_out_ = 0;
  std::uint32_t frames_at_start_ = 0;  // of the last progress kernel
  std::uint64_t progress_started_ = 0;
  std::uint64_t progress_ended_ = 0;
  bool was_quiet_ = false;  // the last progress kernel that has ended
  std::size_t handler_ =
      0;  // of the last progress kernel that was asked for: its starter's to read until it has ended
  bool again_ = false;  // something may be left
  std::chrono::steady_clock::time_point again_at_;
  bool with_handlers_ = false;  // as step() was told
  HostWords::Snapshot snapshot_{};

  // What the owner lets others see of it, for a report of theirs while it stands still.
  struct Seen {
    std::uint64_t progress_started, progress_ended;
    std::uint32_t frames_out;
    bool was_quiet;
    HostWords::Snapshot snapshot;
  };
  mutable std::mutex seen_mutex_;
  Seen seen_{};  // guarded by seen_mutex_

  // The starter's.
  std::mutex starter_mutex_;
  std::condition_variable_any starter_wake_;
  std::atomic<std::uint64_t> progress_asked_{0};  // changes under starter_mutex_
  std::atomic<bool> expects_progress_{false};     // is raised under starter_mutex_
  std::optional<Error> starter_failure_;          // guarded by starter_mutex_
  std::atomic<bool> starter_failed_{false};
  std::atomic<std::uint64_t> launches_{0};
  std::uint64_t launches_ended_ = 0;
  std::atomic<bool> peers_wanted_{false};  // packages may wait at peers for a progress kernel
  std::jthread starter_;

  std::atomic<std::uint64_t> sent_{0}, local_{0}, applied_{0}, direct_{0}, packages_{0}, bytes_{0},
      by_handlers_{0};
};

}  // namespace
}  // namespace gpu

std::uint32_t count_devices() { return gpu::device_count(); }

std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSettings& settings) {
  if (count_devices() == 0) return nullptr;
  return std::make_unique<gpu::Engine>(settings);
}

}  // namespace esker
