// Random pipelines: whatever their shape, how little their topics hold and wherever their stages run, each
// item is received once, and the run ends. ESKER_TEST_RUNS says how many; ESKER_TEST_SEED repeats them, and
// ESKER_TEST_FIRST begins at one.
#include "interrupted_pipelines.hpp"  // in one program, since the random stages take long to compile
#include "random_pipeline_run.hpp"

namespace esker::testing {
namespace {

using pipeline::PipelineError;

#if defined(ESKER_TEST_MATRIX)
constexpr std::uint32_t kRuns = 10'000;
#elif defined(ESKER_TEST_SANITIZED)
constexpr std::uint32_t kRuns = 30;
#elif defined(ESKER_TEST_SIMULATED)
constexpr std::uint32_t kRuns = 60;
#else
constexpr std::uint32_t kRuns = 250;
#endif

TEST(RandomPipelines, GiveEachItemOnceAndEnd) {
  const auto first = static_cast<std::uint32_t>(from_environment("ESKER_TEST_FIRST", 0));
  const auto runs = static_cast<std::uint32_t>(from_environment("ESKER_TEST_RUNS", kRuns));
  Watchdog watchdog;
  std::uint64_t items = 0, full = 0, dropped = 0, loops = 0, elsewhere = 0, wide = 0;
  std::uint32_t done = 0;
  // By some seeds, or on a busy machine, hardly a loop finds no room: then more pipelines, until one does.
  const auto has_more = [&] {
    return done < runs || (runs >= 100 && done < 4 * runs && (full == 0 || dropped == 0));
  };
  for (std::uint32_t number = first; has_more(); ++number, ++done) {
    const auto [kinds, shape] = draw(mix(program_seed() + number), {});
    const std::string what = replay(number) + ": " + shape.describe();
    watchdog.begin(what);
    pipeline::Options options;
    options.hang_after = std::chrono::seconds{10};
    options.on_hang = [&](const std::string& report) {
      std::fprintf(stderr, "%s\n%s\n", what.c_str(), report.c_str());
    };
    Built built(shape, options);
    built.reset(all_items(shape));
    try {
      kinds.start(built);
      const pipeline::Report& report = built.pipeline().wait();
      ASSERT_EQ(built.differences(built.expected(), report), "") << what << '\n' << report.text();
      for (const auto& topic : report.topics) dropped += topic.dropped;
    } catch (const PipelineError& error) {
      ASSERT_TRUE(shape.is_tight && error.reason() == PipelineError::Reason::kFull) << what << '\n'
                                                                                    << error.what();
      ++full;
    } catch (const Error& error) {
      FAIL() << what << '\n' << error.what();
    }
    items += built.expected().deliveries;
    for (const StageShape& stage : shape.stages) {
      loops += stage.loop != ~0u ? 1 : 0;
      elsewhere += stage.side() > 1 ? 1 : 0;
      const StageShape& of_loop = shape.stages[stage.loop != ~0u ? stage.loop : 0];
      wide += stage.loop != ~0u && stage.side() != of_loop.side() ? 1 : 0;
    }
  }
  std::printf(
      "%u pipelines, %llu items, %llu stages in loops, %llu of them on another side than the first one, %llu "
      "stages on other devices than the first, %llu loops without room, %llu frames dropped\n",
      done, static_cast<unsigned long long>(items), static_cast<unsigned long long>(loops),
      static_cast<unsigned long long>(wide), static_cast<unsigned long long>(elsewhere),
      static_cast<unsigned long long>(full), static_cast<unsigned long long>(dropped));
  if (runs < 100) return;
  EXPECT_GT(items, runs);
  EXPECT_GT(loops, runs / 10);
  EXPECT_GT(full, 0u);
  EXPECT_GT(dropped, 0u);
}

}  // namespace
}  // namespace esker::testing
