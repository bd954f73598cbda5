// Everything a program needs whose lanes send messages. Each header also compiles alone:
//
//   runtime.hpp      Runtime: a PE's part of the job
//   heap.hpp         SymmetricHeap, SymmetricArray
//   shmem.hpp        the operations: shmem_put, shmem_inc, shmem_add, ..., shmem_am
//   handler.hpp      active messages: Handler, HandlerContext, MessageArguments
//   work_item.hpp    what kernels take that send: WorkItem, GroupItem, KernelItem
//   lane.hpp         lanes and what they do together; for kernels that send nothing
//   election.hpp     how lanes share packages, where a call names it
//   atomic.hpp       words that several lanes change
//   error.hpp        Error
//   statistics.hpp   Statistics, StageStatistics
//   build_info.hpp   what this library was built as
//
// Those that few programs need are not among them: config.hpp, the settings; command_line.hpp, a program's
// own options beside them; collectives.hpp, collective calls on data, and a sort; containers.hpp, arrays,
// maps, sets and bags over all PEs; communicator.hpp, and mpi.hpp for an MPI_Comm, Runtimes over some of the
// PEs; and device.hpp, a GPU or the host's cores without messages.
#pragma once

#include <esker/atomic.hpp>
#include <esker/build_info.hpp>
#include <esker/election.hpp>
#include <esker/error.hpp>
#include <esker/handler.hpp>
#include <esker/heap.hpp>
#include <esker/lane.hpp>
#include <esker/runtime.hpp>
#include <esker/shmem.hpp>
#include <esker/statistics.hpp>
#include <esker/work_item.hpp>
