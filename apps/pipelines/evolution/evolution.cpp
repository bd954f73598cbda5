// pipe-evolution: populations of islands evolve side by side (HiWayLib, table 1; EP of Hetero-Mark). Five
// stages in a loop: the host fills populations up, the device evaluates them, the host selects parents and
// crosses them, the device mutates the children.
//
// Verified by a serial program that draws the same random numbers: all creatures of the last generation and
// their costs are the same.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../application.hpp"
#include "../baselines.hpp"
#include "device_stages.hpp"
#include "islands.hpp"
#include "serial.hpp"

namespace {

using evolution::Cost;
using evolution::Creature;
using evolution::Place;
template <class T>
using Frame = esker::pipeline::Frame<T>;

class Evolution {
 public:
  Evolution(const esker::Device& device, const pipe_apps::Options& options, const evolution::Plan& plan,
            const evolution::Draws& draws)
      : device_{device},
        options_{options},
        plan_{plan},
        draws_{draws},
        islands_{plan, draws},
        n_frames_{frames_of(plan)},
        scratch_{device.memory<Cost>(std::uint64_t{n_frames_} * plan.block * evolution::Evaluate::kParts,
                                     {"sums of costs"})} {}

  double run() { return options_.scheme == pipe_apps::Scheme::kEsker ? run_pipeline() : run_compared(); }
  const evolution::Islands& islands() const { return islands_; }
  const nlohmann::json& report() const { return report_; }

 private:
  /// Of a topic in the loop, where nobody waits for room. A frame that is not done keeps those that are a
  /// round later from being published; behind it are at most 2 kAhead + 1 generations.
  static std::uint32_t frames_of(const evolution::Plan& plan) {
    const std::uint64_t under_way = std::uint64_t{plan.islands} * plan.blocks();
    const std::uint64_t ever = under_way * (plan.generations + 1);
    return static_cast<std::uint32_t>(
        std::bit_ceil(std::min(ever, (2 * evolution::Pace::kAhead + 2) * under_way)));
  }
  evolution::Evaluate evaluate() { return {scratch_.data(), n_frames_, plan_.block}; }
  evolution::Mutate mutate() const { return {plan_, draws_}; }

  double run_pipeline() {
    namespace pipeline = esker::pipeline;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    const auto topic_of = [&]<class T>(const char* name, std::uint64_t items, std::uint32_t frames, T) {
      pipeline::TopicOptions options = options_.topic_options(name);
      options.frame_bytes = items * sizeof(T);
      options.frames = frames;
      return p.topic<T>(options);
    };
    const auto start = topic_of("start", 1, plan_.islands * plan_.blocks(), Creature{});
    const auto population = topic_of("population", plan_.block, n_frames_, Creature{});
    const auto evaluated = topic_of("evaluated", plan_.block, n_frames_, Cost{});
    const auto selected = topic_of("selected", plan_.parents(), 8 * plan_.islands, std::uint32_t{});
    const auto children = topic_of("children", plan_.block, n_frames_, Creature{});
    const auto mutants = topic_of("mutants", plan_.block, n_frames_, Creature{});

    std::uint32_t started = 0;
    const auto begin = [&](auto& stage) {
      if (started == plan_.islands * plan_.blocks()) return false;
      auto frame = stage.open(start);
      if (frame.data == nullptr) return false;
      frame.tag = Place{started / plan_.blocks(), 0, started % plan_.blocks()}.tag();
      stage.publish(start, frame);  // no creatures yet
      ++started;
      return true;
    };
    const auto reproduce = [&](auto& stage, const Frame<const Creature>& in) {
      auto out = stage.open(population);
      if (out.data == nullptr) return;
      const Place place = evolution::place_of(in.tag);
      islands_.reproduce(place, in.count == 0 ? nullptr : in.data, out.data);
      out.count = plan_.count(place.block);
      stage.publish(population, out);
    };
    evolution::Pace pace(plan_.islands);
    const auto select = [&](auto& stage, const Frame<const Cost>& in) {
      const Place place = evolution::place_of(in.tag);
      if (!islands_.add_costs(place, in.data)) return;
      for (const auto& [island, generation] : pace.add(place.island)) {
        if (generation == plan_.generations) continue;
        auto out = stage.open(selected);
        if (out.data == nullptr) return;
        islands_.rank(island, out.data);
        out.count = plan_.parents();
        out.tag = Place{island, generation, 0}.tag();
        stage.publish(selected, out);
      }
    };
    const auto cross = [&](auto& stage, const Frame<const std::uint32_t>& in) {
      Place place = evolution::place_of(in.tag);
      ++place.generation;
      for (place.block = 0; place.block < plan_.blocks(); ++place.block) {
        auto out = stage.open(children);
        if (out.data == nullptr) return;
        islands_.cross(place, in.data, out.data);
        out.count = plan_.count(place.block);
        out.tag = place.tag();
        stage.publish(children, out);
      }
    };
    const auto workers = static_cast<std::uint32_t>(options_.workers);
    const pipeline::Report& report =
        p.run(pipeline::on_host::source("start", begin).into(start),
              pipeline::on_host::frames("reproduce", reproduce)
                  .from(start, mutants)
                  .into(population)
                  .workers(workers),
              pipeline::on_device::map("evaluate", population, evaluated, evaluate()).staged(),
              pipeline::on_host::frames("select", select).from(evaluated).into(selected).workers(workers),
              pipeline::on_host::frames("cross", cross).from(selected).into(children).workers(workers),
              pipeline::on_device::map("mutate", children, mutants, mutate()).staged());
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }

  /// Generation by generation: a chunk is an island, whose host stages run while the device works on the next
  /// one.
  double run_compared() {
    const std::uint32_t blocks = plan_.blocks();
    const std::uint64_t frames = std::uint64_t{plan_.islands} * blocks;
    std::vector<Creature> children(frames * plan_.block), mutants(frames * plan_.block);
    std::vector<std::uint32_t> parents(plan_.parents());
    double seconds = 0;
    for (std::uint32_t generation = 0; generation <= plan_.generations; ++generation) {
      const auto place_of = [&](std::uint64_t frame) {
        return Place{static_cast<std::uint32_t>(frame / blocks), generation,
                     static_cast<std::uint32_t>(frame % blocks)};
      };
      const auto describe = [&](auto& run) {
        run.frames = frames;
        run.in_items = run.out_items = plan_.block;
        run.team = {options_.group_lanes, 1};
        run.launch_frames = options_.scheme == pipe_apps::Scheme::kChunks ? blocks : 1;
      };
      if (generation != 0) {
        pipe_apps::FrameRun<Creature, Creature> run;
        describe(run);
        run.read = [&](Frame<Creature>& in, Frame<Creature>&) {
          const Place place = place_of(in.number);
          in.count = plan_.count(place.block);
          in.tag = place.tag();
          std::memcpy(in.data, &children[in.number * plan_.block], in.count * sizeof(Creature));
        };
        run.write = [&](const Frame<const Creature>& out) {
          std::memcpy(&mutants[out.number * plan_.block], out.data, out.count * sizeof(Creature));
        };
        seconds += pipe_apps::run_baseline(device_, options_, run, mutate());
      }
      pipe_apps::FrameRun<Creature, Cost> run;
      describe(run);
      run.read = [&](Frame<Creature>& in, Frame<Cost>&) {
        const Place place = place_of(in.number);
        in.count = plan_.count(place.block);
        in.tag = place.tag();
        islands_.reproduce(place, generation == 0 ? nullptr : &mutants[in.number * plan_.block], in.data);
      };
      run.write = [&](const Frame<const Cost>& out) {
        Place place = evolution::place_of(out.tag);
        if (!islands_.add_costs(place, out.data) || generation == plan_.generations) return;
        islands_.rank(place.island, parents.data());
        ++place.generation;
        for (place.block = 0; place.block < blocks; ++place.block) {
          islands_.cross(place, parents.data(),
                         &children[(std::uint64_t{place.island} * blocks + place.block) * plan_.block]);
        }
      };
      seconds += pipe_apps::run_baseline(device_, options_, run, evaluate());
    }
    return seconds;
  }

  const esker::Device& device_;
  const pipe_apps::Options& options_;
  evolution::Plan plan_;
  evolution::Draws draws_;
  evolution::Islands islands_;
  std::uint32_t n_frames_;
  esker::DeviceArray<Cost> scratch_;
  nlohmann::json report_;
};

bool is_right(const evolution::Islands& islands, std::uint32_t island,
              const std::vector<evolution::SerialCreature>& expected) {
  const auto& creatures = islands.creatures(island, islands.plan().generations);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (islands.costs(island)[i] != expected[i].cost) return false;
    if (!std::equal(expected[i].genes.begin(), expected[i].genes.end(), creatures[i].genes)) return false;
  }
  return true;
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  std::uint64_t islands = 4, population = 0, generations = 0;
  esker::CommandLine line("esker-pipe-evolution", "Evolves the populations of islands.");
  o.add_to(line);
  line.add("islands", &islands, "populations that are under way at a time")
      .add("population", &population, "creatures of an island; 0: as --size says")
      .add("generations", &generations, "after the first one; 0: as --size says");
  const esker::Device device = o.parse(line, argc, argv);
  if (population == 0) population = o.by_size(256, 2048, 2048);
  if (generations == 0) generations = o.by_size(10, 20, 100);
  if (islands == 0 || islands > evolution::kMostIslands) harness::usage("--islands is 1 to 4096");
  if (population < 2 || population > evolution::kMostCreatures)
    harness::usage("--population is 2 to 1048576");
  if (generations > evolution::kMostGenerations) harness::usage("--generations is at most 1048576");
  if (o.frame_bytes < sizeof(Creature)) harness::usage("--frame-bytes is at least 1024");

  const evolution::Plan plan{
      static_cast<std::uint32_t>(islands), static_cast<std::uint32_t>(population),
      static_cast<std::uint32_t>(generations),
      static_cast<std::uint32_t>(std::min<std::uint64_t>(o.frame_bytes / sizeof(Creature), population))};
  const evolution::Draws draws{inputs::Random(o.seed)};
  std::vector<std::vector<evolution::SerialCreature>> expected;
  for (std::uint32_t i = 0; i < plan.islands && o.verify; ++i)
    expected.push_back(evolution::serial_island(plan, draws, i));

  Evolution evolution(device, o, plan, draws);
  const auto measured = pipe_apps::measure(
      o, [&] { return evolution.run(); },
      [&] {
        for (std::uint32_t i = 0; i < plan.islands; ++i) {
          if (!is_right(evolution.islands(), i, expected[i])) return false;
        }
        return true;
      });
  std::vector<double> best;
  for (std::uint32_t i = 0; i < plan.islands; ++i) {
    const auto& costs = evolution.islands().costs(i);
    best.push_back(static_cast<double>(*std::min_element(costs.begin(), costs.end())) / 0x1p40);
  }
  const double evaluated =
      static_cast<double>(islands) * static_cast<double>(population) * static_cast<double>(generations + 1);
  return pipe_apps::finish(o, device, "pipe-evolution", measured,
                           {evaluated, "creatures", 2 * evaluated * sizeof(Creature)},
                           {{"islands", islands},
                            {"population", population},
                            {"generations", generations},
                            {"best_costs", best},
                            {"pipeline", evolution.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-evolution", argc, argv, run); }
