// A PE's port: how bundles of tasks leave a run for other PEs, and come from them. It knows no network: the
// host carries what it puts down.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/outgoing.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// What lies in a slot of a port.
enum class Parcel : std::uint32_t {
  // From the port to the host.
  kGiven,     // number: of a crate of this PE. Its tasks are for a PE that wants some
  kPlaced,    // the same; each task is for the PE that it names
  kFinished,  // number: as the tasks arrived. What they gave
  // From the host to the port, each in a ring of its own: what returns gives memory back.
  kArrived,   // number: the host's own. Tasks of another PE
  kReturned,  // number: of a crate of this PE. What its tasks gave, on other PEs
};
inline constexpr std::uint32_t kRings = 3;  // to the host, and the last two

/// Words of a slot, with a bundle of so many words.
struct SlotLayout {
  static constexpr std::uint32_t kIsFull = 0, kParcel = 1, kNumber = 2, kBundle = 4;
  ESKER_HD static constexpr std::uint32_t words(std::uint32_t bundle_words) {
    return (kBundle + bundle_words + 31) / 32 * 32;
  }
  ESKER_HD static SystemAtomic<std::uint32_t>& is_full(std::uint32_t* slot) {
    return reinterpret_cast<SystemAtomic<std::uint32_t>&>(slot[kIsFull]);
  }
};

/// What the host and a port share, in pinned memory, zeroed before a run.
///
/// Protocol Three rings of kSlots slots, each with one writer and one reader that both count. A slot is empty
///          -> full -> empty.
/// Ordering [slot] what was written into a slot happens before it is read, and read before it is written
///          again.
struct PortMemory {
  static constexpr std::uint32_t kSlots = 16;
  // The host writes.
  alignas(kLineBytes) SystemAtomic<std::uint32_t> wanted;  // bundles that other PEs want; counts up
  SystemAtomic<std::uint32_t> end;                         // an Outcome: the run is to end so
  // The port writes.
  alignas(kLineBytes) SystemAtomic<std::uint32_t> idle;  // domains that have nothing
  SystemAtomic<std::uint32_t> stock;                     // parcels that no domain has taken yet
  SystemAtomic<std::uint32_t> ended;                     // the Outcome: the last that it writes
  SystemAtomic<std::uint32_t> ended_by_host;             // before `ended`
  // Neither.
  alignas(kLineBytes) std::uint32_t domains;
  std::uint32_t slot_words;
  std::uint32_t *to_host, *arrived, *returned;
};

/// What whoever carries parcels knows of bundles, in words. Column c of what is at `payload` or `results`
/// begins `batch` words after the one before it.
struct BundleFormat {
  struct Type {
    std::uint32_t words;      // of a task; of a placed one, of the task in it
    std::uint32_t placed_as;  // the type of the task in it; kNone: it is none that is placed
    std::uint32_t task_at;    // where the task begins in one that is placed, behind its PE
  };
  std::uint32_t type = 0, count = 0, payload = 0, results = 0, words = 0;  // where they are; of all
  std::uint32_t batch = 0, result_words = 0;
  std::uint32_t bundles = 0;  // crates of the run
  std::vector<Type> types;
};
template <class Set, class T>
BundleFormat::Type type_format(std::type_identity<T>) {
  return {words(sizeof(T)), kNone, 0};
}
template <class Set, class T>
BundleFormat::Type type_format(std::type_identity<Placed<T>>) {
  return {words(sizeof(T)), Set::template kIndex<T>, Placed<T>::kTaskAt};
}
template <class... Ts>
std::vector<BundleFormat::Type> type_formats(SetOf<Types<Ts...>> /*set*/) {
  return {type_format<SetOf<Types<Ts...>>>(std::type_identity<Ts>{})...};
}
template <class S>
BundleFormat format_of(std::uint32_t bundles) {
  using Bundle = typename S::Bundle;
  return {Bundle::kType,        Bundle::kCount, Bundle::kPayload,
          Bundle::kResult,      Bundle::kWords, S::kBatch,
          S::Set::kResultWords, bundles,        type_formats(typename S::Set{})};
}

/// To the domains of its PE a port is one more domain: it takes work for others, has some for those that have
/// nothing, and joins what it brings back.
///
/// State    running -> ended, with the run.
/// Protocol Where tasks join, a crate that has arrived goes back when its tasks are done, with what they
///          gave. Where they do not, PEs that have work are a tree under PE 0 (Dijkstra and Scholten, 1980):
///          a PE is done when nothing is left of what it has and has given, and then it acknowledges the
///          crate by which it got into the tree. It acknowledges others at once.
/// Contract A wave of the launch, or on the CPU the thread that carries: step() again and again. What a
///          member holds is the same in all lanes.
/// Progress It waits for nothing. A full ring leaves what there is for a later step.
template <class S>
class Port {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Bundle = typename S::Bundle;
  using Join = typename S::Join;
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  ESKER_HD Port(const Lanes& lanes, RunState& run)
      : lanes_{lanes}, run_{run}, port_{*run.port}, outgoing_{lanes, run, 0} {}

  ESKER_HD void run() {
    typename Lanes::Pause pause;
    while (!has_ended()) {
      if (step()) {
        pause = {};
      } else {
        pause.once();
      }
    }
  }
  /// True if something moved.
  ESKER_HD bool step() {
    bool moved = send();
    if constexpr (!S::kJoins) moved = acknowledge() || moved;
    moved = receive_returned() || moved;
    moved = receive_arrived() || moved;
    tell();
    return moved;
  }
  /// The run is over, and the host has been told.
  ESKER_HD bool has_ended() {
    return lanes_.of_leader([&] {
      const std::uint32_t asked = port_.end.load_relaxed();
      if (asked != 0 && run_.end(static_cast<Outcome>(asked))) port_.ended_by_host.store_relaxed(1);
      if (!run_.has_ended()) return 0u;
      port_.ended.store_release(run_.outcome.load_relaxed());
      return 1u;
    }) != 0;
  }

 private:
  // --- To the host.

  ESKER_HD bool send() {
    has_sent_all_ = false;
    std::uint32_t* const slot = slot_of(port_.to_host, n_sent_);
    if (is_full(slot)) return false;
    std::uint32_t crate = lanes_.of_leader([&] { return run_.finished.try_take(); });
    if (crate != kNone) {
      const std::uint32_t* const words = outgoing_.crate_words(crate);
      copy(slot + SlotLayout::kBundle, words, Bundle::kResult, Set::kResultWords, words[Bundle::kCount]);
      put(slot, Parcel::kFinished, words[Bundle::kTicket], words[Bundle::kType], words[Bundle::kCount]);
      outgoing_.give_back_crate(crate);
      return true;
    }
    crate = lanes_.of_leader([&] { return run_.placed.try_take(); });
    if (crate == kNone) crate = lanes_.of_leader([&] { return run_.given.try_take(); });
    has_sent_all_ = crate == kNone;
    if (has_sent_all_) return false;
    const std::uint32_t* const words = outgoing_.crate_words(crate);
    const std::uint32_t type = words[Bundle::kType], count = words[Bundle::kCount];
    copy(slot + SlotLayout::kBundle, words, Bundle::kPayload, Set::payload_words(type), count);
    put(slot, Set::is_placed(type) ? Parcel::kPlaced : Parcel::kGiven, crate, type, count);
    return true;
  }
  /// This PE leaves the tree if it has nothing left.
  ESKER_HD bool acknowledge() {
    if (parent_ == kNone) return false;
    std::uint32_t* const slot = slot_of(port_.to_host, n_sent_);
    if (lanes_.of_leader([&] { return run_.unfinished.load_acquire(); }) != 0) return false;  // [join]
    if (is_full(slot)) return false;
    put(slot, Parcel::kFinished, parent_, 0, 0);
    parent_ = kNone;
    return true;
  }
  ESKER_HD void put(std::uint32_t* slot, Parcel parcel, std::uint32_t number, std::uint32_t type,
                    std::uint32_t count) {
    lanes_.leader([&] {
      slot[SlotLayout::kParcel] = static_cast<std::uint32_t>(parcel);
      slot[SlotLayout::kNumber] = number;
      slot[SlotLayout::kBundle + Bundle::kType] = type;
      slot[SlotLayout::kBundle + Bundle::kCount] = count;
      SlotLayout::is_full(slot).store_release(1);  // [slot]
    });
    ++n_sent_;
  }

  // --- From the host.

  ESKER_HD bool receive_returned() {
    std::uint32_t* const slot = slot_of(port_.returned, n_returned_);
    if (!is_full(slot)) return false;
    const std::uint32_t crate = slot[SlotLayout::kNumber];
    if constexpr (S::kJoins) {
      const std::uint32_t* const words = outgoing_.crate_words(crate);
      const std::uint32_t join = words[Bundle::kJoin], first = words[Bundle::kFirstEntry];
      std::uint32_t* const record = outgoing_.join_words(join);
      const std::uint32_t* const from = slot + SlotLayout::kBundle + Bundle::kResult;
      for (std::uint32_t w = 0; w < Set::kResultWords; ++w) {
        lanes_.for_each(words[Bundle::kCount], [&](std::uint32_t i) {
          record[Join::kResults + w * Join::kMostEntries + first + i] = from[w * kBatch + i];
        });
      }
      const std::uint32_t before =
          lanes_.of_leader([&] { return Join::left(record).fetch_add_acq_rel(~0u); });  // [join]
      if (before == 1) {
        lanes_.leader([&] { run_.ready.give_back(join); });
        ++handed_;
      }
    } else {
      lanes_.leader([&] {
        if (run_.unfinished.fetch_add_acq_rel(~0u) == 1 && run_.pe == 0)  // [join]
          (void)run_.end(Outcome::kDone);
      });
    }
    outgoing_.give_back_crate(crate);
    empty(slot);
    ++n_returned_;
    return true;
  }
  ESKER_HD bool receive_arrived() {
    std::uint32_t* const slot = slot_of(port_.arrived, n_arrived_);
    if (!is_full(slot)) return false;
    if (!outgoing_.has_crate()) {
      // Domains that work give crates back. Where all have nothing, and stay so, those that are out may wait
      // for this one.
      const bool stuck = idle() == port_.domains && stock() == 0 && has_sent_all_;
      steps_stuck_ = stuck ? steps_stuck_ + 1 : 0;
      if (steps_stuck_ == kMostStepsStuck) lanes_.leader([&] { (void)run_.end(Outcome::kOutOfMemory); });
      return false;
    }
    if constexpr (!S::kJoins) {
      const std::uint32_t number = slot[SlotLayout::kNumber];
      if (run_.pe != 0 && parent_ == kNone) {
        parent_ = number;
      } else {
        std::uint32_t* const answer = slot_of(port_.to_host, n_sent_);
        if (is_full(answer)) return false;
        put(answer, Parcel::kFinished, number, 0, 0);
      }
      lanes_.leader([&] { (void)run_.unfinished.fetch_add_relaxed(1); });
    }
    const std::uint32_t crate = outgoing_.take_crate();
    const std::uint32_t* const from = slot + SlotLayout::kBundle;
    std::uint32_t* const words = outgoing_.crate_words(crate);
    const std::uint32_t type = from[Bundle::kType], count = from[Bundle::kCount];
    copy(words, from, Bundle::kPayload, Set::payload_words(type), count);
    lanes_.leader([&] {
      words[Bundle::kType] = type;
      words[Bundle::kCount] = count;
      words[Bundle::kJoin] = kJoinsElsewhere;
      words[Bundle::kFirstEntry] = crate;
      words[Bundle::kTicket] = slot[SlotLayout::kNumber];
    });
    empty(slot);
    lanes_.leader([&] { run_.arrived.give_back(crate); });
    ++n_arrived_;
    ++handed_;
    return true;
  }
  ESKER_HD void empty(std::uint32_t* slot) {
    lanes_.leader([&] { SlotLayout::is_full(slot).store_release(0); });  // [slot]
  }
  // --- What the host and the domains should know.

  ESKER_HD void tell() {
    const std::uint32_t wanted = lanes_.of_leader([&] { return port_.wanted.load_relaxed(); });
    if (wanted != wanted_) lanes_.leader([&] { run_.wanted.store_relaxed(wanted); });
    wanted_ = wanted;
    const std::uint32_t idle_now = idle(), stock_now = stock();
    if (idle_now == idle_ && stock_now == stock_) return;
    idle_ = idle_now;
    stock_ = stock_now;
    lanes_.leader([&] {
      port_.idle.store_relaxed(idle_now);
      port_.stock.store_relaxed(stock_now);
    });
  }
  /// Racy: domains that have nothing; things that none of them has taken yet.
  ESKER_HD std::uint32_t idle() {
    return lanes_.of_leader([&] { return run_.idle.load_relaxed(); });
  }
  ESKER_HD std::uint32_t stock() {
    return handed_ - lanes_.of_leader([&] { return run_.taken.load_relaxed(); });
  }

  ESKER_HD std::uint32_t* slot_of(std::uint32_t* ring, std::uint32_t number) const {
    return ring + (number % PortMemory::kSlots) * port_.slot_words;
  }
  ESKER_HD bool is_full(std::uint32_t* slot) {
    return lanes_.of_leader([&] { return SlotLayout::is_full(slot).load_acquire(); }) != 0;  // [slot]
  }
  /// Columns of a bundle.
  ESKER_HD void copy(std::uint32_t* to, const std::uint32_t* from, std::uint32_t first, std::uint32_t columns,
                     std::uint32_t count) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      const std::uint32_t at = first + c * kBatch;
      lanes_.for_each(count, [&](std::uint32_t i) { to[at + i] = from[at + i]; });
    }
  }

  Lanes lanes_;
  RunState& run_;
  PortMemory& port_;
  Outgoing<S> outgoing_;
  std::uint32_t parent_ = kNone;  // the number of the crate by which this PE got into the tree
  std::uint32_t n_sent_ = 0, n_arrived_ = 0, n_returned_ = 0;  // parcels, by ring
  std::uint32_t handed_ = 0;                                   // to domains
  std::uint32_t wanted_ = 0, idle_ = 0, stock_ = 0;
  std::uint32_t steps_stuck_ = 0;
  static constexpr std::uint32_t kMostStepsStuck = 256;
  bool has_sent_all_ = false;
};

}  // namespace esker::tasks::detail
