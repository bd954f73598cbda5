// Lanes, and what the lanes of a group do together. A kernel that sends nothing takes a Lane or a GroupLane&.
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
#pragma once

#include <esker/device/group.hpp>
#include <esker/device/lane.hpp>
#include <esker/device/lane_group.hpp>
