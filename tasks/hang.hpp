// Who says that nothing has moved in a run for long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <esker/device/device.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/options.hpp>
#include <esker/tasks/progress.hpp>

namespace esker::tasks::detail {

struct Ending;

/// Domains, and stacks, that a report names one by one.
inline constexpr std::uint32_t kMostNamed = 32;

/// Reads a device's memory while kernels run on it: on a GPU by copies in a stream of its own.
class Peek {
 public:
  explicit Peek(const Device& device) : device_{device}, stream_{device.stream()} {}

  template <class T>
  class Seen {
   public:
    const T& operator[](std::size_t i) const { return at_[i]; }
    const T* data() const { return at_; }

   private:
    friend Peek;
    std::unique_ptr<T[]> copy_;
    const T* at_ = nullptr;
  };
  /// `n` objects from there on, as they are about now; on the CPU those themselves.
  template <class T>
  Seen<T> operator()(const T* from, std::size_t n) const {
    Seen<T> seen;
    seen.at_ = from;
    if (device_.backend() == Backend::kCpu) return seen;
    seen.copy_ = std::make_unique<T[]>(n);
    seen.at_ = seen.copy_.get();
    // Memory that is not pinned: to allocate such may wait for kernels.
    device_.copy_async(seen.copy_.get(), from, n * sizeof(T), stream_);
    stream_.synchronize();
    return seen;
  }
  void fill(void* at, std::uint8_t value, std::size_t bytes) const {
    device_.fill(at, value, bytes, stream_);
    stream_.synchronize();
  }

 private:
  const Device device_;
  const Stream stream_;
};

/// What the host sees of a run's Progress.
struct SeenProgress {
  std::uint32_t domains;
  Peek::Seen<Progress::Line> lines;
  Peek::Seen<DeviceAtomic<std::uint32_t>> notes;
};

/// Looks at a run's progress, and says when nothing has moved for some time: once, until something moves
/// again.
///
/// Contract begin() before a run; then one thread looks.
/// Errors   Error{kDevice} where the run's kernel has failed. What Options::on_hang throws is kept for
///          rethrow(), after the run, which whoever looks ends.
class ESKER_API HangWatch {
 public:
  /// The report: a headline, and a line for each that is worth one.
  using Explain = std::function<std::string(const SeenProgress& seen, const Peek& peek)>;
  /// `kind` of run: "tasks". Options::hang_after is not 0. `ending` is the run's, in the device's memory.
  HangWatch(const Device& device, const Options& options, std::string kind, Ending* ending,
            std::uint32_t domains, std::size_t notes, Explain explain);

  const Progress& progress() const { return progress_; }
  void begin();

  /// Nothing has moved for so long. Copies the domains' lines now and then. `more` changes when something
  /// moves that domains do not know of.
  bool was_still(std::uint64_t more = 0);
  /// Who does what and waits for whom goes to Options::on_hang. `where` in place of the device's name, and
  /// `more` lines.
  void say(const std::string& where = "", const std::string& more = "");
  /// For a thread that looks until the run has ended: says it, where nothing moves.
  void look();
  bool has_thrown() const { return thrown_ != nullptr; }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }
  std::chrono::milliseconds interval() const;

 private:
  using Clock = std::chrono::steady_clock;

  const Device device_;
  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> on_hang_;
  const std::string kind_;
  Ending* const ending_;
  const std::uint32_t domains_;
  const std::size_t notes_;
  const Explain explain_;
  const Peek peek_;
  const DeviceArray<Progress::Line> line_memory_;
  const DeviceArray<DeviceAtomic<std::uint32_t>> note_memory_;
  const Progress progress_;
  std::uint64_t moves_ = 0, more_ = 0;
  Clock::time_point moved_at_, looked_at_;
  bool was_still_ = false, has_said_ = false;
  std::exception_ptr thrown_;  // by on_hang
};

/// A thread that looks, for the time of a run; none where `watch` is null.
class ESKER_API WatchedForHangs {
 public:
  explicit WatchedForHangs(HangWatch* watch);
  ~WatchedForHangs();
  WatchedForHangs(const WatchedForHangs&) = delete;
  WatchedForHangs& operator=(const WatchedForHangs&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;  // under mutex_
  std::jthread thread_;     // last: it uses the others
};

/// A HangWatch's Explain for runs of fork-join. Of a join record in the device's memory, bundles that are out
/// are counted at join_words[join * words_a_join].
ESKER_API std::string explain_fork_join(const SeenProgress& seen, const Peek& peek,
                                        const std::uint32_t* join_words, std::size_t words_a_join,
                                        std::uint32_t joins);

}  // namespace esker::tasks::detail
