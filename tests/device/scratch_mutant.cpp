// The same with the fence or without, where lanes are threads to ThreadSanitizer.
//
//     scratch_mutant scratchpad none|fence        none, or the fence, is left out
#include <cstdio>
#include <string>

#include <esker/device/gpu/api.hpp>

#include "scratch.hpp"

int main(int argc, char** argv) {
  using namespace esker;
  const std::string left_out = argc == 3 ? argv[2] : "";
  if (left_out != "none" && left_out != "fence") {
    std::fputs("usage: scratch_mutant scratchpad none|fence\n", stderr);
    return 2;
  }
  simulated::strictness = {true, left_out != "fence"};
  DeviceAtomic<std::uint64_t> wrong{0};
  const std::string error =
      gpu::launch_on_device(LaunchShape{64, 64, 32}, nullptr, testing::HandOver{20, &wrong});
  if (!error.empty() || ESKER_GPU(DeviceSynchronize)() != ESKER_GPU(Success)) return 1;
  return wrong.load_relaxed() == 0 ? 0 : 1;
}
