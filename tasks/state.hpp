// What the domains of a run share: work that changes hands, memory, and the end.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/ending.hpp>
#include <esker/tasks/level.hpp>
#include <esker/tasks/watch.hpp>

namespace esker::tasks::detail {

/// Numbers [0, size), handed out and taken back.
///
/// Contract Any lane or thread. peak() is how many were ever out. Numbers that came back go out before
///          others, so it is how many were out at a time at most.
/// Protocol A stack of those that came back, under a word of {changes, first}; when it is empty, numbers that
///          were never out.
/// Ordering [pool] who takes a number sees what its last holder wrote.
class Pool {
 public:
  ESKER_HD void reset(std::uint32_t* next, std::uint32_t size) {
    next_ = next;
    size_ = size;
    first_.store_relaxed(kNone);
    fresh_.store_relaxed(0);
  }
  /// kNone: all are out.
  ESKER_HD std::uint32_t try_take() {
    std::uint64_t first = first_.load_acquire();  // [pool]
    while (static_cast<std::uint32_t>(first) != kNone) {
      const auto number = static_cast<std::uint32_t>(first);
      // Racy: the exchange fails if another lane has taken it meanwhile.
      const std::uint64_t second = ((first >> 32) + 1) << 32 | next_at(number).load_relaxed();
      if (first_.compare_exchange_acq_rel(first, second)) return number;
    }
    if (fresh_.load_relaxed() >= size_) return kNone;
    const std::uint32_t number = fresh_.fetch_add_relaxed(1);
    return number < size_ ? number : kNone;
  }
  ESKER_HD void give_back(std::uint32_t number) {
    std::uint64_t first = first_.load_relaxed();
    do {
      next_at(number).store_relaxed(static_cast<std::uint32_t>(first));
    } while (!first_.compare_exchange_acq_rel(first, ((first >> 32) + 1) << 32 | number));  // [pool]
  }
  ESKER_HD std::uint32_t peak() const {
    const std::uint32_t fresh = fresh_.load_relaxed();
    return fresh < size_ ? fresh : size_;
  }
  /// Racy: few numbers are left that were never out.
  ESKER_HD bool was_low() const { return fresh_.load_relaxed() >= size_ - size_ / 8; }

 private:
  ESKER_HD DeviceAtomic<std::uint32_t>& next_at(std::uint32_t number) const {
    return reinterpret_cast<DeviceAtomic<std::uint32_t>*>(next_)[number];
  }

  std::uint32_t* next_ = nullptr;
  std::uint32_t size_ = 0;
  DeviceAtomic<std::uint32_t> fresh_;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> first_;
};

/// Numbers as a Pool has them, in many pools: thousands of waves would wait for each other at one.
class Pools {
 public:
  ESKER_HD void reset(std::uint32_t* next, std::uint32_t size, std::uint32_t domains) {
    shards_ = shards_for(domains);
    if (shards_ > size) shards_ = size < 1 ? 1 : size;
    each_ = size / shards_;
    for (std::uint32_t s = 0; s < shards_; ++s) shard_[s].reset(next + s * each_, each_);
  }
  struct Taken {
    std::uint32_t number;  // kNone: all are out
    bool is_low;           // racy: few are left that were never out
  };
  ESKER_HD Taken try_take(std::uint32_t domain) {
    for (std::uint32_t tried = 0; tried < shards_; ++tried) {
      const std::uint32_t s = (domain + tried) % shards_;
      const std::uint32_t number = shard_[s].try_take();
      if (number != kNone) {
        return {s * each_ + number, (tried + 1) * 8 > shards_ * 7 && shard_[s].was_low()};
      }
    }
    return {kNone, true};
  }
  ESKER_HD void give_back(std::uint32_t number) { shard_[number / each_].give_back(number % each_); }
  /// How many were ever out. The pools had theirs out at different times, so fewer may have been out at a
  /// time.
  ESKER_HD std::uint32_t peak() const {
    std::uint32_t sum = 0;
    for (std::uint32_t s = 0; s < shards_; ++s) sum += shard_[s].peak();
    return sum;
  }
  /// A size with which so many may be out before any taker hears that few are left.
  static std::uint64_t size_for(std::uint64_t out, std::uint32_t domains) {
    const std::uint32_t shards = shards_for(domains);
    if (shards == 1) return out + out / 7 + 8;
    return (out / (shards * 7 / 8) + 1) * shards;  // these are all out by then
  }

 private:
  static constexpr std::uint32_t kMostShards = 64, kDomainsAShard = 16;

  ESKER_HD static std::uint32_t shards_for(std::uint32_t domains) {
    const std::uint32_t shards = domains / kDomainsAShard;
    return shards < 1 ? 1 : (shards > kMostShards ? kMostShards : shards);
  }

  std::uint32_t shards_ = 1, each_ = 0;
  Pool shard_[kMostShards];
};

/// Hands bundles from domains that have work to domains that ask for it. Each domain has a bundle of its own,
/// which others fill, and a word that says what is with it.
///
/// Contract A domain that has nothing asks, and looks at its own word until its bundle is full. A domain that
///          has work to spare looks at the words of kWindow others, promises something to one of them that
///          asks, and keeps its word at once: nothing ever waits for a domain that waits.
/// Protocol A word goes from busy to asking (its domain), from asking to promised (one giver, by an
///          exchange), from promised to full (the same), from full to busy (its domain).
/// Ordering [bundle] what the giver has written happens before what the taker reads.
///          [request] what the taker has read of its last bundle happens before what the next giver writes.
class Mailboxes {
 public:
  enum State : std::uint32_t { kBusy, kAsking, kPromised, kFull };
  static constexpr std::uint32_t kWindow = 32;

  ESKER_HD void reset(std::uint32_t* states, std::uint32_t domains) {
    states_ = states;
    domains_ = domains;
  }
  ESKER_HD std::uint32_t windows() const { return (domains_ + kWindow - 1) / kWindow; }
  /// Racy: one of that number asks. Numbers past the last domain do not.
  ESKER_HD bool was_asking(std::uint32_t domain) const {
    return domain < domains_ && state(domain).load_relaxed() == kAsking;
  }
  ESKER_HD void ask(std::uint32_t domain) { state(domain).store_release(kAsking); }  // [request]
  /// False: others have promised it something, or it asks no more. Else put() must follow.
  ESKER_HD bool try_promise(std::uint32_t domain) {
    std::uint32_t asking = kAsking;
    return state(domain).compare_exchange_acq_rel(asking, kPromised);  // [request]
  }
  ESKER_HD void put(std::uint32_t domain) { state(domain).store_release(kFull); }  // [bundle]
  ESKER_HD bool has_asked(std::uint32_t domain) const { return state(domain).load_relaxed() != kBusy; }
  /// A domain asks no more, unless something is promised: that comes, and waits for it.
  ESKER_HD void withdraw(std::uint32_t domain) {
    std::uint32_t asking = kAsking;
    (void)state(domain).compare_exchange_acq_rel(asking, kBusy);
  }
  ESKER_HD bool try_get(std::uint32_t domain) {
    if (state(domain).load_relaxed() != kFull) return false;
    (void)state(domain).load_acquire();  // [bundle]
    state(domain).store_relaxed(kBusy);
    return true;
  }

 private:
  ESKER_HD DeviceAtomic<std::uint32_t>& state(std::uint32_t domain) const {
    return reinterpret_cast<DeviceAtomic<std::uint32_t>*>(states_)[domain];
  }

  std::uint32_t* states_ = nullptr;  // kBusy, one a domain
  std::uint32_t domains_ = 0;
};

/// Where results go, if the tasks came from another PE: into their crate, which a port then takes.
inline constexpr std::uint32_t kJoinsElsewhere = kNone - 1;

struct PortMemory;

/// Sums over domains.
struct Counts {
  std::uint64_t tasks, batches, full_batches, resumed, given, spilled, suspended, asked;
  std::uint64_t idle_ns, domain_ns, in_tasks_ns;  // without work; from a domain's start to its end; in tasks
};

/// Of one domain, at hand: when it worked. All lanes call start() to close(); one keeps them.
class DomainTimes {
 public:
  template <class Lanes>
  ESKER_HD void start(const Lanes& lanes) {
    lanes.leader([&] {
      idle_ns_ = in_tasks_ = 0;
      began_ns_ = Lane::clock_ns();
      began_ = Lane::clock_ticks();
    });
  }
  template <class Lanes>
  ESKER_HD void add_idle(const Lanes& lanes, std::uint64_t began_ns) {
    lanes.leader([&] { idle_ns_ += Lane::clock_ns() - began_ns; });
  }
  /// Work begins: a span of a run that is watched.
  template <class Lanes>
  ESKER_HD void open(const Lanes& lanes, std::uint64_t tasks) {
    lanes.leader([&] {
      opened_ns_ = Lane::clock_ns();
      tasks_before_ = tasks;
    });
  }
  template <class Lanes>
  ESKER_HD void close(const Lanes& lanes, const Watch& watch, std::uint64_t tasks, std::uint32_t domain) {
    lanes.leader([&] { watch.add_span({opened_ns_, Lane::clock_ns(), tasks - tasks_before_, domain}); });
  }
  template <class Lanes>
  ESKER_HD void enter_tasks(const Lanes& lanes) {
    lanes.leader([&] { entered_ = Lane::clock_ticks(); });
  }
  template <class Lanes>
  ESKER_HD void leave_tasks(const Lanes& lanes) {
    lanes.leader([&] { in_tasks_ += Lane::clock_ticks() - entered_; });
  }
  /// The leader's, at the domain's end.
  ESKER_HD void sum_up(Counts& counts) const {
    counts.idle_ns = idle_ns_;
    counts.domain_ns = Lane::clock_ns() - began_ns_;
    const double share = static_cast<double>(in_tasks_) / static_cast<double>(Lane::clock_ticks() - began_);
    counts.in_tasks_ns = static_cast<std::uint64_t>(share * static_cast<double>(counts.domain_ns));
  }

 private:
  std::uint64_t began_ns_, idle_ns_, opened_ns_, tasks_before_;
  std::uint64_t began_, entered_, in_tasks_;  // ticks
};

/// One run, in memory that all domains reach.
struct RunState : Ending {
  Pools pages, joins;
  Mailboxes mailboxes;

  // Of a run over PEs (tasks/port.hpp): crates, each out of the pool in one list at most.
  Pool crates;
  Pool placed, given, finished;  // for the port: tasks for PEs that they name, for PEs that ask, and done
  Pool arrived;                  // for domains that have nothing: tasks of other PEs ...
  Pool ready;                    // ... and join records whose stacks are to go on
  DeviceAtomic<std::uint32_t> taken, idle;       // out of these two; domains that have nothing
  DeviceAtomic<std::uint32_t> wanted, promised;  // crates for PEs that ask, both counted up
  PortMemory* port;
  std::uint32_t* crate_words;
  std::uint32_t pe, n_pes;

  std::uint32_t* page_words;
  std::uint32_t* bundle_words;  // a domain's after the other
  std::uint32_t* join_words;
  void* local;         // Options::local
  std::uint64_t seed;  // of tests' decisions at random

  /// Where tasks do not join: bundles that are not finished, and crates that other PEs have.
  alignas(kLineBytes) DeviceAtomic<std::uint32_t> unfinished;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> sum;  // of what tasks have added
  DeviceAtomic<std::uint64_t> counts[sizeof(Counts) / 8];

  /// Racy: other PEs want tasks.
  ESKER_HD bool pe_asked() const { return wanted.load_relaxed() != promised.load_relaxed(); }
  /// True: a crate must be put into `given`.
  ESKER_HD bool try_promise_to_pe() {
    std::uint32_t before = promised.load_relaxed();
    return before != wanted.load_relaxed() && promised.compare_exchange_relaxed(before, before + 1);
  }
};

}  // namespace esker::tasks::detail
