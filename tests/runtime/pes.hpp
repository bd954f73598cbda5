// PEs as threads of the test: one Runtime each, over loopback.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <esker/net/loopback/transport.hpp>
#include <esker/runtime.hpp>
#include <esker/runtime/medium.hpp>

#include "../device/gtest.hpp"
#include "ways.hpp"

namespace esker::testing {

/// What a PE threw, if it did: an Error with its kind, or another exception.
struct Failed {
  std::optional<Error::Kind> kind;
  std::string message;
};

/// n PEs that run the same function.
///
/// Contract. run() constructs a Runtime on each PE's thread and calls `body(runtime)`. It returns when
///           all PEs have ended; if they do not within kPatience, it names those that have not and
///           aborts: a thread cannot be taken back.
class Pes {
 public:
  using Body = std::function<void(Runtime&)>;

  explicit Pes(std::uint32_t n, const Config& config = tiny_config()) : world_{n}, configs_(n, config) {}

  loopback::World& world() { return world_; }
  /// For settings that differ between PEs.
  Config& config(std::uint32_t pe) { return configs_[pe]; }

  /// Throws the first exception, with its PE.
  void run(const Body& body) {
    run_all(body);
    if (first_) throw std::runtime_error("PE " + std::to_string(*first_) + ": " + failed_[*first_]->message);
  }

  /// What each PE threw, construction included.
  std::vector<std::optional<Failed>> run_and_catch(const Body& body) {
    run_all(body);
    return failed_;
  }

 private:
  static constexpr std::chrono::seconds kPatience{400};  // less than the tests' time-outs, which name nobody

  void run_all(const Body& body) {
    const auto n = static_cast<std::uint32_t>(configs_.size());
    first_.reset();
    failed_.assign(n, std::nullopt);
    ended_.assign(n, false);
    std::vector<std::thread> threads;
    for (std::uint32_t pe = 0; pe < n; ++pe) threads.emplace_back([&, pe] { run_one(pe, body); });
    {
      std::unique_lock lock(mutex_);
      const auto all_ended = [&] { return std::find(ended_.begin(), ended_.end(), false) == ended_.end(); };
      if (!changed_.wait_for(lock, kPatience, all_ended)) {
        for (std::uint32_t pe = 0; pe < n; ++pe) {
          if (!ended_[pe]) std::fprintf(stderr, "PE %u has not ended\n", pe);
        }
        std::abort();
      }
    }
    for (std::thread& thread : threads) thread.join();
  }

  void run_one(std::uint32_t pe, const Body& body) {
    std::optional<Failed> failed;
    try {
      Runtime runtime(configs_[pe], detail::Medium{[&](const TransportLimits& limits) {
                        return world_.connect(pe, limits);
                      }});
      body(runtime);
    } catch (const Error& error) {
      failed = {error.kind(), error.what()};
    } catch (const std::exception& error) {
      failed = {std::nullopt, error.what()};
    }
    const std::lock_guard lock(mutex_);
    if (failed && !first_) first_ = pe;
    failed_[pe] = std::move(failed);
    ended_[pe] = true;
    changed_.notify_all();
  }

  loopback::World world_;
  std::vector<Config> configs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::uint32_t> first_;         // guarded by mutex_
  std::vector<std::optional<Failed>> failed_;  // guarded by mutex_
  std::vector<bool> ended_;                    // guarded by mutex_
};

inline void run_pes(std::uint32_t n, const Config& config, const Pes::Body& body) {
  Pes(n, config).run(body);
}
inline void run_pes(std::uint32_t n, const Pes::Body& body) { Pes(n).run(body); }
inline void run_pes(const Way& way, const Pes::Body& body) { Pes(way.n_pes, way.config).run(body); }

}  // namespace esker::testing
