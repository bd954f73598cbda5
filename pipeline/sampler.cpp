// Samples of a run.
#include <esker/pipeline/sampler.hpp>

#include <algorithm>

namespace esker::pipeline::detail {

namespace {

/// The first frame from `from` to `end` that is not past, where those before `from` are. Frames are past
/// nearly in order: with several teams it is one of those that some of them have yet to do.
template <class IsPast>
std::uint64_t frontier(std::uint64_t from, std::uint64_t end, const IsPast& is_past) {
  std::uint64_t low = from, step = 1;
  while (low + step - 1 < end && is_past(low + step - 1)) {
    low += step;
    step *= 2;
  }
  std::uint64_t high = std::min(low + step - 1, end);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (is_past(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

Sampler::Sampler(const Topology& topology, const RunMemory& memory) : topology_{topology}, memory_{memory} {
  for (std::uint32_t t = 0; t < topology.topics.size(); ++t) {
    const Topology::TopicEnds& ends = topology.ends[t];
    TopicState state{};
    state.ring = memory.view(ends.from).topics[t];
    state.is_visible = ends.from == kHostSide || ends.crosses();
    copies_ = copies_ || (!state.is_visible && !ends.producers.empty());
    // The movers that bring frames to each side, if some do.
    std::vector<std::uint32_t> behind(memory.sides(), kNone);
    for (const Crossed& crossed : memory.crossed()) {
      if (crossed.topic != t) continue;
      const std::uint32_t from = crossed.to_device ? kHostSide : crossed.side;
      const TopicView& ring = memory.view(from).topics[t];
      behind[crossed.to_device ? crossed.side : kHostSide] = static_cast<std::uint32_t>(state.movers.size());
      state.movers.push_back({ring.freed + crossed.subscription * ring.slots(), 0, behind[from]});
      state.rings = std::max(state.rings, behind[from] == kNone ? 2u : 3u);
    }
    for (std::uint32_t i = 0; i < ends.subscribers.size(); ++i) {
      const std::uint32_t side = topology.stages[ends.subscribers[i]].side;
      const TopicView& ring = memory.view(side).topics[t];
      state.readers.push_back({state.is_visible ? ring.freed + i * ring.slots() : nullptr, 0, behind[side]});
    }
    topics_.push_back(std::move(state));
  }
}

void Sampler::sample(std::chrono::steady_clock::time_point now) {
  std::optional<RunMemory::Snapshot> words;
  if (copies_ && now - copied_at_ >= kCopyEvery) {
    words = memory_.snapshot();
    copied_at_ = now;
  }
  for (std::uint32_t t = 0; t < topics_.size(); ++t) {
    TopicState& topic = topics_[t];
    if (topology_.ends[t].producers.empty()) continue;
    if (topic.is_visible) {
      sample_visible(topic, topology_.ends[t].from == kHostSide);
    } else if (words.has_value()) {
      sample_copied(topic, t, *words);
    } else {
      continue;
    }
    std::uint64_t freed = topic.published;
    for (const Reader& reader : topic.readers) freed = std::min(freed, reader.at);
    const std::uint64_t most = topic.ring.slots() * topic.rings;
    Fill& fill = topic.fill;
    fill.now = std::min(topic.published - freed, most);
    ++fill.samples;
    fill.sum += fill.now;
    fill.highest = std::max(fill.highest, fill.now);
  }
}

void Sampler::sample_visible(TopicState& topic, bool is_from_host) {
  const TopicView& ring = topic.ring;
  topic.published =
      frontier(topic.published, kOpen, [&](std::uint64_t frame) { return ring.was_published(frame); });
  const auto advance = [&](Reader& reader) {
    reader.at = frontier(reader.at, topic.published, [&](std::uint64_t frame) {
      return reader.freed[ring.slot_of(frame)].load_relaxed() > ring.round_of(frame);
    });
  };
  for (Reader& mover : topic.movers) advance(mover);
  for (Reader& reader : topic.readers) advance(reader);
  topic.reserved = topic.published;
  if (is_from_host)
    topic.reserved =
        std::max(topic.reserved, (ring.tail->word.load_relaxed() + ring.positions() - 1) >> ring.shift);
  topic.has_ended = ring.end->word.load_relaxed() <= topic.published;
}

void Sampler::sample_copied(TopicState& topic, std::uint32_t number, const RunMemory::Snapshot& words) {
  const TopicView& ring = topic.ring;
  const std::uint64_t tail = words.word(ring.tail);
  topic.reserved = (tail + ring.positions() - 1) >> ring.shift;
  topic.published = tail >> ring.shift;
  for (std::uint32_t i = 0; i < topic.readers.size(); ++i) {
    const StageView& stage = memory_.host().stages[topology_.ends[number].subscribers[i]];
    for (std::uint32_t k = 0; k < stage.n_inputs; ++k) {
      if (stage.inputs[k].topic == number)
        topic.readers[i].at = std::min(words.word(stage.inputs[k].done), topic.published);
    }
  }
  topic.has_ended = words.word(ring.end) <= topic.published;
}

std::uint64_t Sampler::there_for(const TopicState& topic, const Reader& reader) {
  return reader.behind == kNone ? topic.published : topic.movers[reader.behind].at;
}
std::uint64_t Sampler::available(std::uint32_t number, std::uint32_t reader) const {
  const TopicState& topic = topics_[number];
  const Reader& its = topic.readers[reader];
  const std::uint64_t there = there_for(topic, its);
  return there > its.at ? there - its.at : 0;
}

bool Sampler::is_full(std::uint32_t number, std::uint32_t producer) const {
  const TopicState& topic = topics_[number];
  const Topology::TopicEnds& ends = topology_.ends[number];
  if (ends.is_in_loop && topology_.loop[producer] != kNone) return false;  // there nobody waits
  std::uint64_t freed = topic.published;
  for (const auto* readers : {&topic.readers, &topic.movers}) {
    for (const Reader& reader : *readers) {
      if (reader.behind == kNone) freed = std::min(freed, reader.at);
    }
  }
  const std::uint64_t slots = topic.ring.slots();
  const std::uint64_t room = ends.is_in_loop ? (slots + 1) / 2 : slots;
  // Who opens frames reserves one before it waits for its slot.
  return topic.published - freed >= room || topic.reserved > freed + room;
}

std::optional<StageActivity> Sampler::activity(std::uint32_t stage) const {
  using What = StageActivity::What;
  const StageFacts& facts = topology_.stages[stage];
  std::uint32_t starved_of = kNone;
  bool has_input = facts.inputs.empty();
  for (const std::uint32_t t : facts.inputs) {
    const TopicState& topic = topics_[t];
    if (topic.fill.samples == 0) return std::nullopt;
    const auto& subscribers = topology_.ends[t].subscribers;
    const auto reader = static_cast<std::uint32_t>(std::find(subscribers.begin(), subscribers.end(), stage) -
                                                   subscribers.begin());
    const bool is_through = topic.has_ended && topic.readers[reader].at == topic.published;
    has_input = has_input || available(t, reader) != 0;
    if (!is_through && starved_of == kNone) starved_of = t;
  }
  if (facts.inputs.empty() && memory_.host().states[stage]->active.word.load_relaxed() == 0)
    return StageActivity{What::kEnded, kNone};
  if (!has_input)
    return starved_of == kNone ? StageActivity{What::kEnded, kNone}
                               : StageActivity{What::kStarved, starved_of};
  for (const std::uint32_t t : facts.outputs) {
    if (topics_[t].fill.samples != 0 && is_full(t, stage)) return StageActivity{What::kBlocked, t};
  }
  return StageActivity{What::kBusy, kNone};
}

}  // namespace esker::pipeline::detail
