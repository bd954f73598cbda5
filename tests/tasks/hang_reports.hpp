// For tests of runs that stand still: a gate that tasks wait at, and who opens it when the right report
// comes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <esker/device.hpp>

namespace esker::testing {

/// A word of the host's that tasks look at.
class Gate {
 public:
  explicit Gate(const Device& device) : word_{device.pinned<SystemAtomic<std::uint32_t>>(1)} {}
  const SystemAtomic<std::uint32_t>* word() const { return word_.data(); }
  void close() { word_[0].store_relaxed(0); }
  void open() { word_[0].store_relaxed(1); }

 private:
  const PinnedArray<SystemAtomic<std::uint32_t>> word_;
};

/// Options::on_hang. What is to happen happens with the report that has all parts: on a busy machine threads
/// may stand still for as long as a hang lasts, and what they say then is not what is waited for.
class Reports {
 public:
  Reports(std::vector<std::string> parts, std::function<void()> then)
      : parts_{std::move(parts)}, then_{std::move(then)} {}
  /// Opens the gate.
  Reports(std::vector<std::string> parts, Gate& gate) : Reports(std::move(parts), [&gate] { gate.open(); }) {}

  void operator()(const std::string& report) {
    const std::lock_guard lock(mutex_);
    for (const std::string& part : parts_) {
      if (report.find(part) != std::string::npos) continue;
      std::fprintf(stderr, "\"%s\" is not in: %s\n", part.c_str(), report.c_str());
      return;
    }
    right_ = report;
    then_();
  }
  /// The right one, which came before the run went on.
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(right_, {});
  }

 private:
  const std::vector<std::string> parts_;
  const std::function<void()> then_;
  std::mutex mutex_;
  std::string right_;
};

}  // namespace esker::testing
