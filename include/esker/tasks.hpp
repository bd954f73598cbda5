// Tasks that spawn tasks, on a GPU or the host's cores. Needs no Runtime and no MPI.
//
//   tasks::run()        runs a task and returns its result
//   tasks::ForkJoin     the same, any number of times, with a report
//   tasks::Types        the types that a task spawns, where it is not itself
//   tasks::Graph        functions that give each other elements, through a channel each
//   tasks::Channel      bounded queues of elements, for kernels of one's own
//   tasks::Options, Report, StopToken, TaskError
#pragma once

#include <esker/tasks/channel.hpp>
#include <esker/tasks/error.hpp>
#include <esker/tasks/fork_join.hpp>
#include <esker/tasks/graph.hpp>
#include <esker/tasks/options.hpp>
