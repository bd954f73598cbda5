// The binary graphs of the GAP benchmark suite: .sg and .wsg. GraphFile describes the layout.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "../file/file.hpp"
#include "edge_reader.hpp"

namespace inputs {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's integers are read as they lie");

constexpr std::uint64_t kHeaderBytes = 1 + 8 + 8;
constexpr std::uint64_t kOffsetBytes = 8;
constexpr std::uint64_t kAtOnce = 1 << 13;  // offsets, and neighbours, in memory

class SerializedGraph final : public EdgeReader {
 public:
  SerializedGraph(const std::string& path, bool weighted, Weights weights)
      : file_{path}, neighbour_bytes_{weighted ? 8u : 4u}, weights_{weights} {
    read_header(weighted);
    check_size();
    if (offset(0) != 0) fail_at_offset(0, "the first offset is not 0");
    if (offset(nodes_) != neighbours_) {
      fail_at_offset(nodes_, fmt::format("the last offset is not {}, the number of neighbours", neighbours_));
    }
  }

  const GraphHeader& header() const override { return header_; }

  EdgeCount for_each_edge(Part part, const EdgeVisitor& visit) const override {
    EdgeCount count;
    const Range mine = range_of(nodes_, part);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t first = mine.begin; first < mine.end; first += kAtOnce) {
      const std::uint64_t nodes = std::min(kAtOnce, mine.end - first);
      offsets.resize(nodes + 1);
      read(offset_at(first), offsets.data(), offsets.size());
      check_offsets(first, offsets);
      visit_nodes(first, offsets, visit, count);
    }
    return count;
  }

  /// The offsets leave no room for any other number of neighbours.
  void check(const EdgeCount& total) const override {
    if (total.entries == neighbours_) return;
    fail_at_byte(
        1, fmt::format("the file states {} neighbours, and {} were counted", neighbours_, total.entries));
  }

 private:
  void read_header(bool weighted) {
    if (file_.size() < kHeaderBytes) {
      fail_at_byte(file_.size(), fmt::format("the file ends within its header of {} bytes", kHeaderBytes));
    }
    unsigned char directed = 0;
    std::int64_t neighbours = 0;
    std::int64_t nodes = 0;
    read(0, &directed);
    read(1, &neighbours);
    read(9, &nodes);
    if (directed > 1) fail_at_byte(0, fmt::format("'directed' is {}, not 0 or 1", directed));
    if (neighbours < 0) fail_at_byte(1, fmt::format("the number of neighbours, {}, is negative", neighbours));
    // Ids are signed and of 32 bits.
    if (nodes < 0 || nodes > std::int64_t{1} << 31) {
      fail_at_byte(9, fmt::format("the number of vertices, {}, is not 0 to 2^31", nodes));
    }
    directed_ = directed != 0;
    neighbours_ = static_cast<std::uint64_t>(neighbours);
    nodes_ = static_cast<std::uint64_t>(nodes);
    header_ = {.format = Format::kSerialized,
               .compressed = false,
               .weighted = weighted,
               .symmetry = directed_ ? Symmetry::kGeneral : Symmetry::kSymmetric,
               .vertices = nodes_,
               .entries = neighbours_};
  }

  void check_size() const {
    const std::uint64_t copies = directed_ ? 2 : 1;
    const std::uint64_t most = (std::numeric_limits<std::uint64_t>::max() - kHeaderBytes) / 2;
    const std::uint64_t offset_bytes = (nodes_ + 1) * kOffsetBytes;
    if (neighbours_ > (most - offset_bytes) / neighbour_bytes_) {
      fail_at_byte(1, fmt::format("the number of neighbours, {}, overflows", neighbours_));
    }
    const std::uint64_t expected = kHeaderBytes + copies * (offset_bytes + neighbours_ * neighbour_bytes_);
    if (file_.size() != expected) {
      fail_at_byte(std::min(file_.size(), expected),
                   fmt::format("{} {} vertices and {} neighbours take {} bytes, the file has {}",
                               file_.size() < expected ? "truncated:" : "trailing bytes:", nodes_,
                               neighbours_, expected, file_.size()));
    }
  }

  std::uint64_t offset_at(std::uint64_t node) const { return kHeaderBytes + node * kOffsetBytes; }
  std::uint64_t neighbour_at(std::uint64_t i) const { return offset_at(nodes_ + 1) + i * neighbour_bytes_; }

  std::uint64_t offset(std::uint64_t node) const {
    std::uint64_t value = 0;
    read(offset_at(node), &value);
    return value;
  }

  template <class T>
  void read(std::uint64_t at, T* values, std::size_t count = 1) const {
    file_.read_all_at(at, {reinterpret_cast<char*>(values), count * sizeof(T)});
  }

  [[noreturn]] void fail_at_byte(std::uint64_t byte, const std::string& reason) const {
    bad_byte(file_.path(), byte, reason);
  }

  [[noreturn]] void fail_at_offset(std::uint64_t node, const std::string& reason) const {
    fail_at_byte(offset_at(node), reason);
  }

  // With the first and the last one known, offsets that do not fall are all in range.
  void check_offsets(std::uint64_t first, const std::vector<std::uint64_t>& offsets) const {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      if (offsets[i] > offsets[i + 1] || offsets[i + 1] > neighbours_) {
        fail_at_offset(first + i + 1,
                       fmt::format("offset {} of vertex {} is below the one before, {}, or above {}",
                                   offsets[i + 1], first + i + 1, offsets[i], neighbours_));
      }
    }
  }

  void visit_nodes(std::uint64_t first, const std::vector<std::uint64_t>& offsets, const EdgeVisitor& visit,
                   EdgeCount& count) const {
    std::vector<char> buffer(kAtOnce * neighbour_bytes_);
    std::size_t owner = 0;  // of neighbour i
    for (std::uint64_t begin = offsets.front(); begin < offsets.back(); begin += kAtOnce) {
      const std::uint64_t end = std::min(begin + kAtOnce, offsets.back());
      read(neighbour_at(begin), buffer.data(), (end - begin) * neighbour_bytes_);
      for (std::uint64_t i = begin; i < end; ++i) {
        while (i >= offsets[owner + 1]) ++owner;
        const Edge edge = to_edge(first + owner, i, buffer.data() + (i - begin) * neighbour_bytes_);
        visit(edge);
        count += {1, 1, std::max(edge.from, edge.to) + 1};
      }
    }
  }

  Edge to_edge(std::uint64_t from, std::uint64_t i, const char* bytes) const {
    std::int32_t to = 0;
    std::int32_t weight = 1;
    std::memcpy(&to, bytes, sizeof to);
    if (header_.weighted && weights_ == Weights::kUsed)
      std::memcpy(&weight, bytes + sizeof to, sizeof weight);
    if (to < 0 || static_cast<std::uint64_t>(to) >= nodes_) {
      fail_at_byte(neighbour_at(i),
                   fmt::format("neighbour {} of vertex {} is out of range: {} vertices", to, from, nodes_));
    }
    return {from, static_cast<std::uint64_t>(to), static_cast<double>(weight)};
  }

  File file_;
  std::uint64_t neighbour_bytes_;
  Weights weights_;
  bool directed_ = false;
  std::uint64_t neighbours_ = 0;
  std::uint64_t nodes_ = 0;
  GraphHeader header_{};
};

}  // namespace

std::unique_ptr<EdgeReader> open_serialized(const std::string& path, bool weighted, Weights weights) {
  return std::make_unique<SerializedGraph>(path, weighted, weights);
}

}  // namespace inputs
