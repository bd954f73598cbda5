// The helpers: frames go through all of them, in order, and an error stops what follows.
#include <esker/net/apply_pool.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apply_bench.hpp"
#include "transport_contract.hpp"

namespace esker::testing {
namespace {

constexpr ApplierSettings kSettings{kMe, kPes, 1024, 4, std::chrono::microseconds{100}};

struct Submitted {
  explicit Submitted(std::vector<std::byte> bytes) : frame{std::move(bytes)} {
    job.header = header_of(frame);
    job.frame = frame.data();
    job.heap_bytes = kHeapBytes;
    job.left = 0;
  }
  std::vector<std::byte> frame;
  ApplyJob job;
};

class Helpers : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  Helpers() {
    handlers.add({"add_and_tell", 2, 8, 8, [](HostCall& call, void* target, const void* arguments) {
                    HandlerContext context(call);
                    std::uint64_t argument = 0;
                    std::memcpy(&argument, arguments, sizeof argument);
                    *static_cast<std::uint64_t*>(target) += argument;
                    esker::detail::SenderAccess::post(
                        context, built_in(Operation::kInc, Operand::kUint64),
                        {address_word(static_cast<std::uint32_t>(argument % kPes), 8)});
                  }});
  }
  void on_error(const Error& error) {
    const std::lock_guard lock(mutex);
    errors.push_back(std::string(to_string(error.kind())) + ": " + error.what());
  }
  std::unique_ptr<ApplyPool> make_pool() {
    return std::make_unique<ApplyPool>(GetParam(), kSettings, handlers, heap.base(), sink,
                                       [this](const Error& error) { on_error(error); });
  }
  /// In order; returns when all have ended.
  static void submit_all(ApplyPool& pool, std::deque<Submitted>& jobs) {
    for (Submitted& next : jobs) poll("room for a job", [&] { return pool.try_submit(next.job); });
    for (const Submitted& one : jobs) {
      poll("a job", [&] { return one.job.left.load(std::memory_order_acquire) == 0; });
    }
  }
  std::uint64_t count_sent() {
    std::uint64_t count = 0;
    while (Buffer* const buffer = sink.take()) {
      count += buffer->messages;
      recycle(buffer);
    }
    return count;
  }

  HandlerTable handlers;
  Heap heap;
  SharedSink sink;
  std::mutex mutex;
  std::vector<std::string> errors;  // guarded by mutex
};

TEST_P(Helpers, ApplyEveryFrameLikeTheReference) {
  std::mt19937_64 random(seed());
  const std::vector<Command> commands = built_in_commands();
  Heap expected;
  std::deque<Submitted> jobs;
  std::uint64_t count = 0;
  std::uint64_t calls = 0;
  for (int i = 0; i < 400; ++i) {
    FrameBuilder builder = messages();
    for (int run = 0; run < 3; ++run) {
      const Command command = commands[random() % commands.size()];
      if (is_floating(command.operand)) continue;  // sums of random bits need not be the same twice
      const auto rows = random_rows(random, command, random() % 200);
      builder.run(command, rows);
      apply_reference(expected, command, rows);
      count += rows[0].size();
    }
    const Command add = built_in(Operation::kAdd, Operand::kUint64);
    const auto rows = random_rows(random, add, random() % 50);
    builder.run(active_message(1), rows);  // has the effect of an add
    apply_reference(expected, add, rows);
    count += rows[0].size();
    calls += rows[0].size();
    jobs.emplace_back(builder.bytes());
  }
  const auto pool = make_pool();
  EXPECT_EQ(pool->helpers(), GetParam());
  submit_all(*pool, jobs);
  pool->set_flushing(true);
  poll("the outboxes", [&] { return pool->outboxes_empty(); });
  EXPECT_EQ(errors, std::vector<std::string>{});
  EXPECT_TRUE(heap == expected);
  EXPECT_EQ(pool->applied(), count);
  EXPECT_EQ(pool->sent_by_handlers(), calls);
  EXPECT_EQ(pool->was_in_handler(), "");
  EXPECT_EQ(count_sent(), calls);
}

TEST_P(Helpers, CloseWhatHandlersSentAfterTheTimeOutWithoutBeingAsked) {
  std::deque<Submitted> jobs;
  jobs.emplace_back(messages().run(active_message(1), {{0, kOwnershipBytes}, {1, 2}}).bytes());
  const auto pool = make_pool();
  submit_all(*pool, jobs);
  poll("the outboxes", [&] { return pool->outboxes_empty(); });
  EXPECT_EQ(count_sent(), 2u);
}

// A PE that waits for replies does not wait for the rest of what a helper has before it.
TEST_P(Helpers, FlushBetweenTwoJobs) {
  std::atomic<int> allowed{0};
  handlers.add({"tell and wait", 1, 1, 1, [&](HostCall& call, void*, const void*) {
                  static std::atomic<int> calls{0};
                  HandlerContext context(call);
                  esker::detail::SenderAccess::post(context, built_in(Operation::kInc, Operand::kUint64),
                                                    {address_word(0, 8)});
                  const int mine = calls++ % 2;
                  while (allowed.load() <= mine) std::this_thread::yield();
                }});
  ApplierSettings patient = kSettings;
  patient.timeout = std::chrono::hours{1};
  ApplyPool pool(GetParam(), patient, handlers, heap.base(), sink,
                 [this](const Error& error) { on_error(error); });
  std::deque<Submitted> jobs;
  for (int i = 0; i < 2; ++i) jobs.emplace_back(messages().run(active_message(2), {{0}}).bytes());
  for (Submitted& job : jobs) ASSERT_TRUE(pool.try_submit(job.job));
  poll("the handler to run", [&] { return pool.was_in_handler() == "tell and wait"; });
  pool.flush_once();
  allowed = 1;
  std::uint64_t sent = 0;
  poll("the first message", [&] { return (sent += count_sent()) > 0; });
  EXPECT_EQ(sent, 1u);
  allowed = 2;
  for (const Submitted& one : jobs) {
    poll("a job", [&] { return one.job.left.load(std::memory_order_acquire) == 0; });
  }
}

// A handler that waits keeps the helpers' queues full.
TEST_P(Helpers, PushBackWhileTheyAreBusy) {
  std::atomic<bool> go_on{false};
  handlers.add({"wait", 1, 1, 1, [&](HostCall&, void*, const void*) {
                  while (!go_on.load()) std::this_thread::yield();
                }});
  std::deque<Submitted> jobs;
  for (int i = 0; i < 200; ++i) jobs.emplace_back(messages().run(active_message(2), {{0}}).bytes());
  const auto pool = make_pool();
  std::size_t taken = 0;
  while (taken < jobs.size() && pool->try_submit(jobs[taken].job)) ++taken;
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, jobs.size());
  poll("the handler to run", [&] { return pool->was_in_handler() == "wait"; });
  EXPECT_EQ(pool->applied(), 0u);
  go_on = true;
  for (std::size_t i = 0; i < taken; ++i) {
    poll("a job", [&] { return jobs[i].job.left.load(std::memory_order_acquire) == 0; });
  }
  EXPECT_EQ(pool->applied(), taken);
}

TEST_P(Helpers, PassOverWhatFollowsABadAddress) {
  for (const std::uint64_t offset :
       {std::uint64_t{1} << 63, ~std::uint64_t{7}, kHeapBytes, std::uint64_t{4}}) {
    heap = Heap();
    errors.clear();
    const Command inc = built_in(Operation::kInc, Operand::kUint64);
    const std::vector<std::uint64_t> good{0, kOwnershipBytes, 2 * kOwnershipBytes};
    std::deque<Submitted> jobs;
    jobs.emplace_back(messages().run(inc, {good}).bytes());
    jobs.emplace_back(messages().run(inc, {{good[0], offset, good[1], good[2]}}).bytes());
    jobs.emplace_back(messages().run(inc, {good}).bytes());
    const auto pool = make_pool();
    submit_all(*pool, jobs);  // every job ends, errors or not
    for (const std::uint64_t at : good) {
      std::uint64_t word = 0;
      std::memcpy(&word, heap.base() + at, 8);
      // A helper that is behind may learn of the error before it comes to the first job.
      EXPECT_LE(word, 1u);
      EXPECT_GE(word, GetParam() == 1 ? 1u : 0u);
      std::memset(heap.base() + at, 0, 8);
    }
    EXPECT_TRUE(heap == Heap()) << "something else was touched";
    const std::lock_guard lock(mutex);
    ASSERT_FALSE(errors.empty());
    for (const std::string& error : errors) {
      EXPECT_EQ(error.rfind("network: a buffer from PE 2: ", 0), 0u) << error;
      EXPECT_NE(error.find(fmt::format("heap offset {:#x}", offset)), std::string::npos) << error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Helpers, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace esker::testing
