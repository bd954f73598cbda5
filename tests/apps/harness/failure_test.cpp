// What PEs end with when some of them fail.
#include <esker/apps/harness/failure.hpp>
#include <esker/config.hpp>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../runtime/pes.hpp"

namespace harness::testing {
namespace {

using esker::Runtime;
using esker::testing::Pes;

Ending ending(const auto& thrown) { return ending_of(std::make_exception_ptr(thrown)); }

/// On 3 PEs: all end with `message`.
void expect_all_end_with(const std::string& message, const Pes::Body& body) {
  for (const auto& failed : Pes(3, esker::testing::tiny_config()).run_and_catch(body)) {
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->message, message);
  }
}

TEST(Agree, ReturnsWhatTheWorkReturnsOnEachPe) {
  Pes(3, esker::testing::tiny_config()).run([](Runtime& rt) {
    EXPECT_EQ(agree(rt, [&] { return std::string(rt.pe(), 'x'); }), std::string(rt.pe(), 'x'));
    agree(rt, [] {});
  });
}

TEST(Agree, EndsAllPesWithTheMessageOfTheOneThatFailed) {
  const std::string message = "graph.mtx:7: index 9 is out of range: it is 1 to 4";
  expect_all_end_with(message, [&](Runtime& rt) {
    agree(rt, [&] {
      if (rt.pe() == 1) throw esker::Error(esker::Error::Kind::kConfiguration, message);
    });
    ADD_FAILURE() << "PE " << rt.pe() << " has gone on";
  });
}

TEST(Agree, TakesTheFirstPesMessageWhereSeveralFail) {
  expect_all_end_with("PE 1", [&](Runtime& rt) {
    agree(rt, [&] {
      if (rt.pe() > 0) throw std::runtime_error("PE " + std::to_string(rt.pe()));
    });
  });
}

TEST(Agree, KeepsTheStatusAndTheKind) {
  Pes(2, esker::testing::tiny_config()).run([](Runtime& rt) {
    const auto ended = [&](const auto& thrown) {
      try {
        agree(rt, [&] {
          if (rt.pe() == 1) throw thrown;
        });
      } catch (const Agreed& agreed) {
        return std::pair(agreed.status(), agreed.kind());
      }
      return std::pair(0, esker::Error::Kind::kContract);
    };
    EXPECT_EQ(ended(esker::UsageError("x")), std::pair(2, esker::Error::Kind::kConfiguration));
    EXPECT_EQ(ended(esker::Error(esker::Error::Kind::kDevice, "")),
              std::pair(1, esker::Error::Kind::kDevice));
  });
}

TEST(Ending, OutOfMemorySaysWhatWasDoneAndWhatHelps) {
  doing("reading the points", "fewer --points");
  const std::string expected = "out of memory while reading the points; what helps: fewer --points";
  EXPECT_EQ(ending(std::bad_alloc()).message, expected);
  EXPECT_EQ(ending(std::length_error("cannot create std::vector larger than max_size()")).message, expected);
  EXPECT_EQ(ending(std::bad_alloc()).status, 1);
}

TEST(RequireRoom, RefusesWhatIsMoreThanTheHeapMayHold) {
  Pes(2, esker::testing::tiny_config()).run([](Runtime& rt) {
    const auto limit = static_cast<double>(rt.heap().limit_bytes());
    require_memory(rt, limit, "the points", "fewer --points");
    EXPECT_THROW(require_memory(rt, limit + 4096, "the points", "fewer --points"), Agreed);
  });
  expect_all_end_with(
      "the points take 1.845e+19 GiB at least on each of 3 PEs, whose symmetric heap is limited to "
      "0.001953; "
      "what helps: fewer --points, more PEs, or a higher --heap-bytes (ESKER_HEAP_BYTES)",
      [](Runtime& rt) { require_memory(rt, 0x1p64 * (1 << 30), "the points", "fewer --points"); });
}

TEST(RequireWithin, SaysTheLimits) {
  require_within("updates", 1, 1, 48);
  require_within("updates", std::uint64_t{1} << 48, 1, 48);
  try {
    require_within("updates", std::uint64_t{1} << 63, 1, 48);
    ADD_FAILURE() << "accepted";
  } catch (const esker::UsageError& error) {
    EXPECT_STREQ(error.what(), "--updates 9223372036854775808: it is 1 to 2^48");
  }
  EXPECT_THROW(require_within("updates", 0, 1, 48), esker::UsageError);
}

}  // namespace
}  // namespace harness::testing
