// Lanes, and what lanes do together. A kernel that sends nothing takes a Lane or a GroupLane&.
//
//   LaunchShape    how many lanes a launch has, and how they are cut into groups and waves
//   Lane           global_id(), group_id(), lanes(), lane(), group_lanes()
//   GroupLane      a Lane with wave(), group(), coalesced() and scratch<T>()
//   LaneGroup      the concept that these views satisfy: index(), size(), position_among(flag),
//                  prefix_sum(value, active), reduce(value, op, active), broadcast(value, from), sync()
//   Sum, Min, Max, And, Or    the operations of reduce()
//
// scratch<T>() is one T in scratchpad, zeroed, the same object in each lane of the group. Each lane of the
// group calls it, in the same order.
//
// Words that several lanes, or a lane and the host, change: SystemAtomic<T>, DeviceAtomic<T>, GroupAtomic<T>.
// T has 4 or 8 bytes. The type says who takes part, the method which order it has:
//
//   load_relaxed, load_acquire, store_relaxed, store_release,
//   fetch_add_relaxed, fetch_add_acq_rel,
//   compare_exchange_relaxed, compare_exchange_acquire, compare_exchange_acq_rel
//
// On the CPU the scopes are the same; on a GPU a narrower one is cheaper. A GroupAtomic stands in scratchpad.
//
// Elections: how the lanes of a group share packages, named in a call instead of automatic grouping, as in
// shmem_inc(item, target, pe, esker::Predicated{is_active}). All but PerLane take a GroupItem.
//
//   none                     a group's messages gather in scratchpad; any lane, any branch
//   PerLane{}                each message is a package: the baseline of the thesis, figure 5-2a
//   PerWave{active}          each live lane of the wave calls, converged
//   PerConvergedWave{}       the lanes of the wave that happen to be converged; any branch
//   Predicated{active}       each live lane of the group calls as often as the others (table 5-1b)
//   FineGrain<Lanes>{barrier}    the members of a FineGrainBarrier call (table 5-1c)
//   ByDestination{counts, ...}   each lane of the group calls; packages sorted by destination
#pragma once

#include <esker/device/atomic.hpp>
#include <esker/device/election/by_destination.hpp>
#include <esker/device/election/fine_grain.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane.hpp>
#include <esker/device/lane_group.hpp>
