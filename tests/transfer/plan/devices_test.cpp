// Plans over several devices beside the same program on the host: the CPU several times, the simulated GPU's
// devices, or all GPUs of the machine, a single one under two numbers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <esker/device.hpp>
#include <esker/device/atomic.hpp>
#include <esker/error.hpp>
#include <esker/transfer.hpp>

#include "../../device/gtest.hpp"
#include "../../runtime/seed.hpp"
#include "../refusal.hpp"

namespace esker::transfer {
namespace {

using esker::testing::mix;
using esker::testing::seed;
using Operand = PlanOperand<std::uint32_t>;
using Words = std::span<const std::uint32_t>;

constexpr bool kIsSimulated =
#if defined(ESKER_TEST_SIMULATED)
    true;
#else
    false;
#endif

std::vector<Device> devices(std::size_t n) {
  std::vector<Device> all = open_all_devices("auto", n);
  while (all.size() < n) all.push_back(Device::open());
  return all;
}

std::uint32_t mixed(std::uint32_t sum, std::uint32_t word) { return (sum ^ word) * 2654435761u + 1; }

/// out = what `ins` operands have, mixed.
struct Mix {
  const std::uint32_t* in[3];
  std::uint32_t* out;
  std::uint32_t ins, first;
  ESKER_HD void operator()(Lane lane) const {
    const std::uint64_t i = lane.global_id();
    std::uint32_t sum = first;
    for (std::uint32_t k = 0; k < ins; ++k) sum = (sum ^ in[k][i]) * 2654435761u + 1;
    out[i] = sum;
  }
};
struct Grow {
  ESKER_HD void operator()(Lane lane, std::uint32_t* x, const std::uint32_t* by) const {
    x[lane.global_id()] = 3 * x[lane.global_id()] + by[lane.global_id()];
  }
};
struct Double {
  ESKER_HD void operator()(Lane lane, const std::uint32_t* from, std::uint32_t* to) const {
    to[lane.global_id()] = 2 * from[lane.global_id()];
  }
};

/// A program of random kernels at random places, which writes new operands and changes some in place.
class RandomProgram {
 public:
  RandomProgram(std::uint64_t number, const std::vector<Device>& on) : devices_{on}, plan_{on} {
    std::mt19937_64 random(mix(number));
    words_ = 1 + random() % 300;
    const std::uint64_t inputs = 1 + random() % 4, kernels = 1 + random() % 12;
    for (std::uint64_t i = 0; i < inputs; ++i) add_operand(Life::kInput);
    for (std::uint32_t k = 0; k < kernels; ++k) {
      const auto place = static_cast<std::uint32_t>(random() % (devices_.size() + 1));
      const auto pick = [&] { return static_cast<std::uint32_t>(random() % operands_.size()); };
      const std::uint32_t a = pick(), b = pick();
      if (random() % 4 == 0 && a != b) {
        add_change(place, a, b);
      } else {
        std::vector<std::uint32_t> reads = {a};
        if (b != a) reads.push_back(b);
        add_mix(place, k, reads, random() % 2 == 0 ? Life::kResult : Life::kByUses);
      }
    }
  }
  Plan& plan() { return plan_; }

  void fill(std::uint32_t first) {
    values_.assign(operands_.size(), std::vector<std::uint32_t>(words_));
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!is_input_[i]) continue;
      for (std::uint32_t& word : values_[i]) word = first = mixed(first, static_cast<std::uint32_t>(i));
      std::copy(values_[i].begin(), values_[i].end(), plan_.host(operands_[i]).begin());
    }
  }
  /// Against the kernels on the host, one after the other.
  void expect_right(const std::string& what) {
    for (const auto& step : on_host_) step();
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!is_wanted(i)) continue;
      const auto words = plan_.host(operands_[i]);
      ASSERT_EQ(std::vector<std::uint32_t>(words.begin(), words.end()), values_[i])
          << what << ", operand " << i;
    }
  }

 private:
  void add_operand(Life life) {
    operands_.push_back(plan_.operand<std::uint32_t>(words_, {{}, life}));
    is_input_.push_back(life == Life::kInput);
  }
  bool is_wanted(std::size_t i) const {
    const OperandGraph& graph = plan_.graph();
    auto newest = static_cast<std::uint32_t>(i);
    while (graph.next_version(newest) != newest) newest = graph.next_version(newest);
    return graph.operand(newest).on_exit;
  }
  void add_mix(std::uint32_t place, std::uint32_t first, const std::vector<std::uint32_t>& reads, Life life) {
    add_operand(life);
    const auto to = static_cast<std::uint32_t>(operands_.size() - 1);
    std::vector<Operand> from;
    for (const std::uint32_t i : reads) from.push_back(operands_[i]);
    if (place == 0) {
      plan_.on_host(from, std::vector{operands_[to]},
                    [first](std::span<const Words> in, std::span<const std::span<std::uint32_t>> out) {
                      for (std::size_t i = 0; i < out[0].size(); ++i) {
                        std::uint32_t sum = first;
                        for (const Words& one : in) sum = mixed(sum, one[i]);
                        out[0][i] = sum;
                      }
                    });
    } else {
      plan_.on_device(from, std::vector{operands_[to]},
                      [device = devices_[place - 1], first](const Stream& stream, std::span<const Words> in,
                                                            std::span<const std::span<std::uint32_t>> out) {
                        Mix kernel{{}, out[0].data(), static_cast<std::uint32_t>(in.size()), first};
                        for (std::size_t i = 0; i < in.size(); ++i) kernel.in[i] = in[i].data();
                        device.launch(out[0].size(), kernel, stream);
                      },
                      {"", place - 1});
    }
    on_host_.push_back([=, this] {
      for (std::size_t i = 0; i < words_; ++i) {
        std::uint32_t sum = first;
        for (const std::uint32_t one : reads) sum = mixed(sum, values_[one][i]);
        values_[to][i] = sum;
      }
    });
  }
  void add_change(std::uint32_t place, std::uint32_t x, std::uint32_t by) {
    if (place == 0) {
      plan_.on_host(updates(operands_[x]), reads(operands_[by]),
                    [](std::span<std::uint32_t> all, Words with) {
                      for (std::size_t i = 0; i < all.size(); ++i) all[i] = 3 * all[i] + with[i];
                    });
    } else {
      plan_.on_device(updates(operands_[x]), reads(operands_[by]), Grow{}, {"", place - 1});
    }
    on_host_.push_back([=, this] {
      for (std::size_t i = 0; i < words_; ++i) values_[x][i] = 3 * values_[x][i] + values_[by][i];
    });
  }

  std::vector<Device> devices_;
  Plan plan_;
  std::size_t words_ = 0;
  std::vector<Operand> operands_;
  std::vector<bool> is_input_;
  std::vector<std::function<void()>> on_host_;
  std::vector<std::vector<std::uint32_t>> values_;
};

TEST(PlanOverDevices, RandomProgramsRunRight) {
  const int rounds = kIsSimulated ? 200 : 400;
  const std::vector<Device> all = devices(4);
  for (int round = 0; round < rounds; ++round) {
    std::mt19937_64 random(mix(seed() + static_cast<std::uint64_t>(round)));
    const std::vector<Device> on(all.begin(), all.begin() + 1 + static_cast<std::ptrdiff_t>(random() % 4));
    RandomProgram program(random(), on);
    Plan& plan = program.plan();
    const bool waits_for_copies = random() % 8 == 0;
    plan.build({.solver = random() % 4 == 0 ? Solver::kUnfused : Solver::kExact,
                .waits_for_copies = waits_for_copies});
    const std::string what = "round " + std::to_string(round) + ", " + std::to_string(on.size()) + " devices";
    const Stream stream = on[0].stream();
    program.fill(1);
    plan.run();
    ASSERT_NO_FATAL_FAILURE(program.expect_right(what + ", run()"));
    program.fill(2);
    plan.add_to(stream);
    stream.synchronize();
    plan.check();
    ASSERT_NO_FATAL_FAILURE(program.expect_right(what + ", add_to()"));
    const DeviceGraph graph = on[0].graph(stream, [&](const Stream& to) { plan.add_to(to); });
    for (std::uint32_t again = 3; again < 5; ++again) {
      program.fill(again);
      graph.launch(stream);
      stream.synchronize();
      plan.check();
      ASSERT_NO_FATAL_FAILURE(program.expect_right(what + ", graph"));
    }
    program.fill(5);
    plan.run(stream);
    ASSERT_NO_FATAL_FAILURE(program.expect_right(what + ", run(stream)"));
    if (waits_for_copies) continue;
    for (std::uint32_t again = 6; again < 9; ++again) {
      program.fill(again);
      if (again == 6) {
        plan.replay();
      } else {
        plan.replay(stream);
      }
      ASSERT_NO_FATAL_FAILURE(program.expect_right(what + ", replay()"));
    }
  }
}

/// Waits for the other's flag, and says whether it came.
struct Meet {
  SystemAtomic<std::uint32_t>*mine, *others;
  ESKER_HD void operator()(Lane, const std::uint32_t* from, std::uint32_t* to) const {
    mine->store_relaxed(1);
    std::uint64_t polls = 0;
    while (others->load_relaxed() == 0 && ++polls < 400'000'000) {
    }
    *to = *from + others->load_relaxed();
  }
};

TEST(PlanOverDevices, KernelsOfDifferentDevicesRunSideBySide) {
  const std::vector<Device> on = devices(2);
  if (on[0].backend() == Backend::kCpu) GTEST_SKIP() << "the CPU does its work in the order of the calls";
  const auto flags = on[0].pinned<SystemAtomic<std::uint32_t>>(64);
  Plan plan(on);
  const auto a = plan.operand<std::uint32_t>(1), b = plan.operand<std::uint32_t>(1),
             c = plan.operand<std::uint32_t>(1), d = plan.operand<std::uint32_t>(1);
  plan.on_device(reads(a), writes(b), Meet{flags.data(), flags.data() + 32});
  plan.on_device(reads(c), writes(d), Meet{flags.data() + 32, flags.data()}, {"second", 1});
  plan.build();
  plan.host(a)[0] = 10;
  plan.host(c)[0] = 20;
  plan.run();
  EXPECT_EQ(plan.host(b)[0], 11u);
  EXPECT_EQ(plan.host(d)[0], 21u);
}

TEST(PlanOverDevices, WhoseKernelThrowsLeavesNothingBehindOnOtherStreams) {
  const std::vector<Device> on = devices(2);
  const Stream stream = on[0].stream();
  const auto done = std::make_shared<std::atomic<bool>>(false);
  {
    Plan plan(on);
    const auto a = plan.operand<std::uint32_t>(1), b = plan.operand<std::uint32_t>(1);
    plan.on_device(writes(a),
                   [done](const Stream& its, std::span<std::uint32_t>) {
                     its.call([done] {
                       std::this_thread::sleep_for(std::chrono::milliseconds{50});
                       *done = true;
                     });
                   },
                   {"slow", 1});
    plan.on_device(writes(b), [](const Stream&, std::span<std::uint32_t>) { throw std::runtime_error("no"); },
                   {"throws", 0});
    plan.build();
    EXPECT_THROW(plan.add_to(stream), std::runtime_error);
    stream.synchronize();
    EXPECT_TRUE(*done);
  }
}

/// First device, second device, host.
struct Relay {
  Plan plan;
  Operand a, b, c;

  explicit Relay(const std::vector<Device>& on) : plan{on} {
    for (Operand* operand : {&a, &b, &c}) *operand = plan.operand<std::uint32_t>(1000);
    plan.on_device(reads(a), writes(b), Double{}, "first");
    plan.on_device(reads(b), writes(c), Double{}, {"second", 1});
  }
  void expect_right() {
    for (std::uint32_t i = 0; i < 1000; ++i) plan.host(a)[i] = i;
    plan.run();
    for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(plan.host(c)[i], 4 * i);
  }
};

TEST(PlanOverDevices, WhatAnotherDeviceNeedsGoesThereDirectly) {
  Relay relay(devices(2));
  relay.plan.build({.cost = {1e-6, 1e9, 2e-6, 1e9, 3e-6, 1e10}});
  const auto& startups = relay.plan.schedule().startups;
  ASSERT_EQ(startups.size(), 3u);
  EXPECT_EQ(startups[1].from, 1);
  EXPECT_EQ(startups[1].to, 2);
  EXPECT_NEAR(relay.plan.predicted_seconds(), 6e-6 + 8000 / 1e9 + 4000 / 1e10, 1e-9);
  const std::string report = relay.plan.report();
  for (const char* part :
       {" and ", "of device 0 to device 1", "device 0: 8192 bytes", "device 1: 8192 bytes"})
    EXPECT_TRUE(contains(report, part)) << report;
  const std::string picture = relay.plan.to_dot();
  for (const char* part :
       {"first\\ndevice 0", "second\\ndevice 1", "up before 1 to device 1", "down after 1 from device 1"})
    EXPECT_TRUE(contains(picture, part)) << picture;
  relay.expect_right();
}

TEST(PlanOverDevices, DevicesThatDoNotReachEachOtherExchangeToo) {
  if (!kIsSimulated) GTEST_SKIP() << "of two simulated devices, which can be kept apart";
  setenv("SIMULATED_NO_ACCESS", "0-1,1-0", 1);
  {
    Relay relay(devices(2));
    relay.plan.build();
    relay.expect_right();
  }
  unsetenv("SIMULATED_NO_ACCESS");
}

TEST(PlanOverDevices, WhatAFunctionThrowsEndsTheRunOnAllDevices) {
  Relay relay(devices(2));
  relay.plan.on_host(reads(relay.c), [](Words) { throw std::out_of_range("too far"); });
  relay.plan.build();
  for (int round = 0; round < 3; ++round) EXPECT_THROW(relay.plan.run(), std::out_of_range);
  for (int round = 0; round < 3; ++round) EXPECT_THROW(relay.plan.replay(), std::out_of_range);
}

TEST(PlanOverDevices, ErrorsNameWhatIsWrong) {
  EXPECT_TRUE(contains(refusal([] { Plan plan(std::vector<Device>{}); }), "Plan: it has no device"));
  EXPECT_TRUE(
      contains(refusal([] { Plan plan(std::vector<Device>(256, Device::open("cpu"))); }), "256 devices"));
  const std::vector<Device> two = devices(2);
  Relay relay(two);
  const std::string third = refusal([&] {
    relay.plan.on_device(reads(relay.a), writes(relay.b), Double{}, {"third", 2});
  });
  EXPECT_TRUE(contains(third, "third") && contains(third, "for device 2; this plan has 2")) << third;
  const std::string bound = refusal([&] { relay.plan.build({.device_bytes = 1024}); });
  EXPECT_TRUE(contains(bound, "a graph of 2 devices")) << bound;
  relay.plan.build();
  EXPECT_TRUE(contains(
      refusal([&] { (void)emit_cuda(relay.plan.graph(), relay.plan.schedule(), relay.plan.layout()); }),
      "2 devices"));
  if (two[0].backend() != Backend::kCpu) {
    const std::string other = refusal([&] { Plan plan(std::vector{two[0], Device::open("cpu")}); });
    EXPECT_TRUE(contains(other, "'cpu'") && contains(other, "different back ends")) << other;
  }
}

}  // namespace
}  // namespace esker::transfer
