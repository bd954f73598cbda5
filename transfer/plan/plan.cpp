// Plans: from kernels and their uses to a graph, a schedule, arenas and steps; and the run.
#include <esker/transfer/plan/plan.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/bounded.hpp>
#include <esker/transfer/plan/picture.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Error::Kind::kTransfer, "Plan" + why); }

/// One thing that a run does, with its addresses.
struct Step {
  enum class Kind { kCopy, kDevice, kHost };
  Kind kind;
  std::uint32_t kernel = 0;
  bool waits = false;  // a function of the host, for what the stream brings it or takes from it
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  bool is_upload = false;
  std::vector<void*> operands = {};
};

}  // namespace

struct Plan::State {
  struct DeclaredOperand {
    std::string name;
    std::uint64_t bytes, address;
    Life life;
  };
  struct DeclaredKernel {
    std::string name;
    std::vector<UsedOperand> uses;
    DeviceFunction device;  // empty: on the host
    HostFunction host;
  };

  explicit State(const Device& on) : device{on}, stream{on.stream()} {}

  /// The kernels with single assignment: what is changed in place is a version.
  OperandGraph make_graph() const;
  void make_steps();
  void* address_of(std::uint32_t place, std::uint32_t storage) const {
    if (place == 0 && graph.operand(storage).host_address != 0)
      // An address that the user has given. NOLINTNEXTLINE(performance-no-int-to-ptr)
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(graph.operand(storage).host_address));
    const std::uint64_t offset = layout.offsets[place][storage];
    if (offset == Layout::kNowhere) return nullptr;
    return (place == 0 ? host_arena.data() : device_arena.data()) + offset;
  }
  void require_built(const char* call) const {
    if (cannot_run != nullptr) refuse(fmt::format("::{}: {}", call, cannot_run));
  }
  void has_changed() {
    if (cannot_run == nullptr)
      cannot_run = "a kernel or an operand has been added since build(): build it again";
  }
  void require_steps(const char* call) {
    require_built(call);
    throw_error();
  }
  void throw_error() {
    std::exception_ptr thrown;
    {
      const std::lock_guard lock(mutex);
      thrown = std::exchange(error, nullptr);
    }
    if (thrown != nullptr) std::rethrow_exception(thrown);
  }
  void call_in_stream(const Step& step) noexcept {
    {
      const std::lock_guard lock(mutex);
      if (error != nullptr) return;
    }
    try {
      kernels[step.kernel].host(step.operands.data());
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  }

  Device device;
  Stream stream;  // for runs that name none
  std::vector<DeclaredOperand> operands;
  std::vector<DeclaredKernel> kernels;
  const char* cannot_run = "it has not been built";  // null: it can

  BuildOptions options;
  OperandGraph graph;
  std::vector<Transfer> transfers;
  Schedule schedule;
  Layout layout;
  bool is_bounded = false;
  double plan_seconds = 0;
  PinnedArray<std::byte> host_arena;
  DeviceArray<std::byte> device_arena;
  std::vector<Step> steps;

  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex: of a function that a stream has called
};

Plan::Plan(const Device& device) : state_{std::make_unique<State>(device)} {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

std::uint32_t Plan::add_operand(std::uint64_t bytes, std::uint64_t address, const OperandOptions& options) {
  const auto number = static_cast<std::uint32_t>(state_->operands.size());
  if (bytes == 0) refuse(fmt::format("::operand: operand {} ({}) has no elements", number, options.name));
  state_->operands.push_back(
      {options.name.empty() ? fmt::format("v{}", number) : options.name, bytes, address, options.life});
  state_->has_changed();
  return number;
}

void Plan::add_kernel(std::vector<UsedOperand> uses, DeviceFunction device, HostFunction host,
                      const std::string& name) {
  const std::size_t number = state_->kernels.size();
  for (const UsedOperand& use : uses) {
    if (use.number >= state_->operands.size())
      refuse(fmt::format(": kernel {} ({}) uses operand {} of another plan; this one has {}", number, name,
                         use.number, state_->operands.size()));
  }
  state_->kernels.push_back({name.empty() ? fmt::format("kernel{}", number) : name, std::move(uses),
                             std::move(device), std::move(host)});
  state_->has_changed();
}

OperandGraph Plan::State::make_graph() const {
  OperandGraph made;
  std::vector<bool> is_read_first(operands.size(), false), is_used(operands.size(), false);
  for (const DeclaredKernel& kernel : kernels) {
    for (const UsedOperand& use : kernel.uses) {
      if (!is_used[use.number]) is_read_first[use.number] = use.access != Access::kWrite;
    }
    for (const UsedOperand& use : kernel.uses) is_used[use.number] = true;
  }
  std::vector<std::uint32_t> newest(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DeclaredOperand& operand = operands[i];
    const bool on_entry = operand.life == Life::kInput || (operand.life == Life::kByUses && is_read_first[i]);
    newest[i] = made.add_operand({operand.name, operand.bytes, on_entry, false, operand.address});
  }
  std::vector<std::uint32_t> reads, writes, updated;
  for (const DeclaredKernel& kernel : kernels) {
    reads.clear();
    writes.clear();
    updated.clear();
    for (const UsedOperand& use : kernel.uses) {
      if (use.access != Access::kWrite) reads.push_back(newest[use.number]);
      if (use.access == Access::kWrite) writes.push_back(newest[use.number]);
      if (use.access != Access::kUpdate) continue;
      if (std::find(updated.begin(), updated.end(), use.number) != updated.end())
        refuse(fmt::format("::build: kernel {} updates {} twice", kernel.name, operands[use.number].name));
      updated.push_back(use.number);
      writes.push_back(made.add_version(newest[use.number]));
    }
    made.add_kernel(kernel.name, kernel.device ? 1 : 0, reads, writes);
    for (const std::uint32_t number : updated) newest[number] = made.next_version(newest[number]);
  }
  made.want_results();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].life == Life::kInside) made.set_on_exit(newest[i], false);
    if (operands[i].life == Life::kResult) made.set_on_exit(newest[i], true);
  }
  return made;
}

void Plan::State::make_steps() {
  steps.clear();
  // What the stream moves and nobody has waited for, by storage: to or from the host.
  std::vector<std::uint8_t> is_coming(graph.operands(), 0), is_leaving(graph.operands(), 0);
  std::size_t next = 0;
  const auto copies_of = [&](std::uint32_t time, bool is_upload) {
    for (; next < schedule.startups.size(); ++next) {
      const Startup& startup = schedule.startups[next];
      if (startup.time != time || startup.is_upload() != is_upload) return;
      Step step{.kind = Step::Kind::kCopy, .is_upload = is_upload};
      step.to = address_of(startup.to, schedule.order[startup.first]);
      step.from = address_of(startup.from, schedule.order[startup.first]);
      step.bytes = layout.bytes_of(graph, schedule, startup);
      steps.push_back(std::move(step));
      for (std::uint32_t i = startup.first; i < startup.first + startup.count; ++i)
        (is_upload ? is_leaving : is_coming)[schedule.order[i]] = 1;
    }
  };
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    const DeclaredKernel& kernel = kernels[k];
    copies_of(k, true);
    Step step{.kind = kernel.device ? Step::Kind::kDevice : Step::Kind::kHost, .kernel = k};
    for (const UsedOperand& use : kernel.uses) {
      step.operands.push_back(address_of(kernel.device ? 1 : 0, use.number));
      step.waits =
          step.waits || (!kernel.device && (is_coming[use.number] != 0 ||
                                            (use.access != Access::kRead && is_leaving[use.number] != 0)));
    }
    if (step.waits) {
      std::fill(is_coming.begin(), is_coming.end(), std::uint8_t{0});
      std::fill(is_leaving.begin(), is_leaving.end(), std::uint8_t{0});
    }
    steps.push_back(std::move(step));
    copies_of(k, false);
  }
}

void Plan::build(const BuildOptions& options) {
  State& s = *state_;
  s.cannot_run = "the last build() has failed: build it again";
  if (s.kernels.empty()) refuse("::build: it has no kernels");
  s.options = options;
  s.graph = s.make_graph();
  const auto begin = std::chrono::steady_clock::now();
  s.transfers = transfers_of(s.graph);
  s.schedule = make_schedule(s.graph, s.transfers,
                             {.solver = options.solver, .attempts = options.attempts, .seed = options.seed});
  s.layout = lay_out(s.graph, s.schedule);
  s.layout.bytes.resize(2, 0);  // the device's where it has no kernel
  s.layout.separate_bytes.resize(2, 0);
  s.is_bounded = options.device_bytes != 0 && s.layout.bytes[1] > options.device_bytes;
  if (s.is_bounded) {
    if (options.solver != Solver::kExact)
      refuse(
          fmt::format("::build: solver {} takes {} bytes of the device, where device_bytes is {}: only "
                      "solver exact keeps such a bound",
                      to_string(options.solver), s.layout.bytes[1], options.device_bytes));
    BoundedSchedule bounded = schedule_bounded(s.graph, options.device_bytes);
    s.transfers = std::move(bounded.transfers);
    s.schedule = std::move(bounded.schedule);
    s.layout = std::move(bounded.layout);
  }
  s.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // The old ones first, or both would have to fit.
  s.host_arena = {};
  s.device_arena = {};
  s.host_arena = s.device.pinned<std::byte>(s.layout.bytes[0], {"the host's operands of a plan"});
  s.device_arena = s.device.memory<std::byte>(s.layout.bytes[1], {"the device's operands of a plan", false});
  s.make_steps();
  s.cannot_run = nullptr;
}

void* Plan::host_address(std::uint32_t number) const {
  state_->require_built("host");
  if (number >= state_->operands.size())
    refuse(
        fmt::format("::host: operand {} of another plan; this one has {}", number, state_->operands.size()));
  void* const at = state_->address_of(0, number);
  if (at == nullptr)
    refuse(fmt::format("::host: {} is on the device alone: it is neither there on entry nor wanted on exit",
                       state_->operands[number].name));
  return at;
}

void Plan::run() { run(state_->stream); }

void Plan::run(const Stream& stream) {
  State& s = *state_;
  s.require_steps("run");
  try {
    for (const Step& step : s.steps) {
      switch (step.kind) {
        case Step::Kind::kCopy:
          s.device.copy_async(step.to, step.from, step.bytes, stream);
          if (s.options.waits_for_copies) stream.synchronize();
          break;
        case Step::Kind::kDevice:
          s.kernels[step.kernel].device(s.device, stream, step.operands.data());
          break;
        case Step::Kind::kHost:
          if (step.waits) stream.synchronize();
          s.kernels[step.kernel].host(step.operands.data());
          break;
      }
    }
  } catch (...) {
    // Nothing of the run is under way when it has failed.
    const std::exception_ptr thrown = std::current_exception();
    try {
      stream.synchronize();
    } catch (...) {
    }
    std::rethrow_exception(thrown);
  }
  stream.synchronize();
}

void Plan::add_to(const Stream& stream) {
  State& s = *state_;
  s.require_steps("add_to");
  for (const Step& step : s.steps) {
    switch (step.kind) {
      case Step::Kind::kCopy:
        s.device.copy_async(step.to, step.from, step.bytes, stream);
        break;
      case Step::Kind::kDevice:
        s.kernels[step.kernel].device(s.device, stream, step.operands.data());
        break;
      case Step::Kind::kHost:
        stream.call([&s, &step] { s.call_in_stream(step); });
        break;
    }
  }
}

void Plan::check() { state_->throw_error(); }

const OperandGraph& Plan::graph() const {
  state_->require_built("graph");
  return state_->graph;
}
const Schedule& Plan::schedule() const {
  state_->require_built("schedule");
  return state_->schedule;
}
const Layout& Plan::layout() const {
  state_->require_built("layout");
  return state_->layout;
}
const char* Plan::solver() const {
  state_->require_built("solver");
  return state_->is_bounded ? "bounded" : to_string(state_->options.solver);
}
double Plan::plan_seconds() const {
  state_->require_built("plan_seconds");
  return state_->plan_seconds;
}

double Plan::predicted_seconds() const {
  state_->require_built("predicted_seconds");
  const CostModel& cost = state_->options.cost;
  double seconds = 0;
  for (const Step& step : state_->steps) {
    if (step.kind != Step::Kind::kCopy) continue;
    const double rate = step.is_upload ? cost.up_bytes_per_s : cost.down_bytes_per_s;
    seconds += step.is_upload ? cost.up_startup_s : cost.down_startup_s;
    if (rate > 0) seconds += static_cast<double>(step.bytes) / rate;
  }
  return seconds;
}

std::string Plan::report() const {
  state_->require_built("report");
  const State& s = *state_;
  std::string text = fmt::format("plan of {} kernels and {} operands on {}, solver {}\n", s.graph.kernels(),
                                 s.graph.operands(), s.device.name(), solver());
  text += report_of(s.graph, s.transfers, s.schedule, s.layout);
  text += fmt::format("planned in {:.1f} us", s.plan_seconds * 1e6);
  if (const double seconds = predicted_seconds(); seconds > 0)
    text += fmt::format("; copies take {:.1f} us by the cost model", seconds * 1e6);
  return text + "\n";
}

std::string Plan::to_dot() const {
  state_->require_built("to_dot");
  return transfer::to_dot(state_->graph, state_->schedule);
}

}  // namespace esker::transfer
