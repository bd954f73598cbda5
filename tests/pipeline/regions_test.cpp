// Regions of grids: random shapes and stencils of one to three dimensions, against plain loops over cells; by
// threads, and by groups of the device.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <esker/device.hpp>
#include <esker/device/group.hpp>
#include <esker/pipeline/regions.hpp>

#include "../device/gtest.hpp"

namespace esker::pipeline {
namespace {

using Source = RegionSource<std::uint32_t>;
using Table = RegionTable<std::uint32_t>;

/// splitmix64: any source of numbers will do, on both sides.
ESKER_HD std::uint64_t random_of(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
struct Random {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_of(state++) % n); }
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(high - low + 1)));
  }
};

struct Problem {
  RegionGrid grid;
  Halo halo;

  std::string text() const {
    const auto of = [](auto x, auto y, auto z) {
      return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
    };
    return "cells " + of(grid.cells.x, grid.cells.y, grid.cells.z) + " regions of " +
           of(grid.region.x, grid.region.y, grid.region.z) + " halo " +
           of(halo.low.x, halo.low.y, halo.low.z) + " to " + of(halo.high.x, halo.high.y, halo.high.z);
  }
  /// `reads(x, y, z)` for all that the stencil reads for the cell.
  template <class Reads>
  ESKER_HD void for_each_read(const Cell& c, const Reads& reads) const {
    for (std::int64_t z = std::int64_t{c.z} + halo.low.z; z <= std::int64_t{c.z} + halo.high.z; ++z) {
      for (std::int64_t y = std::int64_t{c.y} + halo.low.y; y <= std::int64_t{c.y} + halo.high.y; ++y) {
        for (std::int64_t x = std::int64_t{c.x} + halo.low.x; x <= std::int64_t{c.x} + halo.high.x; ++x)
          reads(x, y, z);
      }
    }
  }
  ESKER_HD std::uint64_t index_of(const Cell& c) const {
    return (std::uint64_t{c.z} * grid.cells.y + c.y) * grid.cells.x + c.x;
  }
  ESKER_HD static std::uint32_t value_at(std::uint32_t round, std::int64_t x, std::int64_t y,
                                         std::int64_t z) {
    return static_cast<std::uint32_t>(
        random_of(random_of(static_cast<std::uint64_t>(x * 1000003 + y * 1009 + z)) + round));
  }
  /// The result of a cell, by whatever reads.
  template <class At>
  ESKER_HD std::uint32_t apply(const Cell& c, const At& at) const {
    std::uint32_t sum = 1;
    for_each_read(c, [&](std::int64_t x, std::int64_t y, std::int64_t z) { sum = sum * 31 + at(x, y, z); });
    return sum;
  }
  std::uint32_t expected(std::uint32_t round, const Cell& c) const {
    return apply(c, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      return grid.contains(x, y, z) ? value_at(round, x, y, z) : 7u;
    });
  }
  Box all() const { return {{}, grid.cells}; }
};

Problem random_problem(Random& random) {
  const std::uint32_t dimensions = 1 + random.below(3);
  const std::uint32_t most = dimensions == 1 ? 300 : dimensions == 2 ? 40 : 14;
  Extent cells, region;
  Halo halo{};
  std::uint32_t* const sizes[] = {&cells.x, &cells.y, &cells.z};
  std::uint32_t* const parts[] = {&region.x, &region.y, &region.z};
  std::int32_t* const low[] = {&halo.low.x, &halo.low.y, &halo.low.z};
  std::int32_t* const high[] = {&halo.high.x, &halo.high.y, &halo.high.z};
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    *sizes[d] = 1 + random.below(most);
    *parts[d] = 1 + random.below(random.below(4) == 0 ? most : most / 6 + 1);
    *low[d] = random.between(-3, 2);
    *high[d] = random.between(*low[d], 3);
    if (random.below(10) == 0) *low[d] += 30, *high[d] += 30;  // reads little or nothing
  }
  return {RegionGrid::of(cells, region), halo};
}
/// The stencil of five points.
Problem five_points(const Extent& cells, const Extent& region) {
  const Offset offsets[] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}};
  return {RegionGrid::of(cells, region), Halo::around(offsets)};
}

std::set<std::uint32_t> numbers_in(const RegionGrid& grid, const Box& box) {
  std::set<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < box.count(); ++i) numbers.insert(grid.number_of(box.at(i)));
  EXPECT_EQ(numbers.size(), box.count());
  return numbers;
}
/// All cells of a region, where a frame has them.
std::vector<std::uint32_t> cells_in_round(const Problem& p, std::uint32_t region, std::uint32_t round) {
  std::vector<std::uint32_t> cells(p.grid.region_cells(), 0xdead);
  const Box box = p.grid.cells_of(region);
  for (std::uint32_t i = 0; i < box.count(); ++i) {
    const Cell c = box.at(i);
    cells[p.grid.offset_of(c)] = Problem::value_at(round, c.x, c.y, c.z);
  }
  return cells;
}
std::vector<std::uint32_t> in_order(std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}
std::vector<std::uint32_t> shuffled(std::uint32_t n, Random& random) {
  std::vector<std::uint32_t> order = in_order(n);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

TEST(RegionGrid, HasEachCellInOneRegion) {
  Random random{1};
  for (int i = 0; i < 100; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    std::set<std::pair<std::uint32_t, std::uint32_t>> places;
    std::uint64_t cells = 0;
    for (std::uint32_t r = 0; r < p.grid.count(); ++r) {
      const Box box = p.grid.cells_of(r);
      EXPECT_EQ(p.grid.number_of(p.grid.place_of(r)), r);
      cells += box.count();
      for (std::uint32_t c = 0; c < box.count(); ++c) {
        EXPECT_EQ(p.grid.region_of(box.at(c)), r);
        const std::uint32_t offset = p.grid.offset_of(box.at(c));
        EXPECT_LT(offset, p.grid.region_cells());
        places.insert({r, offset});
      }
    }
    EXPECT_EQ(cells, p.grid.cells.volume());
    EXPECT_EQ(places.size(), cells);
  }
}

TEST(Box, IsSharedByLanes) {
  Random random{8};
  for (int i = 0; i < 300; ++i) {
    const Box box{{random.below(9), random.below(9), random.below(9)},
                  {random.below(12), 1 + random.below(5), 1 + random.below(4)}};
    const std::uint32_t lanes = 1 + random.below(40);
    std::vector<std::uint32_t> seen(box.count());
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      std::uint32_t n = lane;
      box.for_each(lane, lanes, [&](const Cell& cell) {
        EXPECT_EQ(cell, box.at(n));
        ++seen.at(n);
        n += lanes;
      });
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), box.count());
  }
}

TEST(RegionGrid, KnowsWhatAStencilReads) {
  Random random{2};
  for (int i = 0; i < 200; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    std::vector<std::set<std::uint32_t>> needs(p.grid.count()), readers(p.grid.count());
    for (std::uint64_t c = 0; c < p.grid.cells.volume(); ++c) {
      const Cell cell = p.all().at(static_cast<std::uint32_t>(c));
      const std::uint32_t target = p.grid.region_of(cell);
      p.for_each_read(cell, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
        if (!p.grid.contains(x, y, z)) return;
        const std::uint32_t region = p.grid.region_of(
            {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)});
        needs[target].insert(region);
        readers[region].insert(target);
      });
    }
    for (std::uint32_t r = 0; r < p.grid.count(); ++r) {
      EXPECT_EQ(numbers_in(p.grid, p.grid.needs_of(r, p.halo)), needs[r]);
      EXPECT_EQ(numbers_in(p.grid, p.grid.readers_of(r, p.halo)), readers[r]);
    }
  }
}

TEST(RegionGrid, TakesTheBoxAroundOffsets) {
  const Offset offsets[] = {{-2, 0, 1}, {1, 3, 1}, {0, -1, 4}};
  const Halo halo = Halo::around(offsets);
  EXPECT_EQ(halo.low.x, -2);
  EXPECT_EQ(halo.low.y, -1);
  EXPECT_EQ(halo.low.z, 1);
  EXPECT_EQ(halo.high.x, 1);
  EXPECT_EQ(halo.high.y, 3);
  EXPECT_EQ(halo.high.z, 4);
}

TEST(RegionGridDeathTest, RefusesWhatIsEmptyOrTooLarge) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)RegionGrid::of({4, 0, 1}, {2, 2, 1}), "a grid of 4 x 0 x 1 cells");
  EXPECT_DEATH((void)RegionGrid::of({4, 4, 1}, {2, 2, 0}), "every size is 1 at least");
  EXPECT_DEATH((void)RegionGrid::of({1u << 20, 1u << 12, 1}, {1, 1, 1}), "below 2\\^31");
}

TEST(RegionSource, TellsOneCallerThatARegionIsComplete) {
  Random random{3};
  const Device device = Device::open("cpu");
  for (int i = 0; i < 30; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    Source source(device, RegionSide::kHost, p.grid);
    const auto view = source.view();
    const auto order = shuffled(static_cast<std::uint32_t>(p.grid.cells.volume()), random);
    std::vector<std::atomic<std::uint32_t>> completed(p.grid.count());
    std::atomic<std::uint32_t> wrong{0};
    const auto set = [&](std::size_t first) {
      for (std::size_t c = first; c < order.size(); c += 3) {
        const Cell cell = p.all().at(order[c]);
        RegionSourceView<std::uint32_t>::Set how;
        do {
          how = view.try_set(cell, Problem::value_at(0, cell.x, cell.y, cell.z));
        } while (how == RegionSourceView<std::uint32_t>::Set::kNotNow);
        if (how != RegionSourceView<std::uint32_t>::Set::kCompletes) continue;
        const std::uint32_t region = p.grid.region_of(cell);
        ++completed[region];
        // It sees what the others have set.
        const auto expected = cells_in_round(p, region, 0);
        const Box box = p.grid.cells_of(region);
        for (std::uint32_t b = 0; b < box.count(); ++b) {
          const std::uint32_t at = p.grid.offset_of(box.at(b));
          if (view.data(region)[at] != expected[at]) ++wrong;
        }
        view.release(region);
      }
    };
    {
      std::jthread one(set, 0), two(set, 1);
      set(2);
    }
    EXPECT_EQ(wrong, 0u);
    for (const auto& n : completed) EXPECT_EQ(n, 1u);
  }
}

TEST(RegionSource, MakesRowsWithTheBuffersOfARowOfRegionsRoundAfterRound) {
  const Problem p = five_points({37, 23, 1}, {8, 5, 1});
  Source source(Device::open("cpu"), RegionSide::kHost, p.grid, p.grid.regions.x);
  const auto view = source.view();
  std::vector<std::uint32_t> completed(p.grid.count());
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t y = 0; y < p.grid.cells.y; ++y) {
      std::vector<std::uint32_t> row(p.grid.cells.x);
      for (std::uint32_t x = 0; x < row.size(); ++x) row[x] = Problem::value_at(round, x, y, 0);
      // In two parts, which do not end where regions do.
      for (const auto& [from, n] : {std::pair{0u, 19u}, {19u, 18u}}) {
        EXPECT_EQ(view.try_set_row(
                      {from, y, 0}, row.data() + from, n,
                      [&](std::uint32_t region) {
                        ++completed[region];
                        const auto expected = cells_in_round(p, region, round);
                        const Box box = p.grid.cells_of(region);
                        for (std::uint32_t b = 0; b < box.count(); ++b) {
                          const std::uint32_t at = p.grid.offset_of(box.at(b));
                          EXPECT_EQ(view.data(region)[at], expected[at]);
                        }
                        view.release(region);
                      },
                      round),
                  n);
      }
    }
  }
  for (const std::uint32_t n : completed) EXPECT_EQ(n, 3u);
}

TEST(RegionSource, SaysNotNowWithoutABuffer) {
  using View = RegionSourceView<std::uint32_t>;
  const Problem p = five_points({4, 1, 1}, {2, 1, 1});
  Source source(Device::open("cpu"), RegionSide::kHost, p.grid, 1);
  const View view = source.view();
  EXPECT_EQ(view.try_set({0, 0, 0}, 1), View::Set::kDone);
  EXPECT_EQ(view.try_set({2, 0, 0}, 3), View::Set::kNotNow);
  EXPECT_EQ(view.try_set({1, 0, 0}, 2, 1), View::Set::kNotNow) << "the next round";
  EXPECT_EQ(view.try_set({1, 0, 0}, 2), View::Set::kCompletes);
  EXPECT_EQ(view.data(0)[1], 2u);
  EXPECT_EQ(view.try_set({2, 0, 0}, 3), View::Set::kNotNow) << "not released";
  view.release(0);
  EXPECT_EQ(view.try_set({2, 0, 0}, 3), View::Set::kDone);
  source.reset();
  EXPECT_EQ(view.try_set({0, 0, 0}, 1), View::Set::kDone);
}

/// What targets are computed, and whether rightly. Any thread.
struct Seen {
  explicit Seen(const Problem& problem) : p{problem}, times(problem.grid.count()) {}

  void compute(std::uint32_t round, std::uint32_t target,
               const RegionTableView<std::uint32_t>::Reader& reader) {
    ++times[target];
    for (std::uint32_t i = 0; i < reader.cells().count(); ++i) {
      const Cell cell = reader.cells().at(i);
      const std::uint32_t found = p.apply(
          cell, [&](std::int64_t x, std::int64_t y, std::int64_t z) { return reader.at_or(x, y, z, 7u); });
      if (found != p.expected(round, cell)) ++wrong;
    }
  }
  void expect_each(std::uint32_t rounds, const Table& table) {
    EXPECT_EQ(wrong, 0u);
    std::vector<std::uint32_t> expected(times.size(), rounds);
    for (const std::uint32_t t : table.targets_without_needs()) expected[t] = 0;
    for (std::size_t t = 0; t < times.size(); ++t) EXPECT_EQ(times[t], expected[t]) << "target " << t;
  }

  const Problem& p;
  std::vector<std::atomic<std::uint32_t>> times;
  std::atomic<std::uint64_t> wrong{0};
};

TEST(RegionTable, ComputesEachTargetOnceWithAllThatItReads) {
  Random random{4};
  const Device device = Device::open("cpu");
  for (int i = 0; i < 300; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    Table table(device, RegionSide::kHost, p.grid, p.halo);
    Seen seen(p);
    LoneTeam team;
    for (std::uint32_t round = 0; round < 2; ++round) {
      for (const std::uint32_t region : shuffled(p.grid.count(), random)) {
        EXPECT_TRUE(table.view().receive(
            team, region, cells_in_round(p, region, round).data(),
            [&](std::uint32_t target, const auto& reader) { seen.compute(round, target, reader); }, round));
      }
    }
    seen.expect_each(2, table);
  }
}

/// Gives up rather than wait.
struct ImpatientTeam : LoneTeam {
  bool stop_requested() const { return true; }
};

TEST(RegionTable, NeedsTheBuffersThatItSaysForRegionsInOrder) {
  Random random{5};
  const Device device = Device::open("cpu");
  for (int i = 0; i < 200; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    const std::uint32_t needed = buffers_in_order(p.grid, p.halo);
    for (const std::uint32_t buffers : {needed, needed - 1}) {
      if (buffers == 0) continue;
      if (buffers < needed && needed <= p.grid.count())
        EXPECT_THROW(Table(device, RegionSide::kHost, p.grid, p.halo, buffers), Error);
      Table table(detail::AnyNumber{}, device, RegionSide::kHost, p.grid, p.halo, buffers);
      ImpatientTeam team;
      bool all = true;
      for (std::uint32_t region = 0; region < p.grid.count() && all; ++region)
        all =
            table.view().receive(team, region, cells_in_round(p, region, 0).data(), [](auto, const auto&) {});
      EXPECT_EQ(all, buffers == needed) << buffers << " buffers";
    }
  }
}

TEST(RegionTable, TakesInRegionsFromManyThreads) {
  Random random{6};
  const Device device = Device::open("cpu");
  constexpr std::uint32_t kThreads = 4, kRounds = 3;
  for (int i = 0; i < 60; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    // Few buffers, and in order; or all, and in any order.
    Table table(device, RegionSide::kHost, p.grid, p.halo, i % 2 == 0 ? buffers_in_order(p.grid, p.halo) : 0);
    const auto order = i % 2 == 0 ? in_order(p.grid.count()) : shuffled(p.grid.count(), random);
    const auto view = table.view();
    Seen seen(p);
    std::atomic<std::uint32_t> next{0};
    const auto take_in = [&] {
      LoneTeam team;
      while (true) {
        const std::uint32_t number = next.fetch_add(1);
        if (number >= p.grid.count() * kRounds) return;
        const std::uint32_t region = order[number % p.grid.count()], round = number / p.grid.count();
        const auto cells = cells_in_round(p, region, round);
        (void)view.receive(
            team, region, cells.data(),
            [&](std::uint32_t target, const auto& reader) { seen.compute(round, target, reader); }, round);
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(take_in);
    }
    seen.expect_each(kRounds, table);
  }
}

TEST(RegionTable, GivesUpWhenTheRunIsOver) {
  const Problem p = five_points({6, 1, 1}, {2, 1, 1});
  Table table(detail::AnyNumber{}, Device::open("cpu"), RegionSide::kHost, p.grid, p.halo, 1);
  ImpatientTeam team;
  const auto nothing = [](auto, const auto&) {};
  EXPECT_TRUE(table.view().receive(team, 0, cells_in_round(p, 0, 0).data(), nothing));
  EXPECT_FALSE(table.view().receive(team, 1, cells_in_round(p, 1, 0).data(), nothing));
  table.reset();
  EXPECT_FALSE(table.view().receive(team, 1, cells_in_round(p, 1, 0).data(), nothing)) << "not its turn";
  EXPECT_TRUE(table.view().receive(team, 0, cells_in_round(p, 0, 0).data(), nothing));
  Table in_any_order(Device::open("cpu"), RegionSide::kHost, p.grid, p.halo);
  EXPECT_TRUE(in_any_order.view().receive(team, 1, cells_in_round(p, 1, 0).data(), nothing));
  EXPECT_FALSE(in_any_order.view().receive(team, 1, cells_in_round(p, 1, 1).data(), nothing, 1))
      << "too early";
}

/// A group of the device that takes in regions.
struct GroupTeam {
  GroupLane& group;
  ESKER_HD std::uint32_t lane() const { return group.lane(); }
  ESKER_HD std::uint32_t lanes() const { return group.group_lanes(); }
  ESKER_HD void sync() const { group.group().sync(); }
  ESKER_HD bool stop_requested() const { return false; }
};

/// Groups claim regions one by one, and write results.
struct TakeIn {
  Problem p;
  RegionTableView<std::uint32_t> table;
  const std::uint32_t* frames;  // a round after the other, region after region
  std::uint32_t* results;       // a round after the other
  DeviceAtomic<std::uint32_t>* next;
  DeviceAtomic<std::uint32_t>* times;  // a target
  std::uint32_t rounds;

  ESKER_HD void operator()(GroupLane& lane) const {
    GroupTeam team{lane};
    while (true) {
      std::uint32_t number = 0;
      if (lane.lane() == 0) number = next->fetch_add_relaxed(1);
      number = lane.group().broadcast(number, 0);
      if (number >= p.grid.count() * rounds) return;
      const std::uint32_t region = number % p.grid.count(), round = number / p.grid.count();
      table.receive(
          team, region, frames + std::uint64_t{number} * p.grid.region_cells(),
          [&](std::uint32_t target, const auto& reader) {
            if (team.lane() == 0) times[target].fetch_add_relaxed(1);
            reader.cells().for_each(team.lane(), team.lanes(), [&](const Cell& cell) {
              results[round * p.grid.cells.volume() + p.index_of(cell)] = p.apply(
                  cell,
                  [&](std::int64_t x, std::int64_t y, std::int64_t z) { return reader.at_or(x, y, z, 7u); });
            });
          },
          round);
    }
  }
};

TEST(RegionTable, IsTheDevicesToo) {
  Random random{7};
  const Device device = Device::open();
  constexpr std::uint32_t kRounds = 2, kGroups = 3, kGroupLanes = 64;
  for (int i = 0; i < 12; ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(p.text());
    Table table(device, RegionSide::kDevice, p.grid, p.halo, buffers_in_order(p.grid, p.halo));
    const std::size_t cells = p.grid.cells.volume();
    const auto frames =
        device.memory<std::uint32_t>(std::size_t{kRounds} * p.grid.count() * p.grid.region_cells());
    const auto results = device.memory<std::uint32_t>(kRounds * cells);
    const auto words = device.memory<DeviceAtomic<std::uint32_t>>(p.grid.count() + 1);
    std::vector<std::uint32_t> all;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::uint32_t r = 0; r < p.grid.count(); ++r) {
        const auto region = cells_in_round(p, r, round);
        all.insert(all.end(), region.begin(), region.end());
      }
    }
    device.copy(frames.data(), all.data(), all.size() * 4);
    device.launch(
        LaunchShape{kGroups * kGroupLanes, kGroupLanes},
        TakeIn{p, table.view(), frames.data(), results.data(), words.data(), words.data() + 1, kRounds});
    std::vector<std::uint32_t> found(results.size()), times(p.grid.count());
    device.copy(found.data(), results.data(), results.size_bytes());
    device.copy(times.data(), words.data() + 1, times.size() * 4);
    std::vector<std::uint32_t> rounds(times.size(), kRounds);
    for (const std::uint32_t t : table.targets_without_needs()) rounds[t] = 0;
    EXPECT_EQ(times, rounds);
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::uint32_t c = 0; c < cells; ++c) {
        const Cell cell = p.all().at(c);
        if (rounds[p.grid.region_of(cell)] == 0) continue;
        ASSERT_EQ(found[round * cells + c], p.expected(round, cell)) << "cell " << c << ", round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace esker::pipeline
