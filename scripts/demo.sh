#!/usr/bin/env bash
# From a bare machine to a first result: GUPS, random updates of a table that two processes share.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release
scripts/bootstrap.sh
# Each time: a configuration that failed half-way leaves a cache behind.
CMAKE_GENERATOR=Ninja cmake -B "$build" -DESKER_BUILD_APPS=ON -DESKER_UNITY_BUILD=ON
cmake --build "$build" --target esker-gups --parallel "$(nproc)"

# Two processes also where there is one core, and in a container as root.
mpi=(mpirun -n 2 --oversubscribe)
if ((EUID == 0)); then mpi+=(--allow-run-as-root); fi
export OMPI_MCA_mpi_yield_when_idle=1

echo "+ ${mpi[*]} $build/bin/esker-gups --size small $*"
exec "${mpi[@]}" "$build/bin/esker-gups" --size small "$@"
