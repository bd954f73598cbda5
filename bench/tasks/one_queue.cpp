// A rival: one queue in device memory for all waves.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <esker/device/group.hpp>

#include "collected.hpp"
#include "sides.hpp"

namespace esker::bench {
namespace {

constexpr std::uint32_t kGroupLanes = 128;

/// A place of the queue, written once a run.
template <class Task>
class Place {
 public:
  ESKER_HD void put(const Task& task) {
    task_ = task;
    is_written_.store_release(1);  // [task]
  }
  ESKER_HD bool try_get(Task& task) const {
    if (is_written_.load_acquire() == 0) return false;  // [task]
    task = task_;
    return true;
  }

 private:
  DeviceAtomic<std::uint32_t> is_written_;
  Task task_;
};
/// Of a task of one word: both in one, and nothing to order.
template <class Task>
requires(sizeof(Task) == 4) class Place<Task> {
 public:
  ESKER_HD void put(const Task& task) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &task, 4);
    word_.store_relaxed(std::uint64_t{1} << 32 | bits);
  }
  ESKER_HD bool try_get(Task& task) const {
    const std::uint64_t word = word_.load_relaxed();
    const auto bits = static_cast<std::uint32_t>(word);
    __builtin_memcpy(&task, &bits, 4);
    return word >> 32 != 0;
  }

 private:
  DeviceAtomic<std::uint64_t> word_;
};
struct Counters {
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> drawn;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> added;
  alignas(kLineBytes) Tally tally;
};

/// Who draws ticket t runs the t-th task that is added.
template <class Task>
struct FromOneQueue {
  Place<Task>* places;
  Counters* counters;
  std::uint64_t tasks;  // of the whole run

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if !defined(ESKER_ON_CPU)
    const auto wave = lane.wave();
    const std::uint32_t me = wave.index();
    std::uint64_t ticket = 0, sum = 0;
    std::uint32_t done = 0;
    bool has_ticket = false;
    while (true) {
      const Position mine = wave.position_among(!has_ticket);
      if (mine.total != 0) {
        std::uint64_t drawn = 0;
        if (me == 0) drawn = counters->drawn.fetch_add_relaxed(mine.total);
        drawn = wave.broadcast(drawn, 0);
        if (!has_ticket) ticket = drawn + mine.index;
        has_ticket = true;
      }
      Collected<Task> told;
      Task task{};
      const bool is_there = ticket < tasks && places[ticket].try_get(task);
      if (is_there) {
        task(told);
        sum += told.sum;
        ++done;
        has_ticket = false;
      }
      const Position one = wave.position_among(told.children > 0);
      const Position two = wave.position_among(told.children > 1);
      if (one.total != 0) {
        std::uint64_t added = 0;
        if (me == 0) added = counters->added.fetch_add_relaxed(one.total + two.total);
        added = wave.broadcast(added, 0);
        if (told.children > 0) put(added + one.index, told.first);
        if (told.children > 1) put(added + one.total + two.index, told.second);
        continue;
      }
      if (wave.any(is_there)) continue;
      // Nothing for this wave now.
      const std::uint32_t all = wave.reduce(done, Sum{});
      done = 0;
      std::uint32_t is_over = 0;
      if (me == 0) {
        if (all != 0) (void)counters->tally.done.fetch_add_relaxed(all);
        is_over = counters->tally.done.load_relaxed() >= tasks ? 1 : 0;
      }
      if (wave.broadcast(is_over, 0) != 0) break;
      GroupLane::yield();
    }
    (void)counters->tally.sum.fetch_add_relaxed(sum);
#endif
  }
  /// More tasks than were announced are lost, and the sum is another one.
  ESKER_HD void put(std::uint64_t at, const Task& task) const {
    if (at < tasks) places[at].put(task);
  }
};

template <class Task>
Run queue_of(const Device& device, const Task& first, std::uint64_t tasks, std::uint32_t waves) {
  struct State {
    DeviceArray<Place<Task>> places;
    DeviceArray<Counters> counters;
    PinnedArray<Place<Task>> root;
    PinnedArray<Counters> seen;
    Stream stream;
    std::uint64_t groups = 0;
  };
  auto state = std::make_shared<State>(State{device.memory<Place<Task>>(tasks, {"a queue of tasks"}),
                                             device.memory<Counters>(1), device.pinned<Place<Task>>(1),
                                             device.pinned<Counters>(1), device.stream()});
  state->root[0].put(first);
  const FromOneQueue<Task> kernel{state->places.data(), state->counters.data(), tasks};
  state->groups = std::min(device.resident_groups(kernel, kGroupLanes),
                           std::uint64_t{waves} * 32 / kGroupLanes * device.properties().processors);
  return [device, state, kernel] {
    device.fill(state->places.data(), 0, state->places.size_bytes(), state->stream);
    device.fill(state->counters.data(), 0, sizeof(Counters), state->stream);
    // The root is the first that was added.
    state->seen[0].added.store_relaxed(1);
    device.copy_async(&state->counters.data()->added, &state->seen[0].added, 8, state->stream);
    device.copy_async(state->places.data(), state->root.data(), sizeof(Place<Task>), state->stream);
    device.launch(LaunchShape{state->groups * kGroupLanes, kGroupLanes}, kernel, state->stream);
    state->stream.synchronize();
    device.copy(state->seen.data(), state->counters.data(), sizeof(Counters));
    return state->seen[0].tally.sum.load_relaxed();
  };
}

}  // namespace

Run one_queue(const Device& device, const Problem& problem, std::uint64_t tasks, std::uint32_t waves) {
  if (device.backend() == Backend::kCpu) throw std::invalid_argument("one_queue() is for GPUs");
  if (device.properties().wave_lanes != 32)
    throw std::invalid_argument("one_queue() wants waves of 32 lanes");
  if (tasks > std::uint64_t{1} << 26)
    throw std::invalid_argument("one_queue() has a place for each task: " + std::to_string(tasks) +
                                " are too many");
  return with_tasks_of(problem, [&](const auto& first) { return queue_of(device, first, tasks, waves); });
}

}  // namespace esker::bench
