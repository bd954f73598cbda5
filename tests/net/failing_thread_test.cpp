// What the runtime's own threads throw, whatever it is, becomes a failure of the job that names PE and
// thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <esker/aggregator/wire.hpp>
#include <esker/net/apply_pool.hpp>

#include "../aggregator/one_pe.hpp"
#include "../runtime/pes.hpp"
#include "apply_bench.hpp"
#include "transport_contract.hpp"

namespace esker::testing {
namespace {

/// What a library throws that is not an Error.
struct Thrown {
  const char* name;
  void (*now)();
  Error::Kind kind;
  const char* message;
};
const Thrown kThrown[] = {
    {"BadAlloc", [] { throw std::bad_alloc(); }, Error::Kind::kOutOfMemory,
     "the host has no memory left (std::bad_alloc)"},
    {"AStandardException", [] { throw std::length_error("too long"); }, Error::Kind::kNetwork, "too long"},
    {"AnInt", [] { throw 7; }, Error::Kind::kNetwork, "an exception that is no std::exception"},
};

class FailingThread : public ::testing::TestWithParam<Thrown> {
 protected:
  /// Takes no buffer, for the test's reason, from the first on.
  struct FailingSink final : BufferSink {
    explicit FailingSink(const Thrown& thrown) : thrown_{thrown} {}
    void submit(Buffer* buffer) override {
      recycle(buffer);
      ++submitted;
      thrown_.now();
    }
    void fail(const Error& error) override {
      const std::lock_guard lock(mutex);
      errors.push_back(std::string(to_string(error.kind())) + ": " + error.what());
    }
    std::vector<std::string> said() {
      const std::lock_guard lock(mutex);
      return errors;
    }
    const Thrown& thrown_;
    std::atomic<int> submitted{0};
    std::mutex mutex;
    std::vector<std::string> errors;  // guarded by mutex
  };

  std::string expected(const std::string& where) const {
    return std::string(to_string(GetParam().kind)) + ": " + where + ": " + GetParam().message;
  }
};

// Any code that the network's owner runs: here the medium's.
TEST_P(FailingThread, OfTheNetworkFailsTheJobOnEveryPe) {
  Pes pes(2);
  std::atomic<bool> done{false};
  pes.world().set_tamper([&](std::uint32_t from, std::uint32_t, std::vector<std::byte>& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    if (from == 0 && header.kind == wire::Kind::kMessages && !done.exchange(true)) GetParam().now();
    return loopback::Fate::kDeliver;
  });
  const auto failed = pes.run_and_catch([](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(1);
    if (rt.pe() == 0) rt.launch(1, [=](WorkItem item) { shmem_inc(item, &words[0], 1); });
    rt.barrier_all();
  });
  for (const auto& one : failed) {
    ASSERT_TRUE(one);
    EXPECT_EQ(one->kind, GetParam().kind);
    EXPECT_EQ(one->message, std::string("PE 0: network thread: ") + GetParam().message);
  }
}

TEST_P(FailingThread, OfAnApplyHelperIsToldToTheOwnerAndEndsNoJob) {
  constexpr ApplierSettings kSettings{kMe, kPes, 1024, 4, std::chrono::microseconds{100}};
  HandlerTable handlers;
  handlers.add({"answer", 1, 8, 8, [](HostCall& call, void*, const void*) {
                  HandlerContext context(call);
                  context.post(built_in(Operation::kInc, Operand::kUint64), {address_word(0, 8)});
                }});
  Heap heap;
  FailingSink sink(GetParam());
  {
    ApplyPool pool(1, kSettings, handlers, heap.base(), sink, [&](const Error& error) { sink.fail(error); });
    // What its handler sends is submitted after the job, at its time-out: outside any handler.
    const auto frame = messages().run(active_message(1), {{0}}).bytes();
    ApplyJob job;
    job.header = header_of(frame);
    job.frame = frame.data();
    job.heap_bytes = kHeapBytes;
    ASSERT_TRUE(pool.try_submit(job));
    poll("the failure", [&] { return !sink.said().empty(); });
    ASSERT_TRUE(pool.try_submit(job));
    poll("a job after it", [&] { return job.left.load(std::memory_order_acquire) == 0; });
  }
  EXPECT_EQ(sink.said(), std::vector<std::string>{expected("apply helper 0")});
}

class FailingAggregator : public FailingThread {
 protected:
  AggregatorSettings settings(std::uint32_t threads) const {
    return {.threads = threads,
            .pe = 0,
            .n_pes = 1,
            .buffer_bytes = 1024,
            .buffers = 2,
            .timeout = std::chrono::microseconds{100},
            .max_age = std::chrono::hours{1}};
  }
};

TEST_P(FailingAggregator, IsToldOnceByWhateverThreadItRunsOnAndLeavesNobodyBusy) {
  constexpr Command kInc = built_in(Operation::kInc, Operand::kUint64);
  for (const bool helped : {false, true}) {
    FailingSink sink(GetParam());
    PackageMemory memory(8, 1024);
    PackageQueue queue = memory.queue();
    Aggregators aggregators(settings(1), queue, sink);
    if (helped) aggregators.stop();  // what follows is the caller's
    publish(queue, queue.reserve(), kInc, 1, {address_word(0, 8)});
    (void)aggregators.request_flush();
    poll("the failure", [&] {
      if (helped) (void)aggregators.help();
      return !sink.said().empty();
    });
    publish(queue, queue.reserve(), kInc, 1, {address_word(0, 8)});
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(aggregators.help());
    EXPECT_EQ(sink.said(), std::vector<std::string>{expected("aggregating messages")});
    EXPECT_EQ(sink.submitted, 1);
  }
}

const auto kNameOf = [](const auto& tested) { return std::string(tested.param.name); };
INSTANTIATE_TEST_SUITE_P(By, FailingThread, ::testing::ValuesIn(kThrown), kNameOf);
INSTANTIATE_TEST_SUITE_P(By, FailingAggregator, ::testing::ValuesIn(kThrown), kNameOf);

}  // namespace
}  // namespace esker::testing
