// Plans on a device beside the same program on the host. The same body on the CPU and on a GPU.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/error.hpp>
#include <esker/pipeline.hpp>
#include <esker/tasks.hpp>
#include <esker/transfer.hpp>

#include "../../device/gtest.hpp"
#include "../refusal.hpp"

#if defined(ESKER_DEVICE_COMPILER)
#include <esker/device/gpu/api.hpp>
#endif

namespace esker::transfer {
namespace {

#if defined(ESKER_DEVICE_COMPILER)
const char* backend() { return gpu::kBackend; }
#else
const char* backend() { return "cpu"; }
#endif

using Words = std::span<const std::uint32_t>;
constexpr std::size_t kWords = 1000;

// Kernels as classes: nvcc takes no lambda in a test's body.
struct Add {
  ESKER_HD void operator()(Lane lane, const std::uint32_t* a, const std::uint32_t* b,
                           std::uint32_t* c) const {
    const std::uint64_t i = lane.global_id();
    c[i] = a[i] + 3 * b[i];
  }
};
struct TwoOf {
  std::uint32_t factor;
  ESKER_HD void operator()(Lane lane, const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* c,
                           std::uint32_t* d) const {
    const std::uint64_t i = lane.global_id();
    c[i] = a[i] + factor * b[i];
    d[i] = b[i] ^ factor * a[i];
  }
};
struct Grow {
  ESKER_HD void operator()(Lane lane, std::uint32_t* x, const std::uint32_t* by) const {
    x[lane.global_id()] = 3 * x[lane.global_id()] + by[lane.global_id()];
  }
};
void two_of(std::uint32_t factor, Words a, Words b, std::span<std::uint32_t> c, std::span<std::uint32_t> d) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    c[i] = a[i] + factor * b[i];
    d[i] = b[i] ^ factor * a[i];
  }
}

/// Figure 2 as a plan and as plain arrays.
struct Figure2 {
  using Operand = PlanOperand<std::uint32_t>;
  Plan plan;
  Operand A, B, C, D, E, F, G, H, I, J, K, L, M;

  explicit Figure2(const Device& device) : plan{device} {
    // J and K are results also where one more kernel reads them.
    for (Operand* operand : all()) {
      const Life life = operand == &J || operand == &K ? Life::kResult : Life::kByUses;
      *operand = plan.operand<std::uint32_t>(kWords, {{}, life});
    }
    plan.on_device(reads(B, A), writes(D, E), TwoOf{3}, "Kernel0");
    plan.on_host(
        reads(E, B), writes(F, G),
        [](Words a, Words b, std::span<std::uint32_t> c, std::span<std::uint32_t> d) {
          two_of(5, a, b, c, d);
        },
        "Kernel1");
    plan.on_device(reads(C, F), writes(H, I), TwoOf{7}, "Kernel2");
    plan.on_device(reads(F, H), writes(J, K), TwoOf{11}, "Kernel3");
    plan.on_device(reads(H, E), writes(L, M), TwoOf{13}, "Kernel4");
  }
  std::vector<Operand*> all() { return {&A, &B, &C, &D, &E, &F, &G, &H, &I, &J, &K, &L, &M}; }
  void fill(std::uint32_t seed) {
    for (const Operand& operand : {A, B, C}) {
      for (std::uint32_t& word : plan.host(operand)) word = seed = seed * 1664525 + 1013904223;
    }
  }
  void expect_right() {
    const auto copy_of = [&](const Operand& operand) {
      const auto words = plan.host(operand);
      return std::vector<std::uint32_t>(words.begin(), words.end());
    };
    std::vector<std::uint32_t> a = copy_of(A), b = copy_of(B), c = copy_of(C);
    std::vector<std::uint32_t> d(kWords), e(d), f(d), g(d), h(d), i(d), j(d), k(d), l(d), m(d);
    two_of(3, b, a, d, e);
    two_of(5, e, b, f, g);
    two_of(7, c, f, h, i);
    two_of(11, f, h, j, k);
    two_of(13, h, e, l, m);
    EXPECT_EQ(copy_of(D), d);
    EXPECT_EQ(copy_of(G), g);
    EXPECT_EQ(copy_of(I), i);
    EXPECT_EQ(copy_of(J), j);
    EXPECT_EQ(copy_of(K), k);
    EXPECT_EQ(copy_of(L), l);
    EXPECT_EQ(copy_of(M), m);
  }
};

TEST(Plan, Figure2RunsRightWithEachSolver) {
  const Device device = Device::open(backend());
  Figure2 program(device);
  std::uint32_t seed = 1;
  for (const Solver solver : {Solver::kExact, Solver::kGreedy, Solver::kTight, Solver::kUnfused}) {
    program.plan.build({.solver = solver});
    EXPECT_EQ(program.plan.schedule().saved(), solver == Solver::kUnfused ? 0u : 7u);
    EXPECT_STREQ(program.plan.solver(), to_string(solver));
    for (int round = 0; round < 3; ++round) {
      program.fill(++seed);
      program.plan.run();
      program.expect_right();
      program.fill(++seed);
      program.plan.replay();
      program.expect_right();
    }
  }
  program.plan.build({.solver = Solver::kUnfused, .waits_for_copies = true});
  for (int round = 0; round < 3; ++round) {
    program.fill(++seed);
    program.plan.run();
    program.expect_right();
  }
  EXPECT_TRUE(
      contains(refusal([&] { program.plan.replay(); }), "Plan::replay: this plan waits for each copy"));
}

TEST(Plan, AReplayRepeatsWhatItsKernelsHavePutOnAStream) {
  const Device device = Device::open(backend());
  Plan plan(device);
  constexpr std::size_t kCopies = 3;
  std::vector<PlanOperand<std::uint32_t>> b;
  const auto a = plan.operand<std::uint32_t>(kWords), c = plan.operand<std::uint32_t>(kWords),
             d = plan.operand<std::uint32_t>(kWords);
  int calls = 0;
  bool fails = false;
  for (std::size_t i = 0; i < kCopies; ++i) {
    b.push_back(plan.operand<std::uint32_t>(kWords));
    plan.on_device(reads(i == 0 ? a : b[i - 1]), writes(b[i]),
                   [&](const Stream& stream, Words from, std::span<std::uint32_t> to) {
                     ++calls;
                     device.copy_async(to.data(), from.data(), from.size_bytes(), stream);
                   });
  }
  plan.on_device(reads(a, b.back()), writes(c), Add{});
  // It waits for the copies, and not for the sum that is behind them.
  plan.on_host(reads(b.back()), writes(d), [&fails](Words from, std::span<std::uint32_t> to) {
    if (fails) throw std::out_of_range("too far");
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] + 1;
  });
  plan.on_host(updates(c), reads(d), [](std::span<std::uint32_t> all, Words by) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += by[i];
  });
  plan.build();
  for (std::uint32_t round = 0; round < 4; ++round) {
    fails = round == 2;
    for (std::uint32_t i = 0; i < kWords; ++i) plan.host(a)[i] = i + round;
    if (fails) {
      EXPECT_THROW(plan.replay(), std::out_of_range);
      continue;
    }
    plan.replay();
    for (std::uint32_t i = 0; i < kWords; ++i) {
      ASSERT_EQ(plan.host(d)[i], i + round + 1);
      ASSERT_EQ(plan.host(c)[i], 4 * (i + round) + i + round + 1);
    }
  }
  // Where there are graphs, each was called for one.
  const bool has_graphs = device.backend() == Backend::kCuda || device.backend() == Backend::kSimulated;
  EXPECT_EQ(calls, static_cast<int>(has_graphs ? kCopies : 4 * kCopies));
}

TEST(Plan, RunsInAStreamsOrderAndAsAGraph) {
  const Device device = Device::open(backend());
  const Stream stream = device.stream();
  Figure2 program(device);
  program.plan.build();
  program.fill(5);
  program.plan.add_to(stream);
  stream.synchronize();
  program.plan.check();
  program.expect_right();
  const DeviceGraph graph = device.graph(stream, [&](const Stream& to) { program.plan.add_to(to); });
  for (std::uint32_t round = 0; round < 5; ++round) {
    program.fill(100 + round);
    graph.launch(stream);
    stream.synchronize();
    program.plan.check();
    program.expect_right();
  }
}

TEST(Plan, WhatChangesInPlaceKeepsItsMemory) {
  const Device device = Device::open(backend());
  Plan plan(device);
  const auto x = plan.operand<std::uint32_t>(kWords, {.name = "x"});
  const auto by = plan.operand<std::uint32_t>(kWords, {.name = "by"});
  plan.on_device(updates(x), reads(by), Grow{});
  plan.on_host(updates(x), [](std::span<std::uint32_t> all) {
    for (std::uint32_t& word : all) word += 1;
  });
  plan.on_device(updates(x), reads(by), Grow{});
  plan.build();
  EXPECT_EQ(plan.schedule().startups.size(), 4u);  // x and by up, x down, x up, x down
  std::vector<std::uint32_t> expected(kWords);
  for (std::uint32_t i = 0; i < kWords; ++i) {
    plan.host(x)[i] = expected[i] = i;
    plan.host(by)[i] = 7 * i;
  }
  for (int round = 0; round < 4; ++round) {
    plan.run();
    for (std::uint32_t i = 0; i < kWords; ++i) expected[i] = 3 * (3 * expected[i] + 7 * i + 1) + 7 * i;
    const auto words = plan.host(x);
    EXPECT_EQ(std::vector<std::uint32_t>(words.begin(), words.end()), expected) << "round " << round;
  }
}

TEST(Plan, OperandsAtAddressesStayThere) {
  const Device device = Device::open(backend());
  const auto memory = device.pinned<std::uint32_t>(2 * kWords);
  Plan plan(device);
  const auto a = plan.operand_at(memory.span().first(kWords)),
             b = plan.operand_at(memory.span().last(kWords));
  const auto c = plan.operand<std::uint32_t>(kWords);
  plan.on_device(reads(a, b), writes(c), Add{});
  plan.build();
  EXPECT_EQ(plan.schedule().startups.size(), 2u);
  std::iota(memory.span().begin(), memory.span().end(), 0u);
  plan.run();
  for (std::uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(plan.host(c)[i], i + 3 * (kWords + i));
}

TEST(Plan, OperandsAtAddressesDoNotOverlap) {
  const Device device = Device::open(backend());
  const auto memory = device.pinned<std::uint32_t>(2 * kWords);
  Plan plan(device);
  const auto all = plan.operand_at(memory.span(), {.name = "all"}),
             half = plan.operand_at(memory.span().first(kWords), {.name = "half"});
  const auto c = plan.operand<std::uint32_t>(kWords);
  plan.on_device(reads(all, half), writes(c), Add{});
  const std::string why = refusal([&] { plan.build(); });
  EXPECT_TRUE(contains(why, "all") && contains(why, "half") && contains(why, "overlap")) << why;
}

TEST(Plan, AnInputThatChangesInPlaceMayBeAResultThatIsReadOnceMore) {
  Plan plan(Device::open(backend()));
  const auto x = plan.operand<std::uint32_t>(8, {.name = "x", .life = Life::kResult});
  const auto sum = plan.operand<std::uint32_t>(1);
  plan.on_host(updates(x), [](std::span<std::uint32_t> words) { words[3] += 1; });
  plan.on_device(reads(x, x), writes(sum), Add{});
  plan.build();
  plan.host(x)[3] = 41;
  plan.host(x)[0] = 5;
  plan.run();
  EXPECT_EQ(plan.host(x)[3], 42u);
  EXPECT_EQ(plan.host(sum)[0], 20u);
}

TEST(Plan, OneThatHasChangedSinceItWasBuiltIsRefused) {
  const Device device = Device::open(backend());
  Figure2 program(device);
  EXPECT_TRUE(contains(refusal([&] { program.plan.run(); }), "Plan::run: it has not been built"));
  program.plan.build();
  const auto more = program.plan.operand<std::uint32_t>(kWords);
  program.plan.on_device(reads(program.J, program.K), writes(more), Add{}, "one more");
  EXPECT_TRUE(contains(refusal([&] { program.plan.run(); }), "since build()"));
  EXPECT_TRUE(contains(refusal([&] { program.plan.add_to(device.stream()); }), "since build()"));
  program.plan.build();
  program.fill(9);
  program.plan.run();
  program.expect_right();
  const auto sums = program.plan.host(more);
  const Words j = program.plan.host(program.J), k = program.plan.host(program.K);
  for (std::size_t i = 0; i < kWords; ++i) ASSERT_EQ(sums[i], j[i] + 3 * k[i]) << i;
}

TEST(Plan, OneWhoseBuildHasFailedSaysSo) {
  Figure2 program(Device::open(backend()));
  const auto failed = [&] { program.plan.build({.device_bytes = 4096}); };
  EXPECT_TRUE(contains(refusal(failed, Error::Kind::kOutOfMemory), "Kernel0"));
  EXPECT_TRUE(contains(refusal([&] { program.plan.run(); }), "the last build() has failed"));
  program.plan.build();
  program.plan.run();
  EXPECT_TRUE(contains(refusal(failed, Error::Kind::kOutOfMemory), "Kernel0"));
  EXPECT_TRUE(contains(refusal([&] { program.plan.run(); }), "the last build() has failed"));
  EXPECT_TRUE(contains(refusal([&] { (void)program.plan.solver(); }), "the last build() has failed"));
}

TEST(Plan, WithoutAKernelOnTheDeviceItTakesNothingOfIt) {
  Plan plan(Device::open(backend()));
  const auto a = plan.operand<std::uint32_t>(8), b = plan.operand<std::uint32_t>(8);
  plan.on_host(reads(a), writes(b), [](Words in, std::span<std::uint32_t> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] + 1;
  });
  plan.build({.device_bytes = 1});
  EXPECT_EQ(plan.layout().bytes[1], 0u);
  EXPECT_EQ(plan.layout().separate_bytes[1], 0u);
  plan.host(a)[3] = 7;
  plan.run();
  EXPECT_EQ(plan.host(b)[3], 8u);
}

TEST(Plan, ErrorsNameWhatIsWrong) {
  const Device device = Device::open(backend());
  Plan plan(device);
  const auto a = plan.operand<std::uint32_t>(8, {.name = "a"}),
             b = plan.operand<std::uint32_t>(8, {.name = "b"});
  const auto c = plan.operand<std::uint32_t>(8, {.name = "c", .life = Life::kInside});
  EXPECT_TRUE(contains(refusal([&] { plan.build(); }), "no kernels"));
  plan.on_device(reads(a, b), writes(c), Add{}, "add");
  plan.on_device(reads(a, b), writes(c), Add{}, "again");
  const std::string two = refusal([&] { plan.build(); });
  EXPECT_TRUE(contains(two, "add") && contains(two, "again") && contains(two, "(c)")) << two;
  Plan other(device);
  EXPECT_TRUE(
      contains(refusal([&] { other.on_device(reads(a, b), writes(c), Add{}, "add"); }), "another plan"));
  EXPECT_TRUE(contains(refusal([&] { (void)other.operand<int>(0); }), "no elements"));
  for (const std::uint64_t n : {(std::uint64_t{1} << 61) + 4, ~std::uint64_t{0}})
    EXPECT_TRUE(contains(refusal([&] { (void)other.operand<double>(n); }), "elements of 8 bytes"));
  Plan larger(device);
  const auto large = larger.operand<std::uint32_t>(1 << 20);
  EXPECT_TRUE(contains(refusal([&] { plan.on_device(reads(a, b), writes(large), Add{}, "add"); }),
                       "uses operand 0 of another plan, of 4194304 bytes; this one's has 32"));
  const auto inside = other.operand<std::uint32_t>(8, {.name = "inside", .life = Life::kInside});
  const auto in = other.operand<std::uint32_t>(8), out = other.operand<std::uint32_t>(8);
  other.on_device(reads(in, inside), writes(out), Add{}, "early");
  const std::string early = refusal([&] { other.build(); });
  EXPECT_TRUE(contains(early, "early") && contains(early, "inside")) << early;
  Plan twice(device);
  const auto x = twice.operand<std::uint32_t>(8, {.name = "x"});
  twice.on_host(
      updates(x, x), [](std::span<std::uint32_t>, std::span<std::uint32_t>) {}, "both");
  EXPECT_TRUE(contains(refusal([&] { twice.build(); }), "kernel both updates x twice"));
  Plan chain(device);
  const auto first = chain.operand<std::uint32_t>(8), last = chain.operand<std::uint32_t>(8);
  const auto between = chain.operand<std::uint32_t>(8, {.name = "between"});
  chain.on_device(reads(first, first), writes(between), Add{});
  chain.on_device(reads(between, between), writes(last), Add{});
  chain.build();
  EXPECT_TRUE(
      contains(refusal([&] { (void)chain.host(between); }), "Plan::host: between is on the device alone"));
  EXPECT_TRUE(contains(refusal([&] {
                         (void)chain.host(PlanOperand<std::uint32_t>{9, 1});
                       }),
                       "operand 9 of another plan"));
}

TEST(Plan, InLessMemoryItRunsRightWithMoreTransfers) {
  const Device device = Device::open(backend());
  Figure2 program(device);
  program.plan.build();
  const std::uint64_t most = program.plan.layout().bytes[1];
  for (const std::uint64_t limit : {most - 4096, std::uint64_t{6 * 4096}, std::uint64_t{5 * 4096}}) {
    program.plan.build({.device_bytes = limit});
    EXPECT_LE(program.plan.layout().bytes[1], limit);
    EXPECT_STREQ(program.plan.solver(), "bounded");
    EXPECT_TRUE(contains(program.plan.report(), "solver bounded"));
    EXPECT_GE(program.plan.schedule().startups.size(), program.plan.schedule().lower_bound);
    for (std::uint32_t round = 0; round < 3; ++round) {
      program.fill(round);
      program.plan.run();
      program.expect_right();
    }
  }
  const std::string error =
      refusal([&] { program.plan.build({.device_bytes = 4096}); }, Error::Kind::kOutOfMemory);
  EXPECT_TRUE(contains(error, "Kernel0") && contains(error, "4096")) << error;
}

TEST(Plan, ABoundIsForTheExactSolver) {
  Figure2 program(Device::open(backend()));
  for (const Solver solver : {Solver::kGreedy, Solver::kTight, Solver::kUnfused}) {
    program.plan.build({.solver = solver});
    const std::uint64_t most = program.plan.layout().bytes[1];
    program.plan.build({.solver = solver, .device_bytes = most});
    EXPECT_STREQ(program.plan.solver(), to_string(solver));
    const std::string error =
        refusal([&] { program.plan.build({.solver = solver, .device_bytes = most - 1}); });
    EXPECT_TRUE(contains(error, std::string("solver ") + to_string(solver)) &&
                contains(error, "device_bytes is " + std::to_string(most - 1)))
        << error;
  }
}

TEST(Plan, TheTimeOfABoundedPlanIsThatOfItsSolver) {
  Figure2 program(Device::open(backend()));
  program.plan.build();
  const double exact = program.plan.plan_seconds();
  EXPECT_GT(exact, 0);
  const std::uint64_t limit = 6 * 4096;
  double least = 1e9;  // of what build() times
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    (void)schedule_bounded(program.plan.graph(), limit);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  program.plan.build({.device_bytes = limit});
  EXPECT_GT(program.plan.plan_seconds(), least / 2);
}

TEST(Plan, WhatAHostFunctionThrowsIsThrownByTheRun) {
  const Device device = Device::open(backend());
  const Stream stream = device.stream();
  Plan plan(device);
  const auto a = plan.operand<std::uint32_t>(kWords), b = plan.operand<std::uint32_t>(kWords),
             c = plan.operand<std::uint32_t>(kWords);
  int later = 0;
  plan.on_device(reads(a, b), writes(c), Add{});
  plan.on_host(reads(c), [](Words) { throw std::out_of_range("too far"); });
  plan.on_host(reads(c), [&later](Words) { ++later; });
  plan.build();
  EXPECT_THROW(plan.run(stream), std::out_of_range);
  EXPECT_THROW(plan.replay(stream), std::out_of_range);
  plan.add_to(stream);
  stream.synchronize();
  EXPECT_THROW(plan.check(), std::out_of_range);
  plan.check();
  EXPECT_EQ(later, 0);
}

TEST(Plan, TheReportHasTimesStartupsAndMemory) {
  Figure2 program(Device::open(backend()));
  program.plan.build({.cost = {1e-6, 1e9, 2e-6, 1e9}});
  const std::string report = program.plan.report();
  for (const char* part :
       {"  0: ABC..........     0: ...DE........", "11 transfers in 4 startups: 7 saved; at least 4",
        "Kernel3", "alive at a time", "by the cost model"})
    EXPECT_TRUE(contains(report, part)) << report;
  const double bytes = 11 * kWords * sizeof(std::uint32_t);
  EXPECT_GE(program.plan.predicted_seconds(), 6e-6 + bytes / 1e9);
  EXPECT_LE(program.plan.predicted_seconds(), 6e-6 + (bytes + 11 * 128) / 1e9);
  EXPECT_TRUE(contains(program.plan.to_dot(), "digraph"));
}

/// Writes 2 a + i and gives how many it has written.
struct Scale {
  static constexpr int kMaxSpawns = 2;
  const std::uint32_t* from;
  std::uint32_t* to;
  std::uint32_t first, last;
  ESKER_HD void operator()(auto& task) const {
    if (last - first <= 8) {
      for (std::uint32_t i = first; i < last; ++i) to[i] = 2 * from[i] + i;
      return task.give(long{last - first});
    }
    const std::uint32_t middle = (first + last) / 2;
    task.spawn(Scale{from, to, first, middle}, Scale{from, to, middle, last})
        .then([](auto& then, long a, long b) { then.give(a + b); });
  }
};

TEST(Plan, AKernelOfItMayBeARunOfTasks) {
  const Device device = Device::open(backend());
  Plan plan(device);
  const auto a = plan.operand<std::uint32_t>(kWords), b = plan.operand<std::uint32_t>(kWords),
             c = plan.operand<std::uint32_t>(kWords), d = plan.operand<std::uint32_t>(kWords);
  tasks::ForkJoin<Scale> scale(device);
  long written = 0;
  plan.on_device(reads(a, b), writes(c), Add{});
  plan.on_device(reads(c), writes(d), [&](const Stream& stream, Words from, std::span<std::uint32_t> to) {
    stream.synchronize();  // tasks run on a stream of their own
    written += scale.run(Scale{from.data(), to.data(), 0, static_cast<std::uint32_t>(to.size())});
  });
  plan.build();
  const Stream stream = device.stream();
  for (std::uint32_t run = 1; run <= 3; ++run) {
    std::iota(plan.host(a).begin(), plan.host(a).end(), run);
    std::fill(plan.host(b).begin(), plan.host(b).end(), run);
    plan.run(stream);
    EXPECT_EQ(written, static_cast<long>(run * kWords));
    for (std::uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(plan.host(d)[i], 2 * (run + i + 3 * run) + i);
  }
}

TEST(Plan, RunsInAStageOfAPipeline) {
  const Device device = Device::open(backend());
  Figure2 program(device);
  program.plan.build();
  const Stream stream = device.stream();
  std::uint32_t runs = 0;
  std::uint32_t next = 0;
  pipeline::Pipeline line(device);
  const auto numbers = line.topic<std::uint32_t>({});
  line.run(pipeline::on_host::source("numbers",
                                     [&](auto& stage) {
                                       if (next == 5) return false;
                                       stage.emit(numbers, next++);
                                       return true;
                                     })
               .into(numbers),
           pipeline::on_host::items("plan", [&](auto&, const std::uint32_t& seed) {
             program.fill(seed);
             program.plan.run(stream);
             program.expect_right();
             ++runs;
           }).from(numbers));
  EXPECT_EQ(runs, 5u);
}

}  // namespace
}  // namespace esker::transfer
