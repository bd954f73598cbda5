// A kernel of stages that dies ends the run, whoever waits for it.
#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../device/gtest.hpp"
#include "counting.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;

/// Of frame `last` it writes to an address of no allocation.
struct WriteNowhere {
  std::uint32_t last;
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    if (in.number == last)
      *reinterpret_cast<std::uint32_t*>(std::uintptr_t{1} << 46 | stage.lane() << 7) = in.count;
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = in[i];
  }
};

/// Prints the Error that run() throws and ends with status 3; with 0 if it throws none. The source goes on
/// until it is told to end, and the sink waits for frames that do not come.
[[noreturn]] void run_and_exit() {
  try {
    Pipeline p(Device::open());
    const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 40, .frames = 4});
    const auto out = p.topic<std::uint32_t>({.name = "out", .frame_bytes = 40, .frames = 4});
    std::uint32_t next = 0;
    p.run(on_host::source("count", Count{in, ~0u, 10, &next}).into(in),
          on_device::map("write", in, out, WriteNowhere{100}),
          on_host::frames("sink", [](auto&, const Frame<const std::uint32_t>&) {}).from(out));
  } catch (const Error& error) {
    std::fprintf(stderr, "kind %d: %s\n", static_cast<int>(error.kind()), error.what());
    std::_Exit(3);  // what the process would do at its end asks a device that is lost
  }
  std::_Exit(0);
}

TEST(PipelineDeathTest, AFaultInAStageEndsTheRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_and_exit(), ::testing::ExitedWithCode(3),
              "kind " + std::to_string(static_cast<int>(Error::Kind::kDevice)) + ": ");
}

}  // namespace
}  // namespace esker::testing
