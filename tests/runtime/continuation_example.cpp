// A hash table over all PEs, without locks: a lane claims a slot by compare and swap, and where another key
// has it, the continuation tries the next one.
#include <cstdint>

#include <esker/esker.hpp>

struct Probe {
  std::uint64_t value;  // first: what the slot held, which the reply fills in
  std::uint64_t key, slot;
};

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  constexpr std::uint64_t kKeys = 1 << 12, kSlots = 1 << 13;     // of each PE
  const auto table = rt.heap().allocate<std::uint64_t>(kSlots);  // slot s: word s / n_pes of PE s % n_pes
  const auto stored = rt.heap().allocate<std::uint64_t>(1);

  const auto probe = rt.register_handler<std::uint64_t, Probe>(
      "probe", [=] ESKER_LAMBDA(esker::HandlerContext & context, std::uint64_t & keys, const Probe& found,
                                esker::Handler<std::uint64_t, Probe> self) {
        if (found.value == 0) ++keys;  // the slot was free, and now holds the key
        if (found.value == 0 || found.value == found.key) return;
        const std::uint32_t n = context.n_pes();
        const std::uint64_t next = (found.slot + 1) % (kSlots * n);
        shmem_compare_swap(context, then(self, &keys, {0, found.key, next}), &table[next / n], 0, found.key,
                           static_cast<std::uint32_t>(next % n));
      });
  rt.launch(kKeys, [=] ESKER_LAMBDA(esker::WorkItem item) {
    const std::uint32_t n = item.n_pes();
    const std::uint64_t key = item.global_id() * n + item.pe() + 1;
    const std::uint64_t slot = key * 0x9e3779b97f4a7c15 % (kSlots * n);
    shmem_compare_swap(item, then(probe, stored.data(), {0, key, slot}), &table[slot / n], 0, key,
                       static_cast<std::uint32_t>(slot % n));
  });
  rt.barrier_all();  // every chain of continuations has ended
  return rt.heap().read(stored)[0] == kKeys ? 0 : 1;
}
