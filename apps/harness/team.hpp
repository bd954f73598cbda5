// Work of the host that threads share out.
#pragma once

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace harness {

/// Calls work(t) for each t below `threads` at once, work(0) on the calling thread, and waits for all. Throws
/// what the first of them, by its number, has thrown.
template <class Work>
void run_team(std::uint32_t threads, const Work& work) {
  std::vector<std::exception_ptr> thrown(threads);
  const auto run = [&](std::uint32_t t) {
    try {
      work(t);
    } catch (...) {
      thrown[t] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::uint32_t t = 1; t < threads; ++t) others.emplace_back(run, t);
    run(0);
  }
  for (const std::exception_ptr& error : thrown) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace harness
