// Runs of tasks over all PEs. Private to include/esker/distributed_tasks.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <esker/runtime.hpp>
#include <esker/runtime/task_courier.hpp>
#include <esker/tasks/error.hpp>
#include <esker/tasks/fork_join.hpp>

namespace esker::tasks {

namespace detail {

/// What is summed over PEs.
inline constexpr std::array<std::uint64_t Report::*, 12> kSummed{
    &Report::sum,     &Report::tasks, &Report::batches,   &Report::full_batches,
    &Report::resumed, &Report::given, &Report::suspended, &Report::spilled,
    &Report::waits,   &Report::sent,  &Report::received,  &Report::peak_memory_bytes};

/// Each PE's part of the job, where a PE is a process with cores of its own. Collective: a run is watched for
/// hangs on all PEs, or on none.
inline Options options_on(Runtime& runtime, Options options) {
  auto hang_after = static_cast<std::uint64_t>(std::max<std::int64_t>(options.hang_after.count(), 0));
  runtime.all_reduce(std::span(&hang_after, 1), Reduction::kMax);
  options.hang_after = std::chrono::milliseconds{hang_after};
  if (!runtime.runs_on_device()) {
    const std::uint32_t threads = runtime.host_threads();
    options.domains = options.domains == 0 ? threads : std::min(options.domains, threads);
  }
  return options;
}

/// What all PEs make, or none: the first base of what may throw while it is made. Else PEs that have it would
/// wait in run() for one that has not.
///
/// Contract Collective: agree() at the end of the constructor, or the destructor where that was not reached.
class MadeTogether {
 public:
  explicit MadeTogether(Runtime& runtime) : runtime_{runtime} {}
  ~MadeTogether() {
    try {
      if (!has_agreed_) (void)first_that_failed(runtime_.pe());
    } catch (const Error&) {  // the job has failed, which the next call says
    }
  }
  MadeTogether(const MadeTogether&) = delete;
  MadeTogether& operator=(const MadeTogether&) = delete;

  void agree() {
    has_agreed_ = true;
    const std::uint64_t failed = first_that_failed(runtime_.n_pes());
    if (failed < runtime_.n_pes()) {
      throw Error(Error::Kind::kContract, "tasks over PEs: PE " + std::to_string(failed) +
                                              " could not be made ready for runs, and says why");
    }
  }

 private:
  std::uint64_t first_that_failed(std::uint64_t pe) {
    runtime_.all_reduce(std::span(&pe, 1), Reduction::kMin);
    return pe;
  }

  Runtime& runtime_;
  bool has_agreed_ = false;
};

}  // namespace detail

/// Runs a task of type `Root`, and what it spawns, on all PEs of a Runtime: what one has too much of goes to
/// those that have nothing, and `task.spawn_at(pe, child)` runs a child on a PE of the program's choice.
///
/// State    ready -> running -> ready: any number of runs, one at a time.
/// Contract As ForkJoin; the constructor and run() are collective, with the same Root on every PE. Tasks
///          travel byte by byte: what they point to is another PE's. What each PE has of its own they find by
///          task.local<T>() (Options::local). A type that spawns on other PEs has `using SpawnsAt =
///          Types<...>` of those. Options::hang_after is the longest of what PEs say. Tasks on a GPU and
///          messages of lanes are apart: quiet() and barrier_all() know nothing of tasks.
/// Progress Tasks move while PEs are in run(), and at no other time. On GPUs that several PEs share, their
///          kernels have to run at a time (CUDA's multi-process service).
/// Errors   As ForkJoin, on every PE alike: a TaskError names the PE that ended the run. What a task throws
///          on the CPU is thrown on its own PE, and is a TaskError on the others. Error{kConfiguration}: a
///          task does not fit in --node-buffer-bytes. What the Runtime has failed with. Where the
///          constructor throws on one PE, it throws Error{kContract} on those that have no error.
template <class Root, class Shape = detail::ThreadShape, class Pass = esker::detail::Pass>
class DistributedForkJoin : private detail::MadeTogether,
                            private ForkJoin<Root, detail::RemoteShape<Shape>, Pass> {
  using Base = ForkJoin<Root, detail::RemoteShape<Shape>, Pass>;

 public:
  using Result = typename Base::Result;

  explicit DistributedForkJoin(Runtime& runtime, const Options& options = {})
      : MadeTogether(runtime),
        Base(runtime.device(), detail::options_on(runtime, options)),
        runtime_{runtime},
        port_{runtime.device().template pinned<detail::PortMemory>(1, {"a port of tasks"})},
        slots_{runtime.device().template pinned<std::uint32_t>(
            esker::detail::TaskCourier::slot_words(Base::format()), {"tasks between PEs"})},
        courier_{runtime, Base::format(), port_[0], slots_.data()} {
    MadeTogether::agree();
  }

  /// Collective. Runs PE 0's root; the others' is not looked at. Returns its result on every PE.
  Result run(const Root& root) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint32_t pe = runtime_.pe();
    if (pe == 0) Base::write_first_bundle(root);
    courier_.begin(Base::report().domains);
    Base::prepare({pe, runtime_.n_pes(), port_.data()});
    if (Base::hangs() != nullptr) Base::hangs()->begin();
    std::exception_ptr thrown = run_domains();
    Base::end(start);
    return end_together(thrown);
  }

  /// Options::memory_bytes of this PE with which no run of tasks nested at most `depth` deep is short of
  /// memory on it, as ForkJoin::memory_bound(): whatever other PEs give to it (docs/design/tasks.md).
  ///
  /// Errors. Error{kConfiguration}: tasks name PEs (SpawnsAt), or PEs are too many for a bound.
  std::uint64_t memory_bound(std::uint32_t depth) const {
    const std::uint64_t crates = esker::detail::TaskCourier::enough_bundles(runtime_.n_pes());
    if (Base::Set::kPlaces || crates > Base::plan().most_crates())
      esker::detail::refuse_task_bound(Base::Set::kPlaces, runtime_.n_pes());
    return Base::plan().bytes_for(depth, crates);
  }

  /// Of this PE in the last run.
  const Report& report() const { return Base::report(); }
  /// Sums over PEs, but for the time, which is the longest.
  const Report& total() const { return total_; }

 private:
  static constexpr std::size_t kResultWords = (detail::kSizeOf<Result> + 7) / 8;

  /// Returns what a task has thrown.
  std::exception_ptr run_domains() {
    if (Base::is_on_host()) return run_threads();
    Base::launch_domains();
    try {
      courier_.carry(
          Base::options().stop, Base::hangs(), [] { return false; },
          [&] { return Base::stream().is_idle(); });
    } catch (...) {
      courier_.end_domains(detail::Outcome::kFailed);
      Base::stream().synchronize();
      throw;
    }
    return nullptr;
  }
  std::exception_ptr run_threads() {
    std::exception_ptr thrown;
#if defined(ESKER_ON_CPU)
    // The port is this thread's, and the domains are another's: it may have to drive the network.
    using S = detail::SchedulerOf<Root, detail::RemoteShape<Shape>>;
    detail::Port<S> port(detail::ThreadLanes{}, Base::run_state());
    std::atomic<bool> has_ended{false};
    const std::jthread domains([&] {
      try {
        Base::launch_domains();
      } catch (...) {
        thrown = std::current_exception();
        (void)Base::run_state().end(detail::Outcome::kThrew);
      }
      has_ended.store(true, std::memory_order_release);
    });
    try {
      courier_.carry(
          Base::options().stop, Base::hangs(), [&] { return !port.has_ended() && port.step(); },
          [&] { return has_ended.load(std::memory_order_acquire); });
    } catch (...) {
      courier_.end_domains(detail::Outcome::kFailed);
      (void)port.has_ended();
      throw;
    }
#endif
    return thrown;
  }

  Result end_together(const std::exception_ptr& thrown) {
    Report& mine = Base::last_report();
    mine.sent = courier_.sent();
    mine.received = courier_.received();
    std::vector<std::uint64_t> sums, result(kResultWords, 0);
    for (const auto field : detail::kSummed) sums.push_back(mine.*field);
    sums.push_back(mine.domains);
    if constexpr (!std::is_void_v<Result>) {
      const Result value = this->template result<Result>();
      std::memcpy(result.data(), &value, sizeof value);
    }
    const auto ending = courier_.agree(Base::seen().how(), sums, result);
    total_ = mine;
    for (std::size_t i = 0; i < detail::kSummed.size(); ++i) total_.*detail::kSummed[i] = sums[i];
    total_.domains = static_cast<std::uint32_t>(sums.back());
    std::uint64_t longest = static_cast<std::uint64_t>(mine.time.count());
    runtime_.all_reduce(std::span(&longest, 1), Reduction::kMax);
    total_.time = std::chrono::nanoseconds(longest);
    if (thrown) std::rethrow_exception(thrown);
    if (Base::hangs() != nullptr) Base::hangs()->rethrow();
    if (ending.how.outcome != detail::Outcome::kDone) {
      detail::throw_outcome(ending.how,
                            "PE " + std::to_string(ending.pe) + " (here " + Base::device().name() + ")",
                            Base::options().memory_bytes);
    }
    if constexpr (!std::is_void_v<Result>) {
      std::uint32_t words[detail::words(sizeof(Result))];
      std::memcpy(words, result.data(), sizeof words);
      return detail::load_columns<Result>(words, 1);
    }
  }

  Runtime& runtime_;
  Report total_;
  PinnedArray<detail::PortMemory> port_;
  PinnedArray<std::uint32_t> slots_;
  esker::detail::TaskCourier courier_;
};

}  // namespace esker::tasks
