// The queue of copies, and the thread that hands chunks to the device.
#include <esker/transfer/copy/chunks.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <esker/device/cpu/timers.hpp>
#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

struct CopyTicket::State {
  Copy copy;
  std::optional<Event> end;  // of high priority; set before anybody has the ticket
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable news;
  bool is_done = false;

  void finish(std::exception_ptr why) {
    {
      const std::lock_guard lock(mutex);
      error = std::move(why);
      is_done = true;
    }
    news.notify_all();
  }
};

bool CopyTicket::is_done() const {
  if (state_->end.has_value()) return state_->end->is_done();
  const std::lock_guard lock(state_->mutex);
  return state_->is_done;
}

void CopyTicket::wait() const {
  if (state_->end.has_value()) return state_->end->synchronize();
  std::unique_lock lock(state_->mutex);
  state_->news.wait(lock, [&] { return state_->is_done; });
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

class CopyQueue::Impl {
 public:
  Impl(const Device& device, const CopyQueueOptions& options)
      : device_{device},
        most_in_flight_{options.chunks_in_flight},
        normal_{device.stream()},
        high_{device.stream(StreamPriority::kHigh)} {
    if (!(options.bytes_per_s > 0) || options.chunk_time.count() <= 0 || options.chunks_in_flight == 0) {
      throw Error(Error::Kind::kTransfer,
                  fmt::format("CopyQueue: {} bytes/s, chunks of {} ns, {} in flight: all are above 0",
                              options.bytes_per_s, options.chunk_time.count(), options.chunks_in_flight));
    }
    const double bytes = options.bytes_per_s * std::chrono::duration<double>(options.chunk_time).count();
    chunk_bytes_ = std::max<std::size_t>(static_cast<std::size_t>(std::min(bytes, 1e15)) / 4096 * 4096, 4096);
    thread_ = std::thread([this] { work(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    news_.notify_all();
    thread_.join();
  }

  std::shared_ptr<CopyTicket::State> submit(const Copy& copy, StreamPriority priority) {
    check_copies({&copy, 1});
    auto state = std::make_shared<CopyTicket::State>();
    state->copy = copy;
    if (priority == StreamPriority::kHigh) {
      Event end = device_.event();
      const std::lock_guard lock(high_mutex_);
      for (std::size_t at = 0; at < copy.bytes; at += chunk_bytes_) start(copy, at, high_);
      high_.record(end);
      state->end.emplace(std::move(end));
      return state;
    }
    const std::lock_guard lock(mutex_);
    waiting_.push_back(state);
    news_.notify_all();
    return state;
  }
  std::size_t chunk_bytes() const { return chunk_bytes_; }

 private:
  /// A chunk that is under way, and the copy that it ends, if it does.
  struct Chunk {
    Event end;
    std::shared_ptr<CopyTicket::State> last_of;
  };

  void start(const Copy& copy, std::size_t at, const Stream& stream) const {
    device_.copy_async(static_cast<std::byte*>(copy.to) + at, static_cast<const std::byte*>(copy.from) + at,
                       std::min(chunk_bytes_, copy.bytes - at), stream);
  }
  void end_oldest(std::deque<Chunk>& under_way, std::vector<Event>& unused) const {
    using std::chrono::microseconds;
    Chunk& chunk = under_way.front();
    std::exception_ptr error;
    try {
      while (!chunk.end.is_done()) std::this_thread::sleep_for(microseconds(4));
    } catch (...) {
      error = std::current_exception();
    }
    if (chunk.last_of != nullptr) chunk.last_of->finish(error);
    unused.push_back(std::move(chunk.end));
    under_way.pop_front();
  }
  void work() {
    use_fine_timers();
    std::deque<Chunk> under_way;
    std::vector<Event> unused;
    for (;;) {
      std::shared_ptr<CopyTicket::State> state;
      {
        std::unique_lock lock(mutex_);
        if (under_way.empty()) news_.wait(lock, [&] { return is_stopping_ || !waiting_.empty(); });
        if (!waiting_.empty()) {
          state = waiting_.front();
          waiting_.pop_front();
        } else if (under_way.empty()) {
          return;
        }
      }
      if (state == nullptr) {
        end_oldest(under_way, unused);
        continue;
      }
      try {
        std::size_t at = 0;
        do {
          if (under_way.size() == most_in_flight_) end_oldest(under_way, unused);
          if (unused.empty()) unused.push_back(device_.event());
          if (state->copy.bytes > 0) start(state->copy, at, normal_);
          at += chunk_bytes_;
          normal_.record(unused.back());
          under_way.push_back({std::move(unused.back()), at >= state->copy.bytes ? state : nullptr});
          unused.pop_back();
        } while (at < state->copy.bytes);
      } catch (...) {
        state->finish(std::current_exception());
      }
    }
  }

  const Device device_;
  const std::size_t most_in_flight_;
  std::size_t chunk_bytes_ = 0;
  Stream normal_, high_;
  std::mutex high_mutex_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<CopyTicket::State>> waiting_;
  bool is_stopping_ = false;
  std::thread thread_;
};

CopyQueue::CopyQueue(const Device& device, const CopyQueueOptions& options)
    : impl_{std::make_unique<Impl>(device, options)} {}
CopyQueue::~CopyQueue() = default;
CopyTicket CopyQueue::submit(const Copy& copy, StreamPriority priority) {
  return CopyTicket(impl_->submit(copy, priority));
}
std::size_t CopyQueue::chunk_bytes() const { return impl_->chunk_bytes(); }

}  // namespace esker::transfer
