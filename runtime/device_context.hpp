// What a kernel needs of the runtime: where the heap is, who there is, and the way to the package queue.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <esker/aggregator/command.hpp>
#include <esker/aggregator/update.hpp>
#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/handler.hpp>
#include <esker/queue/package_queue.hpp>
#if defined(ESKER_DEVICE_COMPILER)
#include <esker/net/gpu/sink.hpp>
#endif

namespace esker {

class Tracer;

/// How a host producer waits: it lends itself to aggregation and progress meanwhile. The runtime's.
class ProducerServices {
 public:
  /// One step of aggregation or progress on the caller's thread. Throws Error if the runtime has failed.
  virtual void help() = 0;
  /// Until the slot of `ticket` is empty. Throws Error if the runtime has failed.
  virtual void wait_empty(PackageQueue& queue, std::uint64_t ticket) = 0;
  /// Where Config::pending_messages bounds them: counts `messages` more as pending, before they are
  /// published. False, with nothing counted: not now. What has nothing else pending is never refused.
  virtual bool try_claim_pending(std::uint64_t messages) = 0;
  /// Until that succeeds.
  virtual void claim_pending(std::uint64_t messages) = 0;
  /// Of the messages claimed, so many are not published after all.
  virtual void unclaim_pending(std::uint64_t messages) = 0;
  /// Closes what keeps messages from leaving. Whoever waits calls it again and again: others publish
  /// meanwhile.
  virtual void flush_pending() = 0;
  /// A package of `count` messages of `command` is about to be published / has been.
  virtual void will_publish(Command command, std::uint32_t count) = 0;
  virtual void has_published() = 0;
  /// It stands for so many more calls, of which `remote` are to other PEs.
  virtual void has_combined(std::uint64_t calls, std::uint64_t remote) = 0;

 protected:
  ~ProducerServices() = default;
};

namespace detail {
/// Trivially copyable; kernels take it by value. Valid while its Runtime lives.
struct KernelContext {
  HeapView heap;
  std::uint32_t pe = 0;
  std::uint32_t n_pes = 1;         // destinations: more than there are PEs in the one-node projection
  std::uint32_t most_columns = 0;  // messages a package may hold; 0: as many as fit
  PackageQueue queue;
  ProducerServices* services = nullptr;    // host only
  const gpu::PeState* pe_state = nullptr;  // where kernels run on a GPU; in its memory
  bool is_reserved = false;                // there: Runtime::reserve_for() has been called
  std::uint32_t bins = 0;                  // host only: packages that a group there keeps open
  Tracer* tracer = nullptr;                // host only; null: off
};
}  // namespace detail

#if defined(ESKER_ON_CPU)

/// The package queue as elections see it (concept Sink, device/election/sink.hpp).
class ESKER_API PackageSink {
 public:
  /// With a lane of a group, a wait for pending messages lets its siblings run: one of them may hold the
  /// ticket that such a message waits behind.
  explicit PackageSink(const detail::KernelContext& context, const GroupLane* lane = nullptr)
      : context_{&context}, lane_{lane} {}

  std::uint32_t columns(std::uint32_t words) const {
    const std::uint32_t fit = context_->queue.columns(words);
    return context_->most_columns == 0 || fit < context_->most_columns ? fit : context_->most_columns;
  }
  std::uint64_t reserve(std::uint32_t packages) {
    if (context_->most_columns != 0) claim(std::uint64_t{packages} * context_->most_columns);
    return queue().reserve(packages);
  }
  bool was_empty(std::uint64_t ticket) const { return queue().was_empty(ticket); }
  /// One step of waiting: some aggregation or progress, then the other lanes of the group.
  template <class L>
  void pause(const L& lane) {
    context_->services->help();
    lane.yield();
  }
  /// For lanes that have no siblings on their thread.
  void wait_empty(std::uint64_t ticket) {
    if (!queue().was_empty(ticket)) context_->services->wait_empty(queue(), ticket);
  }
  std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return context_->queue.row(ticket, words, r);
  }
  std::uint32_t pe() const { return context_->pe; }
  void has_combined(std::uint64_t calls, std::uint64_t remote) {
    context_->services->has_combined(calls, remote);
  }
  void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words, std::uint32_t count);

 private:
  // A view: its methods change shared memory, not the view.
  PackageQueue& queue() const { return const_cast<PackageQueue&>(context_->queue); }

  void claim(std::uint64_t messages) {
    ProducerServices& services = *context_->services;
    if (lane_ == nullptr) return services.claim_pending(messages);
    while (!services.try_claim_pending(messages)) {
      services.flush_pending();
      pause(*lane_);
    }
  }

  const detail::KernelContext* context_;
  const GroupLane* lane_;
};

/// The CPU's plain loop: one host thread's open packages. Lanes that run one after the other are the
/// degenerate case of auto-grouping, so no counter is shared and a message costs a store and an add.
///
/// Contract. One thread. A package is staged here and takes a queue slot only when it is full or
///           flush() comes, so no slot is held by a lane that computes (docs/design/package-queue.md).
class ESKER_API Outbox {
 public:
  explicit Outbox(const detail::KernelContext& context) : sink_{context} {}

  /// Publishes whatever is staged. Requires that no Filling is alive.
  void flush();

  class Filling;

 private:
  /// The package that is being filled: word r of the next message goes to next[r * columns].
  struct Open {
    std::uint64_t* next = nullptr;
    std::uint64_t* end = nullptr;  // == next: full, or nothing is open
    std::uint32_t columns = 0;
    std::uint32_t command = 0;
    bool combines = false;
  };
  // Commands that a kernel alternates between stay open side by side.
  static constexpr std::uint32_t kOpenCommands = 4;
  struct Staged {
    std::uint32_t command = 0;
    std::uint32_t words = 0;
    std::uint32_t count = 0;
    std::uint32_t columns = 0;
    std::vector<std::uint64_t> payload;
    std::uint64_t combined = 0;  // calls that share a column with an earlier one
    std::uint64_t combined_remote = 0;
    std::uint32_t plain_left = 0;  // packages that do not look for such calls
  };
  // Where few calls can be combined, so many packages of 16 do not look for them.
  static constexpr std::uint32_t kPlainPackages = 15;
  // A package takes so many calls for each of its columns, and then fills: calls that all find their word
  // would keep it here as long as the kernel runs.
  static constexpr std::uint32_t kCallsAColumn = 1024;

  // By value, in and out: the loop's copy has no address.
  Open switch_to(Open open, std::uint32_t command, std::uint32_t words);
  Open publish(Open open);
  void publish(Staged& staged);
  static bool combines(const Staged& staged);

  /// Adds the message to one in the open package that updates the same word, if it finds one.
  bool combine(const Open& open, Command command, const std::uint64_t (&words)[2]) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // Fibonacci hashing: the top bits mix all
    std::uint64_t* const row = open.end - open.columns;
    const auto count = static_cast<std::uint32_t>(open.next - row);
    std::uint32_t& column = column_of_[words[0] * kGolden >> (64 - kColumnBits)];
    Staged& staged = staged_[current_];
    if (column >= count || row[column] != words[0] ||
        staged.combined >= std::uint64_t{kCallsAColumn} * open.columns) {
      column = count;  // where it will stand
      return false;
    }
    std::uint64_t& value = row[std::size_t{column} + open.columns];
    value = combined(command, value, words[1]);
    ++staged.combined;
    staged.combined_remote += words[0] >> kOffsetBits != sink_.pe() ? 1 : 0;
    return true;
  }

  Open open_;                  // while no Filling is alive
  std::uint32_t current_ = 0;  // the staged package that is open
  std::uint32_t next_victim_ = 0;
  std::array<Staged, kOpenCommands> staged_;
  // Where the last message with this hash of an address went; a guess, since packages and commands change.
  static constexpr int kColumnBits = 8;
  std::array<std::uint32_t, std::size_t{1} << kColumnBits> column_of_{};
  PackageSink sink_;
};

/// The outbox while a loop of lanes runs: the loop's own copy of the open package, which the compiler
/// keeps in registers. What lanes have sent is in the outbox again when it ends, by an exception too.
class Outbox::Filling {
 public:
  explicit Filling(Outbox& outbox) : outbox_{&outbox}, open_{outbox.open_} {}
  ~Filling() { outbox_->open_ = open_; }
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  template <std::uint32_t Words>
  void send(std::uint32_t command, const std::uint64_t (&words)[Words]) {
    if (command != open_.command) [[unlikely]]
      open_ = outbox_->switch_to(open_, command, Words);
    if constexpr (Words == 2) {
      if (open_.combines && outbox_->combine(open_, Command::from_word(command), words)) return;
    }
    for (std::uint32_t r = 0; r < Words; ++r) open_.next[std::size_t{r} * open_.columns] = words[r];
    if (++open_.next == open_.end) [[unlikely]]
      open_ = outbox_->publish(open_);
  }

 private:
  Outbox* outbox_;
  Open open_;
};

#endif

}  // namespace esker
