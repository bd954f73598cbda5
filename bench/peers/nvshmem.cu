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

__global__ void get(GupsProblem problem, const std::uint64_t* table, unsigned long long* results) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(problem.pe)[k]);
  results[k] = nvshmem_uint64_g(table + place.index, static_cast<int>(place.pe));
}

__global__ void fetch_add(GupsProblem problem, std::uint64_t* table, unsigned long long* results) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const std::uint64_t r = problem.stream_of(problem.pe)[k];
  const gups::Place place = problem.place_of(r);
  results[k] = nvshmem_uint64_atomic_fetch_add(table + place.index, r, static_cast<int>(place.pe));
}

/// The first of a word's updates takes it.
__global__ void compare_swap(GupsProblem problem, std::uint64_t* table, unsigned long long* results) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const std::uint64_t r = problem.stream_of(problem.pe)[k];
  const gups::Place place = problem.place_of(r);
  results[k] = nvshmem_uint64_atomic_compare_swap(table + place.index, 0, gups::claim_of(r),
                                                  static_cast<int>(place.pe));
}

__global__ void fill(GupsProblem problem, unsigned long long* table) {
  const std::uint64_t i = global_lane();
  if (i < problem.words_a_pe) table[i] = problem.put_value({problem.pe, i});
}

__global__ void count_wrong_gets(GupsProblem problem, const unsigned long long* results,
                                 unsigned long long* wrong) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(problem.pe)[k]);
  if (results[k] != problem.put_value(place)) atomicAdd(wrong, 1ull);
}

__global__ void update_own(GupsProblem problem, unsigned long long* table) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const gups::Place place = problem.place_of(problem.stream_of(problem.pe)[k]);
  if (problem.operation == GupsOperation::kPut) {
    table[place.index] = problem.put_value(place);
  } else {
    atomicAdd(table + place.index, 1ull);
  }
}

/// Takes one sender's updates back from this PE's words.
__global__ void take_back_of(GupsProblem problem, std::uint64_t sender, unsigned long long* table) {
  const std::uint64_t k = global_lane();
  if (k >= problem.updates_a_pe) return;
  const std::uint64_t r = problem.stream_of(sender)[k];
  const gups::Place place = problem.place_of(r);
  if (place.pe != problem.pe) return;
  if (problem.operation == GupsOperation::kInc || problem.operation == GupsOperation::kFetchAdd) {
    atomicAdd(table + place.index, problem.operation == GupsOperation::kInc ? ~0ull : 0 - r);
    return;
  }
  if (problem.operation == GupsOperation::kCompareSwap) {
    atomicCAS(table + place.index, gups::claim_of(r), 0ull);
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
  if (place.pe != problem.pe) return;
  // Of a word that was taken, any of its updates may have been the first.
  const bool is_there = problem.operation == GupsOperation::kPut
                            ? table[place.index] == problem.put_value(place)
                            : table[place.index] != 0;
  if (!is_there) atomicAdd(wrong, 1ull);
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
  if (problem.operation == GupsOperation::kGet)
    fill<<<groups_of(problem.words_a_pe), kGroupLanes>>>(problem, table_);
  if (problem.operation >= GupsOperation::kGet)
    check(cudaMalloc(&results_, problem.updates_a_pe * 8), "cudaMalloc of the results");
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
  cudaFree(results_);
  cudaFree(wrong_);
}

void GupsPeer::run() {
  const unsigned groups = groups_of(problem_.updates_a_pe);
  auto* const words = reinterpret_cast<std::uint64_t*>(table_);
  if (problem_.is_local) {
    update_own<<<groups, kGroupLanes>>>(problem_, table_);
  } else {
    switch (problem_.operation) {
      case GupsOperation::kInc:
        increment<<<groups, kGroupLanes>>>(problem_, words);
        break;
      case GupsOperation::kPut:
        put<<<groups, kGroupLanes>>>(problem_, words);
        break;
      case GupsOperation::kGet:
        get<<<groups, kGroupLanes>>>(problem_, words, results_);
        break;
      case GupsOperation::kFetchAdd:
        fetch_add<<<groups, kGroupLanes>>>(problem_, words, results_);
        break;
      case GupsOperation::kCompareSwap:
        compare_swap<<<groups, kGroupLanes>>>(problem_, words, results_);
        break;
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
  if (problem_.operation == GupsOperation::kGet) {
    count_wrong_gets<<<groups, kGroupLanes>>>(problem_, results_, wrong_);
    check(cudaGetLastError(), "launch of the verification");
    unsigned long long wrong = 0;
    check(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost), "the verification");
    return wrong;
  }
  if (problem_.operation == GupsOperation::kPut || problem_.operation == GupsOperation::kCompareSwap) {
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
