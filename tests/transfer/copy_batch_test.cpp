// Sets of copies: each path, direction, alignment and kind of memory, and what is refused.
#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using namespace transfer;

const Device& device() {
  static const Device opened = Device::open("auto");
  return opened;
}
constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr CopyPath kAllPaths[] = {CopyPath::kSeparate, CopyPath::kBatchCall, CopyPath::kKernel,
                                  CopyPath::kGraph};

std::byte byte_of(std::size_t i) { return static_cast<std::byte>(i * 2654435761u >> 13); }

/// Two arrays of bytes, of which copies go from one to the other; on the host they can be looked at.
struct Sides {
  std::vector<std::byte> source = std::vector<std::byte>(kBytes), expected = std::vector<std::byte>(kBytes);
  Sides() {
    for (std::size_t i = 0; i < kBytes; ++i) source[i] = byte_of(i);
  }
};

/// Copies between random places, each byte of the destination written at most once.
std::vector<Copy> random_copies(std::mt19937_64& random, std::byte* to, const std::byte* from,
                                std::vector<std::byte>& expected, const std::vector<std::byte>& source) {
  std::vector<Copy> copies;
  const auto upto = [&](std::size_t n) { return random() % (n + 1); };
  const std::size_t align = std::size_t{1} << upto(5);
  for (std::size_t at = 0;;) {
    at += upto(3) * align;
    const std::size_t bytes = upto(upto(7) == 0 ? 20000 : 600) / align * align + (upto(3) == 0 ? upto(5) : 0);
    if (at + bytes > kBytes || copies.size() == 300) break;
    const std::size_t read = upto((kBytes - bytes) / align) * align;
    copies.push_back({to + at, from + read, bytes});
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(read), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(at));
    at += bytes;
  }
  if (upto(1) == 0) std::shuffle(copies.begin(), copies.end(), random);
  return copies;
}

class CopyBatchTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("ESKER_MACHINE_FILE", path_.c_str(), 1); }
  void TearDown() override {
    unsetenv("ESKER_MACHINE_FILE");
    std::filesystem::remove(path_);
  }
  const std::string path_ =
      ::testing::TempDir() + "esker_copies_" + std::to_string(::getpid()) + "/machine.json";
};

TEST_F(CopyBatchTest, EachPathCopiesEachByteToTheDeviceBackAndWithin) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Copier copier(device());
  const Stream stream = device().stream();
  const auto host = device().pinned<std::byte>(kBytes), back = device().pinned<std::byte>(kBytes);
  const auto there = device().memory<std::byte>(kBytes), other = device().memory<std::byte>(kBytes);
  std::vector<std::byte> pageable(kBytes);
  const auto check = [&](const std::byte* found, const std::vector<std::byte>& expected, const char* what,
                         CopyPath path) {
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), found)) << what << ", " << to_string(path);
  };
  for (int round = 0; round < 6; ++round) {
    for (const CopyPath path : kAllPaths) {
      const Sides sides;
      const auto with = [&](std::byte* to, const std::byte* from) {
        return [&, to, from](std::vector<std::byte>& expected) {
          copier.copy_by(path, random_copies(random, to, from, expected, sides.source), stream);
          stream.synchronize();
        };
      };
      const auto clear = [&](const DeviceArray<std::byte>& array) {
        device().fill(array.data(), 0, kBytes, stream);
        stream.synchronize();
      };
      std::copy(sides.source.begin(), sides.source.end(), host.data());
      // To the device, from memory of either kind.
      for (const std::byte* from : {static_cast<const std::byte*>(host.data()), sides.source.data()}) {
        clear(there);
        std::vector<std::byte> expected(kBytes);
        with(there.data(), from)(expected);
        device().copy(back.data(), there.data(), kBytes);
        check(back.data(), expected, from == host.data() ? "pinned" : "pageable", path);
      }
      // Within it, and back.
      device().copy(there.data(), sides.source.data(), kBytes);
      clear(other);
      std::vector<std::byte> expected(kBytes);
      with(other.data(), there.data())(expected);
      device().copy(back.data(), other.data(), kBytes);
      check(back.data(), expected, "within", path);
      for (std::byte* to : {back.data(), pageable.data()}) {
        std::fill_n(to, kBytes, std::byte{});
        std::vector<std::byte> wanted(kBytes);
        with(to, there.data())(wanted);
        check(to, wanted, to == back.data() ? "to pinned" : "to pageable", path);
      }
    }
  }
}

TEST_F(CopyBatchTest, PageableSourcesAreReadBeforeTheCallReturnsAndLargerThanAllStaging) {
  constexpr std::size_t kLarge = std::size_t{40} << 20;
  const auto there = device().memory<std::byte>(kLarge);
  const Stream stream = device().stream();
  std::vector<std::byte> source(kLarge), back(kLarge);
  for (std::size_t i = 0; i < kLarge; ++i) source[i] = byte_of(i);
  std::vector<Copy> copies{{there.data(), source.data(), kLarge / 2},
                           {there.data() + kLarge / 2, source.data() + kLarge / 2, kLarge / 2}};
  copy_batch(device(), copies, stream);
  std::fill(source.begin(), source.end(), std::byte{});
  copies = {{back.data(), there.data(), kLarge - 3},
            {back.data() + kLarge - 3, there.data() + kLarge - 3, 3}};
  copy_batch(device(), copies, stream);
  stream.synchronize();
  for (std::size_t i = 0; i < kLarge; ++i) ASSERT_EQ(back[i], byte_of(i)) << i;
}

TEST_F(CopyBatchTest, BothDirectionsAndNothingGoInOneSet) {
  const auto host = device().pinned<std::uint64_t>(4);
  const auto there = device().memory<std::uint64_t>(4);
  const Stream stream = device().stream();
  host[0] = 7;
  device().copy(there.data() + 1, std::vector<std::uint64_t>{9}.data(), 8);
  const std::vector<Copy> copies{{there.data(), host.data(), 8},
                                 {nullptr, nullptr, 0},
                                 {host.data() + 1, there.data() + 1, 8},
                                 {host.data() + 2, host.data() + 3, 8}};
  copy_batch(device(), copies, stream);
  copy_batch(device(), {}, stream);
  stream.synchronize();
  std::uint64_t back = 0;
  device().copy(&back, there.data(), 8);
  EXPECT_EQ(back, 7u);
  EXPECT_EQ(host[1], 9u);
}

void expect_refused(const std::vector<Copy>& copies, const std::string& why) {
  const Stream stream = device().stream();
  try {
    copy_batch(device(), copies, stream);
    ADD_FAILURE() << "not refused: " << why;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kTransfer);
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
  }
}

TEST_F(CopyBatchTest, RefusesSetsWhoseResultDependsOnTheOrder) {
  std::vector<std::byte> bytes(64);
  std::byte* const a = bytes.data();
  expect_refused({{a, a + 32, 8}, {a + 16, a + 40, 8}, {a + 4, a + 48, 8}}, "copy 2 writes");
  expect_refused({{a, a + 16, 8}, {a + 32, a + 4, 2}}, "copy 1 reads");
  expect_refused({{a, a + 4, 8}}, "copy 0 reads");
  expect_refused({{a, nullptr, 8}}, "copy 0 of 8 bytes has no source");
  expect_refused({{a, a + 8, 8}, {nullptr, a, 4}}, "copy 1 of 4 bytes has no destination");
  expect_refused({{a, a + 8, ~std::size_t{0}}}, "beyond the last address");
}

TEST_F(CopyBatchTest, SourcesMayOverlapAndDestinationsMayTouch) {
  std::vector<std::byte> bytes(64, std::byte{1});
  std::byte* const a = bytes.data();
  check_copies(std::vector<Copy>{{a + 8, a + 32, 8}, {a, a + 36, 8}, {a + 16, a + 32, 8}});
}

#if !defined(ESKER_ON_CPU)  // the host copies by itself, and all memory is its

TEST_F(CopyBatchTest, GoesByTheProfileAndCutsBetweenLargeAndSmall) {
  CopyProfile profile;
  for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
    for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
      const auto n = static_cast<double>(CopyProfile::count_at(c));
      const auto bytes = static_cast<double>(CopyProfile::bytes_at(s));
      profile.set(Direction::kToDevice, CopyPath::kSeparate, c, s, {n * (1 + bytes / 1000)});
      profile.set(Direction::kToDevice, CopyPath::kBatchCall, c, s, {n * (2 + bytes / 1000)});
      profile.set(Direction::kToDevice, CopyPath::kKernel, c, s,
                  {10 + n * bytes / (bytes > 10000 ? 100 : 5000)});
    }
  }
  Copier copier(device(), profile);
  const auto there = device().memory<std::byte>(kBytes);
  const auto host = device().pinned<std::byte>(kBytes);
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < 200; ++i) copies.push_back({there.data() + i * 8, host.data() + i * 16, 4});
  std::vector<CopyChoice> choices = copier.choose(copies);
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].path, CopyPath::kKernel);
  copies.push_back({there.data() + 65536, host.data() + 65536, 65536});
  choices = copier.choose(copies);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].path, CopyPath::kSeparate);
  EXPECT_EQ(choices[0].copies, 1u);
  EXPECT_EQ(choices[0].bytes, 65536u);
  EXPECT_EQ(choices[1].path, CopyPath::kKernel);
  EXPECT_EQ(choices[1].copies, 200u);
  // Adjacent on both sides: one.
  copies = {{there.data(), host.data(), 64}, {there.data() + 64, host.data() + 64, 64}};
  choices = copier.choose(copies);
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].copies, 1u);
  EXPECT_EQ(choices[0].path, CopyPath::kSeparate);
}

TEST_F(CopyBatchTest, ACallThatTookLongerThanMeasuredCountsInTheNextChoice) {
  CopyProfile profile;
  for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
    for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
      // No call is so short, and none to the host as long.
      profile.set(Direction::kToDevice, CopyPath::kSeparate, c, s, {10, 0.005});
      profile.set(Direction::kToDevice, CopyPath::kKernel, c, s, {10.001, 0});
      profile.set(Direction::kToHost, CopyPath::kSeparate, c, s, {1e9, 1e9});
      profile.set(Direction::kToHost, CopyPath::kKernel, c, s, {2e9, 1e9});
    }
  }
  Copier copier(device(), profile);
  const auto there = device().memory<std::byte>(64);
  const auto host = device().pinned<std::byte>(64);
  const std::vector<Copy> forth{{there.data(), host.data(), 64}}, back{{host.data(), there.data(), 64}};
  const auto path = [&] { return copier.choose(forth).at(0).path; };
  const Stream stream = device().stream();
  EXPECT_EQ(path(), CopyPath::kSeparate);
  copier.copy(forth, stream);
  EXPECT_EQ(path(), CopyPath::kKernel);
  EXPECT_NEAR(copier.choose(forth).at(0).predicted_us, 10.001, 1e-9);
  copier.copy(back, stream);
  EXPECT_EQ(path(), CopyPath::kSeparate);
  stream.synchronize();
}

TEST_F(CopyBatchTest, RefusesWhatGoesBeyondItsMemory) {
  // Allocations are whole pages of 2 MiB and less.
  const auto there = device().memory<std::byte>(std::size_t{4} << 20);
  std::vector<std::byte> host(std::size_t{64} << 20);
  expect_refused({{there.data() + 64, host.data(), std::size_t{64} << 20}}, "goes beyond the memory");
}

TEST_F(CopyBatchTest, RefusesTheMemoryOfAnotherDevice) {
  if (device().properties().devices < 2) GTEST_SKIP() << "there is one device";
  const Device other = Device::open(std::string(to_string(device().backend())) + ":1");
  const auto there = other.memory<std::byte>(64);
  const auto host = device().pinned<std::byte>(64);
  expect_refused({{there.data(), host.data(), 64}}, "of device 1");
}

#endif

TEST_F(CopyBatchTest, KeepsTheProfileOfTheMachine) {
  CopyProfile profile;
  profile.set(Direction::kToHost, CopyPath::kKernel, 2, 3, {12.5, 4.5});
  profile.keep(device());
  const CopyTime kept = CopyProfile::of_machine(device()).at(Direction::kToHost, CopyPath::kKernel, 2, 3);
  EXPECT_DOUBLE_EQ(kept.us, 12.5);
  EXPECT_DOUBLE_EQ(kept.host_us, 4.5);
  std::ofstream(path_) << "{\"transfer\": 1}";
  EXPECT_DOUBLE_EQ(CopyProfile::of_machine(device()).at(Direction::kToHost, CopyPath::kKernel, 2, 3).us,
                   CopyProfile().at(Direction::kToHost, CopyPath::kKernel, 2, 3).us);
  std::ofstream(path_) << "[1]";
  EXPECT_THROW(CopyProfile::of_machine(device()), Error);
}

TEST_F(CopyBatchTest, AProfileIsLinearBetweenItsPoints) {
  CopyProfile profile;
  for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
    for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
      const auto n = static_cast<double>(CopyProfile::count_at(c));
      const auto bytes = static_cast<double>(CopyProfile::bytes_at(s));
      profile.set(Direction::kToHost, CopyPath::kBatchCall, c, s, {5 + 2 * n + n * bytes / 1000, 3 + n});
    }
  }
  for (const double n : {1.0, 3.0, 17.0, 200.0, 1000.0}) {
    for (const double bytes : {512.0, 777.0, 1e5, 3e6, 3e7}) {
      const CopyTime time = profile.time(Direction::kToHost, CopyPath::kBatchCall, n, bytes);
      EXPECT_NEAR(time.us, 5 + 2 * n + n * bytes / 1000, 1e-6 * n * bytes);
      EXPECT_NEAR(time.host_us, 3 + n, 1e-6 * n);
    }
  }
}

TEST_F(CopyBatchTest, CopiesAreMeasuredInSomeMemory) {
  for (const std::size_t bytes : {0u, 1000u, 65535u})
    EXPECT_THROW((void)measure_copies(device(), {.bytes = bytes, .repeats = 1}), Error);
}

TEST_F(CopyBatchTest, AProfileStaysAtTheSmallerSizeWhereLargerCopiesTakeLess) {
  CopyProfile profile;
  for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
    for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c)
      profile.set(Direction::kToDevice, CopyPath::kBatchCall, c, s, {s < 6 ? 10.0 + s : 5.0 + s});
  }
  const auto at = [&](double bytes) {
    return profile.time(Direction::kToDevice, CopyPath::kBatchCall, 1, bytes).us;
  };
  EXPECT_DOUBLE_EQ(at(24 << 10), 15);  // between 16 and 32 KiB
  EXPECT_DOUBLE_EQ(at(32 << 10), 11);
  EXPECT_DOUBLE_EQ(at(12 << 10), 14.5);
}

}  // namespace
}  // namespace esker::testing
