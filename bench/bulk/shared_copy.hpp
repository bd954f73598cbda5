// What a block between two processes of a host is compared with: one copies into shared memory, the other out
// of it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>

#include <esker/runtime.hpp>

namespace esker::bench {

/// A ring in memory that two processes map. Both ends spin: the least that a copy in two steps can take.
class SharedCopy {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  /// Collective; PE 0 makes it.
  explicit SharedCopy(Runtime& rt) {
    std::uint64_t from[2] = {};
    if (rt.pe() == 0) {
      file_ = memfd_create("esker-bench", 0);
      if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kBytes)) != 0)
        throw std::runtime_error("no shared memory for the comparison");
      from[0] = static_cast<std::uint64_t>(getpid());
      from[1] = static_cast<std::uint64_t>(file_);
    }
    rt.all_reduce(from, Reduction::kMax);
    if (rt.pe() != 0)
      file_ = open(("/proc/" + std::to_string(from[0]) + "/fd/" + std::to_string(from[1])).c_str(), O_RDWR);
    void* const at =
        file_ < 0 ? MAP_FAILED : mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) throw std::runtime_error("the shared memory of the comparison cannot be mapped");
    ring_ = static_cast<Ring*>(at);
  }
  ~SharedCopy() {
    munmap(ring_, kBytes);
    close(file_);
  }
  SharedCopy(const SharedCopy&) = delete;
  SharedCopy& operator=(const SharedCopy&) = delete;

  /// In slots of `slot` bytes, `slots` of them; slot * slots <= kMostBytes. Returns when all is copied out.
  void copy_in(const std::byte* from, std::size_t bytes, std::size_t slot, std::size_t slots) {
    for (std::size_t at = 0; at < bytes; at += slot, ++in_) {
      while (in_ - ring_->out.load(std::memory_order_acquire) >= slots) pause();
      std::memcpy(ring_->bytes + in_ % slots * slot, from + at, std::min(slot, bytes - at));
      ring_->in.store(in_ + 1, std::memory_order_release);
    }
    while (ring_->out.load(std::memory_order_acquire) != in_) pause();
  }
  void copy_out(std::byte* to, std::size_t bytes, std::size_t slot, std::size_t slots) {
    for (std::size_t at = 0; at < bytes; at += slot, ++out_) {
      while (ring_->in.load(std::memory_order_acquire) == out_) pause();
      std::memcpy(to + at, ring_->bytes + out_ % slots * slot, std::min(slot, bytes - at));
      ring_->out.store(out_ + 1, std::memory_order_release);
    }
  }

 private:
  struct Ring {
    alignas(128) std::atomic<std::uint64_t> in;
    alignas(128) std::atomic<std::uint64_t> out;
    alignas(128) std::byte bytes[kMostBytes];
  };
  static constexpr std::size_t kBytes = sizeof(Ring);
  static void pause() { __builtin_ia32_pause(); }

  int file_ = -1;
  Ring* ring_ = nullptr;
  std::uint64_t in_ = 0, out_ = 0;
};

}  // namespace esker::bench
