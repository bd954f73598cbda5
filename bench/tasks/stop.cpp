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

/// fib, until the host says that tasks fail.
struct FailingFib {
  static constexpr int kMaxSpawns = 2;
  static constexpr int kLooks = 16;
  const SystemAtomic<std::uint32_t>* told;  // in pinned memory: tasks of that size look
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n == kLooks && told->load_relaxed() != 0) return task.fail(7, kLooks, 0);
    if (n < 2) return task.give(n);
    task.spawn(FailingFib{told, n - 1}, FailingFib{told, n - 2}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};
constexpr int kLong = 45;  // fib(45) takes 0.2 s on a GPU, and all its levels 70 MB

/// One task after the other, until the host says so: then each spawns two, without an end.
struct Growing {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  const SystemAtomic<std::uint32_t>* told;  // null: it has; then nobody looks, since looks take turns
  ESKER_HD void operator()(auto& task) const {
    if (told == nullptr || told->load_relaxed() != 0) {
      task.spawn(Growing{nullptr}, Growing{nullptr});
    } else {
      task.spawn(*this);
    }
  }
};

/// What a run that ended early has said, and when it returned.
struct End {
  Clock::time_point at;
  std::string message;
};
template <class Root>
End end_of(tasks::ForkJoin<Root>& program, const Root& root, Reason reason) {
  try {
    program.run(root);
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

double stopped(const Bench& bench, std::string& message) {
  tasks::Options options = bench.options();
  options.memory_bytes = std::uint64_t{128} << 20;
  tasks::ForkJoin<Fib> program(bench.device, options);
  return seconds_to_end(
      program, Fib{kLong}, Reason::kStopped, [&] { options.stop.request_stop(); }, message);
}
/// `Root` looks at a word in pinned memory.
template <class Root>
double told(const Bench& bench, const Root& example, std::uint64_t memory_bytes, Reason reason,
            std::string& message) {
  const auto word = bench.device.pinned<SystemAtomic<std::uint32_t>>(1);
  tasks::Options options = bench.options();
  options.memory_bytes = memory_bytes;
  tasks::ForkJoin<Root> program(bench.device, options);
  Root root = example;
  root.told = word.data();
  return seconds_to_end(
      program, root, reason, [&] { word[0].store_relaxed(1); }, message);
}
double failed(const Bench& bench, std::string& message) {
  return told(bench, FailingFib{nullptr, kLong}, std::uint64_t{128} << 20, Reason::kFailed, message);
}
double overflowed(const Bench& bench, std::string& message) {
  // Little more than domains take: it is full at once.
  const std::uint64_t bytes = bench.is_on_gpu() ? std::uint64_t{4} << 20 : std::uint64_t{1} << 20;
  return told(bench, Growing{}, bytes, Reason::kOutOfMemory, message);
}

}  // namespace

nlohmann::json take_stop(const Bench& bench) {
  struct Ending {
    const char* name;
    double (*end)(const Bench&, std::string&);
    std::vector<double> seconds = {};
    std::string message = {};
  };
  Ending kinds[] = {{"stop", stopped}, {"a task fails", failed}, {"memory runs out", overflowed}};
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
