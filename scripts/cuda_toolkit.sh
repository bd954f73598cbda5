# Where the CUDA compiler is; sourced by the other scripts from the repository's root.
# shellcheck shell=bash

local_cuda_toolkit="$PWD/build/toolchain/cuda/toolkit"  # what scripts/bootstrap.sh --all makes

# Prints the first that works of: $CUDACXX, nvcc on PATH, the usual installation, our own. Nothing if none does.
find_nvcc() {
  local nvcc
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$local_cuda_toolkit/bin/nvcc"; do
    if [[ -n "$nvcc" ]] && "$nvcc" --version >/dev/null 2>&1; then
      echo "$nvcc"
      return
    fi
  done
}
