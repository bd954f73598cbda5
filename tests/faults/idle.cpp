// What a PE that waits in barrier_all costs: PE 0 is late by five seconds, the others measure themselves.
#include <fmt/format.h>
#include <unistd.h>
#include <esker/esker.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace {

/// Seconds that this process has had of a core, by /proc/self/stat.
double cpu_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  long user = 0;
  long system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int main(int argc, char** argv) {
  using std::chrono::steady_clock;
  esker::Runtime rt(argc, argv);
  rt.barrier_all();
  // Sleeps here are what is measured, not what orders the PEs.
  const auto start = steady_clock::now();
  if (rt.pe() == 0) std::this_thread::sleep_until(start + std::chrono::seconds{5});
  std::jthread watcher;
  if (rt.pe() != 0) {
    watcher = std::jthread([&rt, start] {
      std::this_thread::sleep_until(start + std::chrono::seconds{1});
      const double before = cpu_seconds();
      const auto begin = steady_clock::now();
      std::this_thread::sleep_until(start + std::chrono::seconds{4});
      const double used = cpu_seconds() - before;
      const std::chrono::duration<double> passed = steady_clock::now() - begin;
      std::fputs(fmt::format("PE {}: used {:.4f} of a core\n", rt.pe(), used / passed.count()).c_str(),
                 stdout);
      std::fflush(stdout);
    });
  }
  rt.barrier_all();
}
