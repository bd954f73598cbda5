// The queue of copies, and the thread that hands chunks to the device.
#include <esker/transfer/copy/chunks.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <future>
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
  // Of normal priority. The queue's thread keeps the first error, and fulfils the promise once no chunk runs.
  std::exception_ptr error;
  std::promise<void> promise;
  std::shared_future<void> done = promise.get_future().share();

  void keep_error() {
    if (error == nullptr) error = std::current_exception();
  }
  void finish() {
    if (error != nullptr) {
      promise.set_exception(error);
    } else {
      promise.set_value();
    }
  }
};

bool CopyTicket::is_done() const {
  if (state_->end.has_value()) return state_->end->is_done();
  return state_->done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void CopyTicket::synchronize() const {
  if (state_->end.has_value()) return state_->end->synchronize();
  state_->done.get();
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
    try {
      high_.synchronize();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "esker: a CopyQueue ends with copies that failed: %s\n", error.what());
    }
  }

  std::shared_ptr<CopyTicket::State> submit(const Copy& copy, StreamPriority priority) {
    check_copies({&copy, 1});
    auto state = std::make_shared<CopyTicket::State>();
    state->copy = copy;
    if (priority == StreamPriority::kHigh) {
      Event end = device_.event();
      const std::lock_guard lock(high_mutex_);
      try {
        for (std::size_t at = 0; at < copy.bytes; at += chunk_bytes_) start(copy, at, high_);
        high_.record(end);
      } catch (...) {
        let_end(high_);
        throw;
      }
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
  struct Chunk {
    Event end;
    std::shared_ptr<CopyTicket::State> of;
    bool is_last;
  };

  void start(const Copy& copy, std::size_t at, const Stream& stream) const {
    device_.copy_async(static_cast<std::byte*>(copy.to) + at, static_cast<const std::byte*>(copy.from) + at,
                       std::min(chunk_bytes_, copy.bytes - at), stream);
  }
  /// Of a copy that has failed already: what else goes wrong is not said.
  static void let_end(const Stream& stream) {
    try {
      stream.synchronize();
    } catch (const std::exception&) {
    }
  }
  void end_oldest(std::deque<Chunk>& under_way, std::vector<Event>& unused) const {
    using std::chrono::microseconds;
    Chunk& chunk = under_way.front();
    try {
      while (!chunk.end.is_done()) std::this_thread::sleep_for(microseconds(4));
    } catch (...) {
      chunk.of->keep_error();
    }
    if (chunk.is_last) chunk.of->finish();
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
          under_way.push_back({std::move(unused.back()), state, at >= state->copy.bytes});
          unused.pop_back();
        } while (at < state->copy.bytes);
      } catch (...) {
        state->keep_error();
        // Its chunks use the caller's memory, one of them perhaps without an event.
        while (!under_way.empty()) end_oldest(under_way, unused);
        let_end(normal_);
        state->finish();
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
