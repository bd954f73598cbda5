#!/usr/bin/env python3
"""Emitted programs: run on the host with a stand-in for CUDA's calls, and compiled by nvcc where there is one.

usage: emit_test.py ESKER_PLAN [CXX]      exits with 77 after the first part if there is no nvcc
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GRAPHS = [["random"], ["figure2"], ["random", "--seed", "5", "--unfused"], ["cholesky"], ["cg"],
          ["chain", "--device-share", "0"]]

STAND_IN = """
#include <cstdlib>
#include <cstring>
#define __host__
#define __device__
#define __global__
using cudaError_t = int;
enum { cudaSuccess, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
inline const char* cudaGetErrorString(int) { return ""; }
template <class T> int cudaMallocHost(T** at, std::size_t n) { *at = (T*)std::calloc(n, 1); return 0; }
template <class T> int cudaMalloc(T** at, std::size_t n) { *at = (T*)std::malloc(n); std::memset(*at, 170, n); return 0; }
inline int cudaFree(void* at) { std::free(at); return 0; }
inline int cudaFreeHost(void* at) { std::free(at); return 0; }
inline int cudaMemcpyAsync(void* to, const void* from, std::size_t n, int) { std::memcpy(to, from, n); return 0; }
inline int cudaDeviceSynchronize() { return 0; }
struct { unsigned x; } blockIdx, blockDim, threadIdx;
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    plan, compiler = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "c++"
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "cuda_runtime.h").write_text(STAND_IN)
        for number, graph in enumerate(GRAPHS):
            source = folder / f"program{number}.cu"
            run([plan, "--graph", *graph, "--floats", "1000", "--emit", str(source)])
            text = source.read_text()
            host = folder / f"program{number}.cpp"
            # A launch becomes the loop over its elements.
            host.write_text(re.sub(r"on_device(\d+)<<<[^>]*>>>", r"on_host\1", text))
            run([compiler, "-std=c++17", "-O0", f"-I{folder}", "-o", str(folder / "program"), str(host)])
            said = run([str(folder / "program")])
            if "verified" not in said:
                sys.exit(f"{graph}: {said}")
            if nvcc and number == 0:
                run([nvcc, "-std=c++17", "-arch=sm_90", "-c", "-o", str(folder / "program.o"), str(source)])
    if not nvcc:
        print("run on the host; skipped: no nvcc to compile it for a GPU")
        sys.exit(77)
    print(f"{len(GRAPHS)} programs run on the host, one compiled by {nvcc}")


if __name__ == "__main__":
    main()
