// Bundles of tasks between PEs.
#include <esker/runtime/task_courier.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include <esker/runtime/impl.hpp>

namespace esker::detail {

using tasks::detail::BundleFormat;
using tasks::detail::kNone;
using tasks::detail::Outcome;
using tasks::detail::Parcel;
using tasks::detail::PortMemory;
using tasks::detail::RunEnd;
using tasks::detail::SlotLayout;

namespace {

constexpr std::chrono::microseconds kNap{100};
constexpr std::uint32_t kRoundsALook = 64;  // at whether the domains are still there

// Of the bundles a quarter may be out for asking PEs, and a quarter be in from PEs that were asked: the rest
// is for the domains, and for tasks that were placed.
std::size_t quarter_of(const BundleFormat& format) { return std::max(1u, format.bundles / 4); }

}  // namespace

template <class T>
std::uint32_t TaskCourier::Table<T>::add(T value) {
  if (free.empty()) {
    all.push_back(std::move(value));
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  const std::uint32_t number = free.back();
  free.pop_back();
  all[number] = std::move(value);
  return number;
}
template <class T>
T TaskCourier::Table<T>::take(std::uint32_t number) {
  free.push_back(number);
  return std::move(all.at(number));
}

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
    if ((pe_ ^ bit) < n_pes_) neighbours_.push_back({pe_ ^ bit, 0});
  }
  wants_.clear();
  granted_ = 0;
  parts_ = {};
  sent_.assign(format_.bundles, {});
  n_out_ = 0;
  arrived_ = {};
  to_hand_.clear();
  to_return_.clear();
  n_taken_ = n_handed_ = n_returned_ = 0;
  is_told_ = has_told_ = false;
  n_sent_ = n_received_ = 0;
  run_ = runtime_.impl_->mail().begin_run();
}

void TaskCourier::carry(const tasks::StopToken& stop, const std::function<bool()>& step_port,
                        const std::function<bool()>& has_ended) {
  const CurrentCall::Scope call(runtime_.impl_->call(), "a run of tasks over PEs", true);
  std::uint32_t rounds = 0;
  runtime_.impl_->waits().attend("tasks of other PEs", kNap, [&] {
    bool moved = step_port();
    moved = take_letters() || moved;
    moved = take_from_port() || moved;
    moved = fill(to_return_, port_.returned, n_returned_) || moved;
    moved = fill(to_hand_, port_.arrived, n_handed_) || moved;
    grant_asks();
    ask_neighbours();
    if (stop.stop_requested() && port_.end.load_relaxed() == 0)
      port_.end.store_relaxed(static_cast<std::uint32_t>(Outcome::kStopped));
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

void TaskCourier::end_domains() { port_.end.store_relaxed(static_cast<std::uint32_t>(Outcome::kFailed)); }

/// Once. Who has been told tells nobody: whoever ends a run tells all.
void TaskCourier::tell_end(Outcome how) {
  if (std::exchange(has_told_, true)) return;
  if (is_told_ && port_.ended_by_host.load_relaxed() != 0) return;
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    if (pe != pe_) post(pe, {kEnd, static_cast<std::uint32_t>(how), 0, 0, 0});
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

// --- Letters.

void TaskCourier::post(std::uint32_t pe, const Head& head, const Words& words) {
  if (pe == pe_) return receive(pe_, head, words.data());
  std::string bytes(sizeof head + words.size() * 4, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!words.empty()) std::memcpy(bytes.data() + sizeof head, words.data(), words.size() * 4);
  runtime_.impl_->mail().post({pe, run_, std::move(bytes)});
}

bool TaskCourier::take_letters() {
  bool moved = false;
  while (const auto letter = runtime_.impl_->mail().try_take(run_)) {
    Head head;
    std::memcpy(&head, letter->bytes.data(), sizeof head);
    Words words((letter->bytes.size() - sizeof head) / 4);
    if (!words.empty()) std::memcpy(words.data(), letter->bytes.data() + sizeof head, words.size() * 4);
    receive(letter->pe, head, words.data());
    moved = true;
  }
  return moved;
}

void TaskCourier::receive(std::uint32_t pe, const Head& head, const std::uint32_t* words) {
  switch (head.what) {
    case kAsk:
      wants_.insert(wants_.end(), head.ticket, pe);
      break;
    case kParcel:
      receive_parcel(pe, head, words);
      break;
    case kDone:
      receive_done(head, words);
      break;
    default:
      is_told_ = is_told_ || port_.end.load_relaxed() == 0;
      if (port_.end.load_relaxed() == 0) port_.end.store_relaxed(head.ticket);
      break;
  }
}

void TaskCourier::receive_parcel(std::uint32_t pe, const Head& head, const std::uint32_t* words) {
  if (head.answers != 0) {
    for (Neighbour& neighbour : neighbours_) {
      if (neighbour.pe == pe) --neighbour.asks;
    }
  }
  if (pe != pe_) ++n_received_;
  Words slot(port_.slot_words, 0);
  slot[SlotLayout::kParcel] = static_cast<std::uint32_t>(Parcel::kArrived);
  slot[SlotLayout::kNumber] = arrived_.add({pe, head.ticket});
  std::uint32_t* const bundle = slot.data() + SlotLayout::kBundle;
  bundle[format_.type] = head.type;
  bundle[format_.count] = head.count;
  for (std::uint32_t c = 0; c < format_.types[head.type].words; ++c)
    std::copy_n(words + std::size_t{c} * head.count, head.count,
                bundle + format_.payload + c * format_.batch);
  to_hand_.push_back(std::move(slot));
}

/// What the tasks of a part gave goes to their places; the last part brings the bundle back.
void TaskCourier::receive_done(const Head& head, const std::uint32_t* words) {
  const Part part = parts_.take(head.ticket);
  Sent& sent = sent_[part.bundle];
  for (std::uint32_t c = 0; c < format_.result_words; ++c) {
    for (std::size_t i = 0; i < part.tasks.size(); ++i)
      sent.results[c * format_.batch + part.tasks[i]] = words[c * part.tasks.size() + i];
  }
  if (--sent.parts != 0) return;
  --n_out_;
  Words slot(port_.slot_words, 0);
  slot[SlotLayout::kParcel] = static_cast<std::uint32_t>(Parcel::kReturned);
  slot[SlotLayout::kNumber] = part.bundle;
  std::copy(sent.results.begin(), sent.results.end(), slot.begin() + SlotLayout::kBundle + format_.results);
  to_return_.push_back(std::move(slot));
}

// --- The port.

std::uint32_t* TaskCourier::slot_of(std::uint32_t* ring, std::uint32_t number) const {
  return ring + std::size_t{number % PortMemory::kSlots} * port_.slot_words;
}

bool TaskCourier::fill(std::deque<Words>& parcels, std::uint32_t* ring, std::uint32_t& count) {
  bool moved = false;
  while (!parcels.empty()) {
    std::uint32_t* const slot = slot_of(ring, count);
    if (SlotLayout::is_full(slot).load_acquire() != 0) break;  // [slot]
    std::copy(parcels.front().begin() + 1, parcels.front().end(), slot + 1);
    SlotLayout::is_full(slot).store_release(1);  // [slot]
    parcels.pop_front();
    ++count;
    moved = true;
  }
  return moved;
}

bool TaskCourier::take_from_port() {
  bool moved = false;
  while (true) {
    std::uint32_t* const slot = slot_of(port_.to_host, n_taken_);
    if (SlotLayout::is_full(slot).load_acquire() == 0) return moved;  // [slot]
    const auto parcel = static_cast<Parcel>(slot[SlotLayout::kParcel]);
    if (parcel == Parcel::kFinished) {
      const Arrived from = arrived_.take(slot[SlotLayout::kNumber]);
      const std::uint32_t* const bundle = slot + SlotLayout::kBundle;
      const std::uint32_t count = bundle[format_.count];
      Words results;
      for (std::uint32_t c = 0; c < format_.result_words; ++c) {
        const std::uint32_t* const column = bundle + format_.results + c * format_.batch;
        results.insert(results.end(), column, column + count);
      }
      post(from.pe, {kDone, from.ticket, 0, count, 0}, results);
    } else {
      send_tasks(slot, parcel == Parcel::kGiven);
    }
    SlotLayout::is_full(slot).store_release(0);  // [slot]
    ++n_taken_;
    moved = true;
  }
}

void TaskCourier::send_tasks(const std::uint32_t* slot, bool is_given) {
  const std::uint32_t number = slot[SlotLayout::kNumber];
  const std::uint32_t* const bundle = slot + SlotLayout::kBundle;
  const std::uint32_t count = bundle[format_.count];
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_pe;
  if (is_given) {
    std::vector<std::uint32_t>& all = by_pe[wants_.front()];
    wants_.pop_front();
    --granted_;
    for (std::uint32_t i = 0; i < count; ++i) all.push_back(i);
  } else {
    for (std::uint32_t i = 0; i < count; ++i) by_pe[bundle[format_.payload + i]].push_back(i);
  }
  // A PE that is not there has ended the run already.
  if (by_pe.rbegin()->first >= n_pes_) return;
  const BundleFormat::Type& type = format_.types[bundle[format_.type]];
  const std::size_t task_bytes = 4 * std::max(1u, std::max(type.words, format_.result_words));
  const std::size_t most = (runtime_.impl_->mail().most_bytes() - sizeof(Head)) / task_bytes;
  Sent& sent = sent_[number];
  sent.results.assign(std::size_t{format_.result_words} * format_.batch, 0);
  ++n_out_;
  // All parts are known before the first can be done.
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> parts;
  for (const auto& [pe, tasks] : by_pe) {
    for (std::size_t first = 0; first < tasks.size(); first += most) {
      const auto begin = tasks.begin() + static_cast<std::ptrdiff_t>(first);
      const auto n = static_cast<std::ptrdiff_t>(std::min(most, tasks.size() - first));
      parts.emplace_back(pe, std::vector<std::uint32_t>(begin, begin + n));
    }
  }
  sent.parts = static_cast<std::uint32_t>(parts.size());
  bool answers = is_given;
  for (auto& [pe, tasks] : parts)
    send_part(pe, number, bundle, std::move(tasks), std::exchange(answers, false));
}

void TaskCourier::send_part(std::uint32_t pe, std::uint32_t bundle, const std::uint32_t* words,
                            std::vector<std::uint32_t> tasks, bool answers) {
  const BundleFormat::Type& type = format_.types[words[format_.type]];
  Words columns;
  for (std::uint32_t c = 0; c < type.words; ++c) {
    const std::uint32_t* const column = words + format_.payload + (type.task_at + c) * format_.batch;
    for (const std::uint32_t task : tasks) columns.push_back(column[task]);
  }
  if (pe != pe_) ++n_sent_;
  const Head head{kParcel, 0, type.placed_as != kNone ? type.placed_as : words[format_.type],
                  static_cast<std::uint32_t>(tasks.size()), answers ? 1u : 0u};
  Head numbered = head;
  numbered.ticket = parts_.add({bundle, std::move(tasks)});
  post(pe, numbered, columns);
}

// --- Asking.

/// Lets the port ask for other PEs.
void TaskCourier::grant_asks() {
  while (granted_ < wants_.size() && n_out_ + granted_ < quarter_of(format_)) {
    ++granted_;
    port_.wanted.store_relaxed(port_.wanted.load_relaxed() + 1);
  }
}

void TaskCourier::ask_neighbours() {
  const std::uint32_t waiting = port_.waiting.load_relaxed();
  if (waiting == 0 || waiting < port_.domains / 4 || arrived_.size() >= quarter_of(format_)) return;
  const std::uint32_t asks = std::clamp(waiting / 64, 1u, 4u);  // of a GPU more than one
  for (Neighbour& neighbour : neighbours_) {
    if (neighbour.asks >= asks) continue;
    post(neighbour.pe, {kAsk, asks - neighbour.asks, 0, 0, 0});
    neighbour.asks = asks;
  }
}

}  // namespace esker::detail
