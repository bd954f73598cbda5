// Plans: from kernels and their uses to a graph, a schedule, arenas and steps.
#include <esker/transfer/plan/plan.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/bounded.hpp>
#include <esker/transfer/plan/picture.hpp>
#include <esker/transfer/plan/plan_execution.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Error::Kind::kTransfer, "Plan" + why); }

using detail::kHostPlace;
using detail::PlanStep;

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
    std::uint32_t place;
    detail::DeviceFunction device;  // of a device
    detail::HostFunction host;      // of the host
  };

  explicit State(std::vector<Device> on) : execution{std::move(on)} {}

  /// The kernels with single assignment: what is changed in place is a version.
  OperandGraph make_graph() const;
  std::vector<PlanStep> make_steps() const;
  void* address_of(std::uint32_t place, std::uint32_t storage) const {
    if (place == kHostPlace && graph.operand(storage).host_address != 0)
      // An address that the user has given. NOLINTNEXTLINE(performance-no-int-to-ptr)
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(graph.operand(storage).host_address));
    const std::uint64_t offset = layout.offsets[place][storage];
    if (offset == Layout::kNowhere) return nullptr;
    return (place == kHostPlace ? host_arena.data() : device_arenas[place - 1].data()) + offset;
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
    execution.throw_error();
  }

  detail::PlanExecution execution;
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
  std::vector<DeviceArray<std::byte>> device_arenas;
};

Plan::Plan(const Device& device) : Plan{std::vector{device}} {}
Plan::Plan(std::vector<Device> devices) : state_{std::make_unique<State>(std::move(devices))} {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

std::uint32_t Plan::add_operand(std::uint64_t n, std::uint64_t bytes_of_each, std::uint64_t address,
                                const OperandOptions& options) {
  const auto number = static_cast<std::uint32_t>(state_->operands.size());
  if (n == 0) refuse(fmt::format("::operand: operand {} ({}) has no elements", number, options.name));
  if (n > OperandGraph::kMostBytes / bytes_of_each)
    refuse(fmt::format("::operand: operand {} ({}) has {} elements of {} bytes; it may have {} bytes", number,
                       options.name, n, bytes_of_each, OperandGraph::kMostBytes));
  state_->operands.push_back({options.name.empty() ? fmt::format("v{}", number) : options.name,
                              n * bytes_of_each, address, options.life});
  state_->has_changed();
  return number;
}

void Plan::add_device_kernel(std::vector<UsedOperand> uses, detail::DeviceFunction function,
                             const KernelOptions& options) {
  if (options.device >= state_->execution.devices().size())
    refuse(fmt::format("::on_device: kernel {} ({}) is for device {}; this plan has {}",
                       state_->kernels.size(), options.name, options.device,
                       state_->execution.devices().size()));
  add_kernel(std::move(uses), options.device + 1, std::move(function), nullptr, options.name);
}
void Plan::add_host_kernel(std::vector<UsedOperand> uses, detail::HostFunction function,
                           const std::string& name) {
  add_kernel(std::move(uses), kHostPlace, nullptr, std::move(function), name);
}
void Plan::add_kernel(std::vector<UsedOperand> uses, std::uint32_t place, detail::DeviceFunction device,
                      detail::HostFunction host, const std::string& name) {
  const std::size_t number = state_->kernels.size();
  for (const UsedOperand& use : uses)
    check_own(use.number, use.bytes, fmt::format(": kernel {} ({}) uses", number, name));
  state_->kernels.push_back({name.empty() ? fmt::format("kernel{}", number) : name, std::move(uses), place,
                             std::move(device), std::move(host)});
  state_->has_changed();
}

void Plan::check_own(std::uint32_t number, std::uint64_t bytes, const std::string& who) const {
  const auto& operands = state_->operands;
  if (number >= operands.size())
    refuse(fmt::format("{} operand {} of another plan; this one has {}", who, number, operands.size()));
  if (operands[number].bytes != bytes)
    refuse(fmt::format("{} operand {} of another plan, of {} bytes; this one's has {}", who, number, bytes,
                       operands[number].bytes));
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
    const bool on_entry = operand.life == Life::kInput || (operand.life != Life::kInside && is_read_first[i]);
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
    made.add_kernel(kernel.name, kernel.place, reads, writes);
    for (const std::uint32_t number : updated) newest[number] = made.next_version(newest[number]);
  }
  made.want_results();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].life == Life::kInside) made.set_on_exit(newest[i], false);
    if (operands[i].life == Life::kResult) made.set_on_exit(newest[i], true);
  }
  return made;
}

std::vector<PlanStep> Plan::State::make_steps() const {
  std::vector<PlanStep> steps;
  std::size_t next = 0;
  const auto copies_of = [&](std::uint32_t time, bool is_upload) {
    for (; next < schedule.startups.size(); ++next) {
      const Startup& startup = schedule.startups[next];
      if (startup.time != time || startup.is_upload() != is_upload) return;
      const std::uint32_t storage = schedule.order[startup.first];
      const std::uint64_t bytes = layout.bytes_of(graph, schedule, startup);
      PlanStep& step = steps.emplace_back(PlanStep{is_upload ? startup.to : startup.from, {}});
      step.used = {{address_of(startup.from, storage), bytes, false},
                   {address_of(startup.to, storage), bytes, true}};
      step.from_place = startup.from;
      step.to_place = startup.to;
    }
  };
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    const DeclaredKernel& kernel = kernels[k];
    copies_of(k, true);
    PlanStep& step = steps.emplace_back(PlanStep{kernel.place, {}});
    if (kernel.place == kHostPlace) {
      step.host_function = &kernel.host;
    } else {
      step.device_function = &kernel.device;
    }
    for (const UsedOperand& use : kernel.uses)
      step.used.push_back(
          {address_of(kernel.place, use.number), operands[use.number].bytes, use.access != Access::kRead});
    copies_of(k, false);
  }
  return steps;
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
  s.layout.bytes.resize(s.execution.places(), 0);  // a device's where it has no kernel
  s.layout.separate_bytes.resize(s.execution.places(), 0);
  const std::uint64_t most_bytes = *std::max_element(s.layout.bytes.begin() + 1, s.layout.bytes.end());
  s.is_bounded = options.device_bytes != 0 && most_bytes > options.device_bytes;
  if (s.is_bounded) {
    if (options.solver != Solver::kExact)
      refuse(
          fmt::format("::build: solver {} takes {} bytes of a device, where device_bytes is {}: only "
                      "solver exact keeps such a bound",
                      to_string(options.solver), most_bytes, options.device_bytes));
    BoundedSchedule bounded = schedule_bounded(s.graph, options.device_bytes);
    s.transfers = std::move(bounded.transfers);
    s.schedule = std::move(bounded.schedule);
    s.layout = std::move(bounded.layout);
  }
  s.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // The old ones first, or both would have to fit.
  s.host_arena = {};
  s.device_arenas.clear();
  s.host_arena =
      s.execution.device_at(1).pinned<std::byte>(s.layout.bytes[0], {"the host's operands of a plan"});
  for (std::uint32_t place = 1; place < s.execution.places(); ++place)
    s.device_arenas.push_back(s.execution.device_at(place).memory<std::byte>(
        s.layout.bytes[place], {"a device's operands of a plan", false}));
  // Where one reaches the other's memory; elsewhere the driver goes through the host's.
  for (const Startup& startup : s.schedule.startups) {
    if (startup.from != kHostPlace && startup.to != kHostPlace)
      (void)s.execution.device_at(startup.to).reach(s.execution.device_at(startup.from));
  }
  s.execution.set_steps(s.make_steps());
  s.cannot_run = nullptr;
}

void* Plan::host_address(std::uint32_t number, std::uint64_t bytes) const {
  state_->require_built("host");
  check_own(number, bytes, "::host:");
  void* const at = state_->address_of(0, number);
  if (at == nullptr)
    refuse(fmt::format("::host: {} is on the device alone: it is neither there on entry nor wanted on exit",
                       state_->operands[number].name));
  return at;
}

void Plan::run() { run(state_->execution.first_stream()); }
void Plan::run(const Stream& stream) {
  state_->require_steps("run");
  state_->execution.run(stream, state_->options.waits_for_copies);
}
void Plan::replay() { replay(state_->execution.first_stream()); }
void Plan::replay(const Stream& stream) {
  state_->require_steps("replay");
  if (state_->options.waits_for_copies) refuse("::replay: this plan waits for each copy: run() does");
  state_->execution.replay(stream);
}
void Plan::add_to(const Stream& stream) {
  state_->require_steps("add_to");
  state_->execution.add_to(stream);
}
void Plan::check() { state_->execution.throw_error(); }

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
  for (const PlanStep& step : state_->execution.steps()) {
    if (!step.is_copy()) continue;
    const bool is_upload = step.from_place == kHostPlace, is_download = step.to_place == kHostPlace;
    const double rate = is_upload     ? cost.up_bytes_per_s
                        : is_download ? cost.down_bytes_per_s
                                      : cost.across_bytes_per_s;
    seconds += is_upload ? cost.up_startup_s : is_download ? cost.down_startup_s : cost.across_startup_s;
    if (rate > 0) seconds += static_cast<double>(step.bytes()) / rate;
  }
  return seconds;
}

std::string Plan::report() const {
  state_->require_built("report");
  const State& s = *state_;
  std::string names;
  for (const Device& device : s.execution.devices()) names += (names.empty() ? "" : " and ") + device.name();
  std::string text = fmt::format("plan of {} kernels and {} operands on {}, solver {}\n", s.graph.kernels(),
                                 s.graph.operands(), names, solver());
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
