// Whether a heap's memory is shared, and what a peer opens.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <esker/net/shared/segment.hpp>
#include <esker/runtime/heap_memory.hpp>

namespace esker::testing {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;

TEST(HeapMemory, OpensAsTheSameMemory) {
  HeapMemory heap(kBytes, false, true);
  ASSERT_NE(heap.segment(), nullptr) << heap.why_private();
  ASSERT_TRUE(heap.take(0, kBytes));
  heap.base()[99] = std::byte{7};
  shared::Segment peer(kBytes);
  ASSERT_EQ(peer.open(getpid(), heap.segment()->file()), "");
  EXPECT_EQ(peer.at()[99], std::byte{7});
  EXPECT_TRUE(heap.release(0));
  ASSERT_TRUE(heap.take(0, kBytes));
  EXPECT_EQ(peer.at()[99], std::byte{0});
}

TEST(HeapMemory, MoreThanAnAddressSpaceIsRefused) {
  for (const std::uint64_t bytes : {~std::uint64_t{0}, ~std::uint64_t{0} - (std::uint64_t{2} << 20)}) {
    for (const bool may_share : {true, false})
      EXPECT_THROW(HeapMemory(bytes, false, may_share), Error) << bytes;
  }
}

TEST(HeapMemory, AnotherFileOfThatNumberIsRefused) {
  HeapMemory heap(kBytes, false, true);
  ASSERT_NE(heap.segment(), nullptr) << heap.why_private();
  shared::SegmentFile file = heap.segment()->file();
  ++file.inode;
  shared::Segment peer(kBytes);
  EXPECT_NE(peer.open(getpid(), file).find("is another file"), std::string::npos);
  EXPECT_EQ(peer.at(), nullptr);
}

/// KiB of huge pages that this process has mapped of shared memory.
std::uint64_t huge_kib() {
  std::ifstream smaps("/proc/self/smaps_rollup");
  std::string name;
  for (std::uint64_t kib = 0; smaps >> name;) {
    if (name == "ShmemPmdMapped:" && smaps >> kib) return kib;
  }
  return 0;
}

TEST(HeapMemory, HasHugePagesAgainAfterARelease) {
  HeapMemory heap(kBytes, true, true);
  if (heap.segment() == nullptr) GTEST_SKIP() << heap.why_private();
  ASSERT_TRUE(heap.take(0, kBytes / 2));
  if (huge_kib() < kBytes / 2048) GTEST_SKIP() << "this host has no huge page left";
  EXPECT_EQ(huge_kib(), kBytes / 2048);
  ASSERT_TRUE(heap.take(kBytes / 2, kBytes / 2));
  EXPECT_EQ(huge_kib(), kBytes / 1024);
  EXPECT_TRUE(heap.release(0));
  EXPECT_EQ(huge_kib(), kBytes / 2048);
  ASSERT_TRUE(heap.take(0, kBytes / 2));
  EXPECT_EQ(huge_kib(), kBytes / 1024);
}

// As on a kernel before Linux 6.1.
TEST(HeapMemory, IsPrivateWhereSharedMemoryHasNoHugePages) {
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  HeapMemory heap(kBytes, true, true);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_EQ(heap.segment(), nullptr);
  EXPECT_NE(heap.why_private().find("no huge pages"), std::string::npos) << heap.why_private();
  ASSERT_TRUE(heap.take(0, kBytes));
  heap.base()[kBytes - 1] = std::byte{1};
}

}  // namespace
}  // namespace esker::testing
