// Frames damaged under way: an error on every PE that names the sender, and no wild write.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <esker/aggregator/wire.hpp>

#include "../runtime/pes.hpp"

namespace esker::testing {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void set_field(Bytes& frame, std::size_t at, T value) {
  std::memcpy(frame.data() + at, &value, sizeof value);
}

struct Damage {
  const char* name;
  std::function<void(Bytes&)> inflict;
  const char* message;  // of the error
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

constexpr std::size_t kRun = sizeof(wire::FrameHeader);
constexpr std::size_t kFirstAddress = kRun + sizeof(wire::RunHeader);
constexpr const char* kDamaged = "that says it is from PE 0 is damaged: ";
constexpr const char* kBadBuffer = "a buffer from PE 0: an operation of 8 bytes at heap offset 0x";

std::vector<Damage> damages() {
  return {
      {"CutInARun", [](Bytes& f) { f.resize(f.size() - 8); }, kDamaged},
      {"CutBehindTheHeader", [](Bytes& f) { f.resize(kRun); }, kDamaged},
      {"CutInTheHeader", [](Bytes& f) { f.resize(24); }, kDamaged},
      {"Longer", [](Bytes& f) { f.resize(f.size() + 8); }, kDamaged},
      {"Magic", [](Bytes& f) { set_field(f, 0, std::uint32_t{0}); }, kDamaged},
      {"Destination", [](Bytes& f) { set_field(f, 12, std::uint32_t{0}); }, kDamaged},
      {"MessagesInTheHeader", [](Bytes& f) { set_field(f, 28, std::uint32_t{1}); }, kDamaged},
      {"Runs", [](Bytes& f) { set_field(f, 32, std::uint32_t{1000}); }, kDamaged},
      {"Command", [](Bytes& f) { set_field(f, kRun, std::uint32_t{0xff}); }, kDamaged},
      {"CountOfARun", [](Bytes& f) { set_field(f, kRun + 8, ~std::uint32_t{0}); }, kDamaged},
      {"AddressBeyondTheHeap", [](Bytes& f) { set_field(f, kFirstAddress, std::uint64_t{1} << 40); },
       kBadBuffer},
      {"AddressWithTheTopBit", [](Bytes& f) { set_field(f, kFirstAddress, std::uint64_t{1} << 63); },
       kBadBuffer},
      {"LargestAddress", [](Bytes& f) { set_field(f, kFirstAddress, ~std::uint64_t{7}); }, kBadBuffer},
      {"MisalignedAddress", [](Bytes& f) { set_field(f, kFirstAddress, std::uint64_t{4}); }, kBadBuffer},
  };
}

class DamagedFrame : public ::testing::TestWithParam<std::tuple<Damage, std::uint32_t>> {};

TEST_P(DamagedFrame, IsAnErrorEverywhereThatNamesItsSender) {
  const Damage& damage = std::get<0>(GetParam());
  Config config = tiny_config();
  config.apply_helpers = std::get<1>(GetParam());
  Pes pes(2, config);
  bool done = false;  // PE 0's network thread alone sends to PE 1
  pes.world().set_tamper([&](std::uint32_t from, std::uint32_t, Bytes& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    if (from == 0 && header.kind == wire::Kind::kMessages && !done) {
      done = true;
      damage.inflict(frame);
    }
    return loopback::Fate::kDeliver;
  });
  const auto failed = pes.run_and_catch([](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(32);
    if (rt.pe() == 0) rt.launch(32, [=](WorkItem item) { shmem_inc(item, &words[item.global_id()], 1); });
    try {
      rt.barrier_all();
    } catch (...) {
      // The only frame was refused whole.
      for (const std::uint64_t word : words) EXPECT_EQ(word, 0u);
      throw;
    }
  });
  EXPECT_TRUE(done);
  for (std::size_t pe = 0; pe < 2; ++pe) {
    ASSERT_TRUE(failed[pe]) << "PE " << pe << " has seen no error";
    EXPECT_EQ(failed[pe]->kind, Error::Kind::kNetwork);
    EXPECT_EQ(failed[pe]->message.rfind("PE 1: ", 0), 0u) << failed[pe]->message;  // who has found it
    EXPECT_NE(failed[pe]->message.find(damage.message), std::string::npos) << failed[pe]->message;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedFrame,
                         ::testing::Combine(::testing::ValuesIn(damages()), ::testing::Values(0u, 2u)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param).name) +
                                  (std::get<1>(tested.param) == 0 ? "" : "WithHelpers");
                         });

}  // namespace
}  // namespace esker::testing
