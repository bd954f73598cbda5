// Where each lane of a group waits.
#include <algorithm>
#include <cstring>
#include <esker/device/cpu/rendezvous.hpp>
#include <new>
#include <stdexcept>

namespace esker::cpu {

void combine_nothing(Exchange*, std::uint32_t) {}

void combine_positions(Exchange* lanes, std::uint32_t count) {
  Position all{0, 0, 0};
  for (std::uint32_t l = 0; l < count; ++l) {
    lanes[l].position.index = all.total;
    if (lanes[l].present && lanes[l].active) {
      ++all.total;
      all.last = l;
    }
  }
  for (std::uint32_t l = 0; l < count; ++l) {
    lanes[l].position.total = all.total;
    lanes[l].position.last = all.last;
  }
}

void combine_broadcast(Exchange* lanes, std::uint32_t count) {
  const auto check = [&](std::uint32_t from) {
    if (from >= count || !lanes[from].present) {
      throw std::logic_error("esker: broadcast from lane " + std::to_string(from) + " of a view of " +
                             std::to_string(count) + " lanes: it has returned or never was");
    }
  };
  // The usual case, all lanes name the same source, needs no copy of the values.
  std::uint32_t common = count;
  bool agree = true;
  for (std::uint32_t l = 0; l < count; ++l) {
    if (!lanes[l].present) continue;
    check(lanes[l].from);
    agree = agree && (common == count || common == lanes[l].from);
    common = lanes[l].from;
  }
  if (agree) {
    const std::uint64_t value = lanes[common].value;
    for (std::uint32_t l = 0; l < count; ++l) lanes[l].value = value;
    return;
  }
  std::vector<std::uint64_t> values(count);
  for (std::uint32_t l = 0; l < count; ++l) values[l] = lanes[l].value;
  for (std::uint32_t l = 0; l < count; ++l) {
    if (lanes[l].present) lanes[l].value = values[lanes[l].from];
  }
}

void Rendezvous::begin(const LaunchShape& shape, std::uint64_t group, std::uint32_t lanes) {
  group_ = group;
  wave_lanes_ = shape.wave_lanes;
  lanes_.assign(lanes, LaneState{});
  exchanges_.assign(lanes, Exchange{});
  views_.clear();
  views_.push_back({0, lanes, lanes, 0});
  for (std::uint32_t first = 0; first < lanes; first += wave_lanes_) {
    const std::uint32_t size = std::min(wave_lanes_, lanes - first);
    views_.push_back({first, size, size, 0});
  }
  for (Scratch& s : scratch_) s.in_use = false;
}

bool Rendezvous::arrive(std::uint32_t lane, std::uint32_t view, const Collective& what,
                        const Exchange& mine) {
  LaneState& state = lanes_[lane];
  state.what = &what;
  state.view = view;
  exchanges_[lane] = mine;
  View& v = views_[view];
  for (std::uint32_t l = v.first; v.arrived > 0 && l < v.first + v.size; ++l) {
    const LaneState& other = lanes_[l];
    if (l == lane || other.what == nullptr || other.view != view) continue;
    if (other.what == &what) break;  // the lanes that wait there agree already
    const std::string text = misuse();
    state.what = nullptr;  // it has not arrived
    throw std::logic_error(text);
  }
  if (++v.arrived < v.live) return false;
  try {
    end(v);
  } catch (...) {
    --v.arrived;
    state.what = nullptr;
    throw;
  }
  return true;
}

bool Rendezvous::leave(std::uint32_t lane) {
  if (lanes_[lane].what != nullptr) --views_[lanes_[lane].view].arrived;  // cancelled while it waited
  lanes_[lane] = LaneState{nullptr, nullptr, 0, true};
  exchanges_[lane] = Exchange{};
  released_.clear();
  bool ended = false;
  for (const std::uint32_t number : {1 + lane / wave_lanes_, 0u}) {
    View& v = views_[number];
    --v.live;
    // A lane waits in one collective at a time, so at most one of the two can end.
    if (v.arrived > 0 && v.arrived == v.live) {
      end(v);
      ended = true;
    }
  }
  return ended;
}

void Rendezvous::end(View& v) {
  released_.clear();
  const auto number = static_cast<std::uint32_t>(&v - views_.data());
  const Collective* what = nullptr;
  for (std::uint32_t l = v.first; l < v.first + v.size; ++l) {
    if (lanes_[l].what != nullptr && lanes_[l].view == number) {
      what = lanes_[l].what;
      released_.push_back(l);
    } else {
      exchanges_[l].present = false;
      exchanges_[l].active = false;
    }
  }
  what->combine(exchanges_.data() + v.first, v.size);
  v.arrived = 0;
  for (const std::uint32_t l : released_) lanes_[l].what = nullptr;
}

std::string Rendezvous::place(const LaneState& lane) const {
  if (lane.gone) return "";
  if (lane.where != nullptr) return lane.where;
  if (lane.what == nullptr) return "no wait (it runs)";
  const std::string view = lane.view == 0 ? "group." : "wave " + std::to_string(lane.view - 1) + ".";
  return view + lane.what->name;
}

std::string Rendezvous::misuse() const {
  std::string text = "esker: the " + std::to_string(live()) + " live lanes of group " +
                     std::to_string(group_) + " do not run the same collectives:";
  for (std::uint32_t l = 0; l < lanes();) {
    const std::string here = place(lanes_[l]);
    std::uint32_t end = l + 1;
    while (end < lanes() && place(lanes_[end]) == here) ++end;
    if (!here.empty()) {
      text += l + 1 == end ? " lane " + std::to_string(l)
                           : " lanes " + std::to_string(l) + "-" + std::to_string(end - 1);
      text += " in " + here + ";";
    }
    l = end;
  }
  text.pop_back();
  return text;
}

void Rendezvous::FreeAligned::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kLineBytes});
}

std::byte* Rendezvous::scratch(const void* key, std::size_t bytes) {
  auto found = std::find_if(scratch_.begin(), scratch_.end(), [&](const Scratch& s) { return s.key == key; });
  if (found == scratch_.end()) {
    auto* memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kLineBytes}));
    scratch_.push_back({key, bytes, false, std::unique_ptr<std::byte, FreeAligned>(memory)});
    found = scratch_.end() - 1;
  }
  if (!found->in_use) std::memset(found->memory.get(), 0, found->bytes);
  found->in_use = true;
  return found->memory.get();
}

}  // namespace esker::cpu
