// The kernels: direct updates, partitioning by window, updates window by window.
#include <esker/bench/windows/updates.hpp>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <cuda_runtime.h>

namespace esker::bench {
namespace {

using Counter = unsigned long long;  // what atomicAdd takes

constexpr std::uint32_t kGroupLanes = 512;
constexpr std::uint32_t kItems = 16;                   // addresses of a lane in a tile
constexpr std::uint32_t kTile = kGroupLanes * kItems;  // addresses that a group sorts at once
constexpr std::uint32_t kChunk = kGroupLanes * 4;      // updates that a group takes from a window
constexpr std::uint32_t kMostWindows = Updates::kMostWindows;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::uint64_t count) : count_{count} {
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    zero();
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  void zero() { check(cudaMemsetAsync(data_, 0, count_ * sizeof(T)), "cudaMemsetAsync"); }
  T* data() const { return data_; }
  std::uint64_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::uint64_t count_;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() { check(cudaEventRecord(event_), "cudaEventRecord"); }
  double seconds_since(const Event& earlier) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
    return milliseconds / 1e3;
  }
  void wait() { check(cudaEventSynchronize(event_), "the updates"); }

 private:
  cudaEvent_t event_ = nullptr;
};

__device__ std::uint64_t first_lane() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::uint64_t all_lanes() { return std::uint64_t{gridDim.x} * blockDim.x; }

__global__ void make_addresses(std::uint64_t* addresses, std::uint64_t count, std::uint64_t table_words) {
  for (std::uint64_t i = first_lane(); i < count; i += all_lanes()) {
    std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    addresses[i] = __umul64hi(x ^ (x >> 31), table_words);
  }
}

__global__ void update(const std::uint64_t* addresses, std::uint64_t count, Counter* table) {
  for (std::uint64_t i = first_lane(); i < count; i += all_lanes())
    atomicAdd(table + addresses[i], Counter{1});
}

/// A batch by windows: window w has sizes[w] updates, the first `capacity` of them from
/// updates[w * capacity] on. The others were applied when they found no room.
struct Partition {
  std::uint32_t* updates;  // index in the table
  std::uint32_t* sizes;
  std::uint32_t windows;
  std::uint32_t window_words_log2;
  std::uint64_t capacity;  // a multiple of 4
};

/// starts[w] = sum of the counts before w; starts[windows] is the sum of all. The first wave does it.
__device__ void scan(const std::uint32_t* counts, std::uint32_t windows, std::uint32_t* starts) {
  if (threadIdx.x >= 32) return;
  const std::uint32_t each = (windows + 31) / 32;
  const std::uint32_t begin = min(threadIdx.x * each, windows), end = min(begin + each, windows);
  std::uint32_t mine = 0;
  for (std::uint32_t w = begin; w < end; ++w) mine += counts[w];
  std::uint32_t before = mine;
  for (std::uint32_t step = 1; step < 32; step *= 2) {
    const std::uint32_t other = __shfl_up_sync(0xffffffffu, before, step);
    if (threadIdx.x >= step) before += other;
  }
  before -= mine;
  for (std::uint32_t w = begin; w < end; ++w) {
    starts[w] = before;
    before += counts[w];
  }
  if (threadIdx.x == 31) starts[windows] = before;
}

/// One tile a group: a counting sort by window in scratchpad, then each window's run to its place, which
/// one atomic add a window and tile has reserved.
__global__ void __launch_bounds__(kGroupLanes, 3)
    partition(const std::uint64_t* addresses, std::uint64_t count, Partition to, Counter* table) {
  __shared__ std::uint32_t counts[kMostWindows], starts[kMostWindows + 1], sorted[kTile];
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kTile;
  const auto present = static_cast<std::uint32_t>(min(std::uint64_t{kTile}, count - first));
  for (std::uint32_t w = threadIdx.x; w < to.windows; w += kGroupLanes) counts[w] = 0;
  __syncthreads();

  // Two ranks a word: registers decide how many groups stand on a multiprocessor.
  std::uint32_t index[kItems], ranks[kItems / 2];
#pragma unroll
  for (std::uint32_t i = 0; i < kItems; ++i) {
    const std::uint32_t at = i * kGroupLanes + threadIdx.x;
    if (at < present) index[i] = static_cast<std::uint32_t>(addresses[first + at]);
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kItems; ++i) {
    if (i * kGroupLanes + threadIdx.x < present) {
      const std::uint32_t rank = atomicAdd(counts + (index[i] >> to.window_words_log2), 1u);
      ranks[i / 2] = i % 2 == 0 ? rank : ranks[i / 2] | rank << 16;
    }
  }
  __syncthreads();
  scan(counts, to.windows, starts);
  __syncthreads();

  // From here on counts[w] is where the run of this tile goes, less where it stands in `sorted`.
  for (std::uint32_t w = threadIdx.x; w < to.windows; w += kGroupLanes) {
    if (counts[w] > 0) counts[w] = atomicAdd(to.sizes + w, counts[w]) - starts[w];
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kItems; ++i) {
    if (i * kGroupLanes + threadIdx.x < present) {
      sorted[starts[index[i] >> to.window_words_log2] +
             (i % 2 == 0 ? ranks[i / 2] & 0xffff : ranks[i / 2] >> 16)] = index[i];
    }
  }
  __syncthreads();
  for (std::uint32_t at = threadIdx.x; at < present; at += kGroupLanes) {
    const std::uint32_t where = sorted[at], window = where >> to.window_words_log2;
    const std::uint32_t place = counts[window] + at;
    if (place < to.capacity) {
      to.updates[window * to.capacity + place] = where;
    } else {
      atomicAdd(table + where, Counter{1});
    }
  }
}

/// Groups take chunks in the order of the windows, so that at any time all of them work in the same window
/// or in two neighbours.
__global__ void __launch_bounds__(kGroupLanes) update_by_window(Partition from, Counter* table) {
  __shared__ std::uint32_t chunks[kMostWindows], starts[kMostWindows + 1];
  for (std::uint32_t w = threadIdx.x; w < from.windows; w += kGroupLanes) {
    const auto size = static_cast<std::uint32_t>(min(std::uint64_t{from.sizes[w]}, from.capacity));
    chunks[w] = (size + kChunk - 1) / kChunk;
  }
  __syncthreads();
  scan(chunks, from.windows, starts);
  __syncthreads();
  std::uint32_t window = 0;
  for (std::uint32_t chunk = blockIdx.x; chunk < starts[from.windows]; chunk += gridDim.x) {
    while (chunk >= starts[window + 1]) ++window;
    const auto size = static_cast<std::uint32_t>(min(std::uint64_t{from.sizes[window]}, from.capacity));
    const std::uint32_t* updates = from.updates + window * from.capacity;
    const std::uint32_t at = (chunk - starts[window]) * kChunk + 4 * threadIdx.x;
    if (at + 4 <= size) {
      const uint4 four = __ldcs(reinterpret_cast<const uint4*>(updates + at));
      atomicAdd(table + four.x, Counter{1});
      atomicAdd(table + four.y, Counter{1});
      atomicAdd(table + four.z, Counter{1});
      atomicAdd(table + four.w, Counter{1});
    } else {
      for (std::uint32_t i = at; i < size; ++i) atomicAdd(table + updates[i], Counter{1});
    }
  }
}

__global__ void count_differences(const Counter* a, const Counter* b, std::uint64_t words, Counter* result) {
  Counter differences = 0, sum = 0;
  for (std::uint64_t i = first_lane(); i < words; i += all_lanes()) {
    differences += a[i] != b[i] ? 1 : 0;
    sum += a[i];
  }
  if (differences != 0) atomicAdd(result, differences);
  atomicAdd(result + 1, sum);
}

}  // namespace

struct Updates::Memory {
  Memory(std::uint64_t table_words, std::uint64_t addresses_wanted)
      : direct_table(table_words),
        windowed_table(table_words),
        addresses(addresses_wanted),
        partitioned(addresses_wanted + addresses_wanted / 4 + 8192 * kMostWindows),
        sizes(kMostWindows),
        result(2),
        resident_groups{
            static_cast<unsigned>(attribute(cudaDevAttrMultiProcessorCount)) *
            (static_cast<unsigned>(attribute(cudaDevAttrMaxThreadsPerMultiProcessor)) / kGroupLanes)} {}

  DeviceArray<Counter> direct_table, windowed_table;
  DeviceArray<std::uint64_t> addresses;
  DeviceArray<std::uint32_t> partitioned, sizes;
  DeviceArray<Counter> result;
  unsigned resident_groups;
  Event begin, end;
  std::vector<std::unique_ptr<Event>> marks;  // of windowed batches
};

Updates::Updates(std::uint64_t table_words, std::uint64_t addresses)
    : memory_{std::make_unique<Memory>(table_words, addresses)} {
  make_addresses<<<memory_->resident_groups, kGroupLanes>>>(memory_->addresses.data(), addresses,
                                                            table_words);
  check(cudaDeviceSynchronize(), "making the addresses");
}
Updates::~Updates() = default;

UpdateSeconds Updates::direct(std::uint64_t count, std::uint64_t batch) {
  Memory& m = *memory_;
  m.begin.record();
  for (std::uint64_t first = 0; first < count; first += batch) {
    const std::uint64_t size = std::min(batch, count - first);
    const auto groups = static_cast<unsigned>((size + kGroupLanes - 1) / kGroupLanes);
    update<<<groups, kGroupLanes>>>(m.addresses.data() + first, size, m.direct_table.data());
  }
  m.end.record();
  check(cudaGetLastError(), "launch of direct updates");
  m.end.wait();
  return {0, m.end.seconds_since(m.begin)};
}

UpdateSeconds Updates::windowed(std::uint64_t count, std::uint64_t batch, std::uint32_t window_words_log2) {
  Memory& m = *memory_;
  const std::uint64_t table_words = m.windowed_table.size();
  const std::uint64_t windows = ((table_words - 1) >> window_words_log2) + 1;
  if (windows > kMostWindows) throw std::runtime_error("the windows are too small for this table");
  // A uniform batch fills windows to within a few standard deviations of the mean.
  const std::uint64_t mean = std::min(batch, count) / windows;
  const Partition partitioned{m.partitioned.data(), m.sizes.data(), static_cast<std::uint32_t>(windows),
                              window_words_log2, (mean + mean / 8 + 4096) / 4 * 4};
  if (partitioned.capacity * windows > m.partitioned.size())
    throw std::runtime_error("a batch is larger than the addresses");
  // Batches follow each other without a word to the host, as the direct ones do.
  const std::uint64_t batches = (count + batch - 1) / batch;
  while (m.marks.size() < 2 * batches + 1) m.marks.push_back(std::make_unique<Event>());
  m.marks[0]->record();
  for (std::uint64_t b = 0; b < batches; ++b) {
    const std::uint64_t first = b * batch, size = std::min(batch, count - first);
    m.sizes.zero();
    const auto tiles = static_cast<unsigned>((size + kTile - 1) / kTile);
    partition<<<tiles, kGroupLanes>>>(m.addresses.data() + first, size, partitioned, m.windowed_table.data());
    m.marks[2 * b + 1]->record();
    update_by_window<<<m.resident_groups, kGroupLanes>>>(partitioned, m.windowed_table.data());
    m.marks[2 * b + 2]->record();
  }
  check(cudaGetLastError(), "launch of windowed updates");
  m.marks[2 * batches]->wait();
  UpdateSeconds seconds;
  for (std::uint64_t b = 0; b < batches; ++b) {
    seconds.partition += m.marks[2 * b + 1]->seconds_since(*m.marks[2 * b]);
    seconds.apply += m.marks[2 * b + 2]->seconds_since(*m.marks[2 * b + 1]);
  }
  return seconds;
}

std::uint64_t Updates::compare(std::uint64_t updates) {
  Memory& m = *memory_;
  m.result.zero();
  count_differences<<<m.resident_groups, kGroupLanes>>>(m.direct_table.data(), m.windowed_table.data(),
                                                        m.direct_table.size(), m.result.data());
  check(cudaGetLastError(), "launch of the comparison");
  Counter result[2];
  check(cudaMemcpy(result, m.result.data(), sizeof result, cudaMemcpyDeviceToHost), "the comparison");
  m.direct_table.zero();
  m.windowed_table.zero();
  return result[0] + (result[1] > updates ? result[1] - updates : updates - result[1]);
}

std::string update_device() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

std::uint64_t l2_bytes() { return static_cast<std::uint64_t>(attribute(cudaDevAttrL2CacheSize)); }

}  // namespace esker::bench
