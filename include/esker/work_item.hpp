// What a kernel takes to send messages: WorkItem, GroupItem& or, in a kernel of your own, a KernelItem.
//
//   WorkItem      a Lane that sends; passed by value. On the CPU its lanes run as a plain loop.
//   GroupItem&    a lane that also works with its group: wave(), group(), group_lane(), elections
//   KernelItem    a GroupItem that a kernel launched by the user makes from a DeviceContext
//
// Each has pe(), n_pes(), global_id(), group_id(), lanes(), lane() and group_lanes(), and is the first
// argument of the shmem_ operations.
#pragma once

#include <esker/runtime/group_item.hpp>
#include <esker/runtime/kernel_item.hpp>
#include <esker/runtime/work_item.hpp>
