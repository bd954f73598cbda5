// Waits for a run on a GPU, and tells it when the user wants it to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include <esker/device/device.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/options.hpp>

namespace esker::tasks::detail {

/// Contract One thread. A request travels by a copy: domains may fill the GPU, and a kernel would find no
///          place beside them.
class StopRelay {
 public:
  explicit StopRelay(const Device& device)
      : device_{device}, one_{device.pinned<std::uint32_t>(1, {"a stop request"})} {}

  /// Until the stream is idle.
  void wait(const Stream& stream, const StopToken& token, SystemAtomic<std::uint32_t>* word) {
    const auto start = std::chrono::steady_clock::now();
    while (!stream.is_idle()) {
      // Again and again: the run begins with the word at 0, and may do so after the first copy.
      if (token.stop_requested() && (!stream_ || stream_->is_idle())) {
        if (!stream_) stream_.emplace(device_.stream());
        one_[0] = 1;
        device_.copy_async(word, one_.data(), sizeof(std::uint32_t), *stream_);
      }
      if (std::chrono::steady_clock::now() - start < kAwake) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds{20});
      }
    }
    if (stream_) stream_->synchronize();  // or the next run might be stopped
  }

 private:
  // A nap ends some 70 µs late, which short runs would be measured with.
  static constexpr std::chrono::microseconds kAwake{esker::detail::kLanesUseHostCores ? 500 : 5000};

  const Device device_;
  PinnedArray<std::uint32_t> one_;
  std::optional<Stream> stream_;  // from the first request on
};

}  // namespace esker::tasks::detail
