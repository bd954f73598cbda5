// Where a run's frames and words lie.
#include <esker/pipeline/run_memory.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/pipeline/crossing.hpp>

namespace esker::pipeline::detail {

namespace {
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

std::uint64_t flush_ns(const TopicOptions& options) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(options.flush_after.count(), 0)) * 1000;
}
}  // namespace

void* RunMemory::Arena::take_bytes(std::size_t bytes) {
  bytes = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  if (blocks_.empty() || bytes > blocks_.back().size - blocks_.back().used) {
    const std::size_t size = std::max(bytes, kBlockBytes);
    const auto kind = is_device_ ? MemoryKind::kDevice : MemoryKind::kPinned;
    blocks_.push_back({pool_.take(side_, kind, size, "words of a pipeline"), {}, 0, size});
  }
  Block& block = blocks_.back();
  std::byte* const taken = block.at + block.used;
  block.used += bytes;
  if (is_device_) {
    block.image.resize(block.used / sizeof(std::uint64_t));
  } else {
    std::memset(taken, 0, bytes);
  }
  return taken;
}
void RunMemory::Arena::set(const void* at, const void* bytes, std::size_t n) {
  auto* to = static_cast<std::byte*>(const_cast<void*>(at));
  if (is_device_) {
    const auto in =
        std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.has(at); });
    to = reinterpret_cast<std::byte*>(in->image.data()) + (to - in->at);
  }
  std::memcpy(to, bytes, n);
}

RunMemory::RunMemory(const std::vector<Device>& devices, MemoryPool& pool, const Topology& topology,
                     const std::vector<std::uint32_t>& teams, bool balance)
    : devices_{devices}, pool_{pool}, topology_{topology}, teams_{teams}, balance_{balance} {
  const auto add_side = [&](bool is_device) {
    sides_.push_back({Arena(pool, sides(), is_device), std::make_unique<RunView>(), nullptr});
  };
  add_side(false);
  for (const Device& device : devices) {
    streams_.push_back(device.stream());
    add_side(device.backend() != Backend::kCpu);
  }
  written_ = arena(kHostSide).take<PolledWord>();
  PolledWord* const drain = arena(kHostSide).take<PolledWord>();
  for (SideMemory& side : sides_) {
    side.view->side = arena(kHostSide).take<SideState>();
    side.view->claimed = side.arena.take<PolledWord>();
    side.view->failures = side.arena.take<PolledWord>();
    side.view->passed_on = side.arena.take<PolledWord>();
    side.view->drain = drain;
    side.view->stop = side.arena.take<PolledWord>();
    side.view->n_topics = static_cast<std::uint32_t>(topology.topics.size());
    side.view->n_stages = static_cast<std::uint32_t>(topology.stages.size());
    side.view->pipeline = topology.pipeline;
  }
  for (std::uint32_t t = 0; t < topology.topics.size(); ++t) lay_out_topic(t);
  for (std::uint32_t s = 0; s < topology.stages.size(); ++s) lay_out_stage(s, teams[s]);
  for (std::uint32_t l = 0; l < topology.n_loops; ++l) lay_out_loop(l);
  for (std::uint32_t s = 1; s < sides(); ++s) {
    SideMemory& side = sides_[s];
    if (!side.arena.is_device()) continue;
    side.on_device = side.arena.take<RunView>();
    side.arena.set(side.on_device, side.view.get(), sizeof(RunView));
    for (const Arena::Block& block : side.arena.blocks())
      devices[s - 1].copy(block.at, block.image.data(), block.used);
  }
  pool_.trim();
}
std::byte* RunMemory::take_frames(std::uint32_t side, MemoryKind kind, std::uint64_t bytes,
                                  const std::string& what) {
  frame_bytes_ += bytes;
  return pool_.take(side, kind, bytes, what);
}

std::uint64_t RunMemory::stride_of(std::uint32_t number) const {
  const TopicFacts& facts = topology_.topics[number];
  const Topology::TopicEnds& ends = topology_.ends[number];
  const std::uint64_t items = std::max<std::uint64_t>(facts.options.frame_bytes / facts.item_bytes, 1);
  const std::uint64_t bytes = (items * facts.item_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  // Large frames whole pages apart fall into the same few sets of a cache.
  constexpr std::uint64_t kPage = 4096, kLarge = 8 * kPage;
  const bool stays_on_host = ends.from == kHostSide && !ends.crosses();
  return bytes + (stays_on_host && bytes >= kLarge && bytes % kPage == 0 ? kPage + kLineBytes : 0);
}

TopicView RunMemory::ring(std::uint32_t number, Arena& producers, Arena& polled, Arena& freed,
                          std::byte* frames, std::uint32_t subscriptions) {
  const TopicFacts& facts = topology_.topics[number];
  TopicView view{};
  const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(facts.options.frames, 1));
  const std::uint64_t items = std::max<std::uint64_t>(facts.options.frame_bytes / facts.item_bytes, 1);
  view.slots_shift = static_cast<std::uint32_t>(std::bit_width(slots) - 1);
  view.capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(items, (1u << 31) - 1));
  view.shift = static_cast<std::uint32_t>(std::bit_width(view.capacity) - 1);
  view.stride = stride_of(number);
  view.frames = frames;
  view.subscriptions = subscriptions;
  view.flush_ns = flush_ns(facts.options);
  const Topology::TopicEnds& ends = topology_.ends[number];
  view.is_in_loop = ends.is_in_loop ? 1 : 0;
  view.rings_publish = ends.from == kHostSide && ends.to.contains(kHostSide) ? 1 : 0;
  view.rings_release = ends.from == kHostSide ? 1 : 0;
  if (&freed != &producers && producers.is_device() && !ends.is_in_loop &&
      std::any_of(ends.producers.begin(), ends.producers.end(), [&](auto s) { return has_many_teams(s); }))
    view.room.at = producers.take<PolledWord>();
  view.words = polled.take<FrameWords>(slots);
  view.end = polled.take<PolledWord>();
  polled.set(view.end, kOpen);
  view.tail = producers.take<PolledWord>();
  view.filled = producers.take<Word>(slots);
  view.opened = producers.take<Word>(slots);
  view.notes = producers.take<SlotNotes>(slots);
  view.freed = freed.take<Word>(slots * std::max(subscriptions, 1u));
  return view;
}

/// They would keep the bus busy if each polled there. Of few, none pays for what spares it.
bool RunMemory::has_many_teams(std::uint32_t stage) const { return balance_ || teams_[stage] > 16; }

void RunMemory::lay_out_topic(std::uint32_t number) {
  const TopicFacts& facts = topology_.topics[number];
  const Topology::TopicEnds& ends = topology_.ends[number];
  const bool crosses = ends.crosses();
  Crossing crossing = crosses ? facts.options.crossing : Crossing::kDirect;
  if (crossing == Crossing::kAuto) {
    // The first GPU that it touches: measured frames are a kind of device's.
    std::uint32_t side = ends.from;
    for (const std::uint32_t to : ends.to) {
      if (!arena(side).is_device()) side = to;
    }
    const Device& device = side == kHostSide ? devices_.front() : devices_[side - 1];
    const bool is_batched = crosses && !ends.is_in_loop && facts.options.frame_bytes >= batched_from(device);
    crossing = is_batched ? Crossing::kBatched : Crossing::kDirect;
  }
  if (crossing == Crossing::kBatched && ends.is_in_loop)
    throw Error(Error::Kind::kConfiguration,
                "pipeline: '" + facts.options.name +
                    "' is part of a loop, where frames cross directly: Crossing::kDirect");
  crossings_.push_back(crossing);
  const std::uint64_t bytes =
      stride_of(number) * std::bit_ceil(std::max<std::uint64_t>(facts.options.frames, 1));
  Arena& producers = arena(ends.from);
  if (crossing == Crossing::kBatched) {
    lay_out_rings(number, bytes);
  } else {
    const bool is_on_device = !crosses && ends.from != kHostSide;
    const MemoryKind kind = is_on_device                     ? MemoryKind::kDevice
                            : crossing == Crossing::kManaged ? MemoryKind::kManaged
                                                             : MemoryKind::kPinned;
    std::byte* const frames = take_frames(ends.from, kind, bytes, "frames of '" + facts.options.name + "'");
    Arena& polled = is_on_device ? producers : arena(kHostSide);
    const TopicView view =
        ring(number, producers, polled, polled, frames, static_cast<std::uint32_t>(ends.subscribers.size()));
    for (std::uint32_t side = 0; side < sides(); ++side) topic(side, number) = view;
  }
  std::uint64_t open = 0, outside = 0;
  for (const std::uint32_t s : ends.producers) {
    ++open;
    bool is_inside = false;
    for (std::uint32_t l = 0; l < topology_.n_loops; ++l) {
      is_inside = is_inside || (topology_.loop[s] == l && topology_.is_inside(number, l));
    }
    if (!is_inside) ++outside;
  }
  for (const auto& [word, value] :
       {std::pair{&RunView::open_producers, open}, {&RunView::outside_producers, outside}}) {
    PolledWord* const at = producers.take<PolledWord>();
    producers.set(at, value);
    for (const SideMemory& side : sides_) ((*side.view).*word)[number] = at;
  }
}

void RunMemory::lay_out_rings(std::uint32_t number, std::uint64_t bytes) {
  const TopicFacts& facts = topology_.topics[number];
  const Topology::TopicEnds& ends = topology_.ends[number];
  const auto subscribers = static_cast<std::uint32_t>(ends.subscribers.size());
  // From the producers' device to the host, and from there to other devices.
  std::set<std::uint32_t> others = ends.to;
  others.erase(ends.from), others.erase(kHostSide);
  std::vector<Crossed> movers;
  const auto add_mover = [&](std::uint32_t side, bool to_device) {
    movers.push_back({number, side, to_device, subscribers + static_cast<std::uint32_t>(movers.size())});
  };
  if (ends.from != kHostSide) add_mover(ends.from, false);
  for (const std::uint32_t side : others) add_mover(side, true);
  // Each ring has places for all subscribers, by their numbers, and for all movers.
  const auto places = subscribers + static_cast<std::uint32_t>(movers.size());
  others.insert({kHostSide, ends.from});
  for (const std::uint32_t side : others) {
    const auto kind = side == kHostSide ? MemoryKind::kPinned : MemoryKind::kDevice;
    std::byte* const frames = take_frames(side, kind, bytes, "frames of '" + facts.options.name + "'");
    Arena& own = arena(side);
    TopicView& view = topic(side, number);
    view = ring(number, own, side == ends.from ? arena(kHostSide) : own, arena(kHostSide), frames, places);
    for (std::uint32_t place = 0; place < places; ++place) {
      const std::uint32_t reads = place < subscribers ? topology_.stages[ends.subscribers[place]].side
                                  : movers[place - subscribers].to_device ? kHostSide
                                                                          : ends.from;
      for (std::uint64_t slot = 0; slot < view.slots() && reads != side; ++slot)
        view.freed[place * view.slots() + slot].store_relaxed(~std::uint64_t{0});
    }
  }
  crossed_.insert(crossed_.end(), movers.begin(), movers.end());
}

void RunMemory::lay_out_stage(std::uint32_t number, std::uint32_t teams) {
  const StageFacts& facts = topology_.stages[number];
  Arena& own = arena(facts.side);
  StageView view{};
  view.n_inputs = static_cast<std::uint32_t>(facts.inputs.size());
  view.parts = facts.parts;
  view.teams = teams;
  if (balance_ && facts.side != kHostSide && facts.workers == 0 && facts.inputs.size() == 1)
    view.most_teams = std::max(topology_.most_teams(number), teams);
  view.maps_to = facts.kind == StageKind::kMap ? facts.outputs[0] : kNone;
  view.loop = topology_.loop[number];
  view.flush_ns = ~std::uint64_t{0} >> 1;
  for (const std::uint32_t t : facts.outputs) {
    if (t != view.maps_to) view.outputs |= 1u << t;
    if (view.loop != kNone && topology_.is_inside(t, view.loop)) view.inside |= 1u << t;
    // What a loop waits for comes out of it: nothing else will fill its frames.
    if ((view.inside >> t & 1u) != 0) view.flush_ns = 0;
    if (!topology_.ends[t].is_in_loop)
      view.flush_ns = std::min(view.flush_ns, flush_ns(topology_.topics[t].options));
  }
  // A stage of a loop takes what is in the loop before what would fill it.
  std::vector<std::uint32_t> inputs = facts.inputs;
  std::stable_partition(inputs.begin(), inputs.end(), [&](std::uint32_t t) {
    return view.loop != kNone && topology_.is_inside(t, view.loop);
  });
  for (std::uint32_t i = 0; i < view.n_inputs; ++i) {
    const std::uint32_t t = inputs[i];
    const auto& subscribers = topology_.ends[t].subscribers;
    const auto index = static_cast<std::uint32_t>(std::find(subscribers.begin(), subscribers.end(), number) -
                                                  subscribers.begin());
    const bool is_over_bus = facts.side != kHostSide && topology_.ends[t].from != facts.side &&
                             crossings_[t] != Crossing::kBatched;
    SubscriptionView& input = view.inputs[i];
    input = {t, index, own.take<PolledWord>(), own.take<PolledWord>(), {}, nullptr};
    if (is_over_bus && has_many_teams(number)) input.seen.at = own.take<PolledWord>();
    if (is_over_bus && view.parts > 1) input.copies = own.take<FrameWords>(topic(facts.side, t).slots());
    if (topology_.topics[t].options.when_full == WhenFull::kDropOldest) {
      topic(kHostSide, t).drops_from = input.next;
      topic(kHostSide, t).dropped = own.take<PolledWord>();
    }
  }
  for (const std::uint32_t t : facts.inputs) {
    const bool is_copied = facts.side != kHostSide
                               ? facts.is_staged
                               : topology_.topics[t].options.when_full == WhenFull::kDropOldest;
    if (is_copied) view.staging_stride = std::max(view.staging_stride, topic(facts.side, t).stride);
  }
  if (facts.side == kHostSide && view.staging_stride != 0) {
    view.staging = take_frames(kHostSide, MemoryKind::kPinned, view.staging_stride * teams,
                               "frames that '" + facts.name + "' has taken");
  }
  if (facts.is_staged && facts.side != kHostSide) {
    std::uint32_t rows = teams;
    if (balance_) {
      rows = 0;
      for (std::uint32_t s = 0; s < topology_.stages.size(); ++s)
        rows += topology_.stages[s].side == facts.side ? teams_[s] : 0;
    }
    view.staging = take_frames(facts.side, MemoryKind::kDevice, view.staging_stride * rows,
                               "staged frames of '" + facts.name + "'");
  }
  StageState* const state = own.take<StageState>();
  own.set(&state->active, teams);
  for (std::uint32_t side = 0; side < sides(); ++side) {
    sides_[side].view->stages[number] = view;
    sides_[side].view->states[number] = state;
    if (side != facts.side) sides_[side].view->stages[number].most_teams = 0;  // teams stay on their device
  }
}

void RunMemory::lay_out_loop(std::uint32_t number) {
  LoopView loop{};
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    if (topology_.loop[s] != number) continue;
    const StageView& view = host().stages[s];
    for (std::uint32_t i = 0; i < view.n_inputs; ++i) {
      const SubscriptionView& input = view.inputs[i];
      const TopicView& from = topic(topology_.stages[s].side, input.topic);
      const bool inside = topology_.is_inside(input.topic, number);
      std::uint32_t& n = inside ? loop.n_inside : loop.n_outside;
      if (n == LoopView::kMost)
        throw Error(
            Error::Kind::kConfiguration,
            fmt::format("pipeline: the stages of the loop of '{}' subscribe more than {} times to topics "
                        "{} it",
                        topology_.stages[s].name, LoopView::kMost, inside ? "of" : "from outside"));
      (inside ? loop.inside : loop.outside)[n++] = LoopView::End{
          input.topic, from.shift, input.done, from.tail, from.end, host().outside_producers[input.topic]};
    }
  }
  std::set<std::uint32_t> on = topology_.sides_of(number);
  if (on.size() > 1) on.erase(kHostSide);
  if (on.size() > 1) loops_of_several_.push_back(loop);
  for (std::uint32_t side = 0; side < sides(); ++side) {
    loop.is_judged_here = on.size() == 1 && on.contains(side) ? 1 : 0;
    LoopView* const at = arena(side).take<LoopView>();
    arena(side).set(at, &loop, sizeof loop);
    sides_[side].view->loops[number] = at;
  }
}

RunMemory::Snapshot RunMemory::snapshot() const {
  Snapshot snapshot;
  for (std::uint32_t side = 1; side < sides(); ++side) {
    if (!sides_[side].arena.is_device()) continue;
    for (const Arena::Block& block : sides_[side].arena.blocks()) {
      snapshot.blocks_.push_back({block.at, std::vector<std::uint64_t>(block.used / 8)});
      devices_[side - 1].copy_async(snapshot.blocks_.back().copy.data(), block.at, block.used,
                                    streams_[side - 1]);
    }
  }
  for (const Stream& stream : streams_) stream.synchronize();
  return snapshot;
}
const void* RunMemory::Snapshot::find(const void* at) const {
  for (const Block& block : blocks_) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - block.device);
    if (offset < block.copy.size() * 8) return block.copy.data() + offset / 8;
  }
  return at;  // the host's
}
void RunMemory::write(PolledWord* word, std::uint64_t value) const {
  for (std::uint32_t side = 1; side < sides(); ++side) {
    const auto& blocks = sides_[side].arena.blocks();
    if (!sides_[side].arena.is_device() ||
        std::none_of(blocks.begin(), blocks.end(),
                     [&](const Arena::Block& block) { return block.has(word); }))
      continue;
    written_->word.store_relaxed(value);
    devices_[side - 1].copy_async(word, written_, sizeof value, streams_[side - 1]);
    streams_[side - 1].synchronize();
    return;
  }
  word->word.store_release(value);
}

}  // namespace esker::pipeline::detail
