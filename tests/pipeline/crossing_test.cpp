// Which way frames cross where the user leaves it open.
#include <esker/device.hpp>
#include <esker/pipeline.hpp>
#include <esker/pipeline/crossing.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;

const Device& device() {
  static const Device opened = Device::open("auto");
  return opened;
}

/// A machine file of the test's own.
class CrossingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    setenv("ESKER_MACHINE_FILE", path_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("ESKER_MACHINE_FILE");
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  const std::string folder_ = ::testing::TempDir() + "esker_crossing_" + std::to_string(::getpid());
  const std::string path_ = folder_ + "/caches/machine.json";
};

struct Copy {
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = in[i];
  }
};
/// How frames of so many bytes went to the device.
Crossing chosen(std::uint64_t frame_bytes) {
  Pipeline p(device());
  const auto in = p.topic<std::uint32_t>({.frame_bytes = frame_bytes, .frames = 4});
  const auto out = p.topic<std::uint32_t>({.frame_bytes = frame_bytes, .frames = 4});
  std::uint32_t next = 0, seen = 0;
  p.run(on_host::source("count",
                        [&](auto& stage) {
                          if (next == 10) return false;
                          auto frame = stage.open(in);
                          frame.count = 1;
                          frame[0] = next++;
                          stage.publish(in, frame);
                          return true;
                        })
            .into(in),
        on_device::map("copy", in, out, Copy{}),
        on_host::frames("check", [&](auto&, const auto& frame) { EXPECT_EQ(frame[0], seen++); }).from(out));
  EXPECT_EQ(seen, 10u);
  return p.report().topics[0].crossing;
}

TEST_F(CrossingTest, IsWhatWasKeptForTheMachine) {
  EXPECT_EQ(batched_from(device()), std::uint64_t{1} << 20);
  keep_batched_from(device(), 4096);
  EXPECT_EQ(batched_from(device()), 4096u);
  if (device().backend() != Backend::kCpu) {
    EXPECT_EQ(chosen(4096), Crossing::kBatched);
    EXPECT_EQ(chosen(4092), Crossing::kDirect);
  }
  keep_batched_from(device(), std::uint64_t{1} << 30);
  EXPECT_EQ(chosen(4096), Crossing::kDirect);
}
TEST_F(CrossingTest, LeavesTheRestOfTheFile) {
  std::filesystem::create_directories(folder_ + "/caches");
  write(R"({"other": [1, 2], "pipeline": {"batched_from": {"cuda: another": 7}}})");
  EXPECT_EQ(batched_from(device()), std::uint64_t{1} << 20);
  keep_batched_from(device(), 5);
  std::ifstream file(path_);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\"other\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"cuda: another\": 7"), std::string::npos) << text;
  EXPECT_EQ(batched_from(device()), 5u);
}
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kConfiguration);
    return error.what();
  }
  return "no error";
}
TEST_F(CrossingTest, NamesAFileThatIsWrong) {
  keep_batched_from(device(), 5);
  std::ifstream file(path_);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.replace(text.find(": 5"), 3, ": -5");
  for (const std::string& wrong : {std::string("nonsense"), std::string("[]"), text}) {
    write(wrong);
    const std::string message = message_of([] { (void)batched_from(device()); });
    EXPECT_NE(message.find("'" + path_ + "'"), std::string::npos) << message;
    EXPECT_EQ(message_of([] { chosen(4096); }), device().backend() == Backend::kCpu ? "no error" : message);
  }
}
TEST_F(CrossingTest, NamesAFileThatCannotBeWritten) {
  std::ofstream(folder_ + "/caches") << "a file";  // where a folder should be
  const std::string message = message_of([] { keep_batched_from(device(), 5); });
  EXPECT_NE(message.find("cannot write '" + path_ + "'"), std::string::npos) << message;
}

}  // namespace
}  // namespace esker::testing
