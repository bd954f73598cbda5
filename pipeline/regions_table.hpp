// The side that a grid arrives at: which regions are there, and which have all that their stencil reads.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/lane.hpp>
#include <esker/pipeline/regions_buffers.hpp>
#include <esker/pipeline/regions_grid.hpp>

namespace esker::pipeline {

/// Who works on a region: the lanes of a team, as a Stage has them.
///   lane(), lanes()       this lane's place among them
///   sync()                all of them have come here, and see what the others did before
///   stop_requested()      the run is over: who waits gives up
template <class Team>
concept RegionTeam = requires(Team& team) {
  team.lane();
  team.lanes();
  team.sync();
  team.stop_requested();
};

/// A lane or a thread that works alone.
struct LoneTeam {
  ESKER_HD std::uint32_t lane() const { return 0; }
  ESKER_HD std::uint32_t lanes() const { return 1; }
  ESKER_HD void sync() const {}
  ESKER_HD bool stop_requested() const { return false; }
};

/// Regions that have arrived, those that are still to be read, and what each target lacks (HiWayLib,
/// section 3.2, without its queue of references that are put back until they are ready). A target is a region
/// for whose cells a stencil is computed. Trivially copyable, in memory of the side that computes.
///
/// State    A region is away -> arriving -> there -> away, once all targets that read it are finished.
///          A target waits for its needs -> is computed -> waits for those of the next round. Rounds
///          are numbered from 0.
/// Contract Teams of lanes, any number at once. Each region arrives once a round, whatever overlaps,
///          and each target is computed once a round, by the team whose region was the last that it
///          lacked.
/// Protocol `missing` of a target counts the regions that it needs and that have not arrived; whoever
///          brings it to 0 writes itself into `chosen_by`, where its team finds it. `readers` of a
///          region counts the targets that have not been computed; whoever brings it to 0 gives the
///          buffer back.
/// Ordering [region] what was written before arrive() happens before a target that needs it is computed
///          [reads]  what a target read happens before the buffers of its regions are used again
/// Progress receive() waits for a buffer, which teams that compute give back: they wait for nothing.
///          With fewer buffers than regions they are given in the order of the regions' numbers, round
///          after round, so teams must take regions in that order, and then buffers_in_order() are
///          enough for any number of teams. With one for each region they may come in any order, a
///          round after the other.
/// `Word` is for tests: an atomic with weaker orders.
template <class T, template <class> class Word = DeviceAtomic>
class RegionTableView {
 public:
  static constexpr std::uint32_t kNobody = ~0u;

  RegionGrid grid;
  Halo halo;
  detail::RegionBuffers<T, Word> buffers;
  Word<std::uint32_t>* missing;    // one a target
  Word<std::uint32_t>* readers;    // one a region
  Word<std::uint32_t>* chosen_by;  // one a target
  Word<std::uint64_t>* turn;       // regions that have got a buffer, of all rounds; null: in any order

  /// A region arrives: its cells are copied from `cells`, where they are at RegionGrid::offset_of(), and
  /// compute(target, reader) is called, by all lanes of the team, for each target that lacks nothing now.
  /// False: the run is over, and the region was dropped.
  template <RegionTeam Team, class Compute>
  ESKER_HD bool receive(Team& team, std::uint32_t region, const T* cells, Compute&& compute,
                        std::uint32_t round = 0) const;

  /// What reads cells around those of a target.
  class Reader {
   public:
    ESKER_HD Reader(const RegionTableView& table, std::uint32_t target)
        : table_{table}, box_{table.grid.cells_of(target)}, own_{table.buffers.find(target)} {}
    /// The cells to be computed.
    ESKER_HD const Box& cells() const { return box_; }
    /// RegionGrid::offset_of() of one of these.
    ESKER_HD std::uint32_t offset_of(const Cell& cell) const {
      return table_.grid.offset_at({cell.x - box_.first.x, cell.y - box_.first.y, cell.z - box_.first.z});
    }
    /// Any cell of a region that the target needs.
    ESKER_HD const T& at(std::uint32_t x, std::uint32_t y, std::uint32_t z = 0) const {
      const std::uint32_t dx = x - box_.first.x, dy = y - box_.first.y, dz = z - box_.first.z;
      if (own_ != nullptr && dx < box_.size.x && dy < box_.size.y && dz < box_.size.z)
        return own_[table_.grid.offset_at({dx, dy, dz})];
      const Cell cell{x, y, z};
      return table_.buffers.find(table_.grid.region_of(cell))[table_.grid.offset_of(cell)];
    }
    /// The same, or `outside` for what the grid does not have.
    ESKER_HD T at_or(std::int64_t x, std::int64_t y, std::int64_t z, const T& outside) const {
      if (!table_.grid.contains(x, y, z)) return outside;
      return at(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z));
    }

   private:
    const RegionTableView& table_;
    const Box box_;
    const T* const own_;
  };

  // The steps of receive(), for those who take in and compute regions in different places.

  /// A buffer for a region that arrives. One lane. False: none is free, it is another region's turn, or the
  /// last round is not finished.
  ESKER_HD bool try_open(std::uint32_t region, std::uint32_t round = 0) const {
    const std::uint64_t position = std::uint64_t{round} * grid.count() + region;
    if (turn != nullptr && turn->load_relaxed() != position) return false;
    const bool is_read = grid.readers_of(region, halo).count() != 0;
    if (is_read && buffers.try_take(region, round) == nullptr) return false;
    if (turn != nullptr) turn->store_relaxed(position + 1);
    return true;
  }
  /// The region is in its buffer. Lanes of a team call with 0 <= lane < lanes, after a sync() that follows
  /// their writes; `ready(target)` is called by one of them for each target that lacks nothing now.
  template <class Ready>
  ESKER_HD void arrive(std::uint32_t region, std::uint32_t lane, std::uint32_t lanes, Ready&& ready) const {
    const Box targets = grid.readers_of(region, halo);
    for (std::uint32_t i = lane; i < targets.count(); i += lanes) {
      const std::uint32_t target = grid.number_of(targets.at(i));
      if (missing[target].fetch_add_acq_rel(~0u) == 1) ready(target);  // [region]
    }
  }
  /// The target is computed, by lanes of which all have read what they read before a sync(). Lane 0 of them
  /// has called before_finish() before that sync().
  ESKER_HD void finish(std::uint32_t target, std::uint32_t lane, std::uint32_t lanes) const {
    const Box needs = grid.needs_of(target, halo);
    for (std::uint32_t i = lane; i < needs.count(); i += lanes) {
      const std::uint32_t region = grid.number_of(needs.at(i));
      if (readers[region].fetch_add_acq_rel(~0u) != 1) continue;  // [reads]
      readers[region].store_relaxed(grid.readers_of(region, halo).count());
      buffers.give_back(region);
    }
  }
  /// The target is as it was, for the next round, which starts once its regions are away.
  ESKER_HD void before_finish(std::uint32_t target) const {
    missing[target].store_relaxed(grid.needs_of(target, halo).count());
    chosen_by[target].store_relaxed(kNobody);
  }
};

template <class T, template <class> class Word>
template <RegionTeam Team, class Compute>
ESKER_HD bool RegionTableView<T, Word>::receive(Team& team, std::uint32_t region, const T* cells,
                                                Compute&& compute, std::uint32_t round) const {
  if (team.lane() == 0) {
    while (!try_open(region, round) && !team.stop_requested()) Lane::yield();
  }
  const Box targets = grid.readers_of(region, halo);
  if (targets.count() == 0) return true;
  team.sync();
  // All lanes see the same: if lane 0 has got none, nobody gets one for this round.
  T* const to = buffers.find(region, round);
  if (to == nullptr) return false;
  for (std::uint32_t i = team.lane(); i < grid.region_cells(); i += team.lanes()) to[i] = cells[i];
  team.sync();
  arrive(region, team.lane(), team.lanes(),
         [&](std::uint32_t target) { chosen_by[target].store_relaxed(region); });
  team.sync();
  for (std::uint32_t i = 0; i < targets.count(); ++i) {
    const std::uint32_t target = grid.number_of(targets.at(i));
    // All lanes see the same: the team alone writes its region there, and takes it away in before_finish().
    if (chosen_by[target].load_relaxed() != region) continue;
    compute(target, Reader(*this, target));
    team.sync();
    if (team.lane() == 0) before_finish(target);
    team.sync();
    finish(target, team.lane(), team.lanes());
  }
  return true;
}

}  // namespace esker::pipeline
