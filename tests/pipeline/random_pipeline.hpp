// Random pipelines: their shape, from a seed, and what each stage of one has to receive, by a serial model.
#pragma once

#include <esker/pipeline.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace esker::testing {

ESKER_PASS_BEGIN

/// SplitMix64's finaliser.
ESKER_HD constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Its key says how it came about, so none is like another.
struct Item {
  std::uint64_t key;
  std::uint32_t hops;  // that it may still go in a loop
  std::uint32_t check;
};
ESKER_HD constexpr Item item_of(std::uint64_t key, std::uint32_t hops) {
  return {key, hops, static_cast<std::uint32_t>(key >> 32) ^ hops};
}

inline constexpr std::uint32_t kMostOutputs = 4;
struct Output {
  pipeline::Topic<Item> topic;
  std::uint32_t most;    // items at most that one item becomes
  std::uint32_t whole;   // one for each, in frames that are opened and published
  std::uint32_t inside;  // of a loop: each time round costs a hop
};
/// What an item becomes is the stage's and the item's affair alone, so that a serial model can say it.
struct Rule {
  std::uint64_t seed;
  std::uint32_t n_outputs;
  Output outputs[kMostOutputs];

  ESKER_HD std::uint32_t children(std::uint32_t output, const Item& item) const {
    const Output& o = outputs[output];
    if (o.inside != 0 && item.hops == 0) return 0;
    return o.whole != 0 ? 1 : static_cast<std::uint32_t>(mix(item.key ^ (seed + output)) % (o.most + 1));
  }
  ESKER_HD Item child(std::uint32_t output, std::uint32_t number, const Item& item) const {
    const std::uint64_t key = mix(item.key + mix(seed + 16 * output + number + 1));
    return item_of(key, outputs[output].inside != 0 ? item.hops - 1 : static_cast<std::uint32_t>(key % 4));
  }
  ESKER_HD Item seed_item(std::uint64_t number) const {
    const std::uint64_t key = mix(seed ^ mix(number));
    return item_of(key, static_cast<std::uint32_t>(key % 4));
  }
  /// What a stage says of all that it has received.
  ESKER_HD Item summary(std::uint64_t items, std::uint64_t keys) const {
    return item_of(mix(seed ^ mix(keys) ^ items), 0);
  }
};

ESKER_PASS_END

struct TopicShape {
  std::uint32_t frame_items = 1, slots = 1;
  pipeline::Crossing crossing = pipeline::Crossing::kAuto;
  std::chrono::microseconds flush_after{200};
  bool drops = false, is_in_loop = false;
  std::vector<std::uint32_t> producers, subscribers;
};
/// `kind`: s source, i items, f frames, m map; in upper case on the device.
struct StageShape {
  char kind;
  std::vector<std::uint32_t> inputs;
  std::vector<std::uint32_t> outputs;  // topics, as rule.outputs
  Rule rule{};
  std::uint32_t workers = 1, parts = 1, device = 0;
  bool is_staged = false, reduces = false;
  // Of a source: items, items a call, and how often and how long it pauses.
  std::uint32_t items = 0, a_call = 1, pause_every = 0, pause_us = 0;
  std::uint32_t loop = ~0u;
  std::uint32_t ancestors = 0;  // stages that feed it, but not it them

  bool is_source() const { return kind == 's'; }
  bool is_map() const { return kind == 'm' || kind == 'M'; }
  bool is_frames() const { return kind == 'f' || kind == 'F'; }
  bool is_on_device() const { return kind < 'a'; }
  std::uint32_t side() const { return is_on_device() ? 1 + device : 0; }
};

/// How it may be: for runs that are interrupted, longer and without what only a whole run can say.
struct Limits {
  std::uint32_t items = 200, deliveries = 6000;
  bool may_reduce = true, may_drop = true, may_be_tight = true;
  std::uint32_t devices = 1;
};

struct Shape {
  std::uint64_t seed = 0;
  std::string kinds;
  std::vector<StageShape> stages;
  std::vector<TopicShape> topics;
  bool is_tight = false;  // a loop may find no room, which ends the run
  std::uint32_t group_lanes = 64, host_threads = 0;

  std::string name(std::uint32_t stage) const { return stages[stage].kind + std::to_string(stage); }
  std::string describe() const;
};

/// What happens when its stages are run one item after another.
struct Model {
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> received;  // of each stage: keys
  std::vector<std::uint64_t> published;                                    // into each topic: items
  std::uint64_t deliveries = 0;
  bool is_whole = true;  // false: there were more deliveries than it was to look at

  std::uint64_t items(std::uint32_t stage) const {
    std::uint64_t n = 0;
    for (const auto& [key, times] : received[stage]) n += times;
    return n;
  }
};
/// `given`: items of each stage that is a source. `dropped`: keys of items that are lost in a stage.
using Dropped = std::vector<std::unordered_map<std::uint64_t, std::uint32_t>>;
inline Model run_serially(const Shape& shape, const std::vector<std::uint32_t>& given,
                          std::uint64_t most = ~std::uint64_t{0}, Dropped dropped = {}) {
  Model model;
  const auto n = static_cast<std::uint32_t>(shape.stages.size());
  model.received.resize(n);
  model.published.resize(shape.topics.size());
  dropped.resize(n);
  std::vector<std::uint64_t> keys(n), count(n);
  std::deque<std::pair<std::uint32_t, Item>> queue;
  const auto publish = [&](std::uint32_t topic, const Item& item) {
    ++model.published[topic];
    for (const std::uint32_t s : shape.topics[topic].subscribers) queue.push_back({s, item});
  };
  const auto pass_on = [&](std::uint32_t s, const Item& item) {
    const StageShape& stage = shape.stages[s];
    for (std::uint32_t o = 0; o < stage.rule.n_outputs; ++o) {
      for (std::uint32_t c = 0; c < stage.rule.children(o, item); ++c)
        publish(stage.outputs[o], stage.rule.child(o, c, item));
    }
  };
  const auto run = [&] {
    while (!queue.empty() && model.deliveries < most) {
      const auto [s, item] = queue.front();
      queue.pop_front();
      ++model.deliveries;
      ++model.received[s][item.key];
      ++count[s];
      keys[s] += item.key;
      const auto lost = dropped[s].find(item.key);
      if (lost != dropped[s].end() && lost->second != 0) {
        --lost->second;
      } else {
        pass_on(s, item);
      }
    }
    model.is_whole = model.is_whole && queue.empty();
  };
  for (std::uint32_t s = 0; s < n; ++s) {
    if (!shape.stages[s].is_source()) continue;
    for (std::uint32_t i = 0; i < given[s]; ++i) {
      pass_on(s, shape.stages[s].rule.seed_item(i));
      run();
    }
  }
  // All stages of a loop end before one of them reduces.
  std::vector<std::uint32_t> order(n);
  for (std::uint32_t s = 0; s < n; ++s) order[s] = s;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return shape.stages[a].ancestors < shape.stages[b].ancestors;
  });
  for (const std::uint32_t s : order) {
    if (!shape.stages[s].reduces) continue;
    for (std::uint32_t o = 0; o < shape.stages[s].rule.n_outputs; ++o) {
      if (shape.stages[s].rule.outputs[o].inside == 0)
        publish(shape.stages[s].outputs[o], shape.stages[s].rule.summary(count[s], keys[s]));
    }
    run();
  }
  return model;
}
inline std::vector<std::uint32_t> all_items(const Shape& shape) {
  std::vector<std::uint32_t> given;
  for (const StageShape& stage : shape.stages) given.push_back(stage.items);
  return given;
}

/// Draws the stages' connections, whose kinds are given.
class Draw {
 public:
  Draw(std::uint64_t seed, std::string_view kinds, const Limits& limits) : limits_{limits}, random_{seed} {
    shape_.seed = seed;
    shape_.kinds = kinds;
  }
  /// One that is right, and not too long.
  Shape shape() {
    while (true) {
      shape_.stages.clear();
      shape_.topics.clear();
      const std::uint32_t devices = chance(50) ? limits_.devices : 1;
      for (const char kind : shape_.kinds) {
        shape_.stages.emplace_back().kind = kind;
        shape_.stages.back().device = below(devices);
      }
      if (connect()) {
        join_producers();
        close_loops();
        find_loops();
        say_rules();
        say_topics();
        if (set_room()) return shape_;
      }
    }
  }

 private:
  using Numbers = std::vector<std::uint32_t>;
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(shape_.stages.size()); }
  static bool has(const Numbers& numbers, std::uint32_t n) {
    return std::find(numbers.begin(), numbers.end(), n) != numbers.end();
  }
  bool has_output_left(std::uint32_t s) const {
    return shape_.stages[s].outputs.size() < (shape_.stages[s].is_map() ? 1 : kMostOutputs);
  }
  bool is_a_maps(std::uint32_t topic) const {
    return shape_.stages[shape_.topics[topic].producers[0]].is_map();
  }
  void subscribe(std::uint32_t stage, std::uint32_t topic) {
    shape_.topics[topic].subscribers.push_back(stage);
    shape_.stages[stage].inputs.push_back(topic);
  }
  void produce(std::uint32_t stage, std::uint32_t topic) {
    shape_.topics[topic].producers.push_back(stage);
    shape_.stages[stage].outputs.push_back(topic);
  }
  void make_topic(std::uint32_t from, std::uint32_t to) {
    shape_.topics.emplace_back();
    produce(from, static_cast<std::uint32_t>(shape_.topics.size() - 1));
    subscribe(to, static_cast<std::uint32_t>(shape_.topics.size() - 1));
  }

  /// Each stage takes from earlier ones: from topics of their own, or from what others take from, too.
  bool connect() {
    for (std::uint32_t s = 0; s < size(); ++s) {
      if (shape_.stages[s].is_source()) continue;
      const std::uint32_t inputs = shape_.stages[s].is_map() || chance(70) ? 1 : 2;
      for (std::uint32_t i = 0; i < inputs; ++i) {
        Numbers topics, idle, others;
        for (std::uint32_t t = 0; t < shape_.topics.size(); ++t) {
          if (!has(shape_.topics[t].subscribers, s)) topics.push_back(t);
        }
        for (std::uint32_t p = 0; p < s; ++p) {
          if (has_output_left(p)) (shape_.stages[p].outputs.empty() ? idle : others).push_back(p);
        }
        if (!idle.empty() && chance(60)) {
          make_topic(idle[below(idle.size())], s);
        } else if (!topics.empty() && chance(50)) {
          subscribe(s, topics[below(topics.size())]);
        } else if (!others.empty()) {
          make_topic(others[below(others.size())], s);
        } else if (!idle.empty()) {
          make_topic(idle[below(idle.size())], s);
        }
      }
      if (shape_.stages[s].inputs.empty()) return false;
    }
    for (std::uint32_t s = 0; s < size(); ++s) {
      if (!shape_.stages[s].outputs.empty() || !(shape_.stages[s].is_source() || shape_.stages[s].is_map()))
        continue;
      Numbers takers;
      for (std::uint32_t to = s + 1; to < size(); ++to) {
        const StageShape& stage = shape_.stages[to];
        if (!stage.is_source() && !stage.is_map() && stage.inputs.size() < 4) takers.push_back(to);
      }
      if (takers.empty()) return false;
      make_topic(s, takers[below(takers.size())]);
    }
    return true;
  }
  bool may_join(std::uint32_t stage, std::uint32_t topic) const {
    const TopicShape& t = shape_.topics[topic];
    return !shape_.stages[stage].is_map() && !is_a_maps(topic) && !has(t.producers, stage) &&
           has_output_left(stage) && shape_.stages[stage].side() == shape_.stages[t.producers[0]].side();
  }
  void join_producers() {
    for (std::uint32_t t = 0; t < shape_.topics.size(); ++t) {
      const Numbers& to = shape_.topics[t].subscribers;
      const std::uint32_t first = *std::min_element(to.begin(), to.end());
      for (std::uint32_t p = 0; p < first; ++p) {
        if (may_join(p, t) && chance(25)) produce(p, t);
      }
    }
  }
  std::vector<std::vector<bool>> reach() const {
    std::vector<std::vector<bool>> to(size(), std::vector<bool>(size(), false));
    for (const TopicShape& topic : shape_.topics) {
      for (const std::uint32_t p : topic.producers) {
        for (const std::uint32_t s : topic.subscribers) to[p][s] = true;
      }
    }
    for (std::uint32_t k = 0; k < size(); ++k) {
      for (std::uint32_t i = 0; i < size(); ++i) {
        for (std::uint32_t j = 0; j < size(); ++j) {
          if (to[i][k] && to[k][j]) to[i][j] = true;
        }
      }
    }
    return to;
  }
  void close_loops() {
    for (std::uint32_t tries = chance(60) ? 1 + below(8) : 0; tries > 0; --tries) {
      const auto to = reach();
      const std::uint32_t from = below(size()), back = below(from + 1);
      const StageShape& taker = shape_.stages[back];
      if (shape_.stages[from].is_source() || shape_.stages[from].is_map() || taker.is_source() ||
          taker.is_map() || !has_output_left(from) || (from != back && !to[back][from]))
        continue;
      const std::uint32_t joined = taker.inputs[below(taker.inputs.size())];
      if (may_join(from, joined) && chance(40)) {
        produce(from, joined);
      } else if (taker.inputs.size() < 4) {
        make_topic(from, back);
      }
    }
  }
  void find_loops() {
    const auto to = reach();
    for (std::uint32_t s = 0; s < size(); ++s) {
      for (std::uint32_t other = 0; other < size(); ++other)
        shape_.stages[s].ancestors += to[other][s] && !to[s][other] ? 1 : 0;
      if (!to[s][s]) continue;
      for (std::uint32_t other = 0; other <= s; ++other) {
        if (other == s || (to[s][other] && to[other][s])) {
          shape_.stages[s].loop = other;
          break;
        }
      }
    }
  }
  bool is_inside(std::uint32_t stage, std::uint32_t topic) const {
    const std::uint32_t loop = shape_.stages[stage].loop;
    const Numbers& to = shape_.topics[topic].subscribers;
    return loop != ~0u &&
           std::any_of(to.begin(), to.end(), [&](std::uint32_t s) { return shape_.stages[s].loop == loop; });
  }
  void say_rules() {
    for (std::uint32_t t = 0; t < shape_.topics.size(); ++t) {
      for (const std::uint32_t p : shape_.topics[t].producers)
        shape_.topics[t].is_in_loop = shape_.topics[t].is_in_loop || is_inside(p, t);
    }
    for (StageShape& stage : shape_.stages) {
      const auto s = static_cast<std::uint32_t>(&stage - shape_.stages.data());
      stage.rule.seed = random_();
      stage.rule.n_outputs = static_cast<std::uint32_t>(stage.outputs.size());
      stage.workers = stage.is_on_device() && chance(15) ? 0 : 1 + below(3);
      stage.is_staged = stage.is_on_device() && chance(25);
      stage.parts = stage.is_map() && !is_inside(s, stage.outputs[0]) && chance(30) ? 2 + below(2) : 1;
      stage.reduces = limits_.may_reduce && !stage.is_source() && !stage.is_map() && chance(40);
      for (std::uint32_t o = 0; o < stage.rule.n_outputs; ++o) {
        Output& output = stage.rule.outputs[o];
        output.inside = is_inside(s, stage.outputs[o]) ? 1 : 0;
        output.most = stage.is_map() ? 1 : output.inside != 0 ? 1 + below(2) : one_of({0u, 1u, 2u, 2u, 3u});
        output.whole =
            (output.inside == 0 && (stage.is_source() || stage.is_frames()) && chance(40)) || stage.parts > 1;
      }
      if (!stage.is_source()) continue;
      stage.items = below(8) == 0 ? below(4) : below(limits_.items);
      stage.a_call = one_of({1u, 1u, 2u, 7u, 50u});
      stage.pause_every = chance(60) ? 0 : 5 + below(40);
      stage.pause_us = one_of({0u, 10u, 50u, 200u});
    }
  }
  void say_topics() {
    using pipeline::Crossing;
    using std::chrono::microseconds;
    for (TopicShape& topic : shape_.topics) {
      topic.frame_items = one_of({1u, 1u, 2u, 3u, 5u, 8u, 16u, 64u, 200u});
      topic.slots = one_of({1u, 1u, 2u, 2u, 3u, 4u, 8u, 64u});
      topic.crossing =
          topic.is_in_loop
              ? one_of({Crossing::kAuto, Crossing::kDirect, Crossing::kManaged})
              : one_of({Crossing::kAuto, Crossing::kDirect, Crossing::kBatched, Crossing::kManaged});
      topic.flush_after = one_of({microseconds{0}, microseconds{20}, microseconds{200}, microseconds{1000},
                                  microseconds{3'600'000'000}});
      const auto on_host = [&](std::uint32_t s) { return !shape_.stages[s].is_on_device(); };
      const StageShape& taker = shape_.stages[topic.subscribers[0]];
      topic.drops = limits_.may_drop && chance(40) && topic.subscribers.size() == 1 && !topic.is_in_loop &&
                    taker.outputs.empty() && !taker.is_on_device() &&
                    std::all_of(topic.producers.begin(), topic.producers.end(), on_host);
    }
    for (const StageShape& stage : shape_.stages) {  // in the order in which maps follow each other
      if (!stage.is_map()) continue;
      std::uint32_t& out = shape_.topics[stage.outputs[0]].frame_items;
      out = std::max(out, shape_.topics[stage.inputs[0]].frame_items);
    }
  }
  /// In a loop nobody waits for room, so there has to be enough, unless it is to be seen that there is not.
  bool set_room() {
    shape_.group_lanes = one_of({32u, 32u, 64u, 7u});
    shape_.host_threads = one_of({0u, 1u, 2u, 100u});
    const Model model = run_serially(shape_, all_items(shape_), limits_.deliveries);
    if (!model.is_whole) return false;
    const bool has_loop = std::any_of(shape_.topics.begin(), shape_.topics.end(),
                                      [](const TopicShape& topic) { return topic.is_in_loop; });
    shape_.is_tight = has_loop && limits_.may_be_tight && chance(15);
    if (shape_.is_tight) return true;
    for (std::uint32_t t = 0; t < shape_.topics.size(); ++t) {
      TopicShape& topic = shape_.topics[t];
      if (!topic.is_in_loop) continue;
      // A map has as many frames as its input, whatever is in them.
      std::uint32_t from = t;
      while (is_a_maps(from)) from = shape_.stages[shape_.topics[from].producers[0]].inputs[0];
      topic.slots = static_cast<std::uint32_t>(std::bit_ceil(2 * model.published[from] + 2));
    }
    return true;
  }

  const Limits limits_;
  std::mt19937_64 random_;
  Shape shape_;
};

inline std::string Shape::describe() const {
  std::string text = "groups of " + std::to_string(group_lanes) + ", " + std::to_string(host_threads) +
                     " threads" + (is_tight ? ", tight" : "");
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    const StageShape& stage = stages[s];
    text += "; " + name(s) + " x" + std::to_string(stage.workers);
    if (stage.is_source()) text += " gives " + std::to_string(stage.items);
    if (stage.side() > 1) text += " on " + std::to_string(stage.device);
    if (stage.parts > 1) text += " parts " + std::to_string(stage.parts);
    if (stage.is_staged) text += " staged";
    if (stage.reduces) text += " reduces";
    for (const std::uint32_t t : stage.inputs) text += " <t" + std::to_string(t);
    for (std::uint32_t o = 0; o < stage.rule.n_outputs; ++o)
      text += " >t" + std::to_string(stage.outputs[o]) + (stage.rule.outputs[o].whole != 0 ? "w" : "") +
              (stage.rule.outputs[o].inside != 0 ? "*" : "");
  }
  for (std::uint32_t t = 0; t < topics.size(); ++t) {
    const TopicShape& topic = topics[t];
    text += "; t" + std::to_string(t) + " " + std::to_string(topic.slots) + "x" +
            std::to_string(topic.frame_items) + " " + to_string(topic.crossing) + " flush " +
            std::to_string(topic.flush_after.count()) + (topic.drops ? " drops" : "");
  }
  return text;
}

}  // namespace esker::testing
