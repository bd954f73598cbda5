// From a request to the end of the run: a stop, a task that fails, memory that is short.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "figures.hpp"

namespace esker::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Reason = tasks::TaskError::Reason;

/// fib, until the host says that tasks fail, or that they spawn without an end.
template <bool kFails>
struct EndingFib {
  static constexpr int kMaxSpawns = 2;
  static constexpr int kLooks = 16;
  const SystemAtomic<std::uint32_t>* told;  // in pinned memory: tasks of that size look
  int n;
  ESKER_HD void operator()(auto& task) const {
    int less = 1;
    if (n == kLooks && told->load_relaxed() != 0) {
      if (kFails) return task.fail(7, kLooks, 0);
      less = 0;  // each of these tasks spawns two like it
    }
    if (n < 2) return task.give(n);
    task.spawn(EndingFib{told, n - less}, EndingFib{told, n - 2 * less}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};

constexpr int kLong = 45;  // fib(45) takes 0.2 s on a GPU, and all its levels 70 MB

/// What a run that ended early has said, and when it returned.
struct End {
  Clock::time_point at;
  std::string message;
};
template <class Root>
End end_of(tasks::ForkJoin<Root>& program, const Root& root, Reason reason) {
  try {
    (void)program.run(root);
  } catch (const tasks::TaskError& error) {
    const Clock::time_point now = Clock::now();
    if (error.reason() != reason)
      throw std::runtime_error(fmt::format("it ended for another reason: {}", error.what()));
    return {now, error.what()};
  }
  throw std::runtime_error("it came to its end");
}

/// Requests the end while a run is under way. Returns the seconds from there to the run's return.
template <class Root, class Request>
double seconds_to_end(tasks::ForkJoin<Root>& program, const Root& root, Reason reason, Request&& request,
                      std::string& message) {
  End end;
  std::exception_ptr failure;
  std::thread runs([&] {
    try {
      end = end_of(program, root, reason);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  const Clock::time_point asked = Clock::now();
  request();
  runs.join();
  if (failure) std::rethrow_exception(failure);
  message = end.message;
  return std::chrono::duration<double>(end.at - asked).count();
}

tasks::Options options_of(const Bench& bench) {
  tasks::Options options = bench.options();
  if (bench.is_on_gpu()) options.memory_bytes = std::uint64_t{128} << 20;
  return options;
}
double stopped(const Bench& bench, std::string& message) {
  tasks::Options options = options_of(bench);
  tasks::ForkJoin<Fib> program(bench.device, options);
  return seconds_to_end(
      program, Fib{kLong}, Reason::kStopped, [&] { options.stop.request_stop(); }, message);
}
template <bool kFails>
double told(const Bench& bench, std::string& message) {
  const auto told = bench.device.pinned<SystemAtomic<std::uint32_t>>(1);
  tasks::Options options = options_of(bench);
  if (!bench.is_on_gpu())
    options.memory_bytes = std::uint64_t{1} << 20;  // two threads fill it in a millisecond
  using Root = EndingFib<kFails>;
  tasks::ForkJoin<Root> program(bench.device, options);
  return seconds_to_end(
      program, Root{told.data(), kLong}, kFails ? Reason::kFailed : Reason::kOutOfMemory,
      [&] { told[0].store_relaxed(1); }, message);
}

}  // namespace

nlohmann::json take_stop(const Bench& bench) {
  struct Ending {
    const char* name;
    double (*end)(const Bench&, std::string&);
    std::vector<double> seconds = {};
    std::string message = {};
  };
  Ending kinds[] = {{"stop", stopped}, {"a task fails", told<true>}, {"memory runs out", told<false>}};
  // The device is as it was: each is followed by a run that must be right.
  const Problem next{Kind::kFib, 15};
  const auto program = fork_join(bench.device, next, bench.options());
  for (std::uint64_t i = 0; i < bench.sizes.stops; ++i) {
    for (Ending& kind : kinds) {
      kind.seconds.push_back(kind.end(bench, kind.message));
      if (program->run() != expected(next))
        throw std::runtime_error(fmt::format("the run after '{}' is wrong", kind.name));
    }
  }
  nlohmann::json cases = nlohmann::json::array();
  for (Ending& kind : kinds) {
    std::sort(kind.seconds.begin(), kind.seconds.end());
    const double median = kind.seconds[kind.seconds.size() / 2], highest = kind.seconds.back();
    fmt::print("{:30} {:.0f} µs ({:.0f} to {:.0f}), {} times: {}\n", kind.name, median * 1e6,
               kind.seconds.front() * 1e6, highest * 1e6, kind.seconds.size(), kind.message);
    cases.push_back({{"request", kind.name},
                     {"median", median},
                     {"highest", highest},
                     {"seconds", kind.seconds},
                     {"message", kind.message}});
  }
  return {{"cases", cases}};
}

}  // namespace esker::bench
