// Channels: each element arrives once, whoever frees when, full and empty, shared by waves and by lanes.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using tasks::Channel;
using tasks::ChannelOptions;
using tasks::Sharing;

struct Element {
  std::uint32_t from, number, twice;
};

/// Lanes put an element, and take one, in turn; one that finds the channel full or empty tries its other
/// half.
template <class View>
struct PutAndTake {
  View channel;
  std::uint32_t* arrived;  // of each number, of each lane
  std::uint32_t* wrong;
  std::uint32_t each;  // elements of a lane
  ESKER_HD void operator()(GroupLane& lane) const {
    const auto me = static_cast<std::uint32_t>(lane.global_id());
    std::uint32_t put = 0, got = 0;
    // The wave goes round together: a lane that sleeps alone is not sure to wake while others of its wave
    // wait for it.
    while (lane.wave().position_among(put < each || got < each).total > 0) {
      bool moved = false;
      if (put < each) {
        const std::uint32_t element = channel.try_allocate();
        if (element != View::kNone) {
          channel[element] = {me, put, 2 * put};
          channel.publish(element);
          ++put;
          moved = true;
        }
      }
      if (got < each) {
        const std::uint32_t element = channel.try_take();
        if (element != View::kNone) {
          const Element found = channel[element];
          if (found.twice != 2 * found.number) ++*wrong;
          auto& count =
              reinterpret_cast<DeviceAtomic<std::uint32_t>&>(arrived[found.from * each + found.number]);
          (void)count.fetch_add_relaxed(1);
          channel.free(element);
          ++got;
          moved = true;
        }
      }
      if (lane.wave().position_among(moved).total == 0) lane.yield();
    }
  }
};

template <Sharing kSharing, Scope S = Scope::kDevice>
void put_and_take(ChannelOptions options, std::uint32_t lanes, std::uint32_t each) {
  const Device device = Device::open();
  const Channel<Element, kSharing, S> channel(device, options);
  const auto arrived = device.memory<std::uint32_t>(lanes * each);
  const auto wrong = device.memory<std::uint32_t>(1);
  using View = typename Channel<Element, kSharing, S>::View;
  device.launch(LaunchShape{lanes, 64}, PutAndTake<View>{channel.view(), arrived.data(), wrong.data(), each});
  std::vector<std::uint32_t> counts(lanes * each + 1);
  device.copy(counts.data(), arrived.data(), arrived.size_bytes());
  device.copy(&counts.back(), wrong.data(), 4);
  EXPECT_EQ(counts.back(), 0u) << "elements that changed on their way";
  counts.pop_back();
  for (std::uint32_t i = 0; i < counts.size(); ++i) ASSERT_EQ(counts[i], 1u) << "element " << i;
  EXPECT_EQ(channel.view().capacity(), options.capacity);
}

TEST(Channel, DeliversEachElementOnce) { put_and_take<Sharing::kWave>({.capacity = 64}, 192, 20); }
TEST(Channel, DeliversToLanesOnTheirOwn) { put_and_take<Sharing::kLane>({.capacity = 64}, 192, 20); }
TEST(Channel, PadsElements) { put_and_take<Sharing::kWave>({.capacity = 64, .padded = true}, 192, 20); }
TEST(Channel, StandsInPinnedMemory) {
  put_and_take<Sharing::kWave, Scope::kSystem>({.capacity = 64}, 192, 20);
}
TEST(Channel, WorksAlmostFullAndAlmostEmpty) {
  for (const std::uint32_t capacity : {1u, 2u, 3u, 5u, 31u, 33u})
    put_and_take<Sharing::kWave>({.capacity = capacity}, 96, 12);
}

/// One lane: what a full channel refuses, what frees in any order give back, and the order of elements.
struct Walk {
  tasks::ChannelView<Element> channel;
  std::uint32_t* failed;
  ESKER_HD void operator()(Lane) const {
    using View = tasks::ChannelView<Element>;
    const auto check = [this](bool right, std::uint32_t line) {
      if (!right && *failed == 0) *failed = line;
    };
    std::uint32_t elements[4];
    for (std::uint32_t i = 0; i < 4; ++i) {
      elements[i] = channel.try_allocate();
      check(elements[i] != View::kNone, __LINE__);
      channel[elements[i]] = {0, i, 2 * i};
    }
    check(channel.try_allocate() == View::kNone, __LINE__);
    check(channel.try_take() == View::kNone, __LINE__);
    // Published in another order than allocated.
    for (std::uint32_t i = 4; i-- > 0;) channel.publish(elements[i]);
    check(channel.was_published() == 4 && channel.is_worth_a_dispatch(4) && !channel.is_worth_a_dispatch(5),
          __LINE__);
    for (std::uint32_t i = 4; i-- > 0;) {
      const std::uint32_t taken = channel.try_take();
      check(taken == elements[i] && channel[taken].number == i, __LINE__);
    }
    // The last is freed first, and can be allocated while the others are still in use.
    channel.free(elements[0]);
    check(channel.try_allocate() == elements[0], __LINE__);
    check(channel.try_allocate() == View::kNone, __LINE__);
  }
};
TEST(Channel, FreesInAnyOrder) {
  const Device device = Device::open();
  const Channel<Element> channel(device, {.capacity = 4});
  const auto failed = device.memory<std::uint32_t>(1);
  device.launch(1, Walk{channel.view(), failed.data()});
  std::uint32_t line = 0;
  device.copy(&line, failed.data(), sizeof line);
  EXPECT_EQ(line, 0u) << "the check of that line";
}

TEST(Channel, RefusesMoreElementsThanItsRingsHold) {
  for (const std::uint32_t capacity : {(1u << 31) + 1, ~0u}) {
    try {
      const Channel<char> channel(Device::open(), {.capacity = capacity});
      ADD_FAILURE() << capacity << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kConfiguration) << error.what();
      EXPECT_NE(std::string(error.what()).find(std::to_string(capacity)), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace esker::testing
