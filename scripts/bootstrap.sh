#!/usr/bin/env bash
# Installs what Esker needs on Debian 12 or Ubuntu 24.04: to build it, and with --all to run every check.
#
# Contract. Packages come from apt, as root or through sudo. What is there already is left alone, so a
# second run touches neither apt nor PyPI. Where no CUDA compiler is found, --all installs one from pinned
# PyPI wheels into build/toolchain/cuda: nothing outside the checkout changes for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cuda_toolkit.sh

core=(
  g++ cmake make ninja-build pkg-config git
  libopenmpi-dev openmpi-bin
  libboost-program-options-dev libboost-context-dev libfmt-dev libhwloc-dev nlohmann-json3-dev zlib1g-dev
)
# Unversioned names: the compilers' numbers differ between the two distributions.
checks=(
  libgtest-dev libbenchmark-dev
  ccache                                       # a second build of the same sources takes a fraction
  libmetis-dev                                 # partitions of graphs
  libucx-dev                                   # the transport beside MPI
  libtbb-dev                                   # the rival of tasks on the host
  python3
  python3-matplotlib python3-yaml              # plots and plans of scaling studies
  graphviz                                     # pictures of pipelines
  spin                                         # the model of the package queue
  hpcc                                         # the peer that GUPS is compared with
  jellyfish                                    # the peer that mer is compared with
  clang libclang-rt-dev                        # libFuzzer, which lives in the run-time package
  clang-format clang-tidy
  lld                                          # links the tests in a fraction of the time
  hipcc libamdhip64-dev
)

# The report of a scaling study is looked at in a browser. Ubuntu has this one as a snap only, which apt cannot
# install in a container: there the test is skipped unless a chromium is found.
if grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then checks+=(chromium); fi

# The CUDA 13.0 compiler as its vendor publishes it for Python, less everything that we do not call.
cuda_wheels=(
  nvidia-cuda-nvcc==13.0.88
  nvidia-cuda-crt==13.0.88
  nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85                    # <cuda/atomic>
  nvidia-nvtx==13.0.85                         # <nvtx3/nvToolsExt.h>
)

usage() {
  echo "usage: scripts/bootstrap.sh [--all]"
  echo "  --all  also what the tests and checks need: sanitizers, fuzzers, CUDA and HIP compilers"
}

wanted=("${core[@]}")
all=false
case "${1:-}" in
  "") ;;
  --all) all=true ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

is_installed() { [[ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]; }

if ! command -v dpkg-query >/dev/null; then
  echo "bootstrap: this is neither Debian nor Ubuntu; install the equivalents of: ${core[*]} ${checks[*]}" >&2
  exit 1
fi

needs_cuda=false
if $all; then
  wanted+=("${checks[@]}")
  if [[ -z "$(find_nvcc)" ]]; then
    needs_cuda=true
    wanted+=(python3-venv ca-certificates)     # what fetches the wheels
  fi
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done

if ((${#missing[@]})); then
  as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || {
      echo "bootstrap: not root and no sudo; have an administrator install: ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  echo "bootstrap: installing with apt: ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

if $needs_cuda; then
  echo "bootstrap: no nvcc; installing into $local_cuda_toolkit: ${cuda_wheels[*]}"
  venv="$(dirname "$local_cuda_toolkit")"
  rm -rf "$venv"                               # what an interrupted run left
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --no-deps "${cuda_wheels[@]}"
  wheels="$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13)"
  # The wheels lay files out as nvcc wants them but for two names: CMake and nvcc.profile look in lib64,
  # and -lcudart finds only an unnumbered library.
  ln -s lib "$wheels/lib64"
  ln -s libcudart.so.13 "$wheels/lib/libcudart.so"
  ln -s "${wheels#"$venv/"}" "$local_cuda_toolkit"  # last: its presence means that the rest is complete
fi

if ((${#missing[@]} == 0)) && ! $needs_cuda; then
  echo "bootstrap: nothing is missing"
fi
