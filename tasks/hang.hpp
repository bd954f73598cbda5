// Who says that nothing has moved in a run on the host for long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <esker/device/platform.hpp>
#include <esker/tasks/progress.hpp>

namespace esker::tasks::detail {

/// A thread that looks at a run's progress, and says when nothing has moved for some time: once, until
/// something moves again.
class ESKER_API HangWatch {
 public:
  struct Joins {
    const std::uint32_t* words;
    std::size_t words_each;
  };
  HangWatch(std::uint32_t domains, std::uint32_t joins, Joins join_words, std::chrono::milliseconds limit,
            std::function<void(const std::string&)> say, std::string where);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  Progress& progress();
  void begin();
  /// Nothing is said afterwards.
  void end();

 private:
  class Thread;
  const std::unique_ptr<Thread> thread_;
};

/// For the time of a run; none is watched where `watch` is null.
class WatchedForHangs {
 public:
  explicit WatchedForHangs(HangWatch* watch) : watch_{watch} {
    if (watch_ != nullptr) watch_->begin();
  }
  ~WatchedForHangs() {
    if (watch_ != nullptr) watch_->end();
  }
  WatchedForHangs(const WatchedForHangs&) = delete;
  WatchedForHangs& operator=(const WatchedForHangs&) = delete;

 private:
  HangWatch* watch_;
};

}  // namespace esker::tasks::detail
