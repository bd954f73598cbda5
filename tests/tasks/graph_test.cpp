// Task graphs: each element once, whatever is full; edges, priorities, outputs, errors, runs in turn.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using namespace tasks;
Device device() { return Device::open(); }
Options small_memory(std::uint64_t bytes = 1 << 20) {
  Options options;
  options.memory_bytes = bytes;
  return options;
}

#if defined(ESKER_TEST_SIMULATED)
constexpr std::uint32_t kNumbers = 200;
constexpr int kRounds = 10;
constexpr std::uint64_t kLittleMemory = 1 << 16;
#else
constexpr std::uint32_t kNumbers = 2000;
constexpr int kRounds = 100;
constexpr std::uint64_t kLittleMemory = 1 << 20;  // a few dozen elements for each domain of a GPU
#endif

// --- A diamond: numbers go two ways, of elements of two sizes, and arrive in one output.

struct Left {
  std::uint32_t number;
};
struct Right {
  std::uint64_t number, twice, thrice;
};
struct Split {
  GraphChannel<Left> left;
  GraphChannel<Right> right;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    task.spawn(left, {n});
    task.spawn(right, {n, 2 * std::uint64_t{n}, 3 * std::uint64_t{n}});
  }
};
struct Add {
  GraphChannel<std::uint64_t> sum;
  ESKER_HD void operator()(auto& task, const Left& l) const { task.spawn(sum, l.number); }
  ESKER_HD void operator()(auto& task, const Right& r) const {
    task.spawn(sum, r.twice == 2 * r.number && r.thrice == 3 * r.number ? 1'000'000 + r.number : 0);
  }
};
struct Keep {
  GraphOutput<std::uint64_t> output;
  ESKER_HD void operator()(auto& task, const std::uint64_t& n) const {
    task.spawn(output, n);
    task.add(n);
  }
};

struct Diamond {
  Graph graph;
  GraphChannel<std::uint32_t> numbers;
  GraphChannel<Left> left;
  GraphChannel<Right> right;
  GraphChannel<std::uint64_t> sum;
  GraphOutput<std::uint64_t> output;

  Diamond(std::uint32_t capacity, WhenFull when_full)
      : graph{device(), small_memory(4 << 20)},
        numbers{graph.channel<std::uint32_t>({"numbers", capacity, 0, when_full})},
        left{graph.channel<Left>({"left", capacity, 0, when_full})},
        right{graph.channel<Right>({"right", capacity, 1, when_full})},
        sum{graph.channel<std::uint64_t>({"sum", capacity, 2, when_full})},
        output{graph.output<std::uint64_t>("output", 2 * kNumbers)} {}

  void seed(std::uint32_t n) {
    std::vector<std::uint32_t> all(n);
    std::iota(all.begin(), all.end(), 0u);
    graph.seed(numbers, all);
  }
  const tasks::GraphReport& run() {
    return graph.run(node(numbers, Split{left, right}).into(left, right), node(left, Add{sum}).into(sum),
                     node(right, Add{sum}).into(sum), node(sum, Keep{output}).into(output));
  }
  void check(std::uint32_t n) const {
    std::vector<std::uint64_t> found = graph.results(output);
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found.size(), 2 * n);
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(found[i], i);
      ASSERT_EQ(found[n + i], 1'000'000 + i);
    }
    const tasks::GraphReport& report = graph.report();
    EXPECT_EQ(report.sum, n * (n - 1ull) + std::uint64_t{n} * 1'000'000);
    EXPECT_EQ(report.channels[0].elements, n);
    EXPECT_EQ(report.channels[3].elements, 2 * n);
    EXPECT_EQ(report.channels[4].elements, 2 * n);
    EXPECT_LE(report.peak_memory_bytes, report.memory_bound);
  }
};

TEST(Graph, TakesEachElementOnce) {
  for (const WhenFull when_full : {WhenFull::kSpill, WhenFull::kInline, WhenFull::kFail}) {
    Diamond diamond(1 << 14, when_full);
    for (const std::uint32_t n : {1u, 31u, kNumbers}) {
      diamond.seed(n);
      diamond.run();
      diamond.check(n);
    }
  }
}
TEST(Graph, LosesNothingWhenChannelsAreFull) {
  for (const WhenFull when_full : {WhenFull::kSpill, WhenFull::kInline}) {
    for (const std::uint32_t capacity : {1u, 2u, 3u, 4u, 5u}) {
      Diamond diamond(capacity, when_full);
      diamond.seed(kNumbers);
      diamond.run();
      diamond.check(kNumbers);
    }
  }
}
TEST(Graph, RunsAgainAndAgain) {
  Diamond diamond(64, WhenFull::kSpill);
  diamond.seed(50);
  for (int i = 0; i < kRounds; ++i) {
    diamond.run();
    diamond.check(50);
  }
  diamond.seed(0);
  EXPECT_EQ(diamond.run().sum, 0u) << "nothing is in it";
  EXPECT_TRUE(diamond.graph.results(diamond.output).empty());
}
TEST(Graph, SaysWhatItDid) {
  Diamond diamond(64, WhenFull::kInline);
  diamond.seed(kNumbers);
  const std::string text = diamond.run().text();
  for (const char* part : {"numbers -> left, right: priority 0, capacity 64, inline; ",
                           "sum -> output: priority 2", "output: output, ", "left -> sum"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  EXPECT_EQ(diamond.graph.memory_bound(), (4u << 20) + 64 * (4 + 4 + 24 + 8) + 2 * kNumbers * 8u);
}
TEST(Graph, TakesSeedsFromDeviceMemory) {
  const Device one = device();
  Graph graph(one);
  const auto numbers = graph.channel<std::uint64_t>();
  const auto output = graph.output<std::uint64_t>();
  const std::vector<std::uint64_t> host{5, 7, 11};
  const auto memory = one.memory<std::uint64_t>(host.size());
  one.copy(memory.data(), host.data(), memory.size_bytes());
  graph.seed(numbers, std::span<const std::uint64_t>(memory.data(), memory.size()));
  graph.run(node(numbers, Keep{output}).into(output));
  EXPECT_EQ(graph.report().sum, 23u);
  EXPECT_EQ(graph.results(output).size(), 3u);
}

// --- Loops and recursion: one channel, or two in turn.

struct Tree {
  GraphChannel<std::uint32_t> mine, other;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    if (n < 2) return task.add(n);
    task.spawn(other, n - 1);
    task.spawn(mine, n - 2);
  }
};
std::uint64_t fib(std::uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

TEST(Graph, Recurs) {
#if defined(ESKER_TEST_SIMULATED)
  const std::uint32_t n = 13;
#else
  const std::uint32_t n = 20;
#endif
  for (const WhenFull when_full : {WhenFull::kSpill, WhenFull::kInline}) {
    for (const std::uint32_t capacity : {1u, 5u, 1000u}) {
      Graph graph(device(), small_memory(16 << 20));  // of which each domain has a part
      const auto one = graph.channel<std::uint32_t>({"one", capacity, 0, when_full});
      const auto two = graph.channel<std::uint32_t>({"two", capacity, 1, when_full});
      graph.seed(one, std::vector<std::uint32_t>{n});
      graph.run(node(one, Tree{one, two}).into(one, two), node(two, Tree{two, one}).into(one, two));
      EXPECT_EQ(graph.report().sum, fib(n));
    }
  }
}

struct Choose {
  GraphChannel<std::uint32_t> even, odd;
  GraphOutput<std::uint32_t> evens, odds;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    task.spawn(n % 2 == 0 ? evens : odds, n);
    if (n >= 4) task.spawn(n % 3 == 0 ? even : odd, n / 2);
  }
};
TEST(Graph, LetsLanesChooseBetweenChannels) {
  Graph graph(device(), small_memory());
  const auto a = graph.channel<std::uint32_t>({"a", 3}), b = graph.channel<std::uint32_t>({"b", 2});
  const auto evens = graph.output<std::uint32_t>("evens"), odds = graph.output<std::uint32_t>("odds");
  std::vector<std::uint32_t> all(kNumbers);
  std::iota(all.begin(), all.end(), 0u);
  std::uint64_t even = 0, odd = 0;
  for (std::uint32_t n : all) {
    for (;; n /= 2) {
      (n % 2 == 0 ? even : odd) += 1;
      if (n < 4) break;
    }
  }
  graph.seed(a, all);
  const Choose choose{a, b, evens, odds};
  graph.run(node(a, choose).into(a, b, evens, odds), node(b, choose).into(a, b, evens, odds));
  EXPECT_EQ(graph.results(evens).size(), even);
  EXPECT_EQ(graph.results(odds).size(), odd);
  for (const std::uint32_t n : graph.results(odds)) ASSERT_EQ(n % 2, 1u);
}

struct Down {
  GraphChannel<std::uint32_t> again;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    task.add(1);
    if (n != 0) task.spawn(again, n - 1);
  }
};
TEST(Graph, GoesRoundALoop) {
  Graph graph(device(), small_memory());
  const auto numbers = graph.channel<std::uint32_t>({"numbers", 1, 0, WhenFull::kFail});
  graph.seed(numbers, std::vector<std::uint32_t>{500});
  graph.run(node(numbers, Down{numbers}).into(numbers));
  EXPECT_EQ(graph.report().sum, 501u);
}

// --- Priorities: one domain, so the order is seen.

struct Order {
  GraphOutput<std::uint32_t> output;
  std::uint32_t number;
  ESKER_HD void operator()(auto& task, const std::uint32_t&) const { task.spawn(output, number); }
};
TEST(Graph, RunsHighPrioritiesFirst) {
  Options options = small_memory();
  options.domains = 1;
  Graph graph(device(), options);
  const auto low = graph.channel<std::uint32_t>({.name = "low", .priority = -3});
  const auto high = graph.channel<std::uint32_t>({.name = "high", .priority = 5});
  const auto middle = graph.channel<std::uint32_t>({.name = "middle"});
  const auto output = graph.output<std::uint32_t>();
  // Full batches all: 64 lanes at most a wave.
  const std::vector<std::uint32_t> seeds(64 * 4);
  graph.seed(low, seeds);
  graph.seed(middle, seeds);
  graph.seed(high, seeds);
  graph.run(node(low, Order{output, 2}).into(output), node(middle, Order{output, 1}).into(output),
            node(high, Order{output, 0}).into(output));
  const auto order = graph.results(output);
  ASSERT_EQ(order.size(), 3 * seeds.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Graph, HasNoMoreDomainsThanItMay) {
  for (const std::uint32_t domains : {1u, 2u, 3u, 7u, ~0u - 2, ~0u}) {
    Options options = small_memory();
    options.domains = domains;
    Graph graph(device(), options);
    const auto numbers = graph.channel<std::uint32_t>({.name = "numbers"});
    graph.seed(numbers, std::vector<std::uint32_t>{40});
    EXPECT_EQ(graph.run(node(numbers, Down{numbers}).into(numbers)).sum, 41u);
    EXPECT_GE(graph.report().domains, 1u);
    EXPECT_LE(graph.report().domains, domains);
  }
}

// --- What goes wrong ends the run, says so, and leaves the next one alone.

/// Runs, and returns what was thrown; checks that the graph can be used again.
template <class Run>
void expect_error(const Run& run, TaskError::Reason reason, const std::vector<std::string>& parts) {
  try {
    run();
    ADD_FAILURE() << "it ended well";
  } catch (const TaskError& error) {
    EXPECT_EQ(error.reason(), reason) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

struct Wrong {
  GraphChannel<std::uint32_t> hidden;
  std::uint32_t bad;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    task.add(1);
    if (n == bad) task.spawn(hidden, n);
  }
};
TEST(Graph, NamesAnEdgeThatWasNotDeclared) {
  Graph graph(device(), small_memory());
  const auto rays = graph.channel<std::uint32_t>({.name = "rays"});
  const auto hits = graph.channel<std::uint32_t>({.name = "hits"});
  std::vector<std::uint32_t> all(300);
  std::iota(all.begin(), all.end(), 0u);
  graph.seed(rays, all);
  for (int i = 0; i < 5; ++i) {
    expect_error(
        [&] {
          graph.run(node(rays, Wrong{hits, 200}), node(hits, Wrong{hits, ~0u}));
        },
        TaskError::Reason::kMisuse, {"'rays' spawned into 'hits'"});
    EXPECT_EQ(graph.run(node(rays, Wrong{hits, ~0u}), node(hits, Wrong{hits, ~0u})).sum, 300u);
    EXPECT_EQ(graph.run(node(rays, Wrong{hits, 200}).into(hits), node(hits, Wrong{hits, ~0u})).sum, 301u);
  }
}

TEST(Graph, NamesATaskThatSpawnsIntoAnotherGraph) {
  Graph graph(device(), small_memory()), other(device(), small_memory());
  const auto rays = graph.channel<std::uint32_t>({.name = "rays"});
  const auto hits = graph.channel<std::uint64_t>({.name = "hits"});
  const auto kept = graph.output<std::uint64_t>("kept");
  (void)other.channel<std::uint32_t>();
  const auto foreign = other.channel<std::uint32_t>();  // with the number that `hits` has
  graph.seed(rays, std::vector<std::uint32_t>{3});
  for (const auto& to : {foreign, GraphChannel<std::uint32_t>{}}) {
    expect_error(
        [&] {
          graph.run(node(rays, Wrong{to, 3}).into(rays, hits), node(hits, Keep{kept}).into(kept));
        },
        TaskError::Reason::kMisuse, {"a task of 'rays' spawned into a channel of another graph"});
  }
}

struct Fails {
  GraphChannel<std::uint32_t> again;
  std::uint32_t bad;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    if (n == bad) return task.fail(42, 7, n);
    if (n < 2) return task.add(n);
    task.spawn(again, n - 1);
    task.spawn(again, n - 2);
  }
};
TEST(Graph, EndsWithWhatATaskHasSaid) {
  Graph graph(device(), small_memory());
  const auto calls = graph.channel<std::uint32_t>({.name = "calls", .capacity = 100});
  graph.seed(calls, std::vector<std::uint32_t>{12});
  for (int i = 0; i < 20; ++i) {
    expect_error(
        [&] {
          graph.run(node(calls, Fails{calls, static_cast<std::uint32_t>(i % 10)}).into(calls));
        },
        TaskError::Reason::kFailed,
        {"a task of 'calls' failed with code 42 (7, " + std::to_string(i % 10) + ")"});
    EXPECT_EQ(graph.run(node(calls, Fails{calls, ~0u}).into(calls)).sum, fib(12));
  }
}

struct Forever {
  GraphChannel<std::uint32_t> again;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    task.spawn(again, n);
    task.spawn(again, n);
  }
};
TEST(Graph, SaysWhatIsFull) {
  Graph graph(device(), small_memory());
  const auto many =
      graph.channel<std::uint32_t>({.name = "many", .capacity = 9, .when_full = WhenFull::kFail});
  graph.seed(many, std::vector<std::uint32_t>{1});
  expect_error([&] { graph.run(node(many, Forever{many}).into(many)); }, TaskError::Reason::kFull,
               {"'many' spawned into 'many'", "its capacity is 9, and its when_full is kFail"});
  for (const WhenFull when_full : {WhenFull::kSpill, WhenFull::kInline}) {
    Graph bounded(device(), small_memory(kLittleMemory));
    const auto more = bounded.channel<std::uint32_t>({"more", 9, 0, when_full});
    bounded.seed(more, std::vector<std::uint32_t>{1});
    for (int i = 0; i < 3; ++i) {
      expect_error([&] { bounded.run(node(more, Forever{more}).into(more)); },
                   TaskError::Reason::kOutOfMemory,
                   {"'more' spawned into 'more'", "memory_bytes (" + std::to_string(kLittleMemory) + ")"});
    }
    bounded.seed(more, std::vector<std::uint32_t>{12});
    EXPECT_EQ(bounded.run(node(more, Fails{more, ~0u}).into(more)).sum, fib(12));
  }
  Graph output(device(), small_memory());
  const auto few = output.channel<std::uint32_t>({.name = "few"});
  const auto place = output.output<std::uint32_t>("place", 3);
  output.seed(few, std::vector<std::uint32_t>(4, 1u));
  expect_error(
      [&] {
        output.run(node(few, Order{place, 1}).into(place));
      },
      TaskError::Reason::kFull, {"'few' spawned into 'place'", "its capacity is 3, and it is an output"});
}
TEST(Graph, StopsWhenItIsAskedTo) {
  Options options = small_memory();
  Graph graph(device(), options);
  const auto loop = graph.channel<std::uint32_t>();
  graph.seed(loop, std::vector<std::uint32_t>{~0u});
  std::thread asks([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    options.stop.request_stop();
  });
  expect_error([&] { graph.run(node(loop, Down{loop}).into(loop)); }, TaskError::Reason::kStopped,
               {"stopped on request"});
  asks.join();
}

/// The only domain is in this function: nobody else looks whether the run is to stop.
struct Looks {
  SystemAtomic<std::uint32_t>* begun;
  ESKER_HD void operator()(auto& task, const std::uint32_t&) const {
    begun->store_relaxed(1);
    while (!task.stop_requested()) {
    }
  }
};
TEST(Graph, TellsTheOnlyDomainsFunctionThatAStopWasRequested) {
  Options options = small_memory();
  options.domains = 1;
  const auto begun = device().pinned<SystemAtomic<std::uint32_t>>(1);
  Graph graph(device(), options);
  const auto one = graph.channel<std::uint32_t>();
  graph.seed(one, std::vector<std::uint32_t>{1});
  std::thread asks([&] {
    while (begun[0].load_relaxed() == 0) std::this_thread::yield();
    options.stop.request_stop();
  });
  expect_error([&] { graph.run(node(one, Looks{begun.data()})); }, TaskError::Reason::kStopped,
               {"stopped on request"});
  asks.join();
}

TEST(Graph, RefusesGraphsThatAreWrong) {
  Graph graph(device(), small_memory()), other(device(), small_memory());
  const auto a = graph.channel<std::uint32_t>({.name = "a"});
  const auto b = graph.channel<std::uint32_t>({.name = "b"});
  const auto foreign = other.channel<std::uint32_t>({.name = "foreign"});
  const auto says = [](const auto& run, const std::string& part) {
    try {
      run();
      ADD_FAILURE() << "it was taken: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kConfiguration);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  says([&] { graph.run(node(a, Down{a})); }, "'b' has no node");
  says([&] { graph.run(node(a, Down{a}), node(b, Down{b}), node(a, Down{a})); }, "'a' has several nodes");
  says([&] { graph.run(node(a, Down{a}), node(foreign, Down{a})); }, "channel of another graph");
  says([&] { graph.run(node(a, Down{a}).into(foreign), node(b, Down{b})); }, "the node of 'a' spawns");
  says([&] { graph.run(node(a, Down{a}).into(GraphChannel<std::uint32_t>{}), node(b, Down{b})); },
       "the node of 'a' spawns");
  says([&] { graph.seed(foreign, std::vector<std::uint32_t>{1}); }, "channel of another graph");
  graph.run(node(a, Down{a}).into(a), node(b, Down{b}));
  says([&] { (void)graph.channel<std::uint32_t>({.name = "late"}); }, "'late' was made after the first run");
  for (std::uint32_t i = 1; i < 32; ++i) (void)other.channel<std::uint32_t>({"another", 1});
  says([&] { (void)other.channel<std::uint32_t>({.name = "last"}); }, "'last' is one channel too many");
  Graph poor(device(), small_memory(3));
  const auto c = poor.channel<std::uint32_t>({.name = "c"});
  says([&] { poor.run(node(c, Down{c})); }, "memory_bytes is 3, of which 'c'");
  says([&] { (void)poor.channel<char>({.name = "all", .capacity = (1u << 31) + 1}); },
       "capacity is 2147483649, and the most");
}

#if !defined(ESKER_DEVICE_COMPILER)
struct Throws {
  void operator()(auto&, const std::uint32_t& n) const {
    if (n == 99) throw std::out_of_range("a task's own");
  }
};
struct KeepsAndThrows {
  GraphOutput<std::uint32_t> kept;
  void operator()(auto& task, const std::uint32_t& n) const {
    task.spawn(kept, n);
    if (n == 99) throw std::out_of_range("a task's own");
  }
};
TEST(Graph, HasTheResultsOfARunThatThrewAndOfNoOther) {
  Options options = small_memory();
  options.domains = 1;
  Graph graph(device(), options);
  const auto numbers = graph.channel<std::uint32_t>();
  const auto kept = graph.output<std::uint32_t>();
  graph.seed(numbers, std::vector<std::uint32_t>{1, 2, 3, 4});
  graph.run(node(numbers, KeepsAndThrows{kept}).into(kept));
  EXPECT_EQ(graph.results(kept).size(), 4u);
  graph.seed(numbers, std::vector<std::uint32_t>{99});
  EXPECT_THROW(graph.run(node(numbers, KeepsAndThrows{kept}).into(kept)), std::out_of_range);
  EXPECT_EQ(graph.results(kept), std::vector<std::uint32_t>{99});
}
TEST(Graph, PassesOnWhatATaskThrows) {
  Graph graph(device(), small_memory());
  const auto numbers = graph.channel<std::uint32_t>();
  std::vector<std::uint32_t> all(200);
  std::iota(all.begin(), all.end(), 0u);
  graph.seed(numbers, all);
  EXPECT_THROW(graph.run(node(numbers, Throws{})), std::out_of_range);
  graph.seed(numbers, std::vector<std::uint32_t>{1, 2});
  EXPECT_EQ(graph.run(node(numbers, Throws{})).channels[0].elements, 2u);
}
#endif

}  // namespace
}  // namespace esker::testing
