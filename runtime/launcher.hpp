// What a launcher says of the job that it has started.
#pragma once

#include <cstdint>
#include <optional>

namespace esker {

/// "OMPI_COMM_WORLD_SIZE" and its value.
struct LaunchedProcesses {
  const char* variable;
  std::uint64_t processes;
};

/// Local. The variable by which a launcher of MPI or Slurm's srun says that this is one of several processes;
/// nothing where there is none, or where another one says that it is alone: launchers nest. What a batch
/// script or an interactive shell of Slurm sets counts for nothing: a program there is no task of a step.
std::optional<LaunchedProcesses> find_launched_processes();

}  // namespace esker
