// What the domains of a run share: work that changes hands, memory, and the end.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/level.hpp>

namespace esker::tasks::detail {

/// Numbers [0, size), handed out and taken back.
///
/// Contract Any lane or thread. peak() is how many were out at a time at most.
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

/// Hands bundles from domains that have work to domains that ask for it.
///
/// Contract A domain that has nothing asks, and looks at its own mailbox until a bundle lies there. A domain
///          that has work to spare promises it to the oldest request that nobody has promised anything, and
///          keeps its word at once: nothing ever waits for a domain that waits.
/// Protocol Requests are numbered. A request's word {number + 1, domain} stands in a ring that has no fewer
///          places than domains, so the word is not written over before its request is promised. Who has read
///          the word and then moves `promised` past it has read the right one.
/// Ordering [bundle] what the giver has written happens before what the taker reads.
///          [request] a taker has emptied its mailbox before a giver can see its request.
class Exchange {
 public:
  ESKER_HD void reset(std::uint64_t* requests, std::uint32_t* mailboxes, std::uint32_t size) {
    requests_ = requests;
    mailboxes_ = mailboxes;
    mask_ = size - 1;
    asked_.store_relaxed(0);
    promised_.store_relaxed(0);
  }
  /// kNone: nothing yet. Else the mailbox is empty again.
  ESKER_HD std::uint32_t try_get(std::uint32_t domain) const {
    const std::uint32_t bundle = mailbox(domain).load_acquire();  // [bundle]
    if (bundle != kNone) mailbox(domain).store_relaxed(kNone);
    return bundle;
  }
  ESKER_HD void ask(std::uint32_t domain) {
    const std::uint64_t request = asked_.fetch_add_relaxed(1);
    place(request).store_release(std::uint64_t{tag(request)} << 32 | domain);  // [request]
  }
  /// Racy.
  ESKER_HD bool was_asked() const {
    return static_cast<std::int64_t>(asked_.load_relaxed() - promised_.load_relaxed()) > 0;
  }
  /// The domain that gets something; kNone: nobody asks, or others have promised it something meanwhile. Else
  /// put() must follow.
  ESKER_HD std::uint32_t try_promise() {
    std::uint64_t request = promised_.load_relaxed();
    const std::uint64_t word = place(request).load_acquire();  // [request]
    if (static_cast<std::uint32_t>(word >> 32) != tag(request)) return kNone;
    return promised_.compare_exchange_relaxed(request, request + 1) ? static_cast<std::uint32_t>(word)
                                                                    : kNone;
  }
  ESKER_HD void put(std::uint32_t domain, std::uint32_t bundle) {
    mailbox(domain).store_release(bundle);  // [bundle]
  }

 private:
  ESKER_HD static std::uint32_t tag(std::uint64_t request) { return static_cast<std::uint32_t>(request + 1); }
  ESKER_HD DeviceAtomic<std::uint64_t>& place(std::uint64_t request) const {
    return reinterpret_cast<DeviceAtomic<std::uint64_t>*>(requests_)[request & mask_];
  }
  ESKER_HD DeviceAtomic<std::uint32_t>& mailbox(std::uint32_t domain) const {
    return reinterpret_cast<DeviceAtomic<std::uint32_t>*>(mailboxes_)[domain];
  }

  std::uint64_t* requests_ = nullptr;   // zeroed; a power of two, no fewer than domains
  std::uint32_t* mailboxes_ = nullptr;  // kNone, one a domain
  std::uint64_t mask_ = 0;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> asked_;
  DeviceAtomic<std::uint64_t> promised_;
};

/// A bundle's join record, where the bundle came from another PE: finish() hands it to the port.
inline constexpr std::uint32_t kJoinsElsewhere = kNone - 1;
/// Of what a domain gets: not a bundle, but a join record whose stack is to go on.
inline constexpr std::uint32_t kGoesOn = 0x8000'0000u;

struct PortMemory;

enum class Outcome : std::uint32_t { kRunning, kDone, kStopped, kFailed, kOutOfMemory, kMisuse };

/// Sums over domains.
struct Counts {
  std::uint64_t tasks, batches, full_batches, resumed, given, spilled, suspended, asked;
};

/// How a run ended, and what whoever ended it says.
struct RunEnd {
  Outcome outcome;
  std::int32_t error_code;
  std::uint32_t error_type;
  std::uint64_t error_values[2];
};

/// One run, in memory that all domains reach.
struct RunState {
  Pool pages, bundles, joins;
  Exchange exchange;

  // Of a run over PEs (tasks/port.hpp). For the port:
  Pool placed;    // bundles whose tasks are for other PEs
  Pool given;     // bundles for PEs that have nothing
  Pool finished;  // bundles that came from another PE, and are done
  // For domains that have nothing, from the port:
  Pool arrived;                             // bundles of other PEs
  Pool ready;                               // join records whose stacks are to go on
  DeviceAtomic<std::uint32_t> taken, idle;  // things taken from these two; domains that have nothing
  PortMemory* port;
  std::uint32_t pe, n_pes;
  DeviceAtomic<std::uint32_t> wanted, promised;  // bundles for PEs that have nothing, both counted up

  std::uint32_t* page_words;
  std::uint32_t* bundle_words;
  std::uint32_t* join_words;
  void* local;                              // Options::local
  std::uint64_t seed;                       // of tests' decisions at random
  const SystemAtomic<std::uint32_t>* stop;  // not 0: the user ends the run

  SystemAtomic<std::uint32_t> stop_word;  // on a GPU what `stop` points to: the host writes it by a copy
  alignas(kLineBytes)
      DeviceAtomic<std::uint32_t> outcome;  // an Outcome; the first that is not kRunning stays
  std::int32_t error_code;                  // of whoever set the outcome
  std::uint32_t error_type;
  std::uint64_t error_values[2];

  alignas(kLineBytes) DeviceAtomic<std::uint64_t> sum;  // of what tasks have added
  DeviceAtomic<std::uint64_t> counts[sizeof(Counts) / 8];

  /// Racy: other PEs want bundles.
  ESKER_HD bool pe_asked() const { return wanted.load_relaxed() != promised.load_relaxed(); }
  /// True: a bundle must be put into `given`.
  ESKER_HD bool try_promise_to_pe() {
    std::uint32_t before = promised.load_relaxed();
    return before != wanted.load_relaxed() && promised.compare_exchange_relaxed(before, before + 1);
  }
  RunEnd how() const {
    return {static_cast<Outcome>(outcome.load_relaxed()),
            error_code,
            error_type,
            {error_values[0], error_values[1]}};
  }
  ESKER_HD bool has_ended() const {
    return outcome.load_relaxed() != static_cast<std::uint32_t>(Outcome::kRunning);
  }
  /// True for the first.
  ESKER_HD bool end(Outcome how) {
    auto running = static_cast<std::uint32_t>(Outcome::kRunning);
    return outcome.compare_exchange_acq_rel(running, static_cast<std::uint32_t>(how));
  }
};

}  // namespace esker::tasks::detail
