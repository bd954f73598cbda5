// Plans: a program of kernels on the host and a device whose operands have no address yet, with the copies
// between them in as few startups as there can be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/device/platform.hpp>
#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/plan_uses.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/solve.hpp>

namespace esker::transfer {

/// What a startup and a byte cost, by direction: time of a copy = startup + bytes / rate.
struct CostModel {
  double up_startup_s = 0, up_bytes_per_s = 0;
  double down_startup_s = 0, down_bytes_per_s = 0;
  double across_startup_s = 0, across_bytes_per_s = 0;  // from a device to another one
};

struct BuildOptions {
  Solver solver = Solver::kExact;
  std::uint32_t attempts = 4;  // of the paper's heuristic
  std::uint64_t seed = 1;
  /// Where the plan takes more, operands leave the device and come back (schedule_bounded()). For kExact.
  std::uint64_t device_bytes = 0;  // most that the plan may take of the device; 0: what there is
  bool waits_for_copies = false;   // each one, as the paper's baseline does: to compare with
  CostModel cost = {};             // for the predicted time
};

/// How long an operand lives beside the program. By its uses: what is read before it is written is there on
/// entry, and what is written last and then not read is wanted on exit.
enum class Life { kByUses, kInput, kInside, kResult };

struct OperandOptions {
  std::string name;
  Life life = Life::kByUses;
};

/// What a kernel is called in reports, and which of the plan's devices it runs on: {"name", 1}.
struct KernelOptions {
  KernelOptions() = default;
  KernelOptions(const char* its_name, std::uint32_t on_device = 0) : name{its_name}, device{on_device} {}
  KernelOptions(std::string its_name, std::uint32_t on_device = 0)
      : name{std::move(its_name)}, device{on_device} {}

  std::string name;
  std::uint32_t device = 0;  // its place in the list that the plan was made with
};

/// A program that runs again and again.
///
/// State    Operands and kernels are added; build() plans; then it runs. After a change it must be built
///          again, and refuses to run until then. build() keeps no values.
/// Contract Kernels do what they do in the order in which they are added. One thread at a time, one run at a
/// time. It
///          outlives what it has put on a stream and the graphs that it is part of. The device's memory is
///          the plan's: a kernel keeps no pointer beyond its run.
/// Errors   Error{kTransfer}: the program contradicts itself (OperandGraph says how), or has changed since
///          build(); device_bytes has to be kept by another solver than kExact. Error{kOutOfMemory}: the
///          arenas do not fit.
/// Source   Kessler (2019), sections 3 and 4.
class ESKER_API Plan {
 public:
  explicit Plan(const Device& device);
  /// Over several devices of one back end; a device may be there twice, under two numbers. Each has a stream:
  /// kernels of different devices run side by side, unless one needs what the other has made.
  explicit Plan(std::vector<Device> devices);
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  /// An array of `n` elements that the plan places.
  template <class T>
  PlanOperand<T> operand(std::size_t n, const OperandOptions& options = {}) {
    return {add_operand(n, sizeof(T), 0, options), n};
  }
  /// The same in memory of the host that is there: pinned, or copies wait. It outlives the plan. Two of them
  /// do not overlap.
  template <class T>
  PlanOperand<T> operand_at(std::span<T> host, const OperandOptions& options = {}) {
    return {add_operand(host.size(), sizeof(T), reinterpret_cast<std::uintptr_t>(host.data()), options),
            host.size()};
  }

  /// A kernel on the device: a function object that lanes call, with ESKER_HD, once for each element of the
  /// first operand that it writes. It takes a Lane and a pointer to each operand, to const if it only reads
  /// it:
  ///
  ///   plan.on_device(reads(a, b), writes(c), Add{});   // (Lane, const float*, const float*, float*)
  ///   plan.on_device(updates(x), reads(p), grow);      // (Lane, float*, const float*)
  ///
  /// Or a function of the host that takes a const Stream& and a span of each operand, and puts work there;
  /// the kernel's device is the thread's current one.
  template <class... A, class Kernel, class Pass = esker::detail::Pass>
  void on_device(const detail::Uses<A...>& uses, Kernel kernel, const KernelOptions& options = {});
  template <class... A, class... B, class Kernel, class Pass = esker::detail::Pass>
  void on_device(const detail::Uses<A...>& a, const detail::Uses<B...>& b, Kernel kernel,
                 const KernelOptions& options = {}) {
    on_device(detail::Uses<A..., B...>{std::tuple_cat(a.all, b.all)}, std::move(kernel), options);
  }
  template <class... A, class... B, class... C, class Kernel, class Pass = esker::detail::Pass>
  void on_device(const detail::Uses<A...>& a, const detail::Uses<B...>& b, const detail::Uses<C...>& c,
                 Kernel kernel, const KernelOptions& options = {}) {
    on_device(detail::Uses<A..., B..., C...>{std::tuple_cat(a.all, b.all, c.all)}, std::move(kernel),
              options);
  }
  /// A function on the host, which takes a span of each operand.
  template <class... A, class Function>
  void on_host(const detail::Uses<A...>& uses, Function function, const std::string& name = {});
  template <class... A, class... B, class Function>
  void on_host(const detail::Uses<A...>& a, const detail::Uses<B...>& b, Function function,
               const std::string& name = {}) {
    on_host(detail::Uses<A..., B...>{std::tuple_cat(a.all, b.all)}, std::move(function), name);
  }
  template <class... A, class... B, class... C, class Function>
  void on_host(const detail::Uses<A...>& a, const detail::Uses<B...>& b, const detail::Uses<C...>& c,
               Function function, const std::string& name = {}) {
    on_host(detail::Uses<A..., B..., C...>{std::tuple_cat(a.all, b.all, c.all)}, std::move(function), name);
  }

  /// The same for programs that are made of data. `function` takes spans of the operands that it reads, then
  /// of those that it writes: std::span<const std::span<const T>>, std::span<const std::span<T>>; on the
  /// device it takes the Stream first.
  template <class T, class Function>
  void on_device(const std::vector<PlanOperand<T>>& reads, const std::vector<PlanOperand<T>>& writes,
                 Function function, const KernelOptions& options = {}) {
    add_device_kernel(
        list(reads, writes),
        [function = std::move(function), reads, writes](const Device& device, const Stream& stream,
                                                        void* const* at) mutable {
          device.as_current([&] {
            function(stream, std::span(spans_of<const T>(reads, at)),
                     std::span(spans_of<T>(writes, at + reads.size())));
          });
        },
        options);
  }
  template <class T, class Function>
  void on_host(const std::vector<PlanOperand<T>>& reads, const std::vector<PlanOperand<T>>& writes,
               Function function, const std::string& name = {}) {
    add_host_kernel(
        list(reads, writes),
        [function = std::move(function), reads, writes](void* const* at) mutable {
          function(std::span(spans_of<const T>(reads, at)),
                   std::span(spans_of<T>(writes, at + reads.size())));
        },
        name);
  }

  /// Chooses the order of operands and the times of copies, and allocates both sides' memory. What an earlier
  /// build() has put into graphs is void, as its memory is freed.
  void build(const BuildOptions& options = {});

  /// The host's memory of an operand: set what is there on entry before a run, read results after it.
  /// Error{kTransfer}: it is on the device alone.
  template <class T>
  std::span<T> host(const PlanOperand<T>& operand) const {
    return {static_cast<T*>(host_address(operand.number, operand.size * sizeof(T))), operand.size};
  }

  /// Runs the program to its end; the stream is the first device's. Functions of the host run on the calling
  /// thread, which waits for a stream only before those that touch what it moves.
  void run(const Stream& stream);
  void run();
  /// The same by graphs (Device::graph()), from one function of the host to the next: a launch in place of
  /// many. The first replay after build() puts them together, with what kernels that take a Stream put there;
  /// these are not called again. With HIP and on the CPU it is run().
  /// Error{kTransfer}: a plan that waits for each copy. Error{kDevice}: a kernel does what no graph can have.
  void replay(const Stream& stream);
  void replay();
  /// Puts the program on a stream of the first device, or into the graph that captures it (Device::graph()).
  /// Functions of the host run in the stream's order, on whatever thread. What one of them throws ends the
  /// run for those after it; the next call of check(), run(), replay() or add_to() throws it.
  void add_to(const Stream& stream);
  /// After the stream has been waited for: throws what a function of the host has thrown.
  void check();

  /// Of the last build().
  const OperandGraph& graph() const;
  const Schedule& schedule() const;
  const Layout& layout() const;
  /// "exact", "greedy", "tight", "unfused"; "bounded" where schedule_bounded() has planned it.
  const char* solver() const;
  double plan_seconds() const;       // that transfers, schedule and layout took
  double predicted_seconds() const;  // of all copies, by the cost model; 0 without one
  /// Times by operands, the program with its copies, startups, the bound, memory, predicted time.
  std::string report() const;
  /// A picture for Graphviz.
  std::string to_dot() const;

 private:
  struct State;
  struct UsedOperand {
    std::uint32_t number;
    std::uint64_t bytes;
    Access access;
  };

  std::uint32_t add_operand(std::uint64_t n, std::uint64_t bytes_of_each, std::uint64_t address,
                            const OperandOptions& options);
  void add_device_kernel(std::vector<UsedOperand> uses, detail::DeviceFunction function,
                         const KernelOptions& options);
  void add_host_kernel(std::vector<UsedOperand> uses, detail::HostFunction function, const std::string& name);
  void add_kernel(std::vector<UsedOperand> uses, std::uint32_t place, detail::DeviceFunction device,
                  detail::HostFunction host, const std::string& name);
  void check_own(std::uint32_t number, std::uint64_t bytes, const std::string& who) const;
  void* host_address(std::uint32_t number, std::uint64_t bytes) const;
  template <class T>
  static std::vector<UsedOperand> list(const std::vector<PlanOperand<T>>& reads,
                                       const std::vector<PlanOperand<T>>& writes) {
    std::vector<UsedOperand> uses;
    for (const PlanOperand<T>& operand : reads)
      uses.push_back({operand.number, operand.size * sizeof(T), Access::kRead});
    for (const PlanOperand<T>& operand : writes)
      uses.push_back({operand.number, operand.size * sizeof(T), Access::kWrite});
    return uses;
  }
  template <class Element, class T>
  static const std::vector<std::span<Element>> spans_of(const std::vector<PlanOperand<T>>& operands,
                                                        void* const* at) {
    std::vector<std::span<Element>> spans;
    for (std::size_t i = 0; i < operands.size(); ++i)
      spans.emplace_back(static_cast<Element*>(at[i]), operands[i].size);
    return spans;
  }
  template <class... Use>
  static std::vector<UsedOperand> list(const detail::Uses<Use...>& uses) {
    return std::apply(
        [](const auto&... use) {
          return std::vector<UsedOperand>{
              {use.number, use.bytes(), std::remove_cvref_t<decltype(use)>::kAccess}...};
        },
        uses.all);
  }

  std::unique_ptr<State> state_;
};

template <class... A, class Kernel, class Pass>
void Plan::on_device(const detail::Uses<A...>& uses, Kernel kernel, const KernelOptions& options) {
  static_assert(
      detail::kIsLaneKernel<Kernel, A...> || detail::kIsOnStream<Kernel, A...>,
      "a kernel takes a Lane and a pointer to each operand, or a const Stream& and a span of each: const "
      "of what it reads");
  if constexpr (detail::kIsLaneKernel<Kernel, A...>) {
    add_device_kernel(
        list(uses),
        [kernel = std::move(kernel), lanes = detail::lanes_of(uses)](const Device& device,
                                                                     const Stream& stream, void* const* at) {
          using Pointers = detail::Pointers<typename A::Element...>;
          using Bound = detail::BoundKernel<Kernel, typename A::Element...>;
          const Bound bound{kernel, detail::pointers_from(at, static_cast<Pointers*>(nullptr))};
          device.launch<Bound, Pass>(lanes, bound, stream);
        },
        options);
  } else {
    add_device_kernel(
        list(uses),
        [kernel = std::move(kernel), uses](const Device& device, const Stream& stream,
                                           void* const* at) mutable {
          device.as_current(
              [&] { detail::call_with_spans(kernel, uses, at, std::index_sequence_for<A...>(), stream); });
        },
        options);
  }
}

template <class... A, class Function>
void Plan::on_host(const detail::Uses<A...>& uses, Function function, const std::string& name) {
  static_assert(detail::kIsOnHost<Function, A...>,
                "a function of the host takes a span of each operand: const of what it reads");
  add_host_kernel(
      list(uses),
      [function = std::move(function), uses](void* const* at) mutable {
        detail::call_with_spans(function, uses, at, std::index_sequence_for<A...>());
      },
      name);
}

}  // namespace esker::transfer
