// What goes wrong on the GPU comes back as an Error with its values, and the process ends.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../device/gtest.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

/// Prints the Error that `body` throws and ends with status 3; with 0 if it throws none.
template <class Body>
[[noreturn]] void exit_with_error(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    std::fprintf(stderr, "kind %d: %s\n", static_cast<int>(error.kind()), error.what());
    std::exit(3);
  }
  std::exit(0);
}

/// On one PE, without what run_pes() adds to an exception.
template <class Body>
void run_one_pe(const Config& config, const Body& body) {
  loopback::World world(1);
  Runtime runtime(config,
                  detail::Medium{[&](const TransportLimits& limits) { return world.connect(0, limits); }});
  body(runtime);
}

Config on_device() {
  Config config = tiny_config();
  config.heap = HeapKind::kDevice;
  return config;
}

void write_nowhere(Runtime& rt) {
  // Of no allocation, and nothing that a compiler knows to be wrong.
  auto* const nowhere = reinterpret_cast<std::uint64_t*>(std::uintptr_t{1} << 46 | rt.n_pes() << 7);
  rt.launch(
      100, [=] ESKER_LAMBDA(WorkItem item) { nowhere[item.global_id()] = 1; }, "write_nowhere");
}

void wait_for_ever(Runtime& rt) {
  const auto word = rt.heap().allocate<std::uint64_t>(1);
  rt.launch(
      1,
      [=] ESKER_LAMBDA(Lane) {
        const volatile std::uint64_t* const at = word.data();
        while (*at == 0) {
        }
      },
      "wait_for_ever");
  throw Error(Error::Kind::kContract, "enough");
}

std::string of_kind(Error::Kind kind) { return "kind " + std::to_string(static_cast<int>(kind)) + ": "; }

TEST(DeviceErrorDeathTest, AFaultInAKernelNamesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string expected = of_kind(Error::Kind::kDevice) + ".*'write_nowhere'";
  EXPECT_EXIT(exit_with_error([] {
                run_one_pe(on_device(), [](Runtime& rt) {
                  write_nowhere(rt);
                  rt.barrier_all();
                });
              }),
              ::testing::ExitedWithCode(3), expected);
  EXPECT_EXIT(exit_with_error([] {
                run_one_pe(on_device(), [](Runtime& rt) {
                  write_nowhere(rt);
                  rt.quiet();
                });
              }),
              ::testing::ExitedWithCode(3), expected);
}

TEST(DeviceErrorDeathTest, AHeapThatDoesNotFitNamesItsSizes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      exit_with_error([] {
        Config config = on_device();
        config.heap_bytes = std::uint64_t{1} << 50;
        run_one_pe(config, [](Runtime&) {});
      }),
      ::testing::ExitedWithCode(3),
      of_kind(Error::Kind::kOutOfMemory) + ".*the symmetric heap .*1125899906842624 bytes.*MiB are free");
}

// Its lane waits for a word that nobody writes, and so for ever.
TEST(DeviceErrorDeathTest, AKernelThatNeverEndsDoesNotKeepAFailedJob) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_error([] {
                Config config = on_device();
                config.hang_seconds = 4;  // more than is waited for peers
                run_one_pe(config, wait_for_ever);
              }),
              ::testing::ExitedWithCode(1), "a kernel still runs after 4 s, and the process ends");
}

TEST(DeviceErrorDeathTest, MoreThanTheHeapHoldsNamesItsSizes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_error([] {
                run_one_pe(on_device(),
                           [](Runtime& rt) { (void)rt.heap().allocate<std::uint64_t>(1 << 20); });
              }),
              ::testing::ExitedWithCode(3),
              of_kind(Error::Kind::kOutOfMemory) + ".*1048576 elements of 8 bytes.*2.0 MiB");
}

}  // namespace
}  // namespace esker::testing
