// GUPS on NVSHMEM: one non-aggregated atomic or put a lane.
#include <esker/bench/peers/gups_peer.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <nvshmem.h>
#include <nvshmemx.h>

namespace esker::bench {
namespace {

constexpr unsigned kGroupLanes = 256;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
void check_nvshmem(int status, const char* call) {
  if (status != 0) throw std::runtime_error(std::string(call) + ": status " + std::to_string(status));
}

__device__ std::uint64_t global_lane() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

__global__ void increment(GupsProblem problem, std::uint64_t* table) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(problem.pe)[k]);
  nvshmem_uint64_atomic_inc(table + place.index, static_cast<int>(place.pe));
}

__global__ void put(GupsProblem problem, std::uint64_t* table) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(problem.pe)[k]);
  nvshmem_uint64_p(table + place.index, problem.put_value(place), static_cast<int>(place.pe));
}

__global__ void update_own(GupsProblem problem, unsigned long long* table) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(problem.pe)[k]);
  if (problem.is_put) {
    table[place.index] = problem.put_value(place);
  } else {
    atomicAdd(table + place.index, 1ull);
  }
}

/// Takes one sender's updates back from this PE's words.
__global__ void take_back_of(GupsProblem problem, std::uint64_t sender, unsigned long long* table) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(sender)[k]);
  if (place.pe != problem.pe) return;
  if (!problem.is_put) {
    atomicAdd(table + place.index, ~0ull);
    return;
  }
  // Found: marked by zero. Another update of the same word finds the value or the mark; what is neither
  // stays and is counted.
  const unsigned long long value = problem.put_value(place);
  atomicCAS(table + place.index, value, 0ull);
}

/// A word that nobody put to is zero, and so is one whose put was found; a lost put leaves a zero too, so
/// puts are looked for before they are taken back.
__global__ void count_missing(GupsProblem problem, std::uint64_t sender, const unsigned long long* table,
                              unsigned long long* wrong) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(sender)[k]);
  if (place.pe == problem.pe && table[place.index] != problem.put_value(place)) atomicAdd(wrong, 1ull);
}

__global__ void count_left(std::uint64_t words, const unsigned long long* table, unsigned long long* wrong) {
  const std::uint64_t i = global_lane();
  if (i < words && table[i] != 0) atomicAdd(wrong, 1ull);
}

unsigned groups_of(std::uint64_t lanes) {
  return static_cast<unsigned>((lanes + kGroupLanes - 1) / kGroupLanes);
}

}  // namespace

GupsPeer::GupsPeer(const GupsProblem& problem, int local_pe, const Broadcast& broadcast) : problem_{problem} {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  check(cudaSetDevice(local_pe % gpus), "cudaSetDevice");
  check(cudaMalloc(&wrong_, sizeof *wrong_), "cudaMalloc");
  const std::size_t bytes = problem.words_a_pe * 8;
  if (problem.is_local) {
    check(cudaMalloc(&table_, bytes), "cudaMalloc of the table");
  } else {
    // Multicast over NVLink is not lent everywhere, and no operation here needs it.
    setenv("NVSHMEM_DISABLE_NVLS", "1", 0);
    setenv("NVSHMEM_SYMMETRIC_SIZE", std::to_string(bytes + (std::size_t{64} << 20)).c_str(), 0);
    // An identifier over MPI, so that NVSHMEM needs to know nothing about this MPI.
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (problem.pe == 0) check_nvshmem(nvshmemx_get_uniqueid(&id), "nvshmemx_get_uniqueid");
    broadcast(&id, sizeof id);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    check_nvshmem(nvshmemx_set_attr_uniqueid_args(static_cast<int>(problem.pe), static_cast<int>(problem.pes),
                                                  &id, &attributes),
                  "nvshmemx_set_attr_uniqueid_args");
    check_nvshmem(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), "nvshmemx_init_attr");
    table_ = static_cast<unsigned long long*>(nvshmem_malloc(bytes));
    if (table_ == nullptr) throw std::runtime_error("nvshmem_malloc of the table: no memory");
  }
  check(cudaMemset(table_, 0, bytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (!problem.is_local) nvshmem_barrier_all();
}

GupsPeer::~GupsPeer() {
  if (problem_.is_local) {
    cudaFree(table_);
  } else {
    nvshmem_free(table_);
    nvshmem_finalize();
  }
  cudaFree(wrong_);
}

void GupsPeer::run() {
  const unsigned groups = groups_of(problem_.updates_a_pe);
  auto* const words = reinterpret_cast<std::uint64_t*>(table_);
  if (problem_.is_local) {
    update_own<<<groups, kGroupLanes>>>(problem_, table_);
  } else {
    if (problem_.is_put) {
      put<<<groups, kGroupLanes>>>(problem_, words);
    } else {
      increment<<<groups, kGroupLanes>>>(problem_, words);
    }
    nvshmemx_quiet_on_stream(nullptr);
    nvshmemx_barrier_all_on_stream(nullptr);
  }
  check(cudaGetLastError(), "launch of the updates");
  check(cudaDeviceSynchronize(), "the updates");
}

std::uint64_t GupsPeer::take_back() {
  const unsigned groups = groups_of(problem_.updates_a_pe);
  const std::uint64_t first = problem_.is_local ? problem_.pe : 0;
  const std::uint64_t last = problem_.is_local ? problem_.pe + 1 : problem_.pes;
  check(cudaMemset(wrong_, 0, sizeof *wrong_), "cudaMemset");
  if (problem_.is_put) {
    for (std::uint64_t sender = first; sender < last; ++sender) {
      count_missing<<<groups, kGroupLanes>>>(problem_, sender, table_, wrong_);
    }
  }
  for (std::uint64_t sender = first; sender < last; ++sender) {
    take_back_of<<<groups, kGroupLanes>>>(problem_, sender, table_);
  }
  count_left<<<groups_of(problem_.words_a_pe), kGroupLanes>>>(problem_.words_a_pe, table_, wrong_);
  check(cudaGetLastError(), "launch of the verification");
  unsigned long long wrong = 0;
  check(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost), "the verification");
  check(cudaMemset(table_, 0, problem_.words_a_pe * 8), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return wrong;
}

const char* peer_name() { return "nvshmem " NVSHMEM_VENDOR_STRING; }

const char* peer_device() {
  static cudaDeviceProp properties;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace esker::bench
