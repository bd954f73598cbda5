// Tasks that spawn tasks, over all PEs of a Runtime, on GPUs or the hosts' cores.
//
//   tasks::DistributedForkJoin   tasks::ForkJoin, with what one PE has too much of given to others
#pragma once

#include <esker/runtime.hpp>
#include <esker/runtime/distributed_fork_join.hpp>
#include <esker/tasks.hpp>
