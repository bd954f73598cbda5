// How a job starts: what the launcher's variables say, what PE 0 prints, what memory there is.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pes.hpp"

namespace esker::testing {
namespace {

using Variables = std::map<std::string, std::string>;

/// Variables of a launcher, and none of another one's, for a scope.
class Launched {
 public:
  explicit Launched(const Variables& variables) {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE",
          "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_PTY_PORT"}) {
      const char* const value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    set_ = variables;
  }
  ~Launched() {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  Variables before_;
  Variables set_;
};

Config over_loopback() {
  Config config = tiny_config();
  config.transport = TransportKind::kLoopback;
  return config;
}

/// The message of the Error that a Runtime throws; "" if it starts.
std::string error_of(const Config& config) {
  try {
    Runtime rt(config);
    EXPECT_EQ(rt.n_pes(), 1u);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(Startup, RefusesToBeOneOfManyJobsThatALauncherStarts) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE"}) {
    const Launched launched(Variables{{variable, "4"}});
    expect_contains(error_of(over_loopback()), {std::string(variable) + "=4", "started 4 processes",
                                                "alone over loopback", "unset " + std::string(variable)});
  }
  const Launched by_srun(Variables{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}});
  expect_contains(error_of(over_loopback()), {"SLURM_STEP_NUM_TASKS=2"});
}

TEST(Startup, IsAloneWhereALauncherSaysSoOrOnlyAllocates) {
  for (const auto& variables :
       std::vector<Variables>{{},
                              {{"OMPI_COMM_WORLD_SIZE", "1"}},
                              {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}},  // a batch script
                              {{"SLURM_STEP_NUM_TASKS", "4"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_PTY_PORT", "41"}},  // srun --pty bash
                              {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"PMI_SIZE", "1"}}}) {
    const Launched launched(variables);
    EXPECT_EQ(error_of(over_loopback()), "");
  }
}

TEST(Startup, KeepsWarningsWhereItIsQuiet) {
  Config config = over_loopback();  // which is quiet
  config.warnings = {"something is odd"};
  ::testing::internal::CaptureStderr();
  { Runtime rt(config); }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "esker: warning: something is odd\n");
}

#if !defined(ESKER_TEST_SANITIZED)  // which map more than any limit
/// In a process of its own, which may map `bytes` more than it has: prints the Error that a Runtime with
/// `config`, and `body` on it, throw and exits with 3; with 0 without one, and 4 with another exception.
[[noreturn]] void run_in_little_memory(std::uint64_t bytes, const Config& config, const Pes::Body& body) {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  const rlim_t limit = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limits{limit, limit};
  if (setrlimit(RLIMIT_AS, &limits) != 0) std::exit(5);
  try {
    Runtime rt(config);
    body(rt);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", to_string(error.kind()), error.what());
    std::exit(3);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(4);
  }
  std::exit(0);
}
constexpr std::uint64_t kMi = 1 << 20;

TEST(LittleMemoryDeathTest, TheHeapFollowsTheLimitOrNamesItsSetting) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Config config = over_loopback();
  config.heap_bytes = 0;
  EXPECT_EXIT(run_in_little_memory(512 * kMi, config,
                                   [](Runtime& rt) {
                                     const auto some = rt.heap().allocate<std::uint64_t>(kMi);
                                     rt.heap().write(
                                         some, 0,
                                         std::span<const std::uint64_t>(std::vector<std::uint64_t>(kMi, 1)));
                                     rt.barrier_all();
                                   }),
              ::testing::ExitedWithCode(0), "");
  config.heap_bytes = 2048 * kMi;
  EXPECT_EXIT(run_in_little_memory(512 * kMi, config, [](Runtime&) {}), ::testing::ExitedWithCode(3),
              "out of memory: the symmetric heap of 2048 MiB .*ulimit -v.*--heap-bytes");
}

TEST(LittleMemoryDeathTest, NamesTheCallThatFindsNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Config config = over_loopback();
  config.package_bytes = kMi;
  config.package_slots = 1024;
  EXPECT_EXIT(run_in_little_memory(512 * kMi, config, [](Runtime&) {}), ::testing::ExitedWithCode(3),
              "out of memory: Runtime: .*package queue takes 1024.0 MiB.*--package-slots");
  config = over_loopback();
  config.cpu_threads = 4096;
  EXPECT_EXIT(run_in_little_memory(512 * kMi, config, [](Runtime&) {}), ::testing::ExitedWithCode(3),
              "out of memory: Runtime: (a thread cannot be started.*--cpu-threads|this process is out of)");
  config = over_loopback();
  config.heap_bytes = 300 * kMi;
  const auto read_all = [](Runtime& rt) {
    (void)rt.heap().read(rt.heap().allocate<std::uint64_t>(36 * kMi));
  };
  EXPECT_EXIT(run_in_little_memory(512 * kMi, config, read_all), ::testing::ExitedWithCode(3),
              "out of memory: heap\\(\\).read: .*copy of 301989888 bytes.*in parts");
  const auto take_stacks = [](Runtime& rt) {
    rt.launch_shape(
        {1024, 1024, 32}, [](GroupItem& item) { item.group().sync(); }, "crowd");
  };
  config.heap_bytes = 2 * kMi;
  EXPECT_EXIT(run_in_little_memory(200 * kMi, config, take_stacks), ::testing::ExitedWithCode(3),
              "out of memory: .*a lane's stack of 256 KiB.*--group-lanes");
}
#endif

}  // namespace
}  // namespace esker::testing
