// Graphs of copies and launches by CUDA. A launch is captured, since its kernel is a template's; the copies
// are nodes of their own, whose addresses can be changed.
#include "launch_graph.hpp"

#include <cuda_runtime.h>

#include <string>

#include <esker/error.hpp>

namespace pipe_apps {

namespace {
void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess)
    throw esker::Error(esker::Error::Kind::kDevice, std::string(call) + ": " + cudaGetErrorString(error));
}
cudaGraph_t captured(const esker::Stream& stream, const std::function<void(const esker::Stream&)>& launch) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  check(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  launch(stream);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(native, &graph), "cudaStreamEndCapture");
  return graph;
}
}  // namespace

struct LaunchGraph::State {
  struct Branch {
    GraphBranch what;
    cudaGraphNode_t in, out;
  };
  std::vector<Branch> branches;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;

  State() { check(cudaGraphCreate(&graph, 0), "cudaGraphCreate"); }
  ~State() {
    if (executable != nullptr) (void)cudaGraphExecDestroy(executable);
    (void)cudaGraphDestroy(graph);
  }
  void add(const GraphBranch& what, const esker::Stream& stream) {
    Branch branch{what, nullptr, nullptr};
    check(cudaGraphAddMemcpyNode1D(&branch.in, graph, nullptr, 0, what.device_in, what.host_in, what.in_bytes,
                                   cudaMemcpyHostToDevice),
          "cudaGraphAddMemcpyNode1D");
    const cudaGraph_t kernel = captured(stream, what.launch);
    cudaGraphNode_t work = nullptr;
    const cudaError_t error = cudaGraphAddChildGraphNode(&work, graph, &branch.in, 1, kernel);
    (void)cudaGraphDestroy(kernel);
    check(error, "cudaGraphAddChildGraphNode");
    if (what.out_bytes != 0) {
      check(cudaGraphAddMemcpyNode1D(&branch.out, graph, &work, 1, what.host_out, what.device_out,
                                     what.out_bytes, cudaMemcpyDeviceToHost),
            "cudaGraphAddMemcpyNode1D");
    }
    branches.push_back(branch);
  }
};

LaunchGraph::LaunchGraph(const esker::Stream& stream, const std::vector<GraphBranch>& branches)
    : state_{std::make_unique<State>()} {
  for (const GraphBranch& branch : branches) state_->add(branch, stream);
  check(cudaGraphInstantiate(&state_->executable, state_->graph, 0), "cudaGraphInstantiate");
}
LaunchGraph::~LaunchGraph() = default;
LaunchGraph::LaunchGraph(LaunchGraph&&) noexcept = default;
LaunchGraph& LaunchGraph::operator=(LaunchGraph&&) noexcept = default;

void LaunchGraph::set_host(std::size_t branch, const void* in, void* out) {
  const State::Branch& its = state_->branches[branch];
  check(cudaGraphExecMemcpyNodeSetParams1D(state_->executable, its.in, its.what.device_in, in,
                                           its.what.in_bytes, cudaMemcpyHostToDevice),
        "cudaGraphExecMemcpyNodeSetParams1D");
  if (its.out == nullptr) return;
  check(cudaGraphExecMemcpyNodeSetParams1D(state_->executable, its.out, out, its.what.device_out,
                                           its.what.out_bytes, cudaMemcpyDeviceToHost),
        "cudaGraphExecMemcpyNodeSetParams1D");
}
void LaunchGraph::launch(const esker::Stream& stream) const {
  check(cudaGraphLaunch(state_->executable, static_cast<cudaStream_t>(stream.native())), "cudaGraphLaunch");
}

}  // namespace pipe_apps
