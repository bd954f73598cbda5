// What is known of the order in which a processor's scratchpad is read and written.
#pragma once

namespace esker {

/// The compute capability, as major * 10 + minor, of processors whose scratchpad keeps the order of each
/// wave's accesses: one unit serves them all, in the order in which a wave issues them. PTX promises no such
/// thing, so it is a property of hardware that was looked at: device_scratch_test and every delivery test on
/// H100 and H200. Others get a fence until they are looked at: it makes a message wait for the
/// updates of memory that its lane has under way.
inline constexpr int kOrderedScratchpad = 90;

}  // namespace esker
