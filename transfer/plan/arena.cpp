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
  std::uint64_t phase = 0;  // what it begins at, beyond a multiple of the alignment
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> storages;
  std::vector<std::uint64_t> begins, ends;  // of each, in the block

  void add(std::uint32_t storage, const Operand& operand, std::uint64_t alignment) {
    const std::uint64_t its_phase = operand.host_address & (alignment - 1);
    if (storages.empty()) phase = its_phase;
    begins.push_back(bytes + ((its_phase - phase - bytes) & (alignment - 1)));
    bytes = begins.back() + space_of(operand, alignment);
    ends.push_back(bytes);
    storages.push_back(storage);
  }
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
    blocks.back().add(storage, graph.operand(storage), alignment);
    is_open = joins_next[i];
  }
  return blocks;
}

struct Placed {
  std::uint64_t begin, end;
  Lifetime lifetime;
};

/// Adds the block at an offset. False, and nothing added: it meets what is alive with it.
bool add_if_free(const Block& block, std::uint64_t at, const std::vector<Lifetime>& lifetimes,
                 std::vector<Placed>* placed) {
  for (std::size_t i = 0; i < block.storages.size(); ++i) {
    for (const Placed& other : *placed) {
      if (at + block.begins[i] < other.end && other.begin < at + block.ends[i] &&
          lifetimes[block.storages[i]].overlaps(other.lifetime))
        return false;
    }
  }
  for (std::size_t i = 0; i < block.storages.size(); ++i)
    placed->push_back({at + block.begins[i], at + block.ends[i], lifetimes[block.storages[i]]});
  return true;
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

/// Each at the lowest offset at which it meets nothing that is alive with it.
std::vector<std::uint64_t> first_fit(const std::vector<Block>& blocks, const std::vector<Lifetime>& lifetimes,
                                     std::uint64_t alignment) {
  std::vector<std::uint64_t> offsets;
  std::vector<Placed> placed;
  for (const Block& block : blocks) {
    std::vector<std::uint64_t> candidates = {0};
    for (const Placed& other : placed) candidates.push_back(round_up(other.end, alignment));
    std::sort(candidates.begin(), candidates.end());
    std::size_t next = 0;  // the last one is beyond all others
    while (!add_if_free(block, candidates[next] + block.phase, lifetimes, &placed)) ++next;
    offsets.push_back(candidates[next] + block.phase);
  }
  return offsets;
}

/// Offsets of blocks in so much memory, by search. An offset is a multiple of what divides all sizes.
class Packing {
 public:
  Packing(const OperandGraph& graph, const std::vector<Block>& blocks, const std::vector<Lifetime>& lifetimes,
          std::uint64_t alignment, std::uint64_t limit)
      : blocks_{blocks}, lifetimes_{lifetimes}, limit_{limit} {
    for (const Block& block : blocks) {
      for (const std::uint32_t storage : block.storages)
        unit_ = std::gcd(unit_, space_of(graph.operand(storage), alignment));
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

  bool place(std::size_t next, std::vector<std::uint64_t>& offsets, std::vector<Placed>& placed) {
    if (next == blocks_.size()) return true;
    const Block& block = blocks_[next];
    for (std::uint64_t at = block.phase; at + block.bytes <= limit_; at += unit_) {
      if (++tried_ > kMostTried) return false;
      const std::size_t before = placed.size();
      offsets[next] = at;
      if (add_if_free(block, at, lifetimes_, &placed) && place(next + 1, offsets, placed)) return true;
      placed.resize(before);
    }
    return false;
  }

  const std::vector<Block>& blocks_;
  const std::vector<Lifetime>& lifetimes_;
  const std::uint64_t limit_;
  std::uint64_t unit_ = 0;
  std::uint32_t tried_ = 0;
};

void check_addresses(const OperandGraph& graph, const Schedule& schedule) {
  std::vector<std::uint32_t> by_address;
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.operand(i).host_address != 0 && graph.storage(i) == i) by_address.push_back(i);
  }
  std::sort(by_address.begin(), by_address.end(), [&](std::uint32_t a, std::uint32_t b) {
    return graph.operand(a).host_address < graph.operand(b).host_address;
  });
  for (std::size_t i = 1; i < by_address.size(); ++i) {
    const Operand &one = graph.operand(by_address[i - 1]), &next = graph.operand(by_address[i]);
    if (one.host_address + one.bytes <= next.host_address) continue;
    throw Error(Error::Kind::kTransfer,
                fmt::format("lay_out: {} of {} bytes at {:#x} and {} at {:#x} overlap",
                            name_of(graph, by_address[i - 1]), one.bytes, one.host_address,
                            name_of(graph, by_address[i]), next.host_address));
  }
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
  // Beside one at an address another operand's last bytes may be up to its alignment.
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.operand(i).host_address != 0) alignment = 1;
  }
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
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        for (std::size_t i = 0; i < blocks[b].storages.size(); ++i)
          layout.offsets[place][blocks[b].storages[i]] = offsets[b] + blocks[b].begins[i];
        layout.bytes[place] = std::max(layout.bytes[place], offsets[b] + blocks[b].bytes);
      }
    };
    for (const Block& block : blocks) layout.separate_bytes[place] += block.bytes;
    if (place == 0) {
      put_at(in_memory_order(blocks, alignment));
      continue;
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    put_at(first_fit(blocks, lifetimes[place], alignment));
    if (layout.bytes[place] <= limit) continue;
    const auto found = Packing(graph, blocks, lifetimes[place], alignment, limit).find();
    if (!found.empty()) put_at(found);
  }
  return layout;
}

}  // namespace esker::transfer
