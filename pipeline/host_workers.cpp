// How threads share the seats of a run's host stages.
#include <esker/pipeline/host_workers.hpp>

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <esker/device/cpu/cores.hpp>
#include <esker/error.hpp>

namespace esker::pipeline::detail {

namespace {
constexpr std::chrono::milliseconds kStuck{1};
// How often a thread looks again: for a seat that another one is about to leave, some microseconds in all;
// and before it takes what another one may come for.
constexpr std::uint32_t kLooksForSeat = 100, kPatience = 20;
}  // namespace

HostWorkers::HostWorkers(Doorbell& bell, bool has_gpu, std::uint32_t threads, OnThrow on_throw,
                         std::function<void()> on_end)
    : bell_{bell},
      has_gpu_{has_gpu},
      on_throw_{std::move(on_throw)},
      on_end_{std::move(on_end)},
      at_a_time_{threads != 0 ? threads : esker::detail::usable_cores()} {}

void HostWorkers::add(std::uint32_t stage, std::uint32_t depth, std::unique_ptr<Seat> seat) {
  auto place = std::make_unique<Place>();
  place->stage = stage;
  place->depth = depth;
  place->seat = std::move(seat);
  places_.push_back(std::move(place));
}

void HostWorkers::start() {
  const auto n = static_cast<std::uint32_t>(places_.size());
  if (n == 0) {
    on_end_();
    return;
  }
  std::stable_sort(places_.begin(), places_.end(),
                   [](const auto& a, const auto& b) { return a->depth > b->depth; });
  roams_ = n > at_a_time_;
  turns_ = std::vector<Turns>(n);
  left_.store(n, std::memory_order_relaxed);
  const auto sources = static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(), [](const auto& place) { return place->depth == 0; }));
  sources_.store(sources, std::memory_order_relaxed);
  has_sources_ = sources != 0;
  active_.store(std::min(n, at_a_time_), std::memory_order_relaxed);
  threads_.reserve(n);
  try {
    for (std::uint32_t i = 0; i < n; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    const auto made = static_cast<std::uint32_t>(threads_.size());
    for (std::uint32_t i = made; i < n && (!roams_ || made == 0); ++i) end(*places_[i]);
    throw Error(Error::Kind::kOutOfMemory,
                fmt::format("pipeline: its host stages have {} threads, and thread {} could not be made: {}",
                            n, made + 1, error.what()));
  }
}
void HostWorkers::end(Place& place) {
  place.is_taken.store(true, std::memory_order_relaxed);
  place.has_ended.store(true, std::memory_order_relaxed);
  const bool no_source_is_left = place.depth == 0 && sources_.fetch_sub(1, std::memory_order_relaxed) == 1;
  const bool was_last = left_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (no_source_is_left || was_last) {
    { const std::lock_guard lock(mutex_); }
    nearly_ended_.notify_all();
  }
  if (was_last) {
    unparked_.notify_all();
    on_end_();
  }
  bell_.ring();
}
void HostWorkers::await_end() {
  std::unique_lock lock(mutex_);
  nearly_ended_.wait(
      lock, [&] { return have_ended() || (has_sources_ && sources_.load(std::memory_order_relaxed) == 0); });
  lock.unlock();
  for (std::uint32_t left = yields(has_gpu_); left != 0 && !have_ended(); --left) sched_yield();
  lock.lock();
  nearly_ended_.wait(lock, [&] { return have_ended(); });
}
void HostWorkers::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HostWorkers::work(std::uint32_t thread) {
  if (has_gpu_) use_fine_timers();
  Backoff backoff(longest_nap(has_gpu_), yields(has_gpu_));
  park(thread);
  while (!have_ended()) {
    if (try_turn(thread)) {
      backoff.reset();
    } else if (!roams_ && places_[thread]->is_taken.load(std::memory_order_relaxed)) {
      return;  // its seat has ended
    } else {
      backoff.wait(bell_, [&] { return have_ended() || has_work(thread); });
    }
  }
}
bool HostWorkers::try_turn(std::uint32_t thread) {
  Turns& turns = turns_[thread];
  if (!roams_) return try_turn_at(*places_[thread], turns);
  if (turns.last != nullptr && try_turn_behind(*turns.last, turns)) return true;
  turns.last = nullptr;
  const bool is_patient = turns.skipped < kPatience;
  if (!is_patient) turns.skipped = 0;
  for (const auto& place : places_) {
    if (is_patient && is_expected(place->depth, thread)) {
      ++turns.skipped;  // even without work: it may have something to flush
      continue;
    }
    if (try_turn_at(*place, turns)) return true;
  }
  turns.goes_to.store(kNowhere, std::memory_order_relaxed);
  return false;
}
bool HostWorkers::try_turn_behind(const Place& made_by, Turns& turns) {
  for (std::uint32_t looks = 0; looks <= kLooksForSeat; ++looks) {
    bool waits_for_a_seat = false;
    for (const auto& place : places_) {
      if (place->depth != made_by.depth + 1 || place->has_ended.load(std::memory_order_relaxed)) continue;
      if (try_turn_at(*place, turns)) return true;
      waits_for_a_seat =
          waits_for_a_seat || (place->is_taken.load(std::memory_order_relaxed) && place->seat->has_work());
    }
    if (!waits_for_a_seat) return false;
    Backoff::pause();
  }
  return false;
}
bool HostWorkers::is_expected(std::uint32_t depth, std::uint32_t thread) const {
  const std::uint32_t active = active_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < active; ++i) {
    if (i != thread && turns_[i].goes_to.load(std::memory_order_relaxed) == depth) return true;
  }
  return false;
}
bool HostWorkers::try_turn_at(Place& place, Turns& turns) {
  if (place.is_taken.load(std::memory_order_relaxed) ||
      place.is_taken.exchange(true, std::memory_order_acquire))
    return false;
  const std::uint64_t count = turns.count.load(std::memory_order_relaxed);
  turns.count.store(count + 1, std::memory_order_relaxed);
  turns.goes_to.store(place.depth + 1, std::memory_order_relaxed);
  Turn turn = Turn::kEnded;
  try {
    turn = place.seat->take_turn(!roams_);
  } catch (...) {
    on_throw_(place.stage);
  }
  turns.count.store(count + 2, std::memory_order_relaxed);
  if (turn == Turn::kEnded) {
    end(place);
    return true;
  }
  // Another thread may take what this one leaves.
  const bool leaves_work = roams_ && turn == Turn::kWorked && place.seat->has_work();
  place.is_taken.store(false, std::memory_order_release);
  if (leaves_work) bell_.ring();
  if (turn != Turn::kWorked) return false;
  turns.last = &place;
  return true;
}

bool HostWorkers::has_work(std::uint32_t thread) {
  if (!roams_) return has_work_at(*places_[thread]);
  return std::any_of(places_.begin(), places_.end(), [&](const auto& place) { return has_work_at(*place); });
}
bool HostWorkers::has_work_at(const Place& place) const {
  return !place.is_taken.load(std::memory_order_relaxed) && place.seat->has_work();
}

void HostWorkers::park(std::uint32_t thread) {
  std::unique_lock lock(mutex_);
  unparked_.wait(lock, [&] { return thread < active_.load(std::memory_order_relaxed) || have_ended(); });
}
void HostWorkers::relieve() {
  const std::uint32_t active = active_.load(std::memory_order_relaxed);
  if (active == places_.size()) return;
  const auto now = std::chrono::steady_clock::now();
  std::uint32_t stuck = 0;
  for (std::uint32_t i = 0; i < active; ++i) {
    Turns& turns = turns_[i];
    const std::uint64_t count = turns.count.load(std::memory_order_relaxed);
    if (count != turns.seen) {
      turns.seen = count;
      turns.since = now;
    } else if (count % 2 == 1 && now - turns.since >= kStuck) {
      ++stuck;
    }
  }
  if (active - stuck >= at_a_time_) return;
  {
    const std::lock_guard lock(mutex_);
    active_.store(active + 1, std::memory_order_relaxed);
  }
  unparked_.notify_all();
}

}  // namespace esker::pipeline::detail
