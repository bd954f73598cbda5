// Sends messages through one queue with one end of one release/acquire pair weakened.
//
//     queue_mutant spsc|mpmc|package|mailbox none|fill-release|fill-acquire|reuse-release|reuse-acquire
//
// Always built with ThreadSanitizer: the machine that runs the tests may order more than the language
// promises, so a weakened queue would deliver there, but a missing happens-before edge is a race report
// in every run. Nothing but the queue may order the two threads, so they share nothing else.
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <esker/queue/mailbox.hpp>
#include <esker/queue/mpmc_queue.hpp>
#include <esker/queue/package_memory.hpp>
#include <esker/queue/spsc_queue.hpp>
#include <esker/tests/queue/weakened_atomic.hpp>

namespace esker {
namespace {

constexpr std::uint64_t kMessages = 100;
constexpr std::uint32_t kSlots = 2;

// Runs produce(i) and consume(i) for each i, each on its own thread. False: a message was wrong.
template <class Produce, class Consume>
bool exchange(Produce produce, Consume consume) {
  bool right = true;
  std::jthread producer([&] {
    is_producer = true;
    for (std::uint64_t i = 0; i < kMessages; ++i) produce(i);
  });
  std::jthread consumer([&] {
    for (std::uint64_t i = 0; i < kMessages; ++i) right &= consume(i);
  });
  producer.join();
  consumer.join();
  return right;
}

template <class Queue>
bool exchange_messages() {
  Queue queue(kSlots);
  return exchange(
      [&](std::uint64_t i) {
        while (!queue.try_push(i)) std::this_thread::yield();
      },
      [&](std::uint64_t i) {
        std::uint64_t message = 0;
        while (!queue.try_pop(message)) std::this_thread::yield();
        return message == i;
      });
}

bool exchange_packages() {
  BasicPackageMemory<WeakenedAtomic> memory(kSlots, kLineBytes);
  return exchange(
      [queue = memory.queue()](std::uint64_t i) mutable {
        const std::uint64_t ticket = queue.reserve();
        while (!queue.was_empty(ticket)) std::this_thread::yield();
        queue.row(ticket, 1, 0)[0] = i;
        queue.publish(ticket, 0, 1, 1);
      },
      [queue = memory.queue()](std::uint64_t i) mutable {
        std::uint64_t ticket = 0;
        while (!queue.try_peek(ticket)) std::this_thread::yield();
        const bool right = queue.row(ticket, 1, 0)[0] == i;
        queue.release(ticket);
        return right;
      });
}

bool exchange_by_mailbox() {
  using Box = BasicMailbox<WeakenedAtomic>;
  std::vector<std::uint64_t> storage(kSlots * Box::kSlotBytes / 8);
  const auto senders = std::make_unique<Box::Turn[]>(kSlots);
  const auto receivers = std::make_unique<Box::Turn[]>(kSlots);
  const Box box(reinterpret_cast<std::byte*>(storage.data()), senders.get(), receivers.get());
  return exchange(
      [box](std::uint64_t i) {
        std::uint64_t turn = 0;
        while (!box.try_claim(i % kSlots, turn)) std::this_thread::yield();
        box.payload(i % kSlots)[0] = i;
        box.publish(i % kSlots, turn, 0, {0, 1, 1});
      },
      [box](std::uint64_t i) {
        std::uint64_t turn = 0;
        while (!box.try_take(i % kSlots, 0, turn)) std::this_thread::yield();
        const bool right = box.payload(i % kSlots)[0] == i;
        box.release(i % kSlots, turn);
        return right;
      });
}

int run(const std::string& queue, const std::string& end) {
  static const std::map<std::string, bool (*)()> kQueues = {
      {"spsc", exchange_messages<SpscQueue<std::uint64_t, WeakenedAtomic>>},
      {"mpmc", exchange_messages<MpmcQueue<std::uint64_t, WeakenedAtomic>>},
      {"package", exchange_packages},
      {"mailbox", exchange_by_mailbox}};
  static const std::map<std::string, End> kEnds = {{"none", End::kNone},
                                                   {"fill-release", End::kFillRelease},
                                                   {"fill-acquire", End::kFillAcquire},
                                                   {"reuse-release", End::kReuseRelease},
                                                   {"reuse-acquire", End::kReuseAcquire}};
  if (!kQueues.contains(queue) || !kEnds.contains(end)) {
    std::cerr << "queue_mutant: no queue '" << queue << "' or no end '" << end << "'\n";
    return 2;
  }
  weakened_end = kEnds.at(end);
  return kQueues.at(queue)() ? 0 : 1;
}

}  // namespace
}  // namespace esker

int main(int argc, char** argv) {
  if (argc == 3) return esker::run(argv[1], argv[2]);
  std::cerr << "usage: queue_mutant QUEUE END\n";
  return 2;
}
