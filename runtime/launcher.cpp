// Launchers by their variables.
#include <esker/runtime/launcher.hpp>

#include <esker/config.hpp>

#include <cstdlib>

namespace esker {

std::optional<LaunchedProcesses> find_launched_processes() {
  std::optional<LaunchedProcesses> found;
  // Open MPI; MPICH, Intel MPI and Slurm's PMI; MVAPICH; Flux; jsrun. Slurm's own last.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE",
                               "JSM_NAMESPACE_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) continue;
    // srun --pty: a shell, whose programs are nobody's tasks though it has variables of one.
    const bool of_slurm = variable[0] == 'S';
    if (of_slurm && (std::getenv("SLURM_PROCID") == nullptr || std::getenv("SLURM_PTY_PORT") != nullptr))
      continue;
    const std::uint64_t processes = std::strtoull(text, nullptr, 10);
    if (processes == 1) return std::nullopt;
    if (processes > 1 && !found) found = {variable, processes};
  }
  return found;
}

std::uint64_t launched_processes() noexcept {
  const auto launched = find_launched_processes();
  return launched ? launched->processes : 1;
}

}  // namespace esker
