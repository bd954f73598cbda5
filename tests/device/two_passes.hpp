// What a host source and a simulated GPU's source of one program both use: everything whose definition may
// depend on the compiler pass. Each of the two names the function TWO_PASSES_NAME.
#pragma once

#include <cstdint>
#include <esker/device/device.hpp>
#include <esker/device/fine_grain_barrier.hpp>
#include <esker/runtime.hpp>
#include <esker/tasks.hpp>

namespace esker::testing {

struct TwoPassesTask {
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(TwoPassesTask{n - 1}, TwoPassesTask{n - 2}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};

void TWO_PASSES_NAME(Runtime& rt, const Device& device, std::uint64_t* words) {
  const auto array = rt.heap().allocate<std::uint64_t>(64);
  const auto handler = rt.register_handler<std::uint64_t, std::uint64_t>(
      "add", [] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & target, const std::uint64_t& value) {
        target += value + context.source() + context.pe();
        if (value > 100) shmem_inc(context, &target, context.pe());
      });
  rt.launch(64, [=] ESKER_LAMBDA(WorkItem item) {
    shmem_inc(item, &array[item.global_id() % 64], 0);
    shmem_am(item, handler, &array[0], 1, item.pe());
    shmem_put(item, &array[1], 1, 0);
  });
  rt.launch(64, [=] ESKER_LAMBDA(GroupItem & item) {
    const std::uint32_t sum = item.group().reduce(item.lane(), Sum{});
    shmem_add(item, &array[2], sum, 0);
    shmem_min(item, &array[3], 1, 0);
  });
  rt.launch(64, [=] ESKER_LAMBDA(GroupLane & lane) {
    auto& state = lane.scratch<FineGrainState<64>>();
    FineGrainBarrier<64> barrier(lane, state);
    barrier.join();
    lane.group().sync();
    barrier.wait();
    barrier.leave();
    SystemAtomic<std::uint64_t>* const word = reinterpret_cast<SystemAtomic<std::uint64_t>*>(words);
    word->fetch_add_relaxed(1);
    Lane::yield();
  });
  rt.quiet();
  device.launch(10, [=] ESKER_LAMBDA(Lane lane) { words[lane.global_id()] = 1; });
  words[0] += static_cast<std::uint64_t>(tasks::run(device, TwoPassesTask{5}));
  const tasks::Channel<std::uint64_t> channel(device, {.capacity = 4});
  words[1] += channel.view().capacity();
}

}  // namespace esker::testing
