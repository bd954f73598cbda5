// The message of each fault that a lane can report, without a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include <esker/device/error.hpp>
#include <esker/net/gpu/fault_report.hpp>

namespace esker::gpu {
namespace {

constexpr FaultContext kContext{"relax", 4, 4096};

FaultReport report(Fault fault) { return {fault, 7, 3, 0, 12, 5000, 8, "shmem_put", 16}; }

TEST(FaultReport, ABadPeNamesTheLaneAndTheLimit) {
  EXPECT_EQ(message_of(report(Fault::kBadPe), kContext),
            "shmem_put by lane 3 of group 12 of kernel 'relax': PE 7 is not below 4");
}

TEST(FaultReport, ABadTargetNamesItsBytesAndTheHeap) {
  EXPECT_EQ(message_of(report(Fault::kBadTarget), kContext),
            "shmem_put by lane 3 of group 12 of kernel 'relax': a target of 8 bytes at heap offset 5000 is "
            "outside the symmetric heap of 4096 bytes");
}

TEST(FaultReport, ATargetBelowTheHeapHasANegativeOffset) {
  FaultReport below = report(Fault::kBadTarget);
  below.offset = ~std::uint64_t{0} - 7;
  EXPECT_NE(message_of(below, kContext).find("at heap offset -8 "), std::string::npos);
}

TEST(FaultReport, AMisalignedTargetNamesItsAlignment) {
  EXPECT_EQ(message_of(report(Fault::kMisaligned), kContext),
            "shmem_put by lane 3 of group 12 of kernel 'relax': a target of 8 bytes at heap offset 5000, for "
            "PE 7, is not aligned to 16 bytes");
}

TEST(FaultReport, ATargetOfAReplyIsSaidToBeOne) {
  FaultReport of_reply = report(Fault::kBadTarget);
  std::strncpy(of_reply.call, "shmem_compare_swap", sizeof of_reply.call);
  of_reply.of_reply = 1;
  EXPECT_EQ(
      message_of(of_reply, kContext),
      "shmem_compare_swap by lane 3 of group 12 of kernel 'relax': the reply's target of 8 bytes at heap "
      "offset 5000 is outside the symmetric heap of 4096 bytes");
}

TEST(FaultReport, ABadIndexNamesTheArraysSize) {
  EXPECT_TRUE(is_misuse(Fault::kBadIndex));
  EXPECT_EQ(message_of(report(Fault::kBadIndex), kContext),
            "shmem_put by lane 3 of group 12 of kernel 'relax': index 5000 of an array of 8 elements");
}

TEST(FaultReport, ADefaultHandlerSaysWhatToSend) {
  EXPECT_EQ(message_of(report(Fault::kNoHandler), kContext),
            "shmem_put by lane 3 of group 12 of kernel 'relax': the Handler is a default one, which stands "
            "for no handler; send what Runtime::register_handler() has returned");
}

TEST(FaultReport, AHandlersCallNamesNoLane) {
  FaultReport of_handler = report(Fault::kBadPe);
  of_handler.is_handler = 1;
  EXPECT_EQ(message_of(of_handler, kContext), "shmem_put in a handler: PE 7 is not below 4");
}

TEST(FaultReport, ABadArrivalNamesItsSender) {
  EXPECT_EQ(
      message_of(report(Fault::kBadArrival), kContext),
      "a buffer from PE 7: an operation of 8 bytes at heap offset 0x1388, which is misaligned or outside "
      "(the heap's allocated part ends at 0x1000)");
}

TEST(FaultReport, HandlersThatSendTooMuchNameTheQueue) {
  EXPECT_EQ(message_of(report(Fault::kHandlersOutrun), kContext),
            "one of the device's queues for what handlers send holds 5000 messages that nothing has sent on "
            "yet, and no more fit: each message makes more than one new one, faster than they are applied");
}

TEST(FaultReport, AnUnreservedKernelIsToldWhatToCall) {
  EXPECT_TRUE(is_misuse(Fault::kNotReserved));
  EXPECT_EQ(
      message_of(report(Fault::kNotReserved), kContext),
      "KernelItem: lane 3 of group 12 of a kernel of the program's own sends, and nothing is reserved for "
      "that kernel: call rt.reserve_for(kernel, group_lanes) before its first launch");
}

TEST(FaultReport, ACallThatFillsItsFieldEndsWithIt) {
  FaultReport full = report(Fault::kBadPe);
  std::memset(full.call, 'x', sizeof full.call);
  EXPECT_EQ(message_of(full, kContext).find(' '), sizeof full.call);
}

TEST(FaultReport, FaultsOfTheJobAreErrorsOfTheirKind) {
  const auto kind_of = [](Fault fault) {
    try {
      raise_fault(report(fault), kContext);
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message_of(report(fault), kContext));
      return error.kind();
    }
  };
  EXPECT_EQ(kind_of(Fault::kBadArrival), Error::Kind::kNetwork);
  EXPECT_EQ(kind_of(Fault::kHandlersOutrun), Error::Kind::kOutOfMemory);
}

TEST(FaultReportDeathTest, FaultsOfTheProgramAreMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Fault fault : {Fault::kBadPe, Fault::kBadTarget, Fault::kMisaligned, Fault::kNoHandler}) {
    EXPECT_TRUE(is_misuse(fault));
    EXPECT_DEATH(raise_fault(report(fault), kContext), "shmem_put by lane 3 of group 12 of kernel 'relax': ");
  }
}

}  // namespace
}  // namespace esker::gpu
