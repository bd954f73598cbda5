// Layouts: neighbours stay together, lifetimes share memory.
#include <esker/transfer/plan/arena.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <esker/error.hpp>

namespace esker::transfer {

namespace {

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

/// Storages that copies keep together, in memory order.
struct Block {
  std::vector<std::uint32_t> storages;
  std::uint64_t bytes = 0;
};

/// Startups that have a storage in common are one block; what nothing moves is a block by itself.
std::vector<Block> blocks_of(const OperandGraph& graph, const Schedule& schedule, std::uint32_t place,
                             const std::vector<Lifetime>& lifetimes, std::uint64_t alignment) {
  const std::size_t size = schedule.order.size();
  std::vector<bool> joins_next(size, false);
  for (const Startup& startup : schedule.startups) {
    if (startup.from != place && startup.to != place) continue;
    for (std::uint32_t i = startup.first; i + 1 < startup.first + startup.count; ++i) joins_next[i] = true;
  }
  std::vector<Block> blocks;
  bool is_open = false;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t storage = schedule.order[i];
    if (!lifetimes[storage].is_used() || (place == 0 && graph.operand(storage).host_address != 0)) {
      is_open = false;
      continue;
    }
    if (!is_open) blocks.emplace_back();
    blocks.back().storages.push_back(storage);
    blocks.back().bytes += space_of(graph.operand(storage), alignment);
    is_open = joins_next[i];
  }
  return blocks;
}

struct Placed {
  std::uint64_t begin, end;
  Lifetime lifetime;
};

/// The lowest offset at which no storage of the block meets one that is alive with it.
std::uint64_t fit(const OperandGraph& graph, const Block& block, const std::vector<Lifetime>& lifetimes,
                  const std::vector<Placed>& placed, std::uint64_t alignment) {
  std::vector<std::uint64_t> candidates = {0};
  for (const Placed& other : placed) candidates.push_back(round_up(other.end, alignment));
  std::sort(candidates.begin(), candidates.end());
  for (const std::uint64_t candidate : candidates) {
    bool fits = true;
    std::uint64_t at = candidate;
    for (const std::uint32_t storage : block.storages) {
      const std::uint64_t end = at + space_of(graph.operand(storage), alignment);
      for (const Placed& other : placed) {
        if (at < other.end && other.begin < end && lifetimes[storage].overlaps(other.lifetime)) fits = false;
      }
      if (!fits) break;
      at = end;
    }
    if (fits) return candidate;
  }
  return candidates.back();
}

std::vector<std::uint64_t> in_memory_order(const std::vector<Block>& blocks, std::uint64_t alignment) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  for (const Block& block : blocks) {
    offsets.push_back(round_up(end, alignment));
    end = offsets.back() + block.bytes;
  }
  return offsets;
}

std::vector<std::uint64_t> first_fit(const OperandGraph& graph, const std::vector<Block>& blocks,
                                     const std::vector<Lifetime>& lifetimes, std::uint64_t alignment) {
  std::vector<std::uint64_t> offsets;
  std::vector<Placed> placed;
  for (const Block& block : blocks) {
    std::uint64_t at = fit(graph, block, lifetimes, placed, alignment);
    offsets.push_back(at);
    for (const std::uint32_t storage : block.storages) {
      const std::uint64_t end = at + space_of(graph.operand(storage), alignment);
      placed.push_back({at, end, lifetimes[storage]});
      at = end;
    }
  }
  return offsets;
}

/// Offsets of blocks in so much memory, by search. An offset is a multiple of what divides all sizes.
class Packing {
 public:
  Packing(const OperandGraph& graph, const std::vector<Block>& blocks, const std::vector<Lifetime>& lifetimes,
          std::uint64_t alignment, std::uint64_t limit)
      : graph_{graph}, blocks_{blocks}, lifetimes_{lifetimes}, alignment_{alignment}, limit_{limit} {
    for (const Block& block : blocks) {
      for (const std::uint32_t storage : block.storages) unit_ = std::gcd(unit_, space_of(storage));
    }
    if (unit_ % alignment != 0) unit_ = alignment;
  }
  /// One a block; empty if none were found.
  std::vector<std::uint64_t> find() {
    std::vector<std::uint64_t> offsets(blocks_.size());
    std::vector<Placed> placed;
    return place(0, offsets, placed) ? offsets : std::vector<std::uint64_t>{};
  }

 private:
  static constexpr std::uint32_t kMostTried = 10'000;

  std::uint64_t space_of(std::uint32_t storage) const {
    return transfer::space_of(graph_.operand(storage), alignment_);
  }
  bool place(std::size_t next, std::vector<std::uint64_t>& offsets, std::vector<Placed>& placed) {
    if (next == blocks_.size()) return true;
    const Block& block = blocks_[next];
    for (std::uint64_t at = 0; at + block.bytes <= limit_; at += unit_) {
      if (++tried_ > kMostTried) return false;
      const std::size_t before = placed.size();
      offsets[next] = at;
      if (add(block, at, placed) && place(next + 1, offsets, placed)) return true;
      placed.resize(before);
    }
    return false;
  }
  /// False: it meets what is alive with it.
  bool add(const Block& block, std::uint64_t at, std::vector<Placed>& placed) const {
    const std::size_t others = placed.size();
    for (const std::uint32_t storage : block.storages) {
      const std::uint64_t end = at + space_of(storage);
      for (std::size_t i = 0; i < others; ++i) {
        if (at < placed[i].end && placed[i].begin < end && lifetimes_[storage].overlaps(placed[i].lifetime))
          return false;
      }
      placed.push_back({at, end, lifetimes_[storage]});
      at = end;
    }
    return true;
  }

  const OperandGraph& graph_;
  const std::vector<Block>& blocks_;
  const std::vector<Lifetime>& lifetimes_;
  const std::uint64_t alignment_, limit_;
  std::uint64_t unit_ = 0;
  std::uint32_t tried_ = 0;
};

void check_addresses(const OperandGraph& graph, const Schedule& schedule) {
  for (const Startup& startup : schedule.startups) {
    if (startup.from != 0 && startup.to != 0) continue;
    for (std::uint32_t i = startup.first; i + 1 < startup.first + startup.count; ++i) {
      const Operand &one = graph.operand(schedule.order[i]), &next = graph.operand(schedule.order[i + 1]);
      if (one.host_address == 0 && next.host_address == 0) continue;
      if (one.host_address + one.bytes == next.host_address) continue;
      throw Error(Error::Kind::kTransfer,
                  fmt::format("lay_out: {} at {:#x} and {} at {:#x} are in one startup and no neighbours",
                              name_of(graph, schedule.order[i]), one.host_address,
                              name_of(graph, schedule.order[i + 1]), next.host_address));
    }
  }
}

}  // namespace

std::uint64_t Layout::bytes_of(const OperandGraph& graph, const Schedule& schedule,
                               const Startup& startup) const {
  const std::uint32_t place = std::max(startup.from, startup.to);
  const std::uint32_t last = schedule.order[startup.first + startup.count - 1];
  return offsets[place][last] + graph.operand(last).bytes - begin_of(schedule, startup, place);
}

bool Lifetime::overlaps(const Lifetime& other) const {
  for (const Stretch& mine : stretches) {
    for (const Stretch& its : other.stretches) {
      if (mine.first <= its.last && its.first <= mine.last) return true;
    }
  }
  return false;
}

std::vector<std::vector<Lifetime>> lifetimes_of(const OperandGraph& graph, const Schedule& schedule) {
  struct Touch {
    std::uint32_t place, storage, step;
    bool arrives;
  };
  std::vector<Touch> touches;
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    for (const std::uint32_t i : graph.reads(k))
      touches.push_back({graph.place(k), graph.storage(i), 3 * k + 1, false});
    for (const std::uint32_t i : graph.writes(k))
      touches.push_back({graph.place(k), graph.storage(i), 3 * k + 1, false});
  }
  for (const Startup& startup : schedule.startups) {
    for (std::uint32_t i = startup.first; i < startup.first + startup.count; ++i) {
      const std::uint32_t step = 3 * startup.time + (startup.is_upload() ? 0 : 2);
      touches.push_back({startup.from, schedule.order[i], step, false});
      touches.push_back({startup.to, schedule.order[i], step, startup.to != 0});
    }
  }
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.operand(i).on_entry) touches.push_back({0, i, 0, false});
  }
  std::stable_sort(touches.begin(), touches.end(),
                   [](const Touch& a, const Touch& b) { return a.step < b.step; });
  std::vector<std::vector<Lifetime>> all(graph.places(), std::vector<Lifetime>(graph.operands()));
  for (const Touch& touch : touches) {
    auto& stretches = all[touch.place][touch.storage].stretches;
    if (stretches.empty() || touch.arrives) {
      stretches.push_back({touch.step, touch.step});
    } else {
      stretches.back().last = touch.step;
    }
  }
  return all;
}

std::uint64_t most_alive(const OperandGraph& graph, const std::vector<Lifetime>& lifetimes,
                         std::uint64_t alignment) {
  std::vector<std::uint64_t> starting(3 * std::size_t{graph.kernels()} + 1, 0), ending(starting);
  for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
    for (const Lifetime::Stretch& stretch : lifetimes[i].stretches) {
      starting[stretch.first] += space_of(graph.operand(i), alignment);
      ending[stretch.last] += space_of(graph.operand(i), alignment);
    }
  }
  std::uint64_t alive = 0, most = 0;
  for (std::size_t step = 0; step < starting.size(); ++step) {
    alive += starting[step];
    most = std::max(most, alive);
    alive -= ending[step];
  }
  return most;
}

Layout lay_out(const OperandGraph& graph, const Schedule& schedule, std::uint64_t alignment,
               std::uint64_t limit) {
  check_addresses(graph, schedule);
  const std::vector<std::vector<Lifetime>> lifetimes = lifetimes_of(graph, schedule);
  Layout layout;
  layout.bytes.assign(graph.places(), 0);
  layout.separate_bytes.assign(graph.places(), 0);
  layout.offsets.assign(graph.places(), std::vector<std::uint64_t>(graph.operands(), Layout::kNowhere));
  for (std::uint32_t place = 0; place < graph.places(); ++place) {
    std::vector<Block> blocks = blocks_of(graph, schedule, place, lifetimes[place], alignment);
    const auto put_at = [&](const std::vector<std::uint64_t>& offsets) {
      layout.bytes[place] = 0;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        std::uint64_t at = offsets[i];
        for (const std::uint32_t storage : blocks[i].storages) {
          layout.offsets[place][storage] = at;
          at += space_of(graph.operand(storage), alignment);
        }
        layout.bytes[place] = std::max(layout.bytes[place], at);
      }
    };
    for (const Block& block : blocks) layout.separate_bytes[place] += block.bytes;
    if (place == 0) {
      put_at(in_memory_order(blocks, alignment));
      continue;
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    put_at(first_fit(graph, blocks, lifetimes[place], alignment));
    if (layout.bytes[place] <= limit) continue;
    const auto found = Packing(graph, blocks, lifetimes[place], alignment, limit).find();
    if (!found.empty()) put_at(found);
  }
  return layout;
}

}  // namespace esker::transfer
