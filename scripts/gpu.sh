#!/usr/bin/env bash
# Everything that needs a GPU, in one command and without a network: build, tests, sanitizers, benchmarks,
# applications.
#
# Contract. Ubuntu 24.04 or Debian 12 with a GPU, its driver, a CUDA toolkit, CMake, a compiler, Open MPI,
# GoogleTest, fmt, hwloc and zlib. Boost's libraries (context, program_options) and nlohmann-json, where the system
# has none, come from .deb files in the packages folder: libboost-context1.83-dev, libboost-context1.83.0,
# libboost-program-options1.83-dev, libboost-program-options1.83.0, nlohmann-json3-dev. They are unpacked
# under build/, nothing is installed. Every part runs, whatever became of the ones before it; each step has
# its time-out, and all together end within ESKER_GPU_SECONDS (570). Each step leaves a log, each measurement
# a JSON file, in the results folder. The last line is "N passed, N failed, N skipped"; exit 1 if anything
# failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cuda_toolkit.sh
exec </dev/null

all_parts=(build tests sanitizer queue windows peers tasks pipelines transfers apps)
usage() {
  echo "usage: scripts/gpu.sh [--out DIR] [--packages DIR] [--only PART]..."
  echo "  --out DIR       results; default \$OUT, else build/gpu-results"
  echo "  --packages DIR  .deb files for what the system lacks; default packages/"
  echo "  --only PART     ${all_parts[*]}"
}

parts=()
out="${OUT:-build/gpu-results}"
packages=packages
while (($#)); do
  case "$1" in
    --out | --packages)
      if (($# < 2)); then usage >&2; exit 2; fi
      if [[ "$1" == --out ]]; then out="$2"; else packages="$2"; fi
      shift 2
      ;;
    --only)
      if (($# < 2)) || [[ " ${all_parts[*]} " != *" $2 "* ]]; then usage >&2; exit 2; fi
      parts+=("$2")
      shift 2
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
((${#parts[@]})) || parts=("${all_parts[@]}")
mkdir -p "$out"

jobs="$(nproc)"
build=build/cuda
bin=$build/bin
budget="${ESKER_GPU_SECONDS:-570}"
unset ESKER_GPU_SECONDS  # no setting of the programs
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
nvcc="$(find_nvcc)"
if [[ -n "$nvcc" ]]; then export CUDACXX="$nvcc"; fi
# Multicast over NVLink wants rights that a lent machine does not give.
export NVSHMEM_DISABLE_NVLS=1 NCCL_NVLS_ENABLE=0
# As root, in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

gpus="$( (nvidia-smi -L 2>/dev/null || true) | grep -c '^GPU ' || true)"
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none)

n_passed=0 n_failed=0 n_skipped=0
summary=()

# note STATUS SECONDS NAME [REMARK]: one line of the table, one result.
note() {
  summary+=("$(printf '%-8s %5d s  %s%s' "$1" "$2" "$3" "${4:+ ($4)}")")
  case "$1" in
    passed) n_passed=$((n_passed + 1)) ;;
    failed) n_failed=$((n_failed + 1)) ;;
    skipped) n_skipped=$((n_skipped + 1)) ;;
  esac
  echo "=== $3: $1${4:+, $4}"
}

# Seconds that a step may take: what it asks for, or what is left of the whole.
limit() { echo $(($1 < budget - SECONDS ? $1 : budget - SECONDS)); }

# step NAME SECONDS COMMAND...: runs it within that time, its output in NAME.log and, at the end of it, here.
step() {
  local name="$1" seconds rc=0 started=$SECONDS
  seconds="$(limit "$2")"
  shift 2
  if ((seconds < 5)); then note skipped 0 "$name" "out of time"; return 1; fi
  echo "=== $name: $*"
  timeout --kill-after=10 "$seconds" "$@" >"$out/$name.log" 2>&1 || rc=$?
  tail -n 60 "$out/$name.log"
  case "$rc" in
    0) note passed $((SECONDS - started)) "$name" ;;
    77) note skipped $((SECONDS - started)) "$name" "there is no GPU" ;;
    124 | 137) note failed $((SECONDS - started)) "$name" "still ran after $seconds s" ;;
    *) note failed $((SECONDS - started)) "$name" "status $rc" ;;
  esac
  ((rc == 0))
}

# --- Build

has_library() { [[ -n "$(find /usr/lib /usr/local/lib -name "lib$1.so" -o -name "lib$1.a" 2>/dev/null | head -n 1)" ]]; }
has_header() { [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]]; }

# Sets cmake_options, and the loader's path, for packages that the system lacks.
cmake_options=()
find_packages() {
  local prefix="$PWD/build/packages" deb lib
  if has_library boost_context && has_library boost_program_options && has_header nlohmann/json.hpp; then return; fi
  for deb in "$packages"/*.deb; do
    [[ -e "$deb" ]] || { echo "gpu: Boost's libraries or nlohmann-json are missing, and so are .deb files in '$packages'" >&2; return; }
    mkdir -p "$prefix"
    dpkg -x "$deb" "$prefix"
  done
  lib="$(dirname "$(find "$prefix" -name 'libboost_context*' | head -n 1)" 2>/dev/null || true)"
  cmake_options+=("-DCMAKE_PREFIX_PATH=$prefix/usr" "-DBoost_ROOT=$prefix/usr" "-DBOOST_ROOT=$prefix/usr")
  if [[ -n "$lib" && "$lib" != . ]]; then
    cmake_options+=("-DBOOST_LIBRARYDIR=$lib")
    export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
  # Headers here and libraries there: Boost's own package files expect both in one place, CMake's module does not.
  if [[ ! -e "$prefix/usr/include/boost/version.hpp" ]]; then
    cmake_options+=(-DBoost_NO_BOOST_CMAKE=ON -DBOOST_INCLUDEDIR=/usr/include)
  fi
}

find_nvshmem() {
  local root="${ESKER_NVSHMEM_ROOT:-}"
  [[ -n "$root" ]] || root="$(python3 -c 'import nvidia.nvshmem as n; print(list(n.__path__)[0])' 2>/dev/null || true)"
  [[ -n "$root" ]] || return 0
  cmake_options+=("-DESKER_NVSHMEM_ROOT=$root")
  export LD_LIBRARY_PATH="$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"  # where it looks for its own parts
}

run_build() {
  if [[ -z "$nvcc" ]]; then note skipped 0 build "there is no nvcc"; return; fi
  step configure 60 cmake --preset cuda "${cmake_options[@]}" || return 0
  # What can be built is: one target that fails leaves the others to their steps.
  local keep_going=()
  if [[ "${CMAKE_GENERATOR:-}" == Ninja ]]; then keep_going=(-- -k 0); else keep_going=(-- -k); fi
  step build 360 cmake --build --preset cuda --parallel "$jobs" "${keep_going[@]}" || true
}

# --- Tests

run_tests() {
  local report="$PWD/$build/tests.xml" counts passed failed skipped names seconds started=$SECONDS
  seconds="$(limit 300)"
  if ((seconds < 5)); then note skipped 0 tests "out of time"; return; fi
  rm -f "$report"
  timeout --kill-after=10 "$seconds" ctest --preset cuda -L gpu --output-junit "$report" >"$out/tests.log" 2>&1 || true
  tail -n 30 "$out/tests.log"
  if ! counts="$(scripts/count_tests.py "$report")"; then
    note failed $((SECONDS - started)) "ctest -L gpu" "no report"
    return
  fi
  read -r passed failed skipped names <<<"$counts"
  cp "$report" "$out/tests.xml"
  n_passed=$((n_passed + passed)) n_failed=$((n_failed + failed)) n_skipped=$((n_skipped + skipped))
  summary+=("$(printf '%-8s %5d s  %s' ctest $((SECONDS - started)) "-L gpu: $passed passed, $failed failed, $skipped skipped ${names:-}")")
}

# What each tool can look at. Racecheck takes no atomic for an order, so it reports whatever hands scratchpad
# over by one: the fine-grain barrier, auto-grouping and the lanes' outboxes do; the rest is its. Under a tool
# CUDA's calls wait for kernels that run, so kernels that wait for the host in turn cannot be looked at: of the
# runtime's, those that write to peers or to their own heap.
sanitized=(
  "memcheck device_group_test" "memcheck device_diverged_test" "memcheck device_election_test"
  "memcheck heap_test" "memcheck gups" "memcheck copy_batch_test" "memcheck plan_test"
  "synccheck device_group_test" "synccheck device_diverged_test" "synccheck device_election_test"
  "synccheck heap_test" "synccheck gups"
  "racecheck device_group_test"
  "racecheck device_diverged_test *Predication*"
  "racecheck device_election_test PerLane*:PerWave*:Predicated*:ByDestination*"
)

# All at once: each keeps one core and little of the GPU busy.
run_sanitizer() {
  local sanitizer tool what filter name started=$SECONDS seconds line
  sanitizer="$(command -v compute-sanitizer || echo "$(dirname "${nvcc:-/usr/local/cuda/bin/nvcc}")/compute-sanitizer")"
  if [[ ! -x "$sanitizer" ]]; then note skipped 0 sanitizer "there is no compute-sanitizer"; return; fi
  seconds="$(limit 150)"
  if ((seconds < 5)); then note skipped 0 sanitizer "out of time"; return; fi
  local -A running=()
  for line in "${sanitized[@]}"; do
    read -r tool what filter <<<"$line"
    name="$tool.$what"
    local command=("$bin/${what}_gpu" ${filter:+"--gtest_filter=$filter"}) launch=()
    if [[ "$what" == gups ]]; then
      launch=("${mpirun[@]}" -n "$((gpus > 0 ? gpus : 1))")
      command=("$bin/esker-gups" --device cuda --updates 2^14 --table 2^12)
    fi
    [[ -x "${command[0]}" ]] || { note failed 0 "$name" "${command[0]} was not built"; continue; }
    # Calls that answer with an error are the program's to judge: peer access that is on already is one.
    if [[ "$tool" == memcheck ]]; then command=(--report-api-errors no "${command[@]}"); fi
    timeout --kill-after=10 "$seconds" "${launch[@]}" "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "${command[@]}" >"$out/$name.log" 2>&1 &
    running[$name]=$!
  done
  for name in "${!running[@]}"; do
    local rc=0
    wait "${running[$name]}" || rc=$?
    case "$rc" in
      0) note passed $((SECONDS - started)) "$name" ;;
      77) note skipped $((SECONDS - started)) "$name" "there is no GPU" ;;
      124 | 137) note failed $((SECONDS - started)) "$name" "still ran after $seconds s" ;;
      *) note failed $((SECONDS - started)) "$name" "status $rc"; tail -n 20 "$out/$name.log" ;;
    esac
  done
}

# --- Benchmarks

# measure NAME SECONDS PROGRAM ARGUMENT...: a step whose program writes NAME.json; skipped if it was not built.
measure() {
  local name="$1" seconds="$2"
  shift 2
  local program
  for program in "$@"; do [[ "$program" == "$bin"/* ]] && break; done
  if [[ ! -x "$program" ]]; then note skipped 0 "$name" "$program was not built"; return 1; fi
  if ((gpus == 0)); then note skipped 0 "$name" "there is no GPU"; return 1; fi
  rm -f "$out/$name.json"
  step "$name" "$seconds" "$@" --json "$out/$name.json"
}

run_queue() { measure queue-cuda 90 "$bin/esker-bench-queue" --device=cuda --sweep --repeats 15 --seconds 0.02 || true; }
run_windows() { measure windows 60 "$bin/esker-bench-windows" || true; }

# rate NAME: work a second of all PEs, from its JSON.
rate() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rate_per_s"])' "$out/$1.json" 2>/dev/null; }

# The same problem on both libraries, and the ratio.
run_peers() {
  local op words=$((gpus << 27)) ours peers
  measure gups-local-ceiling 60 "${mpirun[@]}" -n 1 "$bin/bench-peers-nvshmem" --local || true
  for op in inc put get fetch_add compare_swap; do
    measure "gups-nvshmem-$op" 60 "${mpirun[@]}" -n "$gpus" "$bin/bench-peers-nvshmem" --op "$op" --table-log2 27 \
      --updates $((1 << 27)) --repeats 5 || true
    measure "gups-esker-$op" 90 "${mpirun[@]}" -n "$gpus" "$bin/esker-gups" --op "$op" --table "$words" \
      --updates "$words" --repeats 5 --verify on --device cuda || true
    if ours="$(rate "gups-esker-$op")" && peers="$(rate "gups-nvshmem-$op")"; then
      python3 - "$op" "$gpus" "$ours" "$peers" "$out/gups-ratio-$op.json" <<'PYTHON'
import json, sys
op, gpus, ours, peers = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
print(f"gups {op} on {gpus} GPUs, G updates/s a GPU: esker {ours / gpus / 1e9:.2f}, "
      f"nvshmem {peers / gpus / 1e9:.2f}, esker / nvshmem {ours / peers:.2f}")
json.dump({"op": op, "gpus": gpus, "esker_rate_per_s": ours, "nvshmem_rate_per_s": peers,
           "esker_over_nvshmem": ours / peers}, open(sys.argv[5], "w"), indent=2)
PYTHON
      summary+=("$(printf '%-8s %7s  %s' ratio '' "gups $op: esker / nvshmem $(python3 -c "print(f'{$ours / $peers:.2f}')")")")
    fi
  done
}

# remark TEXT: a line of the summary, below its step.
remark() { summary+=("$(printf '%-8s %7s  %s' '' '' "$*")"); }
# said NAME KEY...: a value of NAME.json.
said() {
  python3 - "$out/$1.json" "${@:2}" <<'PYTHON' 2>/dev/null
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(f"{value:.6g}" if isinstance(value, float) else value)
PYTHON
}

# task NAME SECONDS PROGRAM ARGUMENT...: one of the programs of tasks, verified by itself.
task() {
  local name="$1" seconds="$2" program="$3"
  shift 3
  measure "$name" "$seconds" "$bin/$program" --device cuda "$@" || return 0
  remark "$name: $(said "$name" seconds) s, $(said "$name" rate_per_s) a second," \
    "$(said "$name" tasks peak_memory_bytes) bytes in use at most"
}
# Programs, then the figures: some 60 s if all is well, 120 at most.
run_tasks() {
  local figure seconds line end=$((SECONDS + 120))
  task tasks-fib 15 esker-fib --n 40 --memory-bytes 64MiB --repeats 7
  task tasks-fib-leaves 10 esker-fib --n 40 --form leaves --memory-bytes 64MiB --repeats 7
  task tasks-queens 15 esker-queens --n 16 --memory-bytes 64MiB --repeats 5
  task tasks-uts-T1L 15 esker-uts --tree T1L --memory-bytes 256MiB --repeats 3
  task tasks-uts-T3L 20 esker-uts --tree T3L --memory-bytes 256MiB --repeats 3
  task tasks-strassen 20 esker-strassen --n 8192 --repeats 5
  task tasks-sptrsv 10 esker-sptrsv --size paper --repeats 5
  for figure in fib queens sort strassen mandelbrot sptrsv 4-13 4-15 4-16 memory overhead stop; do
    seconds=15
    if [[ $figure == sort || $figure == strassen ]]; then seconds=30; fi
    if [[ $figure == 4-13 ]]; then seconds=45; fi
    if ((seconds > end - SECONDS)); then seconds=$((end - SECONDS)); fi
    measure "tasks-figure-$figure" "$seconds" "$bin/esker-bench-tasks" --device cuda --figure "$figure" \
      --repeats 5 --seconds 0.5 || true
    while read -r line; do remark "$line"; done < <(
      grep -E ' times (as fast|the tasks)|speed-up|µs \(| idle |KiB: ' "$out/tasks-figure-$figure.log" 2>/dev/null || true)
  done
}

# The figures, and each program beside what its papers compare it with.
run_pipelines() {
  if ((gpus == 0)); then note skipped 0 pipelines "there is no GPU"; return; fi
  local figure program scheme seconds bytes
  for figure in ping-pong latency chains workloads invocations rounds division tuning contention breakdown \
    programs end; do
    seconds=60 bytes=500000000
    if [[ "$figure" == programs || "$figure" == workloads ]]; then seconds=120; fi  # many processes, many sides
    measure "pipelines-figure-$figure" "$(limit "$seconds")" "$bin/esker-bench-pipeline" --device cuda \
      --figure "$figure" --repeats 3 --bytes "$bytes" || true
  done
  for program in aes raid6 setquery gene-alignment evolution reyes rasterisation face-detection stencil; do
    for scheme in esker copy-kernel-copy streams chunks graph; do
      # Not each program has each scheme, and says so.
      case "$program $scheme" in
        "reyes streams" | "stencil chunks" | "reyes graph" | "stencil graph" | "face-detection graph") continue ;;
      esac
      measure "pipe-$program-$scheme" "$(limit 30)" "$bin/esker-pipe-$program" --device cuda --scheme "$scheme" \
        --size medium --repeats 3 || true
    done
  done
}

# Sets of copies, plans, batches, and their programs.
run_transfers() {
  if ((gpus == 0)); then note skipped 0 transfers "there is no GPU"; return; fi
  local figure graph app
  for figure in paths programs replay planning savings fusion allocation kernel_fusion prediction bandwidth behind_large; do
    measure "transfers-figure-$figure" "$(limit 90)" "$bin/esker-bench-transfer" --device cuda --figure "$figure" || true
  done
  for graph in figure2 random chain tree horner cholesky matmul cg; do
    measure "plan-$graph" "$(limit 30)" "$bin/esker-plan" --device cuda --graph "$graph" --floats 65536 --repeats 3 || true
  done
  for app in domain wafer; do
    measure "batch-$app" "$(limit 30)" "$bin/esker-batch" --device cuda --app "$app" --system machine || true
  done
}

# For the style that sends each message alone: minutes with what is small for the others.
declare -A tiny=(
  [gups]="--updates 2^12 --table 2^10" [histo]="--updates 2^10" [kmeans]="--points 500 --iterations 2"
  [in-degree]="--scale 6" [gups-mod]="--lanes 500" [indexgather]="--reads 2^10" [mer]="--genome-bases 300"
  [pagerank]="--scale 6 --iterations 2" [sssp]="--scale 6" [color]="--scale 6"
  [bfs]="--scale 6" [triangles]="--scale 6"
)

# Every application in every style on all GPUs, small: one JSON file each.
run_apps() {
  local app style name seconds failed=0 ran=0 started=$SECONDS
  if ((gpus == 0)); then note skipped 0 apps "there is no GPU"; return; fi
  for app in gups histo kmeans in-degree gups-mod indexgather mer pagerank sssp color bfs triangles; do
    if [[ ! -x "$bin/esker-$app" ]]; then note skipped 0 "app-$app" "it was not built"; continue; fi
    for style in gravel coprocessor coprocessor-large per-lane coalesced coalesced-agg; do
      name="app-$app-$style"
      seconds="$(limit 30)"
      if ((seconds < 5)); then note skipped 0 "$name" "out of time"; continue; fi
      ran=$((ran + 1))
      local size=(--size small)
      if [[ "$style" == per-lane ]]; then read -r -a size <<<"${tiny[$app]}"; fi
      timeout --kill-after=10 "$seconds" "${mpirun[@]}" -n "$gpus" "$bin/esker-$app" --style "$style" "${size[@]}" \
        --device cuda --startup quiet --hang-seconds 15 --json "$out/$name.json" >"$out/$name.log" 2>&1 ||
        { note failed 0 "$name" "status $?"; failed=$((failed + 1)); tail -n 5 "$out/$name.log"; }
    done
  done
  if ((ran > failed)); then note passed $((SECONDS - started)) apps "$((ran - failed)) of $ran runs verified"; fi
}

find_packages
find_nvshmem
echo "$gpus GPUs, $jobs cores, nvcc: ${nvcc:-none}, results in $out"
nvidia-smi >"$out/nvidia-smi.txt" 2>&1 || true
for part in "${parts[@]}"; do "run_$part" || true; done

echo
printf '%s\n' "${summary[@]}" | tee "$out/summary.txt"
echo "$n_passed passed, $n_failed failed, $n_skipped skipped" | tee -a "$out/summary.txt"
((n_failed == 0))
