// Carries bundles of tasks between the ports of PEs. Includes no part of the Runtime: runs over PEs are
// compiled with programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <esker/error.hpp>
#include <esker/tasks/hang.hpp>
#include <esker/tasks/options.hpp>
#include <esker/tasks/port.hpp>

namespace esker {

class Runtime;

namespace detail {

/// State    idle -> begun -> carrying -> idle, a run at a time.
/// Contract The user's thread. begin() and agree() are collective, and so is the constructor.
/// Protocol Letters of a run: kAsk (the sender wants so many parcels), kParcel (tasks, with a ticket), kDone
///          (the ticket, and what those tasks gave), kEnd (the run is over), kStill and kReport (below). A PE
///          that has nothing asks its neighbours in a hypercube, once each: an ask stands until it is
///          answered, so nobody asks again (lifelines: Saraswat et al., PPoPP 2011). A PE that works and has
///          nothing in store asks one of them early. What is in store goes to a PE that has nothing, rather
///          than a part of what runs. A bundle whose tasks go to several PEs, or do not fit in a letter,
///          travels as several parcels, and is back when all of them are done. So the root is done when
///          everything is, on all PEs, and its PE tells the others. A run that is watched stands still when
///          nothing moves on any PE: each tells PE 0 when that begins and ends on it, and PE 0 asks all for a
///          report when all stand still.
/// Progress Nothing waits for a peer, but the run's end for its root.
/// Errors   Error{kConfiguration}: a task does not fit in a letter. What the Runtime has failed with. What
///          Options::on_hang throws is the HangWatch's, and ends the run on all PEs.
class ESKER_API TaskCourier {
 public:
  TaskCourier(Runtime& runtime, const tasks::detail::BundleFormat& format, tasks::detail::PortMemory& port,
              std::uint32_t* slots);
  ~TaskCourier();
  TaskCourier(const TaskCourier&) = delete;
  TaskCourier& operator=(const TaskCourier&) = delete;

  static std::size_t slot_words(const tasks::detail::BundleFormat& format);
  /// So many bundles are always enough, where no tasks are placed (docs/design/tasks.md).
  static std::uint64_t enough_bundles(std::uint32_t n_pes);

  /// Before the domains start.
  void begin(std::uint32_t domains);
  /// Until `has_ended()`. `step_port()` does what the port does, where no wave of the launch does; true if
  /// something moved. `hangs`: null, or on every PE what watches the run.
  void carry(const tasks::StopToken& stop, tasks::detail::HangWatch* hangs,
             const std::function<bool()>& step_port, const std::function<bool()>& has_ended);
  /// The domains are to end so, if nobody has said so before.
  void end_domains(tasks::detail::Outcome how);

  /// How the run ended: of the PEs that ended it badly the first one's word. `sums` become those of all PEs,
  /// and `result` what PE 0 has.
  struct Ending {
    tasks::detail::RunEnd how;
    std::uint32_t pe;  // that ended it
  };
  Ending agree(const tasks::detail::RunEnd& mine, std::vector<std::uint64_t>& sums,
               std::vector<std::uint64_t>& result);

  std::uint64_t sent() const { return n_sent_; }
  std::uint64_t received() const { return n_received_; }

 private:
  using Words = std::vector<std::uint32_t>;
  enum What : std::uint32_t { kAsk, kParcel, kDone, kEnd, kStill, kReport };
  /// Early: by a PE that has work, but nothing in store.
  enum Ask : std::uint32_t { kNoAsk, kHungry, kEarly };
  /// The start of a letter.
  struct Head {
    std::uint32_t what;
    std::uint32_t ticket;  // kAsk: how many; kEnd: the Outcome; kStill: 1, or 0 when something moves
    std::uint32_t type, count;
    Ask answers;           // kParcel, and kAsk: which
    std::uint32_t origin;  // kParcel: the PE whose ticket it is
  };
  /// A parcel that is out: tasks of a bundle.
  struct Part {
    std::uint32_t bundle;
    std::uint32_t pe;                  // that it was sent to; it may have gone on
    std::vector<std::uint32_t> tasks;  // their numbers in it
  };
  /// A bundle that is out.
  struct Sent {
    std::uint32_t parts = 0;
    Words results;
  };
  /// A parcel that has arrived, until it is done.
  struct Arrived {
    std::uint32_t origin, ticket;
  };
  struct Neighbour {
    std::uint32_t pe;
    std::uint32_t asks[3];  // that stand, of each kind
  };
  /// A slot that the port has no space for yet, or no domain.
  struct Stored {
    Words slot;
    bool may_go_on;  // to whoever asks: its tasks were not placed
  };
  /// Things by number.
  template <class T>
  struct Table {
    std::vector<T> all;
    std::vector<std::uint32_t> free;
    std::uint32_t add(T value);
    T take(std::uint32_t number);
    std::size_t size() const { return all.size() - free.size(); }
    /// How many there are for each PE.
    std::map<std::uint32_t, std::uint32_t> by_pe(std::uint32_t T::*pe) const;
  };

  void post(std::uint32_t pe, const Head& head, const Words& words = {});
  void receive(std::uint32_t pe, const Head& head, const std::uint32_t* words);
  void receive_parcel(std::uint32_t pe, const Head& head, const std::uint32_t* words);
  void receive_done(const Head& head, const std::uint32_t* words);
  bool take_letters();
  bool take_from_port();
  void send_tasks(const std::uint32_t* slot, bool is_given);
  void send_part(std::uint32_t pe, std::uint32_t bundle, const std::uint32_t* words,
                 std::vector<std::uint32_t> tasks, Ask answers);
  bool put(const Words& parcel, std::uint32_t* ring, std::uint32_t& count);
  bool hand_to_port();
  bool hand_to_others();
  void ask(Neighbour& neighbour, Ask kind, std::uint32_t parcels);
  void ask_neighbours();
  std::uint32_t hungry() const;
  void grant_asks();
  void look_for_hang();
  void receive_still(bool is_still);
  void say_what_stands_still();
  std::string under_way() const;
  void tell_if_ended();
  void tell_end(tasks::detail::Outcome how);
  std::uint32_t* slot_of(std::uint32_t* ring, std::uint32_t number) const;

  Runtime& runtime_;
  const tasks::detail::BundleFormat format_;
  tasks::detail::PortMemory& port_;
  std::uint32_t* const slots_;
  const std::uint32_t pe_, n_pes_;
  std::uint64_t run_ = 0;

  // Of a run.
  std::vector<Neighbour> neighbours_;
  // PEs that have asked, each as often as it wants a parcel: by kind.
  std::deque<std::uint32_t> wants_[3];
  std::uint32_t granted_ = 0;  // asks that the port knows of, and has not served
  std::uint32_t next_ = 0;     // the neighbour that is asked early
  Table<Part> parts_;
  std::vector<Sent> sent_;   // by bundle
  std::uint32_t n_out_ = 0;  // bundles, until the port hears that they are back
  Table<Arrived> arrived_;
  std::deque<Stored> stored_;
  std::deque<Words> to_return_;
  std::uint32_t n_taken_ = 0, n_handed_ = 0, n_returned_ = 0;
  bool is_told_ = false;   // that the run is over, by another PE
  bool has_told_ = false;  // the others
  std::uint64_t n_sent_ = 0, n_received_ = 0;
  tasks::detail::HangWatch* hangs_ = nullptr;
  std::uint64_t n_letters_ = 0;  // that say that something moved
  bool says_still_ = false;      // what PE 0 knows of this one
  std::uint32_t n_still_ = 0;    // PE 0's: PEs on which nothing moves
};

/// Throws the Error{kConfiguration} of a run over PEs whose memory has no bound.
[[noreturn]] ESKER_API void refuse_task_bound(bool places, std::uint32_t n_pes);

}  // namespace detail
}  // namespace esker
