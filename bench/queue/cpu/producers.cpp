// Producers on the CPU: the same kernels, on one thread. For checking them where there is no GPU.
#include <esker/bench/queue/producers.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <esker/bench/queue/kernels.hpp>
#include <esker/device/cpu/launch.hpp>
#include <esker/queue/package_memory.hpp>

namespace esker::bench {

struct Producers::Memory {
  explicit Memory(const Producing& how) : memory{how.slots, how.package_bytes} {}
  PackageMemory memory;
  std::jthread lanes;
};

Producers::Producers(const Producing& how) : how_{how}, memory_{std::make_unique<Memory>(how)} {
  if (how.election == Election::kOutbox)
    throw std::runtime_error("--election=outbox is what lanes do on a GPU, and --device=cpu has none");
}
Producers::~Producers() = default;
PackageQueue Producers::queue() const { return memory_->memory.queue(); }
std::uint64_t Producers::resident_lanes() const { return 4 * std::uint64_t{how_.group_lanes}; }

void Producers::start(const Production& production) {
  memory_->lanes = std::jthread([this, production] {
    with_kernel(how_, production, queue(), nullptr, [&](const auto& kernel) {
      cpu::launch({production.lanes, how_.group_lanes}, GroupExecution::kFibers, kernel);
    });
  });
}

void Producers::finish() { memory_->lanes = {}; }
std::string Producers::state() const { return "lanes are threads of the host"; }

struct PlainWriter::Memory {
  std::vector<std::uint64_t> ring;
};

PlainWriter::PlainWriter(std::uint64_t ring_bytes)
    : memory_{std::make_unique<Memory>(Memory{std::vector<std::uint64_t>(ring_bytes / 8)})} {}
PlainWriter::~PlainWriter() = default;

double PlainWriter::write(std::uint64_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < (bytes + 7) / 8; ++i) {
    memory_->ring[at] = i;
    if (++at == memory_->ring.size()) at = 0;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string producer_backend() { return "cpu"; }
std::string producer_device() { return "cpu lanes"; }

}  // namespace esker::bench
