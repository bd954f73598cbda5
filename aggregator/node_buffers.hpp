// One open node buffer a destination, private to the thread that fills them.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <esker/aggregator/buffer.hpp>
#include <esker/aggregator/command.hpp>
#include <esker/aggregator/trace.hpp>
#include <esker/aggregator/wire.hpp>
#include <esker/device/error.hpp>
#include <esker/device/packing.hpp>

namespace esker {

/// Where closed buffers go.
class BufferSink {
 public:
  /// Takes the buffer; never refuses and never waits.
  virtual void submit(Buffer* buffer) = 0;
  /// Handlers outrun the network: what others send should wait.
  virtual bool was_congested() const { return false; }
  /// A thread that fills buffers cannot go on, for this reason. Without a job to fail it is thrown on.
  virtual void fail(const Error& error) { throw error; }

 protected:
  ~BufferSink() = default;
};

/// What happens when the pool has no buffer left.
enum class OnExhausted {
  kPushBack,  // append() takes fewer messages: for threads that can wait
  kGrow,      // a buffer outside the pool: for handlers, which must not (docs/reference/progress.md)
};

/// The time on the clock by which a buffer's time-out is counted; see Aggregators::set_producing().
struct IdleClock {
  bool is_process_time;
  std::chrono::nanoseconds now;
};

/// Messages of one package: row r of message i is rows[r * stride + i].
struct PackageView {
  std::uint32_t command;
  std::uint32_t words;
  std::uint32_t count;
  std::uint32_t stride;
  const std::uint64_t* rows;
  const PackageLife* life = nullptr;  // while tracing, of a package that is followed
};

/// Repacks messages into one buffer a destination PE (stage 2 of the thesis's Figure A-1): a packer of
/// packages (device/packing.hpp), whose bins are the PEs and whose open packages are runs.
///
/// Contract. One thread at a time. Every message appended is in a buffer that is submitted once it is
///           full, its command changes with too little space left, or a close...() call takes it.
/// Layout.   A run opens with space for all that still fits, values behind the last address that could
///           come; closing it early slides the value arrays down. Full buffers, the usual case, never move.
///           The requests of a package are packed (is_packed()) if the addresses of all of them allow it.
///           Replies to a frame's requests are at most one frame.
class NodeBuffers {
 public:
  using Clock = std::chrono::steady_clock;

  /// A destination's open buffer and, as the open package, its last run.
  struct Package : OpenPackage {
    Package() : OpenPackage{} {}
    Buffer* buffer = nullptr;
    std::uint64_t* first = nullptr;  // first address of the open run; null: none
    std::uint32_t used = 0;          // bytes in finished runs, the header included
    std::uint32_t replies = 0;       // the same of the frame that replies to them are
    std::uint32_t messages = 0;      // in finished runs
    std::uint32_t runs = 0;
    Clock::time_point opened;
    const std::uint64_t* seen_next = nullptr;  // close_stale()'s memory
    std::chrono::nanoseconds seen_at{};
  };

  NodeBuffers(std::uint32_t source, std::uint32_t n_pes, BufferPool& pool, OnExhausted on_exhausted,
              BufferSink& sink, Tracer* tracer = nullptr);
  ~NodeBuffers();
  NodeBuffers(const NodeBuffers&) = delete;
  NodeBuffers& operator=(const NodeBuffers&) = delete;

  /// Appends messages first .. count-1 and returns the first one not taken: count, or less when the
  /// pool pushed back.
  std::uint32_t append(const PackageView& package, std::uint32_t first);

  /// The same of messages that all go to one PE, whatever their addresses say: rows are copied.
  std::uint32_t append_to_one(std::uint32_t pe, const PackageView& package, std::uint32_t first);

  /// Closes every buffer that holds a message.
  void close() {
    (void)close_where([](std::uint32_t) { return true; });
  }
  /// Of these, those for PEs for which `may(pe)`. True if one was closed.
  template <class May>
  bool close_where(May may) {
    const std::uint32_t before = open_buffers_;
    for (std::uint32_t pe = 0; open_buffers_ > 0 && pe < open_.size(); ++pe) {
      if (open_[pe].buffer != nullptr && may(pe)) close_buffer(pe, "flush");
    }
    return open_buffers_ < before;
  }

  /// Closes buffers that got nothing since a call `timeout` or more earlier on the same clock, or that
  /// are older than `max_age`. True if one was closed.
  bool close_stale(IdleClock idle, std::chrono::nanoseconds timeout, std::chrono::nanoseconds max_age);

  bool empty() const { return open_buffers_ == 0; }
  std::uint32_t open_buffers() const { return open_buffers_; }
  /// Bytes in buffers outside the pool that were ever opened: how far handlers outran the network.
  std::uint64_t grown_bytes() const { return grown_bytes_; }

 private:
  static inline std::uint64_t nowhere_[1];  // never written: where a cursor without a run stands

  // The run that a destination is filling. Hot: two words a message are read and one is written.
  struct Cursor {
    std::uint64_t* next = nowhere_;  // the next message's address
    std::uint64_t* end = nowhere_;   // == next: no space
  };

  template <bool kHasValues, bool kPacks>
  std::uint32_t append_messages(const PackageView& package, std::uint32_t first);
  /// Makes space for one message or more. False: the pool has pushed back.
  bool open_run(std::uint32_t pe);
  void finish_run(std::uint32_t pe);
  void close_buffer(std::uint32_t pe, const char* why);
  void follow(const PackageView& package);
  void switch_command(std::uint32_t command, std::uint32_t words);

  const std::uint32_t source_;
  BufferPool& pool_;
  const OnExhausted on_exhausted_;
  BufferSink& sink_;
  Tracer* const tracer_;
  std::vector<Cursor> cursor_;
  std::vector<Package> open_;
  std::uint32_t command_ = 0;
  std::uint32_t words_ = 0;  // of a message here
  std::uint32_t open_buffers_ = 0;
  std::uint64_t grown_bytes_ = 0;
  bool seen_on_process_time_ = false;  // the clock of every seen_at
};

static_assert(Packer<NodeBuffers, const PackageView&, std::uint32_t>);

}  // namespace esker
