// Producers on a CUDA device. Compiled by nvcc.
#include <esker/bench/queue/producers.hpp>

#include <chrono>
#include <cstring>
#include <stdexcept>

#include <esker/bench/queue/kernels.hpp>
#include <esker/device/launch.hpp>

namespace esker::bench {
namespace {

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

/// Zeroed host memory at the same address on the device.
struct PinnedMemory {
  explicit PinnedMemory(std::size_t bytes) {
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
    std::memset(memory, 0, bytes);
  }
  ~PinnedMemory() { cudaFreeHost(memory); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* memory = nullptr;
};

/// Zeroed memory of the device.
struct DeviceMemory {
  explicit DeviceMemory(std::size_t bytes) {
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    check(cudaMemset(memory, 0, bytes), "cudaMemset");
  }
  ~DeviceMemory() { cudaFree(memory); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* memory = nullptr;
};

struct Stream {
  Stream() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~Stream() { cudaStreamDestroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t stream = nullptr;
};

struct WriteWords {
  std::uint64_t* ring;
  std::uint64_t ring_words, words;
  ESKER_HD void operator()(Lane lane) const {
    for (std::uint64_t i = lane.global_id(); i < words; i += lane.lanes()) ring[i % ring_words] = i;
  }
};

}  // namespace

struct Producers::Memory {
  explicit Memory(const Producing& how)
      : tail(sizeof(PackageQueue::Counter)),
        head(sizeof(PackageQueue::Counter)),
        storage(PackageQueue::storage_bytes(how.slots, how.package_bytes)),
        queue(static_cast<PackageQueue::Counter*>(tail.memory),
              static_cast<PackageQueue::Counter*>(head.memory), static_cast<std::byte*>(storage.memory),
              how.slots, how.package_bytes),
        host_words(sizeof(gpu::HostWords)),
        device_words(sizeof(gpu::DeviceWords)),
        bins(kMaxPes),
        pe_state_memory(sizeof(gpu::PeState)) {
    gpu::PeState pe_state{};
    pe_state.n_pes = kMaxPes;
    pe_state.has_network = true;
    pe_state.host_queue = queue;
    pe_state.host = static_cast<gpu::HostWords*>(host_words.memory);
    pe_state.words = static_cast<gpu::DeviceWords*>(device_words.memory);
    pe_state.bin_of = static_cast<const std::uint8_t*>(bins.memory);
    std::memset(pe_state.near_bins, gpu::kNetwork, sizeof pe_state.near_bins);
    check(cudaMemset(bins.memory, gpu::kNetwork, kMaxPes), "cudaMemset");
    check(cudaMemcpy(pe_state_memory.memory, &pe_state, sizeof pe_state, cudaMemcpyDefault), "cudaMemcpy");
    // The tail's zeroes are written on another stream than the kernels'.
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  DeviceMemory tail;
  PinnedMemory head, storage;
  PackageQueue queue;
  // What an outbox needs, to which every PE is one of another host.
  PinnedMemory host_words;
  DeviceMemory device_words, bins, pe_state_memory;
  Stream stream;

  const gpu::PeState* pe_state() const { return static_cast<const gpu::PeState*>(pe_state_memory.memory); }
};

Producers::Producers(const Producing& how) : how_{how}, memory_{std::make_unique<Memory>(how)} {}
Producers::~Producers() = default;
PackageQueue Producers::queue() const { return memory_->queue; }

std::uint64_t Producers::resident_lanes() const {
  int blocks = 0;
  with_kernel(how_, {}, memory_->queue, memory_->pe_state(), [&]<class Kernel>(const Kernel&) {
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu::run_lanes<Kernel>,
                                                        static_cast<int>(how_.group_lanes), 0),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  });
  if (blocks == 0) throw std::runtime_error("no group of this kernel fits on a multiprocessor");
  return std::uint64_t{how_.group_lanes} * static_cast<std::uint64_t>(blocks) *
         static_cast<std::uint64_t>(attribute(cudaDevAttrMultiProcessorCount));
}

void Producers::start(const Production& production) {
  with_kernel(how_, production, memory_->queue, memory_->pe_state(), [&](const auto& kernel) {
    const LaunchShape shape{production.lanes, how_.group_lanes};
    const std::string error = gpu::launch_on_device(shape, memory_->stream.stream, kernel);
    if (!error.empty()) throw std::runtime_error(error);
  });
}

void Producers::finish() { check(cudaStreamSynchronize(memory_->stream.stream), "the kernel"); }

std::string Producers::state() const {
  const cudaError_t error = cudaStreamQuery(memory_->stream.stream);
  if (error == cudaErrorNotReady) return "the kernel runs";
  return error == cudaSuccess ? "the kernel has ended"
                              : std::string("the kernel: ") + cudaGetErrorString(error);
}

struct PlainWriter::Memory {
  explicit Memory(std::uint64_t bytes) : ring(bytes), ring_words{bytes / 8} {}
  PinnedMemory ring;
  std::uint64_t ring_words;
  Stream stream;
};

PlainWriter::PlainWriter(std::uint64_t ring_bytes) : memory_{std::make_unique<Memory>(ring_bytes)} {}
PlainWriter::~PlainWriter() = default;

double PlainWriter::write(std::uint64_t bytes) {
  const LaunchShape shape{2048 * static_cast<std::uint64_t>(attribute(cudaDevAttrMultiProcessorCount)), 1024};
  const WriteWords kernel{static_cast<std::uint64_t*>(memory_->ring.memory), memory_->ring_words,
                          (bytes + 7) / 8};
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = gpu::launch_on_device(shape, memory_->stream.stream, kernel);
  if (!error.empty()) throw std::runtime_error(error);
  check(cudaStreamSynchronize(memory_->stream.stream), "the kernel of plain writes");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string producer_backend() { return "cuda"; }

std::string producer_device() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace esker::bench
