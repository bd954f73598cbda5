// Where a run's frames and words lie.
#include <esker/pipeline/run_memory.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

#include <esker/error.hpp>
#include <esker/pipeline/crossing.hpp>

namespace esker::pipeline::detail {

namespace {
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
}  // namespace

void* RunMemory::Arena::take_bytes(std::size_t bytes) {
  bytes = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  if (blocks_.empty() || bytes > blocks_.back().size - blocks_.back().used) {
    const std::size_t size = std::max(bytes, kBlockBytes);
    const auto kind = is_device_ ? MemoryKind::kDevice : MemoryKind::kPinned;
    blocks_.push_back({pool_.take(kind, size, "words of a pipeline"), {}, 0, size});
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
    const auto in = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
      return to >= block.at && to < block.at + block.used;
    });
    to = reinterpret_cast<std::byte*>(in->image.data()) + (to - in->at);
  }
  std::memcpy(to, bytes, n);
}
void RunMemory::Arena::copy_to_device() {
  for (const Block& block : blocks_) device_.copy(block.at, block.image.data(), block.used);
}

RunMemory::RunMemory(const Device& device, MemoryPool& pool, const Topology& topology,
                     const std::vector<std::uint32_t>& teams, bool balance)
    : device_handle_{device},
      pool_{pool},
      topology_{topology},
      teams_{teams},
      balance_{balance},
      host_arena_{device, pool, false},
      device_arena_{device, pool, device.backend() != Backend::kCpu},
      host_{std::make_unique<RunView>()},
      device_{std::make_unique<RunView>()} {
  for (RunView* const view : {host_.get(), device_.get()}) {
    const Side side = view == host_.get() ? Side::kHost : Side::kDevice;
    view->side = host_arena_.take<SideState>();
    view->claimed = arena(side).take<PolledWord>();
    view->failures = arena(side).take<PolledWord>();
    view->drain = host_arena_.take<PolledWord>();
    view->stop = arena(side).take<PolledWord>();
    view->n_topics = static_cast<std::uint32_t>(topology.topics.size());
    view->n_stages = static_cast<std::uint32_t>(topology.stages.size());
  }
  for (std::uint32_t t = 0; t < topology.topics.size(); ++t) lay_out_topic(t);
  for (std::uint32_t s = 0; s < topology.stages.size(); ++s) lay_out_stage(s, teams[s]);
  lay_out_loops();
  if (device.backend() != Backend::kCpu) {
    device_view_ = device_arena_.take<RunView>();
    device_arena_.set(device_view_, device_.get(), sizeof(RunView));
    device_arena_.copy_to_device();
  }
  pool_.trim();
}
std::byte* RunMemory::take_frames(MemoryKind kind, std::uint64_t bytes, const std::string& what) {
  frame_bytes_ += bytes;
  return pool_.take(kind, bytes, what);
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
  view.stride = (items * facts.item_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  view.frames = frames;
  view.subscriptions = subscriptions;
  const Topology::TopicEnds& ends = topology_.ends[number];
  view.is_in_loop = ends.is_in_loop ? 1 : 0;
  view.rings_publish = !ends.has_device_producer && ends.has_host_subscriber ? 1 : 0;
  view.rings_release = ends.has_device_producer ? 0 : 1;
  if (&freed == &host_arena_ && &producers == &device_arena_ && !ends.is_in_loop &&
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
    const bool is_batched =
        crosses && !ends.is_in_loop && facts.options.frame_bytes >= batched_from(device_handle_);
    crossing = is_batched ? Crossing::kBatched : Crossing::kDirect;
  }
  if (crossing == Crossing::kBatched && ends.is_in_loop)
    throw Error(Error::Kind::kConfiguration,
                "pipeline: '" + facts.options.name +
                    "' is part of a loop, where frames cross directly: Crossing::kDirect");
  crossings_.push_back(crossing);
  const auto subscribers = static_cast<std::uint32_t>(ends.subscribers.size());
  const std::uint64_t items = std::max<std::uint64_t>(facts.options.frame_bytes / facts.item_bytes, 1);
  const std::uint64_t stride = (items * facts.item_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  const std::uint64_t bytes = stride * std::bit_ceil(std::max<std::uint64_t>(facts.options.frames, 1));
  const auto frames_in = [&](MemoryKind kind) {
    return take_frames(kind, bytes, "frames of '" + facts.options.name + "'");
  };
  const auto pinned = [&] { return frames_in(MemoryKind::kPinned); };
  const auto on_device = [&] { return frames_in(MemoryKind::kDevice); };
  Arena& producers = arena(ends.has_device_producer ? Side::kDevice : Side::kHost);
  TopicView& host = host_->topics[number];
  TopicView& gpu = device_->topics[number];
  if (crossing == Crossing::kBatched) {
    const bool to_device = !ends.has_device_producer;
    // Each ring has places for all subscribers, by their numbers, and one for the mover.
    const std::uint32_t places = subscribers + 1;
    host = ring(number, host_arena_, host_arena_, host_arena_, pinned(), places);
    gpu = ring(number, device_arena_, to_device ? device_arena_ : host_arena_, host_arena_, on_device(),
               places);
    crossed_.push_back({number, to_device, subscribers});
    const auto does_not_read = [](const TopicView& view, std::uint32_t place) {
      for (std::uint64_t slot = 0; slot < view.slots(); ++slot)
        view.freed[place * view.slots() + slot].store_relaxed(~std::uint64_t{0});
    };
    for (std::uint32_t place = 0; place < subscribers; ++place)
      does_not_read(topology_.stages[ends.subscribers[place]].side == Side::kDevice ? host : gpu, place);
    does_not_read(to_device ? gpu : host, subscribers);
  } else if (crosses) {
    std::byte* const frames = crossing == Crossing::kManaged ? frames_in(MemoryKind::kManaged) : pinned();
    host = gpu = ring(number, producers, host_arena_, host_arena_, frames, subscribers);
  } else if (ends.has_device_producer) {
    gpu = ring(number, device_arena_, device_arena_, device_arena_, on_device(), subscribers);
  } else {
    host = gpu = ring(number, host_arena_, host_arena_, host_arena_, pinned(), subscribers);
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
    ((*host_).*word)[number] = ((*device_).*word)[number] = at;
  }
}

void RunMemory::lay_out_stage(std::uint32_t number, std::uint32_t teams) {
  const StageFacts& facts = topology_.stages[number];
  Arena& own = arena(facts.side);
  StageView view{};
  view.n_inputs = static_cast<std::uint32_t>(facts.inputs.size());
  view.parts = facts.parts;
  view.teams = teams;
  if (balance_ && facts.side == Side::kDevice && facts.workers == 0 && facts.inputs.size() == 1)
    view.most_teams = std::max(topology_.most_teams(number), teams);
  view.maps_to = facts.kind == StageKind::kMap ? facts.outputs[0] : kNone;
  view.loop = topology_.loop[number];
  view.flush_ns = ~std::uint64_t{0} >> 1;
  for (const std::uint32_t t : facts.outputs) {
    if (t != view.maps_to) view.outputs |= 1u << t;
    if (view.loop != kNone && topology_.is_inside(t, view.loop)) view.inside |= 1u << t;
    const auto flush = static_cast<std::uint64_t>(
                           std::max<std::int64_t>(topology_.topics[t].options.flush_after.count(), 0)) *
                       1000;
    // What a loop waits for comes out of it: nothing else will fill its frames.
    if ((view.inside >> t & 1u) != 0) view.flush_ns = 0;
    if (!topology_.ends[t].is_in_loop) view.flush_ns = std::min(view.flush_ns, flush);
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
    const bool is_from_host = facts.side == Side::kDevice && !topology_.ends[t].has_device_producer &&
                              crossings_[t] != Crossing::kBatched;
    SubscriptionView& input = view.inputs[i];
    input = {t, index, own.take<PolledWord>(), own.take<PolledWord>(), {}, nullptr};
    if (is_from_host && has_many_teams(number)) input.seen.at = own.take<PolledWord>();
    if (is_from_host && view.parts > 1) input.copies = own.take<FrameWords>(host_->topics[t].slots());
    if (topology_.topics[t].options.when_full == WhenFull::kDropOldest) {
      host_->topics[t].drops_from = device_->topics[t].drops_from = view.inputs[i].next;
      host_->topics[t].dropped = device_->topics[t].dropped = own.take<PolledWord>();
    }
  }
  if (facts.is_staged && facts.side == Side::kDevice) {
    for (const std::uint32_t t : facts.inputs)
      view.staging_stride = std::max(view.staging_stride, device_->topics[t].stride);
    std::uint32_t rows = teams;
    if (balance_) {
      rows = 0;
      for (std::uint32_t s = 0; s < topology_.stages.size(); ++s)
        rows += topology_.stages[s].side == Side::kDevice ? teams_[s] : 0;
    }
    view.staging =
        take_frames(MemoryKind::kDevice, view.staging_stride * rows, "staged frames of '" + facts.name + "'");
  }
  StageState* const state = own.take<StageState>();
  own.set(&state->active, teams);
  host_->stages[number] = device_->stages[number] = view;
  host_->states[number] = device_->states[number] = state;
}

void RunMemory::lay_out_loops() {
  for (std::uint32_t l = 0; l < topology_.n_loops; ++l) {
    LoopView loop{};
    bool is_device = false;
    for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
      if (topology_.loop[s] != l) continue;
      is_device = is_device || topology_.stages[s].side == Side::kDevice;
      const StageView& view = host_->stages[s];
      for (std::uint32_t i = 0; i < view.n_inputs; ++i) {
        const bool inside = topology_.is_inside(view.inputs[i].topic, l);
        std::uint32_t& n = inside ? loop.n_inside : loop.n_outside;
        if (n == LoopView::kMost)
          throw Error(Error::Kind::kConfiguration, "pipeline: a loop has more than 16 topics");
        (inside ? loop.inside : loop.outside)[n++] = {view.inputs[i].topic, view.inputs[i].done};
      }
    }
    for (RunView* const view : {host_.get(), device_.get()}) {
      const bool is_gpu = view == device_.get();
      loop.is_judged_here = is_gpu == is_device ? 1 : 0;
      Arena& own = arena(is_gpu ? Side::kDevice : Side::kHost);
      LoopView* const at = own.take<LoopView>();
      own.set(at, &loop, sizeof loop);
      view->loops[l] = at;
    }
  }
}

RunMemory::Snapshot RunMemory::snapshot(const Stream& stream) const {
  Snapshot snapshot;
  for (const Arena::Block& block : device_arena_.blocks()) {
    snapshot.blocks_.push_back({block.at, std::vector<std::uint64_t>(block.used / 8)});
    device_handle_.copy_async(snapshot.blocks_.back().copy.data(), block.at, block.used, stream);
  }
  stream.synchronize();
  return snapshot;
}
const void* RunMemory::Snapshot::find(const void* at) const {
  for (const Block& block : blocks_) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - block.device);
    if (offset < block.copy.size() * 8) return block.copy.data() + offset / 8;
  }
  return at;  // the host's
}

}  // namespace esker::pipeline::detail
