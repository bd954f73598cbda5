// The example in docs/reference/wire_format.md is what the library writes.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <esker/aggregator/node_buffers.hpp>

#include "collected.hpp"

namespace esker {
namespace {

/// The bytes of the page's lines "0000  45 53 ...   meaning"; their offsets must count up.
std::vector<std::byte> bytes_on_page() {
  std::ifstream page(ESKER_WIRE_FORMAT_PAGE);
  EXPECT_TRUE(page) << ESKER_WIRE_FORMAT_PAGE;
  std::vector<std::byte> bytes;
  for (std::string line; std::getline(page, line);) {
    if (line.find_first_not_of("0123456789abcdef") != 4 || line.compare(4, 2, "  ") != 0) continue;
    EXPECT_EQ(std::stoul(line.substr(0, 4), nullptr, 16), bytes.size()) << line;
    std::istringstream hex(line.substr(6, line.find("   ") - 6));
    for (unsigned byte = 0; hex >> std::hex >> byte;) bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

TEST(WireFormatPage, ExampleIsWhatNodeBuffersWriteForFigureA2) {
  BufferPool pool(1024, 2);
  HoldingSink sink;
  NodeBuffers buffers(0, 2, pool, OnExhausted::kPushBack, sink);
  const std::uint64_t puts[] = {address_word(1, 0x1000), address_word(1, 0x4008), 5, 42};
  const std::uint64_t inc[] = {address_word(1, 0x2000)};
  buffers.append({built_in(Operation::kPut, Operand::kBytes4).word(), 2, 2, 2, puts}, 0);
  buffers.append({built_in(Operation::kInc, Operand::kInt32).word(), 1, 1, 1, inc}, 0);
  buffers.close();
  ASSERT_EQ(sink.held.size(), 1u);
  const Buffer& buffer = *sink.held.front();
  std::vector<std::byte> written(buffer.bytes.get(), buffer.bytes.get() + buffer.used);
  overwrite(written, offsetof(wire::FrameHeader, sequence), std::uint64_t{1});  // as the network does
  EXPECT_EQ(written, bytes_on_page());
}

TEST(WireFormatPage, ExamplePassesItsReceiversCheck) {
  const OneHandlerAWordCount handlers;
  EXPECT_EQ(wire::find_defect(bytes_on_page(), {2, 1, &handlers}), "");
}

}  // namespace
}  // namespace esker
