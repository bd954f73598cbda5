// Bundles of tasks between PEs.
#include <esker/runtime/task_courier.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include <esker/runtime/impl.hpp>

namespace esker::detail {

using tasks::detail::BundleFormat;
using tasks::detail::Outcome;
using tasks::detail::PortMemory;
using tasks::detail::RunEnd;
using tasks::detail::SlotLayout;

namespace {

constexpr std::chrono::microseconds kNap{100};
constexpr std::uint32_t kEnoughInStore = 2;    // parcels: who has fewer asks early
constexpr std::uint32_t kMostHungryAsks = 16;  // of one PE, that stand
constexpr std::uint32_t kRoundsALook = 64;     // at whether the domains are still there

// Of the bundles a quarter may be out for asking PEs, and a quarter be in from PEs that were asked: the rest
// is for the domains, and for tasks that were placed.
std::size_t quarter_of(const BundleFormat& format) { return std::max(1u, format.bundles / 4); }

}  // namespace

TaskCourier::TaskCourier(Runtime& runtime, const BundleFormat& format, PortMemory& port, std::uint32_t* slots)
    : runtime_{runtime},
      format_{format},
      port_{port},
      slots_{slots},
      pe_{runtime.pe()},
      n_pes_{runtime.n_pes()} {
  const std::size_t most = runtime_.impl_->mail().most_bytes();
  std::size_t largest = format_.result_words;
  for (const BundleFormat::Type& type : format_.types) largest = std::max<std::size_t>(largest, type.words);
  if (sizeof(Head) + 4 * largest > most) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("tasks over PEs: a task or its result has {} bytes, and a letter between PEs {}: "
                            "raise --node-buffer-bytes",
                            4 * largest, most - sizeof(Head)));
  }
}

TaskCourier::~TaskCourier() = default;

std::size_t TaskCourier::slot_words(const BundleFormat& format) {
  return std::size_t{tasks::detail::kRings} * PortMemory::kSlots * SlotLayout::words(format.words);
}

std::uint64_t TaskCourier::enough_bundles(std::uint32_t n_pes) {
  const std::uint64_t neighbours = n_pes < 2 ? 0 : std::bit_width(n_pes - 1);
  return std::max<std::uint64_t>(4, 4 * (kMostHungryAsks + kEnoughInStore) * neighbours);
}

void TaskCourier::begin(std::uint32_t domains) {
  std::memset(static_cast<void*>(&port_), 0, sizeof port_);
  std::memset(slots_, 0, slot_words(format_) * 4);
  port_.domains = domains;
  port_.slot_words = SlotLayout::words(format_.words);
  port_.to_host = slots_;
  port_.arrived = port_.to_host + std::size_t{PortMemory::kSlots} * port_.slot_words;
  port_.returned = port_.arrived + std::size_t{PortMemory::kSlots} * port_.slot_words;
  neighbours_.clear();
  for (std::uint32_t bit = 1; bit < n_pes_; bit *= 2) {
    if ((pe_ ^ bit) < n_pes_) neighbours_.push_back({pe_ ^ bit, {}});
  }
  for (auto& wants : wants_) wants.clear();
  // The PE that has the root knows that no other has anything.
  for (std::uint32_t pe = 1; pe_ == 0 && pe < n_pes_; ++pe) wants_[kHungry].push_back(pe);
  next_ = pe_;
  granted_ = 0;
  parts_ = {};
  sent_.assign(format_.bundles, {});
  n_out_ = 0;
  arrived_ = {};
  stored_.clear();
  to_return_.clear();
  n_taken_ = n_handed_ = n_returned_ = 0;
  is_told_ = has_told_ = false;
  n_sent_ = n_received_ = n_letters_ = 0;
  says_still_ = false;
  n_still_ = 0;
  run_ = runtime_.impl_->mail().begin_run();
}

void TaskCourier::carry(const tasks::StopToken& stop, tasks::detail::HangWatch* hangs,
                        const std::function<bool()>& step_port, const std::function<bool()>& has_ended) {
  hangs_ = hangs;
  const CurrentCall::Scope call(runtime_.impl_->call(), "a run of tasks over PEs", true);
  std::uint32_t rounds = 0;
  runtime_.impl_->waits().attend("tasks of other PEs", kNap, [&] {
    bool moved = step_port();
    moved = take_letters() || moved;
    moved = take_from_port() || moved;
    moved = hand_to_port() || moved;
    moved = hand_to_others() || moved;
    grant_asks();
    ask_neighbours();
    look_for_hang();
    if (stop.stop_requested()) end_domains(Outcome::kStopped);
    if ((has_told_ || ++rounds % kRoundsALook == 0) && has_ended()) {
      (void)step_port();  // its last word
      tell_if_ended();
      return WaitLoop::Round::kDone;
    }
    tell_if_ended();
    return moved ? WaitLoop::Round::kMoved : WaitLoop::Round::kIdle;
  });
  tell_end(Outcome::kFailed);  // of domains that never came to say more
}

void TaskCourier::tell_if_ended() {
  const std::uint32_t ended = port_.ended.load_acquire();
  if (ended != 0) tell_end(static_cast<Outcome>(ended));
}

void TaskCourier::end_domains(Outcome how) {
  if (port_.end.load_relaxed() == 0) port_.end.store_relaxed(static_cast<std::uint32_t>(how));
}

/// Once. Who has been told tells nobody: whoever ends a run tells all.
void TaskCourier::tell_end(Outcome how) {
  if (std::exchange(has_told_, true)) return;
  if (is_told_ && port_.ended_by_host.load_relaxed() != 0) return;
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    if (pe != pe_) post(pe, {kEnd, static_cast<std::uint32_t>(how), 0, 0, kNoAsk, 0});
  }
}

TaskCourier::Ending TaskCourier::agree(const RunEnd& mine, std::vector<std::uint64_t>& sums,
                                       std::vector<std::uint64_t>& result) {
  const bool is_mine = !(is_told_ && port_.ended_by_host.load_relaxed() != 0);
  const bool is_bad = is_mine && mine.outcome != Outcome::kDone;
  std::uint64_t first = is_bad ? pe_ : ~std::uint64_t{0};
  runtime_.all_reduce(std::span(&first, 1), Reduction::kMin);
  const std::uint64_t speaker = first < n_pes_ ? first : 0;
  std::vector<std::uint64_t> all(5 + sums.size() + result.size(), 0);
  if (speaker == pe_) {
    all[0] = static_cast<std::uint64_t>(mine.outcome);
    all[1] = static_cast<std::uint32_t>(mine.error_code);
    all[2] = mine.error_type;
    all[3] = mine.error_values[0];
    all[4] = mine.error_values[1];
  }
  std::copy(sums.begin(), sums.end(), all.begin() + 5);
  if (pe_ == 0)
    std::copy(result.begin(), result.end(), all.end() - static_cast<std::ptrdiff_t>(result.size()));
  runtime_.all_reduce(std::span(all), Reduction::kSum);
  std::copy_n(all.begin() + 5, sums.size(), sums.begin());
  std::copy_n(all.end() - static_cast<std::ptrdiff_t>(result.size()), result.size(), result.begin());
  return {{static_cast<Outcome>(all[0]),
           static_cast<std::int32_t>(static_cast<std::uint32_t>(all[1])),
           static_cast<std::uint32_t>(all[2]),
           {all[3], all[4]}},
          static_cast<std::uint32_t>(speaker)};
}

// --- Runs that stand still.

/// PE 0 hears of changes alone, so a run that is watched has few letters more.
void TaskCourier::look_for_hang() {
  if (hangs_ == nullptr || hangs_->was_still(n_letters_) == says_still_) return;
  says_still_ = !says_still_;
  post(0, {kStill, says_still_ ? 1u : 0u, 0, 0, kNoAsk, 0});
}

void TaskCourier::receive_still(bool is_still) {
  n_still_ += is_still ? 1u : ~0u;
  if (n_still_ != n_pes_) return;
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) post(pe, {kReport, 0, 0, 0, kNoAsk, 0});
}

void TaskCourier::say_what_stands_still() {
  if (hangs_ == nullptr || !says_still_) return;  // something has moved since
  hangs_->say(fmt::format("PE {} of {} (here {})", pe_, n_pes_, runtime_.device().name()), under_way());
  if (hangs_->has_thrown()) end_domains(Outcome::kStopped);
}

template <class T>
std::map<std::uint32_t, std::uint32_t> TaskCourier::Table<T>::by_pe(std::uint32_t T::*pe) const {
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (const T& each : all) ++numbers[each.*pe];
  for (const std::uint32_t number : free) --numbers[all[number].*pe];
  std::erase_if(numbers, [](const auto& entry) { return entry.second == 0; });
  return numbers;
}

/// The parcels that this PE waits for, has, and asks for.
std::string TaskCourier::under_way() const {
  std::string text =
      fmt::format("\n  parcels of tasks: {} sent to other PEs, {} received", n_sent_, n_received_);
  for (const auto& [pe, n] : parts_.by_pe(&Part::pe))
    text += fmt::format("\n  waits for what {} parcels give that were sent to PE {}", n, pe);
  for (const auto& [pe, n] : arrived_.by_pe(&Arrived::origin))
    text += fmt::format("\n  has {} parcels of PE {}, which waits for what they give", n, pe);
  if (!stored_.empty())
    text += fmt::format("\n  {} parcels in store, for domains that have nothing", stored_.size());
  for (const Neighbour& neighbour : neighbours_) {
    const std::uint32_t n = neighbour.asks[kHungry] + neighbour.asks[kEarly];
    if (n != 0)
      text += fmt::format("\n  has asked PE {} for {} parcels, and waits for them", neighbour.pe, n);
  }
  std::map<std::uint32_t, std::uint32_t> asked;
  for (const auto& wants : wants_) {
    for (const std::uint32_t pe : wants) ++asked[pe];
  }
  for (const auto& [pe, n] : asked) text += fmt::format("\n  PE {} has asked for {} parcels", pe, n);
  return text;
}

// --- Asking.

/// Lets the port ask for other PEs.
void TaskCourier::grant_asks() {
  const std::size_t asked = wants_[kHungry].size() + wants_[kEarly].size();
  while (granted_ < asked && n_out_ + granted_ < quarter_of(format_)) {
    ++granted_;
    port_.wanted.store_relaxed(port_.wanted.load_relaxed() + 1);
  }
}

/// Domains that have nothing and get nothing, if they are more than a few.
std::uint32_t TaskCourier::hungry() const {
  const std::uint32_t idle = port_.idle.load_relaxed(), stock = port_.stock.load_relaxed();
  return idle < port_.domains / 4 || idle <= stock ? 0 : idle - stock;
}

void TaskCourier::ask_neighbours() {
  if (stored_.size() >= kEnoughInStore || arrived_.size() >= quarter_of(format_)) return;
  if (const std::uint32_t domains = hungry(); domains != 0) {
    for (Neighbour& neighbour : neighbours_)
      ask(neighbour, kHungry, std::clamp(domains / 8, 4u, kMostHungryAsks));
    return;
  }
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.asks[kHungry] + neighbour.asks[kEarly] != 0) return;
  }
  if (!neighbours_.empty()) ask(neighbours_[next_++ % neighbours_.size()], kEarly, kEnoughInStore);
}

void TaskCourier::ask(Neighbour& neighbour, Ask kind, std::uint32_t parcels) {
  if (neighbour.asks[kind] >= parcels) return;
  post(neighbour.pe, {kAsk, parcels - neighbour.asks[kind], 0, 0, kind, 0});
  neighbour.asks[kind] = parcels;
}

[[noreturn]] void refuse_task_bound(bool places, std::uint32_t n_pes) {
  if (!places)
    throw Error(
        Error::Kind::kConfiguration,
        fmt::format("tasks over PEs: memory_bound() knows no bound for {} PEs, but up to 16384", n_pes));
  throw Error(Error::Kind::kConfiguration,
              "tasks over PEs: memory_bound() knows no bound for tasks that name PEs (SpawnsAt): a PE keeps "
              "memory for each bundle that it has placed until its tasks are done, and how many those are is "
              "not bounded by how deep tasks nest. Run them once with much memory_bytes, and take some more "
              "than report().peak_memory_bytes; a run that is short of memory says so");
}

}  // namespace esker::detail
