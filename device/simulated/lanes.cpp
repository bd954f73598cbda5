// Lanes of a simulated GPU.
#include <esker/device/cpu/fiber.hpp>
#include <esker/device/error.hpp>
#include <esker/device/simulated/lanes.hpp>
#include <esker/device/simulated/sanitizer.hpp>

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace esker::simulated {

thread_local Here here;

namespace {

/// What a lane waits for that does not run.
enum class Wait : std::uint8_t { kNone, kBallot, kShuffle, kSyncWave, kSyncGroup, kConverge, kYield };
constexpr const char* kNames[] = {"nothing",           "a ballot",   "a shuffle", "sync of its wave",
                                  "sync of its group", "converging", "yield"};

std::atomic<std::uint32_t> made{1};

/// The lanes of one group after another, on one thread.
///
/// Progress. Lanes run until they wait, or for a random number of accesses to what others share. Lanes that
/// converge are let go when no other can run, mostly all together; those that yield, after them.
class Lanes {
 public:
  Lanes() = default;
  ~Lanes() {
    const Unseen unseen;
    workers_.clear();
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  void run(std::uint32_t lanes, std::uint32_t lent_bytes, void (*body)(const void*), const void* argument) {
    in_and_out_.give();
    run_unseen(lanes, lent_bytes, body, argument);
    in_and_out_.take();
  }
  void scratch_fence() {
    fences_.take();
    fences_.give();
  }

  std::uint32_t ballot(std::uint32_t members, bool flag) {
    const Unseen unseen;
    return static_cast<std::uint32_t>(exchange(Wait::kBallot, members, flag ? 1 : 0, 0));
  }
  std::uint64_t shuffle(std::uint32_t members, std::uint64_t word, std::uint32_t from) {
    const Unseen unseen;
    return exchange(Wait::kShuffle, members, word, from);
  }
  void sync_wave(std::uint32_t members) {
    syncs_.give();
    {
      const Unseen unseen;
      (void)exchange(Wait::kSyncWave, members, 0, 0);
    }
    syncs_.take();
  }
  void sync_group() {
    syncs_.give();
    {
      const Unseen unseen;
      ++in_group_sync_;
      if (!end_group_sync()) suspend(Wait::kSyncGroup);
    }
    syncs_.take();
  }
  std::uint32_t converged(const void* place) {
    const Unseen unseen;
    Lane& lane = lanes_[here.lane.x];
    lane.place = place;
    converging_.push_back(here.lane.x);
    suspend(Wait::kConverge);
    return static_cast<std::uint32_t>(lane.word);
  }
  void yield() {
    const Unseen unseen;
    yielding_.push_back(here.lane.x);
    suspend(Wait::kYield);
  }
  void interrupt() {
    const Unseen unseen;
    if (--until_interrupt_ > 0) return;
    until_interrupt_ = 1 + random() % 64;
    ready_.push_back(here.lane.x);
    suspend(Wait::kNone);
  }
  std::uint64_t* lent() { return lent_.data(); }

 private:
  void run_unseen(std::uint32_t lanes, std::uint32_t lent_bytes, void (*body)(const void*),
                  const void* argument) {
    const Unseen unseen;
    body_ = body;
    argument_ = argument;
    lent_.resize(lent_bytes / sizeof(std::uint64_t));
    lanes_.assign(lanes, Lane{});
    waves_.assign((lanes + kWaveLanes - 1) / kWaveLanes, Wave{});
    for (std::uint32_t lane = 0; lane < lanes; ++lane) waves_[lane / kWaveLanes].live |= bit(lane);
    next_ = in_group_sync_ = 0;
    running_ = lanes;
    std::uint32_t rounds = 0;
    while (running_ > 0) {
      if (!ready_.empty()) {
        const std::uint32_t lane = ready_.front();
        ready_.pop_front();
        resume(lane, lanes_[lane].worker);
      } else if (next_ < lanes) {
        if (idle_.empty()) {
          workers_.push_back(std::make_unique<Worker>(*this));
          idle_.push_back(workers_.back().get());
        }
        Worker* const worker = idle_.back();
        idle_.pop_back();
        resume(next_++, worker);
      } else if (!let_converge()) {
        if (yielding_.empty()) misuse("a simulated kernel stands still: " + waiting_lanes());
        ready_.swap(yielding_);
        back_off(++rounds);
      }
    }
  }

  struct Worker {
    explicit Worker(Lanes& owner) : lanes{owner}, fiber{work, this, !strictness.lanes_are_threads} {}
    static void work(void* self) {
      auto& worker = *static_cast<Worker*>(self);
      for (;;) {
        worker.lanes.in_and_out_.take();
        worker.lanes.body_(worker.lanes.argument_);
        worker.lanes.in_and_out_.give();
        worker.lanes.end(worker);
        worker.fiber.suspend();
      }
    }
    Lanes& lanes;
    cpu::Fiber fiber;
  };
  struct Lane {
    Worker* worker = nullptr;
    Wait wait = Wait::kNone;
    std::uint32_t members = 0;
    std::uint32_t from = 0;
    std::uint64_t word = 0;  // in and out
    const void* place = nullptr;
  };
  /// Members that wait for each other.
  struct Rendezvous {
    Wait wait;
    std::uint32_t members;
    std::uint32_t arrived;
  };
  struct Wave {
    std::uint32_t live = 0;
    std::vector<Rendezvous> rendezvous;
  };

  static std::uint32_t bit(std::uint32_t lane) { return 1u << lane % kWaveLanes; }
  std::uint32_t random() {  // xorshift32
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
  }

  void resume(std::uint32_t lane, Worker* worker) {
    lanes_[lane].worker = worker;
    lanes_[lane].wait = Wait::kNone;
    here.lane.x = lane;
    here.is_lane = true;
    worker->fiber.resume();
    here.is_lane = false;
  }
  void suspend(Wait wait) {
    Lane& lane = lanes_[here.lane.x];
    lane.wait = wait;
    lane.worker->fiber.suspend();
  }
  void end(Worker& worker) {
    const Unseen unseen;
    const std::uint32_t lane = here.lane.x;
    Wave& wave = waves_[lane / kWaveLanes];
    wave.live &= ~bit(lane);
    --running_;
    idle_.push_back(&worker);
    for (std::size_t m = 0; m < wave.rendezvous.size();) {
      if (!end_rendezvous(wave, m, ~0u, lane / kWaveLanes * kWaveLanes)) ++m;
    }
    (void)end_group_sync();
  }

  std::uint64_t exchange(Wait wait, std::uint32_t members, std::uint64_t word, std::uint32_t from) {
    const std::uint32_t self = here.lane.x, first = self / kWaveLanes * kWaveLanes;
    Lane& lane = lanes_[self];
    Wave& wave = waves_[self / kWaveLanes];
    if ((members & bit(self)) == 0) misuse("a simulated kernel: a lane is not among those that it names");
    lane.members = members;
    lane.word = word;
    lane.from = from;
    std::size_t m = 0;
    while (m < wave.rendezvous.size() &&
           (wave.rendezvous[m].wait != wait || wave.rendezvous[m].members != members))
      ++m;
    if (m == wave.rendezvous.size()) wave.rendezvous.push_back({wait, members, 0});
    wave.rendezvous[m].arrived |= bit(self);
    if (!end_rendezvous(wave, m, self, first)) suspend(wait);
    return lanes_[self].word;
  }
  /// If all have arrived that live. `self` goes on by itself.
  bool end_rendezvous(Wave& wave, std::size_t index, std::uint32_t self, std::uint32_t first) {
    const Rendezvous met = wave.rendezvous[index];
    const std::uint32_t here_now = met.members & wave.live;
    if (met.arrived != here_now) return false;
    wave.rendezvous.erase(wave.rendezvous.begin() + static_cast<std::ptrdiff_t>(index));
    std::uint64_t words[kWaveLanes] = {};
    std::uint32_t flags = 0;
    for (std::uint32_t left = here_now; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
      words[lane] = lanes_[first + lane].word;
      if (words[lane] != 0) flags |= 1u << lane;
    }
    for (std::uint32_t left = here_now; left != 0; left &= left - 1) {
      const std::uint32_t lane = first + static_cast<std::uint32_t>(std::countr_zero(left));
      if (met.wait == Wait::kBallot) lanes_[lane].word = flags;
      if (met.wait == Wait::kShuffle) lanes_[lane].word = words[lanes_[lane].from % kWaveLanes];
      if (lane != self) ready_.push_back(lane);
    }
    return true;
  }
  bool end_group_sync() {
    if (in_group_sync_ == 0 || in_group_sync_ != running_) return false;
    in_group_sync_ = 0;
    for (std::uint32_t lane = 0; lane < next_; ++lane) {
      if (lanes_[lane].wait == Wait::kSyncGroup) {
        lanes_[lane].wait = Wait::kNone;
        ready_.push_back(lane);
      }
    }
    return true;
  }
  /// Lanes of a wave that converge at the same place go on together; now and then in two parts.
  bool let_converge() {
    if (converging_.empty()) return false;
    std::sort(converging_.begin(), converging_.end());
    for (std::size_t i = 0; i < converging_.size(); ++i) {
      const std::uint32_t lane = converging_[i];
      if (lanes_[lane].wait != Wait::kConverge) continue;  // it goes on already
      const bool splits = random() % 8 == 0;
      std::uint32_t active = 0;
      for (std::size_t j = i; j < converging_.size(); ++j) {
        const std::uint32_t other = converging_[j];
        if (other / kWaveLanes != lane / kWaveLanes) break;
        if (lanes_[other].wait != Wait::kConverge || lanes_[other].place != lanes_[lane].place) continue;
        if (splits && j > i && random() % 2 == 0) continue;
        active |= bit(other);
        lanes_[other].wait = Wait::kNone;
        ready_.push_back(other);
      }
      for (std::uint32_t left = active; left != 0; left &= left - 1) {
        lanes_[lane / kWaveLanes * kWaveLanes + static_cast<std::uint32_t>(std::countr_zero(left))].word =
            active;
      }
    }
    converging_.clear();
    return true;
  }

  static void back_off(std::uint32_t rounds) {
    // A thread that yields and yields is put back by Linux, a little further each time, until others starve
    // it.
    if (rounds % 4 != 0) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds{10});
    }
  }
  bool lives(std::uint32_t lane) const { return (waves_[lane / kWaveLanes].live & bit(lane)) != 0; }
  std::string waiting_lanes() const {
    std::string text;
    for (std::uint32_t first = 0, lane = 0; lane < next_; first = lane) {
      const Lane& l = lanes_[first];
      const auto waits_alike = [&](std::uint32_t other) {
        return lives(other) == lives(first) && lanes_[other].wait == l.wait &&
               lanes_[other].members == l.members;
      };
      while (lane < next_ && waits_alike(lane)) ++lane;
      if (!lives(first)) continue;
      text += fmt::format("{}lanes {}-{} in {} of members {:#x}", text.empty() ? "" : "; ", first, lane - 1,
                          kNames[static_cast<std::size_t>(l.wait)], l.members);
    }
    return text;
  }

  void (*body_)(const void*) = nullptr;
  const void* argument_ = nullptr;
  std::vector<std::uint64_t> lent_;
  std::vector<Lane> lanes_;
  std::vector<Wave> waves_;
  std::deque<std::uint32_t> ready_, yielding_;
  std::vector<std::uint32_t> converging_;
  std::uint32_t next_ = 0;  // lane that has not begun
  std::uint32_t running_ = 0;
  std::uint32_t in_group_sync_ = 0;
  std::uint32_t until_interrupt_ = 1;
  std::uint32_t random_ = 0x9e3779b9u * made.fetch_add(2);  // odd, and another on each thread
  Order in_and_out_, syncs_, fences_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
};

/// Stacks are dear: a thread keeps them.
Lanes& own_lanes() {
  static thread_local Lanes lanes;
  return lanes;
}

}  // namespace

void run_group(std::uint32_t group, std::uint32_t groups, std::uint32_t lanes, std::uint32_t lent_bytes,
               void (*body)(const void*), const void* argument) {
  here = {{group}, {0}, {groups}, {lanes}, false};
  own_lanes().run(lanes, lent_bytes, body, argument);
}

std::uint32_t ballot(std::uint32_t members, bool flag) { return own_lanes().ballot(members, flag); }
std::uint64_t shuffle(std::uint32_t members, std::uint64_t word, std::uint32_t lane) {
  return own_lanes().shuffle(members, word, lane);
}
void sync_wave(std::uint32_t members) { own_lanes().sync_wave(members); }
void sync_group() { own_lanes().sync_group(); }
void scratch_fence() {
  if (here.is_lane && strictness.has_scratch_fence) own_lanes().scratch_fence();
}
[[gnu::noinline]] std::uint32_t converged() { return own_lanes().converged(__builtin_return_address(0)); }
std::uint64_t* lent_scratch() { return own_lanes().lent(); }

void yield() {
  if (here.is_lane) {
    own_lanes().yield();
  } else {
    sched_yield();
  }
}
void interrupt() {
  if (here.is_lane) own_lanes().interrupt();
}

}  // namespace esker::simulated
