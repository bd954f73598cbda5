#!/usr/bin/env bash
# What CI runs: each preset's build and tests, then the checks of the sources.
#
# Contract. Nothing is assumed but Debian 12 or Ubuntu 24.04 and a checkout; nothing is asked. Every part
# runs, whatever became of the ones before it. A part that cannot be tried, such as a GPU test without a
# GPU, counts as skipped. The last line is "N passed, N failed, N skipped"; exit 1 if anything failed.
#
# Two tiers. The first, in minutes, has every test at least once, most of them under the sanitizers: styles and
# numbers of PEs in a cover of all pairs, jobs of several processes without sanitizers, and of what is compiled
# for GPUs that are not here a target of each kind.
# With --all: the whole matrix, in full optimisation, and every target with every compiler; more than an hour.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cuda_toolkit.sh
exec </dev/null

all_parts=(cpu tsan asan simulated cuda hip fuzz checks fresh)
usage() {
  echo "usage: scripts/test.sh [--all] [--only PART]... [--no-bootstrap]"
  echo "  --all  the whole matrix, in place of covers and samples"
  echo "  PART:  ${all_parts[*]}"
}

parts=()
bootstrap=true
whole=false
while (($#)); do
  case "$1" in
    --all) whole=true; shift ;;
    --only)
      if (($# < 2)) || [[ " ${all_parts[*]} " != *" $2 "* ]]; then usage >&2; exit 2; fi
      parts+=("$2")
      shift 2
      ;;
    --no-bootstrap) bootstrap=false; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
((${#parts[@]})) || parts=("${all_parts[@]}")

if $bootstrap; then scripts/bootstrap.sh --all; fi

jobs="$(nproc)"
nvcc="$(find_nvcc)"
if [[ -n "$nvcc" ]]; then export CUDACXX="$nvcc"; fi
export CMAKE_GENERATOR=Ninja
# Whoever calls: ccache takes another language of messages for another compilation.
unset LC_ALL LC_CTYPE LC_MESSAGES
export LANG=C.UTF-8
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  # A precompiled header is compared by what it was made of, and another checkout's objects will do.
  export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
fi
# A sanitizer's finding is a failure, undefined behaviour included.
export ASAN_OPTIONS=detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=second_deadlock_stack=1:ignore_noninstrumented_modules=1
# In a container MPI runs as root, on fewer cores than processes.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# mpirun and its processes meet in mapped files. On a disk that is busy, as with the fresh machine's packages, a
# page of these can wait for seconds, and mpirun then takes a process that has ended for one that has failed.
if [[ -w /dev/shm ]]; then
  OMPI_MCA_orte_tmpdir_base="$(mktemp -d /dev/shm/esker-tests.XXXXXX)"
  export OMPI_MCA_orte_tmpdir_base
  trap 'rm -rf "$OMPI_MCA_orte_tmpdir_base"' EXIT
fi

TIMEFORMAT="=== took %1R s, %P %% of a core"
declare -A passed failed skipped seconds
failures=() failure_outputs=""

# step PART NAME COMMAND...: runs it and counts it as one result.
step() {
  local part="$1" name="$2"
  shift 2
  echo "=== $part: $name"
  if time "$@"; then
    passed[$part]=$((passed[$part] + 1))
  else
    failed[$part]=$((failed[$part] + 1))
    failures+=("$part: $name")
    return 1
  fi
}

skip() {
  echo "=== $1: $2: skipped, $3"
  skipped[$1]=$((skipped[$1] + 1))
}

# call_ctest PRESET NAME CTEST_OPTION...: the tests of a name have ctest's logs and results in a folder of their own, since
# others of the same build may run beside them.
call_ctest() {
  local preset="$1" name="$2" folder="$PWD/build/$1/ctest/$2"
  shift 2
  echo "=== $preset: $name"
  mkdir -p "$folder"
  rm -f "$folder/results.xml"
  echo "subdirs(\"$PWD/build/$preset\")" >"$folder/CTestTestfile.cmake"
  time ctest --test-dir "$folder" --output-on-failure --no-tests=ignore --output-junit "$folder/results.xml" \
    --test-output-size-passed 1000000 "$@" || true
}

# count_results PRESET NAME: adds up what call_ctest has left.
count_results() {
  local preset="$1" counts
  if ! counts="$(scripts/count_tests.py "build/$1/ctest/$2/results.xml")"; then
    failed[$preset]=$((failed[$preset] + 1))
    failures+=("$preset: ctest left no report")
    return
  fi
  local n_passed n_failed n_skipped names
  read -r n_passed n_failed n_skipped names <<<"$counts"
  passed[$preset]=$((passed[$preset] + n_passed))
  failed[$preset]=$((failed[$preset] + n_failed))
  skipped[$preset]=$((skipped[$preset] + n_skipped))
  if ((n_failed)); then
    failures+=("$preset: $names")
    failure_outputs+="$(scripts/count_tests.py --failures "build/$1/ctest/$2/results.xml")"$'\n'
  fi
}

run_tests() { call_ctest "$@"; count_results "$1" "$2"; }

# configure PRESET CMAKE_OPTION...
configure() { step "$1" configure cmake --preset "$@"; }
# build PRESET [TARGET...]: of no target, all.
build() {
  local preset="$1"
  shift
  step "$preset" build cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"}
}

# Several a core, since many wait: jobs under mpirun for each other, others for time to pass.
no_jobs=(--label-exclude mpi --parallel "$((jobs + 1))")
run_jobs() {
  # Open MPI takes its own locks in more than one order, and unloads modules that have not freed their memory.
  # Both are looked for in the tests before these, whose PEs are threads.
  TSAN_OPTIONS="$TSAN_OPTIONS:detect_deadlocks=0" ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" \
    run_tests "$1" jobs --label-regex mpi --parallel "$((3 * jobs))"
}

# Jobs wait so much that half of the cores' time is left. The other tests compute, and take that alone: jobs have limits
# on time. What spins comes after both.
run_tests_beside_jobs() {
  local preset="$1" log="build/$1/tests.log" process
  (renice -n 10 "$BASHPID" >/dev/null &&
    call_ctest "$preset" tests --label-exclude 'mpi|spins' --parallel "$((jobs + 1))") >"$log" 2>&1 &
  process=$!
  run_jobs "$preset"
  wait "$process" || true
  cat "$log"
  count_results "$preset" tests
  run_tests "$preset" spins --label-regex spins --parallel "$jobs"
}

# device_preset PRESET TARGET...: where there is a GPU, its tests; elsewhere it has but to compile.
device_preset() {
  local preset="$1"
  shift
  if [[ -e /dev/nvidiactl || -e /dev/kfd ]]; then
    configure "$preset" && build "$preset" && run_tests "$preset" gpu -L gpu
  elif $whole; then
    configure "$preset" -DESKER_FAST_COMPILE=ON && build "$preset" && run_tests "$preset" gpu -L gpu
  else
    configure "$preset" -DESKER_FAST_COMPILE=ON && build "$preset" "$@" && skip "$preset" tests "there is no GPU"
  fi
}

run_preset() {
  case "$1" in
    cpu)
      if $whole; then
        configure cpu -DESKER_TEST_MATRIX=ON -DESKER_TEST_ONCE=OFF -DESKER_FAST_COMPILE=OFF -DESKER_UNITY_BUILD=OFF || return
      else
        configure cpu -DESKER_TEST_MATRIX=OFF -DESKER_TEST_ONCE=ON -DESKER_FAST_COMPILE=ON -DESKER_UNITY_BUILD=ON \
          -DESKER_BUILD_BENCH=OFF || return
      fi
      build cpu && run_tests_beside_jobs cpu
      ;;
    tsan | asan)
      if $whole; then
        configure "$1" -DESKER_TEST_MATRIX=ON && build "$1" && { run_tests "$1" tests "${no_jobs[@]}"; run_jobs "$1"; }
        return
      fi
      # ThreadSanitizer for what has threads, which the applications' inputs have not; of the applications those that
      # run without mpirun.
      local apps=OFF programs=(esker_tests readme_example requests_example continuation_example)
      if [[ $1 == asan ]]; then
        apps=ON
        programs+=(esker-fib esker-gups esker-info esker-mer esker-plan esker-queens)
      fi
      configure "$1" -DESKER_TEST_MATRIX=OFF -DESKER_BUILD_APPS=$apps -DESKER_BUILD_EXAMPLES=OFF && build "$1" "${programs[@]}" &&
        run_tests "$1" tests "${no_jobs[@]}"
      ;;
    simulated)
      # Of the applications the pipelines, whose stages no test has: all of them take many minutes.
      if $whole; then
        configure simulated -DESKER_FAST_COMPILE=OFF && build simulated && {
          run_tests simulated gpu -L gpu; run_tests simulated jobs -L mpi; }
        return
      fi
      configure simulated -DESKER_FAST_COMPILE=ON -DESKER_BUILD_APPS=pipelines -DESKER_BUILD_EXAMPLES=OFF -DESKER_BUILD_BENCH=OFF &&
        build simulated && run_tests simulated gpu -L gpu --parallel "$((jobs + 1))"
      ;;
    cuda)
      if [[ -z "$nvcc" ]]; then skip cuda build "there is no nvcc"; return; fi
      device_preset cuda esker active_message_test_gpu user_kernel_test_gpu
      step cuda compile_time tests/compile_time/compile_time_test.py cuda "$nvcc"
      ;;
    hip)
      if ! command -v hipcc >/dev/null; then skip hip build "there is no hipcc"; return; fi
      device_preset hip esker active_message_test_gpu pipeline_test_gpu
      ;;
    fuzz)
      if ! command -v clang++ >/dev/null; then skip fuzz wire_format "there is no clang++"; return; fi
      if $whole; then step fuzz wire_format scripts/fuzz.sh 60; else step fuzz wire_format scripts/fuzz.sh 5; fi
      ;;
  esac
}

sources() { git ls-files -- "$@"; }
check_format() { sources '*.hpp' '*.cpp' '*.cu' '*.hip' | xargs clang-format --dry-run -Werror; }
# As the asan preset compiles the library: with clang, and many sources at a time.
check_tidy() {
  cmake --preset asan >/dev/null && cmake --build build/asan --target esker_commit >/dev/null && scripts/check_tidy.py build/asan
}

# What a user meets first: the demo of the commit that is checked out, on a machine that has nothing yet. It waits for
# packages most of the time, so it runs beside the other parts.
fresh_machine=../shared/tools/fresh-machine.sh
fresh_log=build/fresh.log
why_not_fresh() {
  if [[ ! -x $fresh_machine ]]; then echo "there is no $fresh_machine"
  elif ((EUID != 0)); then echo "it takes root"
  elif ! unshare --mount --propagation private true 2>/dev/null; then echo "mount points of its own cannot be had here, as in a chroot"
  fi
}
start_fresh() {
  if [[ -n $(why_not_fresh) ]]; then return; fi
  mkdir -p build
  # In mount points of its own: a run that is killed leaves none behind, and those that one has left are not seen.
  nice unshare --mount --propagation private scripts/fresh_demo.sh "$fresh_machine" >"$fresh_log" 2>&1 &
  fresh_process=$!
}
finish_fresh() {
  local status=0
  wait "$fresh_process" || status=$?
  cat "$fresh_log"
  return "$status"
}
run_fresh() {
  local why
  why="$(why_not_fresh)"
  if [[ -n $why ]]; then skip fresh demo "$why"; else step fresh demo finish_fresh; fi
}

run_checks() {
  step checks includes scripts/check_includes.py || true
  step checks links scripts/check_links.py || true
  # Other versions format differently: the one of Debian 12 decides.
  if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    step checks format check_format || true
  else
    skip checks format "clang-format is not version 14"
  fi
  if command -v clang-tidy >/dev/null; then
    step checks clang-tidy check_tidy || true
  else
    skip checks clang-tidy "it is not installed"
  fi
}

if [[ " ${parts[*]} " == *" fresh "* ]]; then start_fresh; fi
for part in "${parts[@]}"; do
  passed[$part]=0 failed[$part]=0 skipped[$part]=0
  started=$SECONDS
  case "$part" in
    checks) run_checks ;;
    fresh) run_fresh || true ;;
    *) run_preset "$part" || true ;;
  esac
  seconds[$part]=$((SECONDS - started))
done

# Again, where a reader looks first.
printf '\n%s\n' "$failure_outputs"
total_passed=0 total_failed=0 total_skipped=0
for part in "${parts[@]}"; do
  printf '%-9s %4d passed %3d failed %3d skipped %5d s\n' \
    "$part" "${passed[$part]}" "${failed[$part]}" "${skipped[$part]}" "${seconds[$part]}"
  total_passed=$((total_passed + passed[$part]))
  total_failed=$((total_failed + failed[$part]))
  total_skipped=$((total_skipped + skipped[$part]))
done
for failure in "${failures[@]}"; do echo "failed: $failure"; done
echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
((total_failed == 0))
