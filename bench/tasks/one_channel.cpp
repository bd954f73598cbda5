// A scheduler on one channel: all tasks go through it.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <esker/device/group.hpp>

#include "collected.hpp"
#include "sides.hpp"

namespace esker::bench {
namespace {

constexpr std::uint32_t kGroupLanes = 128;
constexpr std::uint32_t kGroupsAProcessor = 4;
constexpr std::uint32_t kOwn = 64;  // tasks that a lane keeps, of those that found the channel full

/// A lane runs what it keeps, else what it takes.
template <class Task, class View>
struct FromOneChannel {
  View channel;
  Tally* tally;
  std::uint64_t tasks;  // of the whole run

  ESKER_HD void operator()(GroupLane& lane) const {
    Task own[kOwn];
    std::uint32_t kept = 0;
    std::uint64_t sum = 0, done = 0, inlined = 0;
    auto wave = lane.wave();
    while (true) {
      wave.sync();  // or its lanes go ways of their own
      Task task{};
      bool has_task = true;
      if (kept > 0) {
        task = own[--kept];
      } else {
        const std::uint32_t element = channel.try_take();
        has_task = element != View::kNone;
        if (has_task) {
          task = channel[element];
          channel.free(element);
        }
      }
      if (has_task) {
        Collected<Task> told;
        task(told);
        sum += told.sum;
        ++done;
        if (told.children > 0) put(told.first, own, kept, inlined);
        if (told.children > 1) put(told.second, own, kept, inlined);
      }
      if (wave.position_among(has_task).total != 0) continue;
      if (done != 0) (void)tally->done.fetch_add_relaxed(done);
      done = 0;
      if (tally->done.load_relaxed() >= tasks || tally->overflowed.load_relaxed() != 0) break;
      lane.yield();
    }
    (void)tally->sum.fetch_add_relaxed(sum);
    (void)tally->inlined.fetch_add_relaxed(inlined);
  }

  ESKER_ALWAYS_INLINE ESKER_HD void put(const Task& task, Task* own, std::uint32_t& kept,
                                        std::uint64_t& inlined) const {
    const std::uint32_t element = channel.try_allocate();
    if (element != View::kNone) {
      channel[element] = task;
      channel.publish(element);
    } else if (kept < kOwn) {
      own[kept++] = task;
      ++inlined;
    } else {
      tally->overflowed.store_relaxed(1);
    }
  }
};

/// One lane's.
template <class Task, class View>
struct PutRoot {
  View channel;
  Tally* tally;
  Task first;
  ESKER_HD void operator()(Lane) const {
    tally->sum.store_relaxed(0);
    tally->done.store_relaxed(0);
    tally->inlined.store_relaxed(0);
    tally->overflowed.store_relaxed(0);
    const std::uint32_t element = channel.try_allocate();
    channel[element] = first;
    channel.publish(element);
  }
};

template <tasks::Sharing kSharing, class Task>
ChannelRun channel_of(const Device& device, const Task& first, std::uint64_t tasks, bool is_padded,
                      std::uint32_t capacity) {
  using Channel = tasks::Channel<Task, kSharing>;
  struct State {
    Channel channel;
    DeviceArray<Tally> tally;
    PinnedArray<Tally> seen;
    Stream stream;
  };
  std::shared_ptr<State> state(
      new State{Channel(device, tasks::ChannelOptions{.capacity = capacity, .padded = is_padded}),
                device.memory<Tally>(1), device.pinned<Tally>(1), device.stream()});
  const FromOneChannel<Task, typename Channel::View> kernel{state->channel.view(), state->tally.data(),
                                                            tasks};
  const std::uint64_t groups = std::min(device.resident_groups(kernel, kGroupLanes),
                                        std::uint64_t{kGroupsAProcessor} * device.properties().processors);
  Run run = [=] {
    device.launch(1, PutRoot<Task, typename Channel::View>{kernel.channel, kernel.tally, first},
                  state->stream);
    device.launch(LaunchShape{groups * kGroupLanes, kGroupLanes}, kernel, state->stream);
    state->stream.synchronize();
    device.copy(state->seen.data(), state->tally.data(), sizeof(Tally));
    if (state->seen[0].overflowed.load_relaxed() != 0)
      throw std::runtime_error("a lane has more tasks of its own than it can keep");
    return state->seen[0].sum.load_relaxed();
  };
  return {std::move(run), [state] { return state->seen[0].inlined.load_relaxed(); }};
}

}  // namespace

ChannelRun one_channel(const Device& device, const Problem& problem, std::uint64_t tasks, ChannelForm form,
                       std::uint32_t capacity) {
  return with_tasks_of(problem, [&](const auto& first) {
    if (form == ChannelForm::kLane)
      return channel_of<tasks::Sharing::kLane>(device, first, tasks, false, capacity);
    return channel_of<tasks::Sharing::kWave>(device, first, tasks, form == ChannelForm::kPaddedWave,
                                             capacity);
  });
}

}  // namespace esker::bench
