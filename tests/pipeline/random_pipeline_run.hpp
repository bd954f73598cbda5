// Runs random pipelines (random_pipeline.hpp), and counts what each stage receives.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include "../device/gtest.hpp"
#include "random_pipeline.hpp"

namespace esker::testing {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}
/// Of the program; printed, and repeated with ESKER_TEST_SEED.
inline std::uint64_t program_seed() {
  static const std::uint64_t value = [] {
    const std::uint64_t chosen = from_environment("ESKER_TEST_SEED", std::random_device{}());
    std::printf("ESKER_TEST_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return value;
}
inline std::string replay(std::uint32_t number) {
  return "ESKER_TEST_SEED=" + std::to_string(program_seed()) + " ESKER_TEST_FIRST=" + std::to_string(number) +
         " ESKER_TEST_RUNS=1";
}

/// What random pipelines run on: three of the GPUs, if there are so many; on the CPU its cores under two
/// names.
inline const std::vector<Device>& test_devices() {
  static const std::vector<Device> all = [] {
    std::vector<Device> devices{Device::open()};
    const DeviceProperties& first = devices[0].properties();
    if (first.backend == Backend::kCpu) return std::vector<Device>(2, devices[0]);
    for (std::uint32_t i = 1; i < std::min(first.devices, 3u); ++i)
      devices.push_back(Device::open(std::string(to_string(first.backend)) + ":" + std::to_string(i)));
    return devices;
  }();
  return all;
}

/// Ends the program when what it does takes too long: a pipeline that hangs is a bug. Whatever ends it, what
/// it was doing is said.
class Watchdog {
 public:
  Watchdog() : thread_{[this] { watch(); }} {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
      std::signal(signal, [](int which) {
        (void)!write(STDERR_FILENO, doing, std::strlen(doing));
        std::signal(which, SIG_DFL);
        (void)std::raise(which);
      });
    }
  }
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    news_.notify_one();
    thread_.join();
  }
  void begin(const std::string& what) {
    const std::lock_guard lock(mutex_);
    std::snprintf(doing, sizeof doing, "%s\n", what.c_str());
    ++number_;
  }

 private:
  static constexpr std::chrono::seconds kLongest{400};  // a machine with other work takes a minute for some
  void watch() {
    std::unique_lock lock(mutex_);
    while (!is_ending_) {
      const std::uint64_t number = number_;
      if (news_.wait_for(lock, kLongest, [&] { return is_ending_; }) || number != number_) continue;
      std::fputs("It has not ended:\n", stderr);
      std::abort();
    }
  }
  static inline char doing[1 << 13];  // a handler of signals reads it
  std::mutex mutex_;
  std::condition_variable news_;
  bool is_ending_ = false;  // both: guarded by mutex_
  std::uint64_t number_ = 0;
  std::thread thread_;
};

ESKER_PASS_BEGIN

/// What a stage is told, and what it counts, in memory that its side reaches.
struct StagePlan {
  Rule rule;
  std::uint32_t number, parts, reduces;
  // What it may receive, in order, and how often it has come.
  const std::uint64_t* keys;
  std::uint32_t n_keys;
  SystemAtomic<std::uint32_t>* times;
  SystemAtomic<std::uint32_t>* failed;  // in frames that it has failed
  enum Total : std::uint32_t { kItems, kKeys, kWrong, kFrames, kFailures, kTotals };
  SystemAtomic<std::uint64_t>* totals;
  // What is to go wrong: at which of its items, counted from 1, it calls fail(), or throws; of how many
  // frames it fails one.
  std::uint64_t fail_at, throw_at, fail_every;
  static constexpr std::int32_t kCode = 77;

  ESKER_HD std::uint32_t find(std::uint64_t key) const {
    std::uint32_t first = 0, last = n_keys;
    while (first < last) {
      const std::uint32_t middle = first + (last - first) / 2;
      if (keys[middle] < key) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first < n_keys && keys[first] == key ? first : n_keys;
  }
  ESKER_HD void receive(auto& stage, const Item& item) const {
    (void)totals[kKeys].fetch_add_relaxed(item.key);
    const std::uint32_t at = find(item.key);
    if (at == n_keys || item.check != item_of(item.key, item.hops).check) {
      (void)totals[kWrong].fetch_add_relaxed(1);
    } else {
      (void)times[at].fetch_add_relaxed(1);
    }
    const std::uint64_t before = totals[kItems].fetch_add_relaxed(1);
    if (before + 1 == fail_at) stage.fail(kCode, number, before);
  }
  ESKER_HD void emit_children(auto& stage, const Item& item) const {
    for (std::uint32_t o = 0; o < rule.n_outputs; ++o) {
      if (rule.outputs[o].whole != 0) continue;
      for (std::uint32_t c = 0; c < rule.children(o, item); ++c)
        stage.emit(rule.outputs[o].topic, rule.child(o, c, item));
    }
  }
};

struct EachItem {
  const StagePlan* plan;
  ESKER_HD void operator()(auto& stage, const Item& item) const {
    plan->receive(stage, item);
    plan->emit_children(stage, item);
  }
};
struct EachFrame {
  const StagePlan* plan;
  ESKER_HD void operator()(auto& stage, const pipeline::Frame<const Item>& in) const {
    const std::uint32_t lane = stage.lane(), lanes = stage.lanes();
    for (std::uint32_t i = lane; i < in.count; i += lanes) {
      plan->receive(stage, in[i]);
      plan->emit_children(stage, in[i]);
    }
    if (lane == 0) (void)plan->totals[StagePlan::kFrames].fetch_add_relaxed(1);
    for (std::uint32_t o = 0; o < plan->rule.n_outputs; ++o) {
      if (plan->rule.outputs[o].whole == 0) continue;
      std::uint32_t first = 0;
      do {  // of a frame without items it makes another one
        auto out = stage.open(plan->rule.outputs[o].topic);
        if (out.data == nullptr) return;
        out.count = in.count - first < out.capacity ? in.count - first : out.capacity;
        for (std::uint32_t i = lane; i < out.count; i += lanes)
          out[i] = plan->rule.child(o, 0, in[first + i]);
        first += out.count;
        stage.publish(plan->rule.outputs[o].topic, out);
      } while (first < in.count);
    }
  }
};
struct EachMap {
  const StagePlan* plan;
  ESKER_HD void operator()(auto& stage, const pipeline::Frame<const Item>& in,
                           pipeline::Frame<Item>& out) const {
    const std::uint32_t lane = stage.lane(), lanes = stage.lanes();
    const bool fails = plan->fail_every != 0 && in.number % plan->fail_every == 0;
    for (std::uint32_t i = lane; i < in.count; i += lanes) {
      plan->receive(stage, in[i]);
      const std::uint32_t at = plan->find(in[i].key);
      if (fails && at != plan->n_keys) (void)plan->failed[at].fetch_add_relaxed(1);
    }
    if (fails && lane == 0) {
      (void)plan->totals[StagePlan::kFailures].fetch_add_relaxed(1);
      stage.fail_frame(StagePlan::kCode, plan->number, in.number);
    }
    if (lane == 0) (void)plan->totals[StagePlan::kFrames].fetch_add_relaxed(1);
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < in.count; ++i) {  // all lanes count alike
      if (plan->rule.children(0, in[i]) == 0) continue;
      if (n % lanes == lane) out[n] = plan->rule.child(0, 0, in[i]);
      ++n;
    }
    out.count = n;
  }
};
struct Reduce {
  const StagePlan* plan;
  ESKER_HD void operator()(auto& stage) const {
    if (plan->reduces == 0) return;
    for (std::uint32_t o = 0; o < plan->rule.n_outputs; ++o) {
      if (plan->rule.outputs[o].inside != 0) continue;
      stage.emit(plan->rule.outputs[o].topic,
                 plan->rule.summary(plan->totals[StagePlan::kItems].load_relaxed(),
                                    plan->totals[StagePlan::kKeys].load_relaxed()));
    }
  }
};

ESKER_PASS_END

/// What a stage of the host throws.
struct Thrown {
  std::uint32_t stage;
};
/// A stage of the host, which may throw.
template <class Function>
struct Throwing {
  Function function;
  template <class... Arguments>
  void operator()(auto& stage, Arguments&&... arguments) const {
    const StagePlan& plan = *function.plan;
    function(stage, arguments...);
    if (plan.throw_at != 0 && plan.totals[StagePlan::kItems].load_relaxed() >= plan.throw_at)
      throw Thrown{plan.number};
  }
};
struct GiveItems {
  const StagePlan* plan;
  const StageShape* shape;
  std::atomic<std::uint32_t>* next;
  std::uint32_t items;
  bool operator()(auto& stage) const {
    const std::uint32_t first = next->fetch_add(shape->a_call);
    if (first >= items) return false;
    const std::uint32_t n = std::min(shape->a_call, items - first);
    if (shape->pause_every != 0 && mix(first) % shape->pause_every == 0)
      std::this_thread::sleep_for(std::chrono::microseconds{shape->pause_us});
    for (std::uint32_t i = first; i < first + n; ++i) plan->emit_children(stage, plan->rule.seed_item(i));
    for (std::uint32_t o = 0; o < plan->rule.n_outputs; ++o) {
      for (std::uint32_t done = 0; plan->rule.outputs[o].whole != 0 && done < n;) {
        auto out = stage.open(plan->rule.outputs[o].topic);
        if (out.data == nullptr) return false;
        out.count = std::min(n - done, out.capacity);
        for (std::uint32_t i = 0; i < out.count; ++i)
          out[i] = plan->rule.child(o, 0, plan->rule.seed_item(first + done + i));
        done += out.count;
        stage.publish(plan->rule.outputs[o].topic, out);
      }
    }
    if (plan->throw_at != 0 && first + n >= plan->throw_at) throw Thrown{plan->number};
    return true;
  }
};

/// A random pipeline on test_devices(): topics, plans and counts. Its stages may run any number of times.
class Built {
 public:
  using Topic = pipeline::Topic<Item>;

  Built(const Shape& shape, pipeline::Options options)
      : shape_{shape}, expected_{run_serially(shape, all_items(shape))} {
    options.group_lanes = shape.group_lanes;
    options.host_threads = shape.host_threads;
    pipeline_ = std::make_unique<pipeline::Pipeline>(test_devices(), options);
    for (const TopicShape& topic : shape_.topics) {
      topics_.push_back(pipeline_->topic<Item>(
          {.frame_bytes = topic.frame_items * sizeof(Item),
           .frames = topic.slots,
           .flush_after = topic.flush_after,
           .crossing = topic.crossing,
           .when_full = topic.drops ? pipeline::WhenFull::kDropOldest : pipeline::WhenFull::kWait}));
    }
    for (std::uint32_t s = 0; s < shape_.stages.size(); ++s) {
      StageShape& stage = shape_.stages[s];
      for (std::uint32_t o = 0; o < stage.rule.n_outputs; ++o)
        stage.rule.outputs[o].topic = topics_[stage.outputs[o]];
      plans_.push_back(std::make_unique<Plan>(stage, s, expected_.received[s]));
    }
  }

  pipeline::Pipeline& pipeline() { return *pipeline_; }
  void destroy_pipeline() { pipeline_.reset(); }
  const Shape& shape() const { return shape_; }
  const Model& expected() const { return expected_; }
  /// What is to go wrong in the next run.
  StagePlan& plan(std::uint32_t stage) { return plans_[stage]->host; }
  /// Counts are 0, and sources give so many items.
  void reset(const std::vector<std::uint32_t>& items) {
    for (std::uint32_t s = 0; s < plans_.size(); ++s) {
      plans_[s]->reset();
      plans_[s]->items = items[s];
    }
  }
  /// Items that each source has given in the run that has ended.
  std::vector<std::uint32_t> given() const {
    std::vector<std::uint32_t> items;
    for (const auto& plan : plans_) items.push_back(std::min(plan->next.load(), plan->items));
    return items;
  }
  std::uint64_t total(std::uint32_t stage, StagePlan::Total which) const {
    return plans_[stage]->counts().second[which];
  }
  Dropped dropped() const {
    Dropped all;
    for (const auto& plan : plans_) {
      all.emplace_back();
      const std::vector<std::uint32_t> failed = plan->counts(true).first;
      for (std::size_t k = 0; k < failed.size(); ++k) {
        if (failed[k] != 0) all.back()[plan->keys[k]] = failed[k];
      }
    }
    return all;
  }
  /// "" if each stage has received what the model says.
  std::string differences(const Model& model, const pipeline::Report& report) const {
    std::ostringstream text;
    for (std::uint32_t s = 0; s < shape_.stages.size(); ++s) {
      if (shape_.stages[s].is_source()) continue;
      const auto [times, totals] = plans_[s]->counts();
      const auto dropping = std::find_if(
          shape_.stages[s].inputs.begin(), shape_.stages[s].inputs.end(),
          [&](std::uint32_t t) { return shape_.topics[t].drops && report.topics[t].dropped != 0; });
      const bool may_lack = dropping != shape_.stages[s].inputs.end();
      std::uint64_t twice = 0, missing = 0;
      for (std::size_t k = 0; k < times.size(); ++k) {
        const auto found = model.received[s].find(plans_[s]->keys[k]);
        const std::uint32_t should = found != model.received[s].end() ? found->second : 0;
        if (times[k] > should) ++twice;
        if (times[k] < should) ++missing;
      }
      if (totals[StagePlan::kWrong] != 0 || twice != 0 || (missing != 0 && !may_lack))
        text << shape_.name(s) << " got " << totals[StagePlan::kItems] << " of " << model.items(s)
             << " items: " << totals[StagePlan::kWrong] << " unknown, " << twice << " too often, " << missing
             << " too seldom\n";
      if (report.stages[s].items != totals[StagePlan::kItems] && shape_.stages[s].parts == 1 &&
          report.failed_frames == 0)
        text << shape_.name(s) << " got " << totals[StagePlan::kItems] << " items, and the report says "
             << report.stages[s].items << '\n';
    }
    for (std::uint32_t t = 0; t < shape_.topics.size(); ++t) {
      const pipeline::Report::Topic& topic = report.topics[t];
      if (topic.lost != 0) text << 't' << t << " has lost " << topic.lost << " frames\n";
      if (!shape_.topics[t].drops && topic.dropped != 0) text << 't' << t << " has dropped frames\n";
      const std::uint32_t s = shape_.topics[t].subscribers[0];
      if (shape_.stages[s].inputs.size() == 1 && shape_.stages[s].parts == 1 &&
          topic.frames - topic.dropped != report.stages[s].frames)
        text << 't' << t << " had " << topic.frames << " frames and dropped " << topic.dropped << ", and "
             << shape_.name(s) << " got " << report.stages[s].frames << '\n';
    }
    return text.str();
  }

 private:
  template <class Spec>
  auto with_outputs(Spec spec, const StageShape& shape) const {
    for (const std::uint32_t t : shape.outputs) spec = spec.into(topics_[t]);
    return spec;
  }
  template <class Spec>
  auto connected(const Spec& spec, const StageShape& shape) const {
    const auto finish = [&](const auto& from) {
      const auto whole = with_outputs(from.workers(shape.workers), shape);
      return shape.is_staged ? whole.staged() : whole;
    };
    const auto in = [&](std::size_t i) { return topics_[shape.inputs[i]]; };
    switch (shape.inputs.size()) {
      case 1:
        return finish(spec.from(in(0)));
      case 2:
        return finish(spec.from(in(0), in(1)));
      case 3:
        return finish(spec.from(in(0), in(1), in(2)));
      default:
        return finish(spec.from(in(0), in(1), in(2), in(3)));
    }
  }

 public:
  // What Pipeline::start() takes.
  template <char kKind>
  auto stage(std::uint32_t s) {
    const StageShape& shape = shape_.stages[s];
    Plan& own = *plans_[s];
    const StagePlan* const plan = own.upload();
    const std::string name = shape_.name(s);
    if constexpr (kKind == 's') {
      return with_outputs(pipeline::on_host::source(name, GiveItems{plan, &shape, &own.next, own.items})
                              .workers(shape.workers),
                          shape);
    } else if constexpr (kKind == 'm') {
      return pipeline::on_host::map(name, topics_[shape.inputs[0]], topics_[shape.outputs[0]],
                                    Throwing<EachMap>{{plan}})
          .workers(shape.workers)
          .parts(shape.parts);
    } else if constexpr (kKind == 'M') {
      const auto map =
          pipeline::on_device::map(name, topics_[shape.inputs[0]], topics_[shape.outputs[0]], EachMap{plan})
              .on(shape.device)
              .workers(shape.workers)
              .parts(shape.parts);
      return shape.is_staged ? map.staged() : map;
    } else if constexpr (kKind == 'i') {
      return connected(pipeline::on_host::items(name, Throwing<EachItem>{{plan}}).at_end(Reduce{plan}),
                       shape);
    } else if constexpr (kKind == 'f') {
      return connected(pipeline::on_host::frames(name, Throwing<EachFrame>{{plan}}).at_end(Reduce{plan}),
                       shape);
    } else if constexpr (kKind == 'I') {
      return connected(pipeline::on_device::items(name, EachItem{plan}).on(shape.device).at_end(Reduce{plan}),
                       shape);
    } else {
      static_assert(kKind == 'F');
      return connected(
          pipeline::on_device::frames(name, EachFrame{plan}).on(shape.device).at_end(Reduce{plan}), shape);
    }
  }

 private:
  struct Plan {
    Plan(const StageShape& shape, std::uint32_t number,
         const std::unordered_map<std::uint64_t, std::uint32_t>& received)
        : device{test_devices()[shape.device]},
          is_on_device{shape.is_on_device() && device.backend() != Backend::kCpu} {
      for (const auto& [key, times] : received) keys.push_back(key);
      std::sort(keys.begin(), keys.end());
      // Keys; how often each has come, and has failed; totals; the plan.
      words = keys.size() + keys.size() + StagePlan::kTotals + (sizeof(StagePlan) + 7) / 8;
      if (is_on_device) {
        memory = device.memory<std::uint64_t>(words);
      } else {
        pinned = device.pinned<std::uint64_t>(words);
      }
      std::uint64_t* const at = base();
      host.rule = shape.rule;
      host.number = number;
      host.parts = shape.parts;
      host.reduces = shape.reduces ? 1 : 0;
      host.keys = at;
      host.n_keys = static_cast<std::uint32_t>(keys.size());
      host.times = reinterpret_cast<SystemAtomic<std::uint32_t>*>(at + keys.size());
      host.failed = host.times + keys.size();
      host.totals = reinterpret_cast<SystemAtomic<std::uint64_t>*>(at + 2 * keys.size());
      device.copy(at, keys.data(), keys.size() * 8);
    }
    std::uint64_t* base() const { return is_on_device ? memory.data() : pinned.data(); }
    void reset() {
      const std::vector<std::uint64_t> zeros(keys.size() + StagePlan::kTotals);
      device.copy(base() + keys.size(), zeros.data(), zeros.size() * 8);
      next.store(0);
    }
    const StagePlan* upload() {
      std::uint64_t* const to = base() + 2 * keys.size() + StagePlan::kTotals;
      device.copy(to, &host, sizeof host);
      return reinterpret_cast<const StagePlan*>(to);
    }
    std::pair<std::vector<std::uint32_t>, std::vector<std::uint64_t>> counts(bool of_failed = false) const {
      std::vector<std::uint32_t> times(keys.size());
      std::vector<std::uint64_t> totals(StagePlan::kTotals);
      device.copy(times.data(), of_failed ? host.failed : host.times, times.size() * 4);
      device.copy(totals.data(), host.totals, totals.size() * 8);
      return {times, totals};
    }

    const Device device;
    const bool is_on_device;
    std::vector<std::uint64_t> keys;
    std::uint64_t words = 0;
    DeviceArray<std::uint64_t> memory;
    PinnedArray<std::uint64_t> pinned;
    StagePlan host{};
    std::atomic<std::uint32_t> next{0};
    std::uint32_t items = 0;
  };
  Shape shape_;
  const Model expected_;
  std::vector<Topic> topics_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;  // goes first, for its stages use the rest
};

/// The kinds of a pipeline's stages, which a program has to name: a letter a stage, as StageShape says.
template <char... kKinds>
struct Kinds {
  static constexpr char kText[] = {kKinds..., '\0'};
  static void start(Built& built) { start(built, std::make_index_sequence<sizeof...(kKinds)>()); }

 private:
  template <std::size_t... kNumbers>
  static void start(Built& built, std::index_sequence<kNumbers...>) {
    built.pipeline().start(built.stage<kKinds>(kNumbers)...);
  }
};
struct AnyKinds {
  const char* text;
  void (*start)(Built& built);
};
template <class... Each>
std::vector<AnyKinds> kinds_of() {
  return {{Each::kText, Each::start}...};
}
inline const std::vector<AnyKinds>& all_kinds() {
  static const std::vector<AnyKinds> all =
      kinds_of<Kinds<'s', 'i'>, Kinds<'s', 'I'>, Kinds<'s', 'M', 'f'>, Kinds<'s', 'f', 'I'>,
               Kinds<'s', 'i', 'I', 'f'>, Kinds<'s', 's', 'i', 'I'>, Kinds<'s', 'F', 'm', 'i'>,
               Kinds<'s', 'M', 'M', 'i'>, Kinds<'s', 's', 'm', 'F', 'i'>, Kinds<'s', 'i', 'I', 'M', 'f'>,
               Kinds<'s', 's', 'M', 'I', 'f', 'I'>, Kinds<'s', 'i', 'm', 'i', 'f', 'i'>,
               Kinds<'s', 'f', 'F', 'm', 'I', 'M', 'i'>,
               Kinds<'s', 's', 'i', 'F', 'm', 'M', 'I', 'f', 'i'>>();
  return all;
}
/// The kinds of a run's stages and its shape, from its seed.
inline std::pair<AnyKinds, Shape> draw(std::uint64_t seed, Limits limits) {
  limits.devices = static_cast<std::uint32_t>(test_devices().size());
  const AnyKinds kinds = all_kinds()[mix(seed) % all_kinds().size()];
  return {kinds, Draw(seed, kinds.text, limits).shape()};
}

}  // namespace esker::testing
