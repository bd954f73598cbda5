// Runs of tasks that spawn tasks and wait for them.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <esker/device/device.hpp>
#include <esker/device/gpu/occupancy.hpp>
#include <esker/tasks/domain.hpp>
#include <esker/tasks/hang.hpp>
#include <esker/tasks/options.hpp>
#include <esker/tasks/port.hpp>
#include <esker/tasks/run_memory.hpp>
#include <esker/tasks/stop_relay.hpp>

namespace esker::tasks {

namespace detail {

/// Whether a task of the set waits for children. Those do whose Result is not void; others may say so.
template <class T>
consteval bool joins() {
  if constexpr (requires { T::kJoins; }) {
    return bool{T::kJoins};
  } else {
    return !std::is_void_v<ResultOf<T>>;
  }
}
template <class... Ts>
consteval bool any_joins(Types<Ts...>) {
  return (joins<Ts>() || ...);
}

template <class Root, class Shape>
using SchedulerOf =
    Scheduler<SetFrom<Root>, Shape, any_joins(typename Closure<Types<>, Types<Root>>::Type{})>;

ESKER_PASS_BEGIN

/// What a GPU's launch runs: a domain a wave, its levels in the scratchpad that it is lent. Of a run over PEs
/// the first wave is the port, which is there as soon as anything is. Runs that nobody watches have a kernel
/// of their own: with what watching takes fib(40) is a third slower (docs/lab/tasks.md).
template <class Root, bool kRemote, bool kIsWatched>
struct WaveDomains {
  // A processor holds at least 16 waves of 128 registers a lane, or 8 of 255 where tasks ask for many. With
  // the 64 of larger groups fib(40) is a tenth slower: what joins spills (docs/lab/tasks.md).
  static constexpr std::uint32_t kMostGroupLanes = 128, kGroupsHeld = SetFrom<Root>::kManyRegisters ? 2 : 4;
  RunState* run;
  Watch watch;
  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if !defined(ESKER_ON_CPU)
    using Shape = WaveLanes::Shape;
    using S = SchedulerOf<Root, std::conditional_t<kRemote, RemoteShape<Shape>, Shape>>;
    auto* const hot = reinterpret_cast<std::uint32_t*>(GroupLane::lent_scratch());
    const std::uint32_t wave = lane.lane() / WaveLanes::kLanes;
    auto domain = static_cast<std::uint32_t>(lane.global_id() / WaveLanes::kLanes);
    if constexpr (kRemote) {
      if (domain-- == 0) {
        Port<S>(WaveLanes(lane), *WaveLanes::in_memory(run)).run();
        return;
      }
    }
    Domain<S>(WaveLanes(lane), *WaveLanes::in_memory(run), kIsWatched ? watch : Watch(),
              hot + wave * S::kHotWords, domain)
        .run();
#endif
  }
};
/// On the CPU: a domain a host thread, its levels in memory.
template <class Root, class Shape>
struct ThreadDomains {
  RunState* run;
  Watch watch;
  std::uint32_t* hot;
  ESKER_HD void operator()([[maybe_unused]] Lane lane) const {
#if defined(ESKER_ON_CPU)
    using S = SchedulerOf<Root, Shape>;
    const auto domain = static_cast<std::uint32_t>(lane.global_id());
    try {
      Domain<S>(ThreadLanes{}, *run, watch, hot + std::size_t{domain} * S::kHotWords, domain).run();
    } catch (...) {
      (void)run->end(Outcome::kThrew);  // or the other domains would wait for what this one holds
      throw;
    }
#endif
  }
};

ESKER_PASS_END

/// Throws the Error of a run that has not ended well.
[[noreturn]] ESKER_API void throw_outcome(const RunEnd& run, const std::string& where,
                                          std::uint64_t memory_bytes);
[[noreturn]] ESKER_API void refuse_memory(std::uint64_t memory_bytes, std::uint64_t least);

}  // namespace detail

/// Runs a task of type `Root`, and what it spawns, on a device.
///
/// State    ready -> running -> ready: any number of runs, one at a time.
/// Contract One thread. Memory is allocated here and used again by each run; nothing stays on the device
///          between runs but that. Tasks run in any order, each once, on any lane.
/// Errors   Error{kOutOfMemory} where the device has not the memory. Error{kConfiguration}: memory_bytes is
///          too little for any run. A run throws a TaskError: a task failed or broke its contract, the run
///          was stopped, or it needed more than memory_bytes, then with kOutOfMemory; the next run is not
///          touched by it. What a task throws on the CPU is thrown here.
///
/// A task type is trivially copyable and has
/// - `static constexpr int kMaxSpawns`: children that one call of it, or of a continuation, spawns at most;
/// - `void operator()(auto& task) const`, ESKER_HD, which calls task.give(result), or task.spawn(children...)
///   and .then(continuation), or fails;
/// and may have `using Result` (else long; void: nothing), `using Spawns = Types<...>` (else itself),
/// `kKeepBytes` of what continuations capture (else its size), and, where Results are void, `kJoins` for
/// then().
///
/// `Shape` is for tests: batches and levels at hand on the CPU. `Pass` stands for the compiler.
template <class Root, class Shape = detail::ThreadShape, class Pass = esker::detail::Pass>
class ForkJoin {
 public:
  using Result = detail::ResultOf<Root>;

  explicit ForkJoin(const Device& device, const Options& options = {})
      : device_{device},
        options_{options},
        stream_{device.stream()},
        run_{device.memory<detail::RunState>(1, {"the state of a run of tasks"})},
        seen_{device.pinned<detail::RunState>(1, {"the end of a run of tasks"})},
        stop_relay_{device} {
    if (options.watch) {
      watch_ = device.memory<detail::Watch::Memory>(1, {"what a run keeps of itself"});
      watch_seen_ = device.pinned<detail::Watch::Memory>(1, {"what a run keeps of itself"});
    }
    if (is_on_host()) {
      prepare_threads();
    } else {
      prepare_waves();
    }
  }

  /// Returns the root's result.
  Result run(const Root& root) {
    const auto start = std::chrono::steady_clock::now();
    write_first_bundle(root);
    prepare({});
    {
      const detail::WatchedForHangs watched(hangs());
      launch_domains();
      if (!is_on_host()) stop_relay_.wait(stream_, options_.stop, &run_.data()->stop_word);
    }
    end(start);
    if (hangs_) hangs_->rethrow();
    const detail::RunEnd how = seen_[0].how();
    if (how.outcome != detail::Outcome::kDone)
      detail::throw_outcome(how, device_.name(), options_.memory_bytes);
    if constexpr (!std::is_void_v<Result>) return result();
  }

  /// Of the last run.
  const Report& report() const { return report_; }

  /// Options::memory_bytes with which no run of tasks nested at most `depth` deep is short of memory, on this
  /// device, with as many domains. A task that spawns nothing is 1 deep. The bound is of the worst order of
  /// all (docs/design/tasks.md): runs use much less as a rule.
  std::uint64_t memory_bound(std::uint32_t depth) const { return plan_.bytes_for(depth); }

 protected:
  // For runs over PEs, which do the same in steps of their own.

  using Set = detail::SetFrom<Root>;

  detail::Watch watch() {
    return {options_.watch ? watch_.data() : nullptr, options_.time_tasks,
            hangs_ ? hangs_->progress() : detail::Progress{}};
  }
  bool is_on_host() const { return device_.backend() == Backend::kCpu; }
  const Stream& stream() const { return stream_; }
  const Options& options() const { return options_; }
  const Device& device() const { return device_; }
  detail::RunState& run_state() { return *run_.data(); }
  const detail::RunState& seen() const { return seen_[0]; }
  /// Null: the run is not watched for hangs.
  detail::HangWatch* hangs() { return hangs_ ? &*hangs_ : nullptr; }
  Report& last_report() { return report_; }
  const detail::MemoryPlan& plan() const { return plan_; }
  const detail::BundleFormat& format() const { return format_; }

  void write_first_bundle(const Root& root) {
    std::uint32_t* const words = first_bundle_.data();
    words[type_at_] = Set::template kIndex<Root>;
    words[type_at_ + 1] = 1;
    words[type_at_ + 2] = detail::kNone;
    detail::store_columns(words + payload_at_, batch_, root);
    device_.copy_async(words_.data(), words, first_bundle_.size_bytes(), stream_);
  }
  void prepare(const detail::RunPlace& place) {
    device_.fill(mailboxes_.data(), 0, mailboxes_.size_bytes(), stream_);
    if (options_.watch) device_.fill(watch_.data(), 0, watch_.size_bytes(), stream_);
    device_.launch(LaunchShape{1, 1},
                   detail::Prepare{run_.data(), memory_, ++runs_,
                                   is_on_host() ? options_.stop.word() : nullptr, options_.local, place},
                   stream_);
  }
  /// On the host it returns when they have ended.
  void launch_domains() {
    if (is_on_host()) {
      device_.launch(shape_, detail::ThreadDomains<Root, Shape>{run_.data(), watch(), hot_.data()}, stream_);
    } else {
      with_kernel([&](const auto& kernel) { device_.launch(shape_, kernel, stream_, scratch_bytes_); });
    }
  }
  void end(std::chrono::steady_clock::time_point start) {
    device_.copy_async(seen_.data(), run_.data(), sizeof(detail::RunState), stream_);
    device_.copy_async(first_bundle_.data(), words_.data(), first_bundle_.size_bytes(), stream_);
    if (options_.watch) device_.copy_async(watch_seen_.data(), watch_.data(), watch_.size_bytes(), stream_);
    stream_.synchronize();
    report(std::chrono::steady_clock::now() - start);
  }
  template <class T = Result>
  T result() const {
    return detail::load_columns<T>(first_bundle_.data() + result_at_, 1);
  }

 private:
  static constexpr bool kRemote = requires { typename Shape::OverPes; };
  template <bool kIsWatched>
  using Waves = detail::WaveDomains<Root, kRemote, kIsWatched>;
  /// The one for these options. A simulated GPU has one for both: nobody times it, and it takes a while to
  /// compile.
  template <class Function>
  void with_kernel(const Function& function) {
    constexpr bool kHasOne = esker::detail::kLanesUseHostCores;
    if (kHasOne || options_.watch || options_.time_tasks || options_.hang_after.count() > 0) {
      function(Waves<true>{run_.data(), watch()});
    } else {
      function(Waves<kHasOne>{run_.data(), watch()});
    }
  }
  static constexpr std::uint32_t kScratchAside =
      2048;  // what a kernel of this kind declares, and the device keeps
  static constexpr std::uint32_t kPorts = kRemote ? 1 : 0;

  void prepare_threads() {
    using S = detail::SchedulerOf<Root, Shape>;
    std::uint32_t domains = device_.properties().processors;
    if (options_.domains != 0) domains = std::min(domains, options_.domains);
    shape_ = LaunchShape{domains, 1};
    hot_ = device_.memory<std::uint32_t>(std::size_t{domains} * S::kHotWords, {"levels of tasks"});
    allocate<S>(domains);
  }
  void prepare_waves() {
    if (device_.properties().wave_lanes == 64) {
      prepare_waves_of<64>();
    } else {
      prepare_waves_of<32>();
    }
  }
  template <std::uint32_t kWaveLanes>
  void prepare_waves_of() {
    using WaveShape = detail::WaveShape<kWaveLanes>;
    using S =
        detail::SchedulerOf<Root, std::conditional_t<kRemote, detail::RemoteShape<WaveShape>, WaveShape>>;
    // Waves of a group: fewer where their levels would not fit, or so many are not wanted.
    constexpr std::uint32_t kWaveBytes = S::kHotWords * 4;
    std::uint32_t waves = std::min(4u, Waves<true>::kMostGroupLanes / kWaveLanes);
    const std::uint32_t most = device_.properties().group_scratch_bytes;
    while (waves > 1 && most != 0 && waves * kWaveBytes + kScratchAside > most) waves /= 2;
    const std::uint64_t most_waves =
        options_.domains != 0 ? std::uint64_t{options_.domains} + kPorts : ~std::uint64_t{0};
    while (waves > most_waves) waves /= 2;
    scratch_bytes_ = waves * kWaveBytes;
    std::uint64_t groups = 0;
    with_kernel([&](const auto& kernel) {
      groups = device_.resident_groups(kernel, waves * kWaveLanes, scratch_bytes_);
    });
    groups = std::min(groups, most_waves / waves);
    if constexpr (kRemote) {
      // PEs of one GPU run side by side, and beside what applies messages.
      groups = device_.occupancy()->part_of(groups);
      if (groups * waves == 1) groups = 2;  // the port, and a domain
    }
    shape_ = LaunchShape{groups * waves * kWaveLanes, waves * kWaveLanes};
    allocate<S>(static_cast<std::uint32_t>(groups * waves) - kPorts);
  }

  template <class S>
  void allocate(std::uint32_t domains) {
    report_.domains = domains;
    batch_ = S::kBatch;
    result_at_ = S::Bundle::kResult;
    plan_ = detail::MemoryPlan::of<S>(domains);
    if (options_.memory_bytes < plan_.least_bytes())
      detail::refuse_memory(options_.memory_bytes, plan_.least_bytes());
    const auto [joins, crates, pages] = plan_.divide(options_.memory_bytes);
    const std::size_t bundle_words = std::size_t{domains} * S::Bundle::kWords;
    const std::size_t join_words = joins * S::Join::kWords, page_words = pages * S::Page::kWords;
    const std::size_t crate_words = crates * S::Bundle::kWords;
    words_ = device_.memory<std::uint32_t>(
        bundle_words + crate_words + join_words + page_words + joins + pages + crates,
        {"waiting tasks", false});
    mailboxes_ = device_.memory<std::uint32_t>(domains, {"domains that ask"});
    memory_.mailboxes = mailboxes_.data();
    memory_.bundle_words = words_.data();
    memory_.crate_words = memory_.bundle_words + bundle_words;
    memory_.page_words = memory_.crate_words + crate_words;
    memory_.join_words = memory_.page_words + page_words;
    memory_.page_links = memory_.join_words + join_words;
    memory_.join_links = memory_.page_links + pages;
    memory_.crate_links = memory_.join_links + joins;
    memory_.domains = domains;
    memory_.crates = static_cast<std::uint32_t>(crates);
    memory_.joins = static_cast<std::uint32_t>(joins);
    memory_.pages = static_cast<std::uint32_t>(pages);
    first_bundle_ = device_.pinned<std::uint32_t>(S::Bundle::kWords, {"the first task"});
    payload_at_ = S::Bundle::kPayload;
    type_at_ = S::Bundle::kType;
    if constexpr (kRemote) format_ = detail::format_of<S>(memory_.crates);
    if (options_.hang_after.count() > 0) watch_for_hangs(S::Join::kWords);
  }
  void watch_for_hangs(std::size_t words_a_join) {
    const auto explain = [words = memory_.join_words, words_a_join, joins = memory_.joins](
                             const detail::SeenProgress& seen, const detail::Peek& peek) {
      return detail::explain_fork_join(seen, peek, words, words_a_join, joins);
    };
    hangs_.emplace(device_, options_, "tasks", run_.data(), memory_.domains,
                   std::size_t{memory_.joins} * detail::LeftStack::kWords, explain);
  }

  void report(std::chrono::nanoseconds time) {
    const detail::RunState& run = seen_[0];
    detail::Counts counts;
    std::uint64_t each[sizeof counts / 8];
    for (std::size_t c = 0; c < sizeof counts / 8; ++c) each[c] = run.counts[c].load_relaxed();
    __builtin_memcpy(&counts, each, sizeof counts);
    report_.time = time;
    report_.sum = run.sum.load_relaxed();
    report_.tasks = counts.tasks;
    report_.batches = counts.batches;
    report_.full_batches = counts.full_batches;
    report_.resumed = counts.resumed;
    report_.given = counts.given;
    report_.suspended = counts.suspended;
    report_.spilled = counts.spilled;
    report_.waits = counts.asked;
    if (options_.watch) report_.watched = detail::watched_in(watch_seen_[0]);
    report_.idle = std::chrono::nanoseconds{counts.idle_ns};
    report_.in_tasks = std::chrono::nanoseconds{counts.in_tasks_ns};
    report_.present = std::chrono::nanoseconds{counts.domain_ns};
    report_.peak_memory_bytes =
        plan_.bytes_of({run.joins.peak(), kRemote ? run.crates.peak() : 0, run.pages.peak()});
  }

  const Device device_;
  const Options options_;
  const Stream stream_;
  DeviceArray<detail::Watch::Memory> watch_;
  PinnedArray<detail::Watch::Memory> watch_seen_;
  std::uint64_t runs_ = 0;
  Report report_;
  LaunchShape shape_;
  std::uint32_t scratch_bytes_ = 0;  // of a group
  std::uint32_t batch_ = 0, result_at_ = 0, payload_at_ = 0, type_at_ = 0;
  detail::MemoryPlan plan_;
  DeviceArray<detail::RunState> run_;
  PinnedArray<detail::RunState> seen_;
  detail::StopRelay stop_relay_;
  PinnedArray<std::uint32_t> first_bundle_;
  DeviceArray<std::uint32_t> words_, hot_, mailboxes_;
  detail::RunMemory memory_{};
  detail::BundleFormat format_{};  // of a run over PEs
  std::optional<detail::HangWatch> hangs_;
};

/// One run; the memory is given back after it.
template <class Root, class Pass = esker::detail::Pass>
detail::ResultOf<Root> run(const Device& device, const Root& root, const Options& options = {}) {
  return ForkJoin<Root, detail::ThreadShape, Pass>(device, options).run(root);
}

}  // namespace esker::tasks
