// CUDA graphs as a rival: 8 branches of copy, kernel, copy, launched again and again.
#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "rivals.hpp"
#include "words.hpp"

namespace esker::bench {

namespace {
constexpr std::uint32_t kBranches = 8;
void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
__global__ void double_all(const Quad* in, Quad* out, std::uint32_t n) {
  double_quads(in, out, n, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
}  // namespace

double graph_of_branches(std::uint64_t frame_bytes, std::uint64_t frames) {
  const std::uint64_t quads = frame_bytes / sizeof(Quad), bytes = quads * sizeof(Quad);
  Quad *host = nullptr, *device = nullptr;
  check(cudaMallocHost(&host, 2 * kBranches * bytes), "cudaMallocHost");
  check(cudaMalloc(&device, 2 * kBranches * bytes), "cudaMalloc");
  cudaStream_t streams[kBranches];
  cudaEvent_t start, ends[kBranches];
  check(cudaEventCreateWithFlags(&start, cudaEventDisableTiming), "cudaEventCreate");
  for (std::uint32_t b = 0; b < kBranches; ++b) {
    check(cudaStreamCreateWithFlags(&streams[b], cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&ends[b], cudaEventDisableTiming), "cudaEventCreate");
    fill_slot(host + b * quads, quads, b);
  }
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  check(cudaEventRecord(start, streams[0]), "cudaEventRecord");
  const auto groups = static_cast<unsigned>(quads < 256 ? 1 : quads > (1u << 18) ? 1024 : quads / 256);
  for (std::uint32_t b = 0; b < kBranches; ++b) {
    Quad *const in = device + b * quads, *const out = device + (kBranches + b) * quads;
    if (b != 0) check(cudaStreamWaitEvent(streams[b], start, 0), "cudaStreamWaitEvent");
    check(cudaMemcpyAsync(in, host + b * quads, bytes, cudaMemcpyHostToDevice, streams[b]),
          "cudaMemcpyAsync");
    double_all<<<groups, 256, 0, streams[b]>>>(in, out, static_cast<std::uint32_t>(quads));
    check(cudaMemcpyAsync(host + (kBranches + b) * quads, out, bytes, cudaMemcpyDeviceToHost, streams[b]),
          "cudaMemcpyAsync");
    if (b == 0) continue;
    check(cudaEventRecord(ends[b], streams[b]), "cudaEventRecord");
    check(cudaStreamWaitEvent(streams[0], ends[b], 0), "cudaStreamWaitEvent");
  }
  check(cudaStreamEndCapture(streams[0], &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const auto began = std::chrono::steady_clock::now();
  for (std::uint64_t f = 0; f < frames; f += kBranches)
    check(cudaGraphLaunch(executable, streams[0]), "cudaGraphLaunch");
  check(cudaStreamSynchronize(streams[0]), "cudaStreamSynchronize");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  bool right = true;
  for (std::uint32_t b = 0; b < kBranches; ++b)
    right = right && is_right(host + (kBranches + b) * quads, quads, b, 2, true);
  (void)cudaGraphExecDestroy(executable);
  (void)cudaGraphDestroy(graph);
  for (std::uint32_t b = 0; b < kBranches; ++b) {
    (void)cudaStreamDestroy(streams[b]);
    (void)cudaEventDestroy(ends[b]);
  }
  (void)cudaEventDestroy(start);
  (void)cudaFreeHost(host);
  (void)cudaFree(device);
  if (!right) throw std::runtime_error("the graph gave a wrong word");
  return seconds * static_cast<double>(frames) /
         static_cast<double>((frames + kBranches - 1) / kBranches * kBranches);
}

}  // namespace esker::bench
