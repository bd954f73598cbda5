// Plans that run: transfers, allocations and kernels fused or not (Kessler, Tables 1, 2, 3, 5 and 6).
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "../../apps/plan/program.hpp"
#include "bench.hpp"

namespace esker::bench {

namespace {

using namespace transfer;
using plan_apps::Program;
using plan_apps::Shape;

struct Add {
  ESKER_HD void operator()(Lane lane, const float* a, const float* b, float* c) const {
    c[lane.global_id()] = a[lane.global_id()] + b[lane.global_id()];
  }
};
/// Two additions in one launch: the lanes of one, then those of the other.
struct AddBoth {
  const float *a, *b, *d, *e;
  float *c, *f;
  std::uint64_t n;
  ESKER_HD void operator()(Lane lane) const {
    const std::uint64_t i = lane.global_id();
    if (i < n) {
      c[i] = a[i] + b[i];
    } else {
      f[i - n] = d[i - n] + e[i - n];
    }
  }
};

std::string size_of(std::uint64_t floats) {
  return floats >= 1u << 20 ? fmt::format("{} Mi floats", floats >> 20)
                            : fmt::format("{} Ki floats", floats >> 10);
}

/// Sizes of the paper's tables, as far as the bench goes.
std::vector<std::uint64_t> sizes_of(const TransferBench& bench, const std::vector<std::uint64_t>& kibi) {
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t k : kibi) {
    if (k * 1024 <= bench.most_floats) sizes.push_back(k * 1024);
  }
  return sizes;
}

/// c = a + b, planned by `solver`.
struct Addition {
  Addition(const Device& device, std::uint64_t floats, Solver solver) : plan{device} {
    const auto a = plan.operand<float>(floats), b = plan.operand<float>(floats);
    c = plan.operand<float>(floats);
    plan.on_device(reads(a, b), writes(c), Add{});
    plan.build({.solver = solver});
    for (std::uint64_t i = 0; i < floats; ++i) {
      plan.host(a)[i] = static_cast<float>(i % 1000);
      plan.host(b)[i] = 2;
    }
    plan.run();
    for (std::uint64_t i = 0; i < floats; ++i) {
      if (plan.host(c)[i] != static_cast<float>(i % 1000) + 2) throw std::runtime_error("a wrong sum");
    }
  }
  Plan plan;
  PlanOperand<float> c;
};

/// A program that has been run and verified, with each plan.
std::unique_ptr<Program> made(const Device& device, const Shape& shape, const BuildOptions& options) {
  auto program = std::make_unique<Program>(std::vector{device}, shape);
  program->plan().build(options);
  program->fill();
  program->plan().run();
  if (!program->is_right()) throw std::runtime_error(shape.graph + " gave a wrong result");
  return program;
}

struct NamedShape {
  const char* name;
  Shape shape;
};
std::vector<NamedShape> programs_of(std::uint64_t seed) {
  Shape figure2{.graph = "figure2"}, random{.graph = "random"}, horner{.graph = "horner"};
  Shape linear_cholesky{.graph = "cholesky", .linear = true}, cholesky{.graph = "cholesky"};
  Shape linear_product{.graph = "matmul", .linear = true}, product{.graph = "matmul"}, cg{.graph = "cg"};
  random.seed = seed;
  return {{"random N 5 (Figure 2)", figure2},
          {"random N 24", random},
          {"Horner's rule", horner},
          {"Cholesky, linear work", linear_cholesky},
          {"Cholesky", cholesky},
          {"matrix product, linear work", linear_product},
          {"matrix product", product},
          {"conjugate gradients", cg}};
}

/// Allocates what it is told to, in order, and frees it.
struct Allocations {
  std::vector<std::uint64_t> device, host;
  void make(const Device& on) const {
    std::vector<DeviceArray<std::byte>> on_device;
    std::vector<PinnedArray<std::byte>> on_host;
    for (const std::uint64_t bytes : device)
      on_device.push_back(on.memory<std::byte>(bytes, {"an operand", false}));
    for (const std::uint64_t bytes : host)
      on_host.push_back(on.pinned<std::byte>(bytes, {"an operand", false}));
  }
};
/// Of a plan: each operand by itself, and its arenas.
std::pair<Allocations, Allocations> allocations_of(const Plan& plan) {
  Allocations separate, arenas;
  for (std::uint32_t i = 0; i < plan.graph().operands(); ++i) {
    const std::uint64_t bytes = plan.graph().operand(i).bytes;
    if (plan.layout().offsets[0][i] != Layout::kNowhere) separate.host.push_back(bytes);
    if (plan.layout().offsets[1][i] != Layout::kNowhere) separate.device.push_back(bytes);
  }
  arenas.host.push_back(plan.layout().bytes[0]);
  arenas.device.push_back(plan.layout().bytes[1]);
  return {separate, arenas};
}

/// Both sides run the same plan, which fuses transfers: the paper's table is about allocations.
nlohmann::json print_allocations(const TransferBench& bench, const char* what, std::uint64_t floats,
                                 Plan& plan, const Stream& stream) {
  const auto [separate, arenas] = allocations_of(plan);
  const auto allocate_and_run = [&](const Allocations& allocations) {
    return [&bench, &plan, &stream, made = allocations] {
      made.make(bench.device);
      plan.run(stream);
    };
  };
  return print_turns(bench, fmt::format("{}, {}", what, size_of(floats)),
                     {{"apart", allocate_and_run(separate)}, {"fused", allocate_and_run(arenas)}},
                     std::max(1u, calls_for(bench, floats) / 10));
}

/// The program as one graph that has been launched and verified.
DeviceGraph one_graph(const Device& device, Program& program, const Stream& stream) {
  DeviceGraph graph = device.graph(stream, [&](const Stream& to) { program.plan().add_to(to); });
  program.clear_results();
  graph.launch(stream);
  stream.synchronize();
  program.plan().check();
  if (!program.is_right()) throw std::runtime_error("a program in a graph gave a wrong result");
  return graph;
}

/// Operands that cross in one copy, by a plan whose kernel has no work: what is left is that copy.
class Group {
 public:
  Group(const Device& device, std::uint64_t operands, std::uint64_t floats, bool is_upload)
      : device_{device}, plan_{device}, is_upload_{is_upload} {
    for (std::uint64_t i = 0; i < operands; ++i)
      operands_.push_back(plan_.operand<float>(floats, {{}, is_upload ? Life::kInput : Life::kResult}));
    const std::vector<PlanOperand<float>> none;
    plan_.on_device(is_upload ? operands_ : none, is_upload ? none : operands_,
                    [this](const Stream&, auto in, auto out) {
                      if (!at_.empty()) return;
                      // The plan's memory, which stays until it is built again.
                      for (const auto& span : in) at_.push_back(const_cast<float*>(span.data()));
                      for (const auto& span : out) at_.push_back(span.data());
                    });
    plan_.build();
    if (plan_.schedule().startups.size() != 1) throw std::runtime_error("the operands are not one group");
    plan_.run();
  }
  Group(const Group&) = delete;
  Plan& plan() { return plan_; }

  /// Whether `cross` moves another value for each element.
  template <class Cross>
  void verify(const Cross& cross, const Stream& stream) {
    const std::uint64_t floats = operands_.front().size;
    const auto staging = device_.pinned<float>(floats);
    ++round_;
    const auto value = [&](std::size_t operand, std::uint64_t i) {
      return static_cast<float>((round_ * 31 + operand * 7 + i) % 8191);
    };
    const auto copy = [&](float* to, const float* from) {
      device_.copy_async(to, from, floats * sizeof(float), stream);
      stream.synchronize();
    };
    for (std::size_t operand = 0; operand < operands_.size(); ++operand) {
      const std::span<float> host = plan_.host(operands_[operand]);
      for (std::uint64_t i = 0; i < floats; ++i) {
        host[i] = is_upload_ ? value(operand, i) : -1;
        staging.data()[i] = is_upload_ ? -1 : value(operand, i);
      }
      copy(at_[operand], staging.data());
    }
    cross();
    plan_.check();
    for (std::size_t operand = 0; operand < operands_.size(); ++operand) {
      if (is_upload_) copy(staging.data(), at_[operand]);
      const float* const is = is_upload_ ? staging.data() : plan_.host(operands_[operand]).data();
      for (std::uint64_t i = 0; i < floats; ++i) {
        if (is[i] != value(operand, i)) throw std::runtime_error("a group did not cross");
      }
    }
  }

 private:
  Device device_;
  Plan plan_;
  const bool is_upload_;
  std::vector<PlanOperand<float>> operands_;
  std::vector<float*> at_;  // on the device
  std::uint64_t round_ = 0;
};

}  // namespace

nlohmann::json take_fusion(const TransferBench& bench) {
  nlohmann::json results;
  const Stream stream = bench.device.stream();
  for (const std::uint64_t floats : sizes_of(bench, {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096})) {
    Addition apart(bench.device, floats, Solver::kUnfused), fused(bench.device, floats, Solver::kExact);
    results[size_of(floats)] =
        print_turns(bench, size_of(floats),
                    {{"apart", [&] { apart.plan.run(stream); }}, {"fused", [&] { fused.plan.run(stream); }}},
                    calls_for(bench, floats));
  }
  return results;
}

nlohmann::json take_allocation(const TransferBench& bench) {
  nlohmann::json results;
  const Stream stream = bench.device.stream();
  for (const std::uint64_t floats : sizes_of(bench, {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096})) {
    Addition addition(bench.device, floats, Solver::kExact);
    results["addition"][size_of(floats)] =
        print_allocations(bench, "addition", floats, addition.plan, stream);
  }
  for (const NamedShape& named : programs_of(bench.seed)) {
    if (named.shape.graph != "figure2" && named.shape.graph != "horner" && named.shape.graph != "cg")
      continue;
    for (const std::uint64_t floats : sizes_of(bench, {4, 16, 64, 256, 1024, 4096})) {
      Shape shape = named.shape;
      shape.floats = floats;
      const auto program = made(bench.device, shape, {});
      results[named.name][size_of(floats)] =
          print_allocations(bench, named.name, floats, program->plan(), stream);
    }
  }
  return results;
}

nlohmann::json take_kernel_fusion(const TransferBench& bench) {
  nlohmann::json results;
  const Stream stream = bench.device.stream();
  for (const std::uint64_t floats : sizes_of(bench, {1, 4, 16, 64, 256, 1024, 4096})) {
    Plan two(bench.device), one(bench.device);
    for (Plan* const plan : {&two, &one}) {
      const auto a = plan->operand<float>(floats), b = plan->operand<float>(floats),
                 d = plan->operand<float>(floats), e = plan->operand<float>(floats),
                 c = plan->operand<float>(floats), f = plan->operand<float>(floats);
      if (plan == &two) {
        plan->on_device(reads(a, b), writes(c), Add{});
        plan->on_device(reads(d, e), writes(f), Add{});
      } else {
        plan->on_device(std::vector{a, b, d, e}, std::vector{c, f},
                        [device = bench.device, floats](const Stream& to, auto in, auto out) {
                          device.launch(2 * floats,
                                        AddBoth{in[0].data(), in[1].data(), in[2].data(), in[3].data(),
                                                out[0].data(), out[1].data(), floats},
                                        to);
                        });
      }
      plan->build();
      for (std::uint64_t i = 0; i < floats; ++i) {
        plan->host(a)[i] = plan->host(d)[i] = static_cast<float>(i % 1000);
        plan->host(b)[i] = 2;
        plan->host(e)[i] = 3;
      }
      plan->run();
      for (std::uint64_t i = 0; i < floats; ++i) {
        if (plan->host(c)[i] != static_cast<float>(i % 1000) + 2 ||
            plan->host(f)[i] != static_cast<float>(i % 1000) + 3)
          throw std::runtime_error("a wrong sum");
      }
    }
    results[size_of(floats)] =
        print_turns(bench, size_of(floats),
                    {{"two kernels", [&] { two.run(stream); }}, {"one", [&] { one.run(stream); }}},
                    calls_for(bench, floats));
  }
  return results;
}

nlohmann::json take_programs(const TransferBench& bench) {
  nlohmann::json results;
  const Stream stream = bench.device.stream();
  for (const NamedShape& named : programs_of(bench.seed)) {
    const bool is_cubic = named.shape.graph == "cholesky" || named.shape.graph == "matmul";
    for (const std::uint64_t floats : sizes_of(bench, {4, 16, 64, 256, 1024, 4096})) {
      if (is_cubic && !named.shape.linear && floats > (bench.is_on_gpu() ? 1048576u : 16384u)) continue;
      Shape shape = named.shape;
      shape.floats = floats;
      const auto waiting = made(bench.device, shape, {.solver = Solver::kUnfused, .waits_for_copies = true});
      const auto unfused = made(bench.device, shape, {.solver = Solver::kUnfused});
      const auto greedy = made(bench.device, shape, {.solver = Solver::kGreedy});
      const auto fused = made(bench.device, shape, {});
      const DeviceGraph graph = one_graph(bench.device, *fused, stream);
      for (Program* const program : {unfused.get(), fused.get()}) {
        program->clear_results();
        program->plan().replay(stream);
        if (!program->is_right()) throw std::runtime_error("a replayed program gave a wrong result");
      }
      // The paper's baseline waits for each copy, as cudaMemcpy does.
      nlohmann::json result =
          print_turns(bench, fmt::format("{}, {}", named.name, size_of(floats)),
                      {{"unfused, waiting", [&] { waiting->plan().run(stream); }},
                       {"unfused", [&] { unfused->plan().run(stream); }},
                       {"unfused, replayed", [&] { unfused->plan().replay(stream); }},
                       {"greedy", [&] { greedy->plan().run(stream); }},
                       {"fused, one graph",
                        [&] {
                          graph.launch(stream);
                          stream.synchronize();
                        }},
                       {"fused", [&] { fused->plan().run(stream); }},
                       {"fused, replayed", [&] { fused->plan().replay(stream); }}},
                      is_cubic && !named.shape.linear ? std::max(1u, calls_for(bench, floats) / 10)
                                                      : calls_for(bench, floats));
      result["transfers"] = fused->plan().schedule().transfers;
      result["startups"] = fused->plan().schedule().startups.size();
      result["startups_greedy"] = greedy->plan().schedule().startups.size();
      results[named.name][size_of(floats)] = result;
    }
  }
  return results;
}

nlohmann::json take_replay(const TransferBench& bench) {
  nlohmann::json results;
  const Stream stream = bench.device.stream();
  for (const std::uint64_t operands : {4u, 16u, 64u}) {
    for (const std::uint64_t floats : sizes_of(bench, {1, 4, 16, 64, 256})) {
      for (const bool is_upload : {true, false}) {
        Group group(bench.device, operands, floats, is_upload);
        const DeviceGraph graph =
            bench.device.graph(stream, [&](const Stream& to) { group.plan().add_to(to); });
        const auto replay = [&] {
          graph.launch(stream);
          stream.synchronize();
        };
        const auto run = [&] { group.plan().run(stream); };
        group.verify(replay, stream);
        group.verify(run, stream);
        const std::uint64_t bytes = operands * floats * sizeof(float);
        const auto host = bench.device.pinned<std::byte>(bytes);
        const auto device = bench.device.memory<std::byte>(bytes);
        const std::string what =
            fmt::format("{} x {} to the {}", operands, size_of(floats), is_upload ? "device" : "host");
        results[what] =
            print_turns(bench, what,
                        {{"replayed", replay},
                         {"run", run},
                         {"one copy",
                          [&] {
                            bench.device.copy_async(is_upload ? device.data() : host.data(),
                                                    is_upload ? host.data() : device.data(), bytes, stream);
                            stream.synchronize();
                          }}},
                        calls_for(bench, operands * floats));
      }
    }
  }
  return results;
}

}  // namespace esker::bench
