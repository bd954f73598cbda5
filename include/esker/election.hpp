// Elections: how the lanes of a group share packages, named in a call instead of automatic grouping.
//
//   shmem_inc(item, target, pe, esker::Predicated{is_active});
//
//   none                     a group's messages gather in scratchpad; any lane, any branch
//   PerLane{}                each message is a package: the baseline of the thesis, figure 5-2a
//   PerWave{active}          each live lane of the wave calls, converged
//   PerConvergedWave{}       the lanes of the wave that happen to be converged; any branch
//   Predicated{active}       each live lane of the group calls as often as the others (table 5-1b)
//   FineGrain<Lanes>{barrier}    the members of a FineGrainBarrier call (table 5-1c)
//   ByDestination{counts, ...}   each lane of the group calls; packages sorted by destination
//
// All but PerLane take a GroupItem.
#pragma once

#include <esker/device/election/by_destination.hpp>
#include <esker/device/election/fine_grain.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>
