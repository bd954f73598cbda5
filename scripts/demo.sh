#!/usr/bin/env bash
# From a bare machine to a first result: GUPS, random updates of a table that two processes share.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/bootstrap.sh
if [[ ! -f build/cpu/CMakeCache.txt ]]; then
  CMAKE_GENERATOR=Ninja cmake --preset cpu
fi
cmake --build --preset cpu --target esker-gups --parallel "$(nproc)"

# Two processes also where there is one core, and in a container as root.
mpi=(mpirun -n 2 --oversubscribe)
if ((EUID == 0)); then mpi+=(--allow-run-as-root); fi
export OMPI_MCA_mpi_yield_when_idle=1

echo "+ ${mpi[*]} build/cpu/bin/esker-gups --size small $*"
exec "${mpi[@]}" build/cpu/bin/esker-gups --size small "$@"
