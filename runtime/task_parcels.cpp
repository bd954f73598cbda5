// Letters between couriers, and parcels between them and ports.
#include <esker/runtime/task_courier.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include <esker/runtime/impl.hpp>

namespace esker::detail {

using tasks::detail::BundleFormat;
using tasks::detail::kNone;
using tasks::detail::Parcel;
using tasks::detail::PortMemory;
using tasks::detail::SlotLayout;

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

// --- Letters.

void TaskCourier::post(std::uint32_t pe, const Head& head, const Words& words) {
  if (head.what < kEnd) ++n_letters_;
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
    if (letter->bytes.size() < sizeof head)
      throw Error(Error::Kind::kNetwork, "a letter about tasks from PE " + std::to_string(letter->pe) +
                                             " has " + std::to_string(letter->bytes.size()) + " bytes");
    std::memcpy(&head, letter->bytes.data(), sizeof head);
    Words words((letter->bytes.size() - sizeof head) / 4);
    if (!words.empty()) std::memcpy(words.data(), letter->bytes.data() + sizeof head, words.size() * 4);
    receive(letter->pe, head, words.data());
    moved = true;
  }
  return moved;
}

void TaskCourier::receive(std::uint32_t pe, const Head& head, const std::uint32_t* words) {
  if (head.what < kEnd) ++n_letters_;
  switch (head.what) {
    case kAsk:
      wants_[head.answers].insert(wants_[head.answers].end(), head.ticket, pe);
      break;
    case kParcel:
      receive_parcel(pe, head, words);
      break;
    case kDone:
      receive_done(head, words);
      break;
    case kStill:
      receive_still(head.ticket != 0);
      break;
    case kReport:
      say_what_stands_still();
      break;
    default:
      is_told_ = is_told_ || port_.end.load_relaxed() == 0;
      if (port_.end.load_relaxed() == 0) port_.end.store_relaxed(head.ticket);
      break;
  }
}

void TaskCourier::receive_parcel(std::uint32_t pe, const Head& head, const std::uint32_t* words) {
  if (pe != pe_ && head.answers != kNoAsk) {
    for (Neighbour& neighbour : neighbours_) {
      if (neighbour.pe == pe && neighbour.asks[head.answers] != 0) --neighbour.asks[head.answers];
    }
  }
  if (pe != pe_) ++n_received_;
  Words slot(port_.slot_words, 0);
  slot[SlotLayout::kParcel] = static_cast<std::uint32_t>(Parcel::kArrived);
  slot[SlotLayout::kNumber] = arrived_.add({head.origin, head.ticket});
  std::uint32_t* const bundle = slot.data() + SlotLayout::kBundle;
  bundle[format_.type] = head.type;
  bundle[format_.count] = head.count;
  for (std::uint32_t c = 0; c < format_.types[head.type].words; ++c)
    std::copy_n(words + std::size_t{c} * head.count, head.count,
                bundle + format_.payload + c * format_.batch);
  stored_.push_back({std::move(slot), head.answers != kNoAsk});
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

bool TaskCourier::put(const Words& parcel, std::uint32_t* ring, std::uint32_t& count) {
  std::uint32_t* const slot = slot_of(ring, count);
  if (SlotLayout::is_full(slot).load_acquire() != 0) return false;  // [slot]
  std::copy(parcel.begin() + 1, parcel.end(), slot + 1);
  SlotLayout::is_full(slot).store_release(1);  // [slot]
  ++count;
  return true;
}

bool TaskCourier::hand_to_port() {
  bool moved = false;
  while (!to_return_.empty() && put(to_return_.front(), port_.returned, n_returned_)) {
    to_return_.pop_front();
    --n_out_;  // the port frees its crate before it needs another
    moved = true;
  }
  // As much as domains may take at once, before this thread runs again: the rest may go to others.
  const std::uint32_t stock = port_.stock.load_relaxed(), enough = port_.idle.load_relaxed() + 1;
  for (std::uint32_t n = stock; n < enough && !stored_.empty(); ++n) {
    if (!put(stored_.front().slot, port_.arrived, n_handed_)) break;
    stored_.pop_front();
    moved = true;
  }
  return moved;
}

/// What is in store goes to PEs that have nothing.
bool TaskCourier::hand_to_others() {
  bool moved = false;
  for (auto stored = stored_.begin(); stored != stored_.end() && !wants_[kHungry].empty();) {
    if (!stored->may_go_on) {
      ++stored;
      continue;
    }
    const std::uint32_t* const bundle = stored->slot.data() + SlotLayout::kBundle;
    const std::uint32_t type = bundle[format_.type], count = bundle[format_.count];
    Words columns;
    for (std::uint32_t c = 0; c < format_.types[type].words; ++c) {
      const std::uint32_t* const column = bundle + format_.payload + c * format_.batch;
      columns.insert(columns.end(), column, column + count);
    }
    const Arrived from = arrived_.take(stored->slot[SlotLayout::kNumber]);
    const std::uint32_t pe = wants_[kHungry].front();
    wants_[kHungry].pop_front();
    ++n_sent_;
    stored = stored_.erase(stored);
    post(pe, {kParcel, from.ticket, type, count, kHungry, from.origin}, columns);
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
      post(from.origin, {kDone, from.ticket, 0, count, kNoAsk, 0}, results);
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
  Ask answers = kNoAsk;
  if (is_given) {
    --granted_;
    std::uint32_t pe = pe_;  // it was asked for, and what was in store went in its place
    for (const Ask kind : {kHungry, kEarly}) {
      if (answers != kNoAsk || wants_[kind].empty()) continue;
      pe = wants_[kind].front();
      wants_[kind].pop_front();
      answers = kind;
    }
    if (answers == kNoAsk) answers = kHungry;  // nobody's: in store it may go on
    std::vector<std::uint32_t>& all = by_pe[pe];
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
  for (auto& [pe, tasks] : parts)
    send_part(pe, number, bundle, std::move(tasks), std::exchange(answers, kNoAsk));
}

void TaskCourier::send_part(std::uint32_t pe, std::uint32_t bundle, const std::uint32_t* words,
                            std::vector<std::uint32_t> tasks, Ask answers) {
  const BundleFormat::Type& type = format_.types[words[format_.type]];
  Words columns;
  for (std::uint32_t c = 0; c < type.words; ++c) {
    const std::uint32_t* const column = words + format_.payload + (type.task_at + c) * format_.batch;
    for (const std::uint32_t task : tasks) columns.push_back(column[task]);
  }
  if (pe != pe_) ++n_sent_;
  Head head{kParcel, 0, words[format_.type], static_cast<std::uint32_t>(tasks.size()), answers, pe_};
  if (type.placed_as != kNone) head.type = type.placed_as;
  head.ticket = parts_.add({bundle, pe, std::move(tasks)});
  post(pe, head, columns);
}

}  // namespace esker::detail
