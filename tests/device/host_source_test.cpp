// A source that the host's compiler compiles, beside a GPU.
#include <gtest/gtest.h>

#include <esker/device/device.hpp>
#include <esker/device/error.hpp>
#include <string>

namespace esker::testing {
namespace {

TEST(HostSource, IsToldThatItsKernelsDoNotRunOnAGpu) {
  const Device device = Device::open("auto");
  ASSERT_NE(device.backend(), Backend::kCpu);
  try {
    device.launch(1, [](Lane) {});
    ADD_FAILURE() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kDevice);
    const std::string text = error.what();
    EXPECT_NE(text.find(device.name()), std::string::npos) << text;
    EXPECT_NE(text.find("compiled for the host alone; compile it with the device's compiler"),
              std::string::npos)
        << text;
  }
}
TEST(HostSource, CopiesAndLaunchesOnTheCpuBesideIt) {
  const Device gpu = Device::open("auto");
  const Device cpu = Device::open("cpu");
  const auto there = gpu.memory<int>(100);
  const auto here = cpu.memory<int>(100);
  int* const at = here.data();
  cpu.launch(100, [=](Lane lane) { at[lane.global_id()] = static_cast<int>(lane.global_id()); });
  gpu.copy(there.data(), here.data(), here.size_bytes());
  const auto back = gpu.pinned<int>(100);
  const Stream stream = gpu.stream();
  gpu.copy_async(back.data(), there.data(), back.size_bytes(), stream);
  stream.synchronize();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(back[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace esker::testing
