// What a launch adds to the lanes that it runs.
#include <esker/runtime/launches.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include <esker/device/cpu/cores.hpp>
#include <esker/device/error.hpp>

namespace esker {

std::uint32_t lane_threads(const Config& config, const JobShape& job) {
  if (config.cpu_threads != 0) return config.cpu_threads;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const std::uint32_t usable = detail::usable_cores();
  return std::max(1u, usable / (usable < online ? 1 : job.pes_on_host));
}

void Launches::run_groups(const LaunchShape& shape, const char* name, const LaneWorkers::Function& function) {
  failure_.raise_if_set();
  if (shape.group_lanes == 0 || shape.wave_lanes == 0)
    misuse("launch: a group and a wave have at least one lane");
  if (name == nullptr) name = "kernel";
  if (const char* const running = running_.load(std::memory_order_relaxed)) {
    misuse(
        fmt::format("launch of '{}': kernel '{}' still runs, and neither its lanes nor other threads launch "
                    "one beside it",
                    name, running));
  }
  sender_.close();
  const CurrentCall::Scope call(call_, name, true);
  if (tracer_ != nullptr) name = tracer_->keep(name);
  TraceSpan span(tracer_, TraceWhat::kLaunch, name);
  if (span.is_on()) span.set_values({static_cast<std::uint32_t>(shape.groups()), 0, 0, 0});
  aggregators_.set_producing(true);
  running_.store(name, std::memory_order_relaxed);
  struct Done {
    Launches& launches;
    ~Done() {
      launches.running_.store(nullptr, std::memory_order_relaxed);
      launches.aggregators_.set_producing(false);
    }
  } const done{*this};
  try {
    workers_.run(
        shape.groups(), function, [this] { return owner_.step_if_caller(); }, name);
  } catch (...) {
    throw_with_kernel(name);
  }
  failure_.raise_if_set();
}

/// In a handler of what a lane of `kernel` has thrown.
void Launches::throw_with_kernel(const char* kernel) {
  failure_.raise_if_set();  // which lanes throw too, while they wait
  const auto lane = workers_.throwing_lane();
  const std::string thrower =
      lane ? fmt::format("lane {} of group {} of kernel '{}'", lane->lane, lane->group, kernel)
           : fmt::format("kernel '{}'", kernel);
  auto kind = Error::Kind::kKernel;
  std::string what;
  try {
    throw;
  } catch (const Error& error) {
    kind = error.kind();
    what = fmt::format("{}: {}", thrower, error.what());
  } catch (const std::exception& error) {
    what = fmt::format("{} has thrown: {}", thrower, error.what());
  } catch (...) {
    what = fmt::format("{} has thrown what is no std::exception", thrower);
  }
  call_.set_thrown(what);
  std::throw_with_nested(Error(kind, what));
}

void* Launches::begin(const char* name) {
  failure_.raise_if_set();
  sender_.close();
  call_.count_one();
  if (tracer_ != nullptr) launching_.emplace(tracer_, TraceWhat::kLaunch, tracer_->keep(name));
  executor_.begin_launch(name);
  return executor_.stream();
}

void Launches::end(const std::string& error) {
  launching_.reset();
  executor_.end_launch(error);
}

}  // namespace esker
