// Everything a program needs whose lanes send messages. Each header also compiles alone:
//
//   runtime.hpp   Runtime: a PE's part of the job; WorkItem, GroupItem, KernelItem; Statistics
//   shmem.hpp     symmetric memory, and the operations on it: shmem_put, shmem_inc, ..., shmem_am
//   handler.hpp   active messages: Handler, HandlerContext, MessageArguments
//   lane.hpp      lanes and what they do together: groups, atomic words, elections
//   error.hpp     Error
//
// Those that few programs need are not among them: config.hpp, the settings, a program's own options, and
// Runtimes over some of the PEs; mpi.hpp, the same over an MPI_Comm; collectives.hpp, collective calls on
// data, and a sort; containers.hpp, arrays, maps, sets and bags over all PEs; device.hpp, a GPU or the host's
// cores without messages; tasks.hpp, and distributed_tasks.hpp over all PEs; pipeline.hpp; transfer.hpp.
#pragma once

#include <esker/error.hpp>
#include <esker/handler.hpp>
#include <esker/lane.hpp>
#include <esker/runtime.hpp>
#include <esker/shmem.hpp>
