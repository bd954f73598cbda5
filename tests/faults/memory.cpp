// Resident memory of each PE after every PE has sent to every PE, against what the runtime declared.
#include <fmt/format.h>
#include <esker/esker.hpp>

#include <cstdint>
#include <cstdio>

#include "resident.hpp"

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  constexpr std::uint64_t kWords = 1 << 16;
  constexpr std::uint64_t kUpdatesAPeer = 1 << 15;  // four node buffers of 64 KiB
  const auto table = rt.heap().allocate<std::uint64_t>(kWords);
  for (int round = 0; round < 2; ++round) {
    rt.launch(kUpdatesAPeer * rt.n_pes(), [=](esker::WorkItem item) {
      const std::uint64_t r = (item.global_id() + item.pe() * 0x51ed) * 0x9e3779b97f4a7c15;
      esker::shmem_inc(item, &table[(r >> 40) % kWords], static_cast<std::uint32_t>((r >> 8) % item.n_pes()));
    });
    rt.barrier_all();
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t counter : table) sum += counter;
  std::fputs(fmt::format("PE {}: updates={} heap_kib={} declared_kib={} {}\n", rt.pe(), sum,
                         faults::mapping_kib(table.data(), kWords * sizeof(std::uint64_t)),
                         rt.declared_memory_bytes() / 1024, faults::resident_in_words())
                 .c_str(),
             stdout);
  std::fflush(stdout);
  rt.barrier_all();
}
