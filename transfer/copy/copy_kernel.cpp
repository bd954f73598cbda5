// A set of copies in pieces of one size, so that unlike copies fill all groups.
#include <esker/transfer/copy/copy_kernel.hpp>

#include <algorithm>
#include <cstddef>

#include <esker/device/device_launch.hpp>

namespace esker::transfer::detail {

namespace {

constexpr std::uint32_t kGroupLanes = 256;

/// In one kernel, as its parameter: what is read with the launch needs no copy of its own.
struct CopyPieces {
  static constexpr std::uint32_t kMost = 128;
  Copy copies[kMost];
  std::uint32_t ends[kMost];  // pieces of the copies up to this one
  std::uint32_t n, piece_shift;

  ESKER_HD void operator()(Lane lane) const {
    const auto groups = static_cast<std::uint32_t>(lane.lanes() / lane.group_lanes());
    const std::uint32_t pieces = ends[n - 1];
    for (auto piece = static_cast<std::uint32_t>(lane.group_id()); piece < pieces; piece += groups) {
      std::uint32_t first = 0, last = n - 1;  // the first copy that ends beyond the piece
      while (first < last) {
        const std::uint32_t middle = (first + last) / 2;
        if (ends[middle] <= piece) {
          first = middle + 1;
        } else {
          last = middle;
        }
      }
      const Copy& copy = copies[first];
      const std::uint32_t begins = first == 0 ? 0 : ends[first - 1];
      const std::size_t offset = std::size_t{piece - begins} << piece_shift;
      const std::size_t most = std::size_t{1} << piece_shift;
      const std::size_t bytes = copy.bytes - offset < most ? copy.bytes - offset : most;
      move(static_cast<std::byte*>(copy.to) + offset, static_cast<const std::byte*>(copy.from) + offset,
           bytes, lane.lane(), lane.group_lanes());
    }
  }

 private:
  struct alignas(16) Words {
    std::uint64_t words[2];
  };

  /// As wide as both sides are aligned alike; what is before and behind that byte by byte.
  ESKER_HD static void move(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t lane,
                            std::uint32_t lanes) {
    const auto apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
    if (apart % sizeof(Words) == 0) return move_by<Words>(to, from, bytes, lane, lanes);
    if (apart % sizeof(std::uint32_t) == 0) return move_by<std::uint32_t>(to, from, bytes, lane, lanes);
    move_words(to, from, bytes, lane, lanes);
  }
  template <class Word>
  ESKER_HD static void move_by(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t lane,
                               std::uint32_t lanes) {
    const std::size_t odd =
        (sizeof(Word) - reinterpret_cast<std::uintptr_t>(to) % sizeof(Word)) % sizeof(Word);
    const std::size_t head = odd < bytes ? odd : bytes;
    const std::size_t words = (bytes - head) / sizeof(Word), body = words * sizeof(Word);
    move_words(to, from, head, lane, lanes);
    move_words(reinterpret_cast<Word*>(to + head), reinterpret_cast<const Word*>(from + head), words, lane,
               lanes);
    move_words(to + head + body, from + head + body, bytes - head - body, lane, lanes);
  }
  /// Several loads are under way at a time.
  template <class Word>
  ESKER_HD static void move_words(Word* to, const Word* from, std::size_t n, std::uint32_t lane,
                                  std::uint32_t lanes) {
    constexpr std::uint32_t kTogether = 4;
    std::size_t i = lane;
    for (; i + std::size_t{kTogether - 1} * lanes < n; i += std::size_t{kTogether} * lanes) {
      Word words[kTogether];
      for (std::uint32_t k = 0; k < kTogether; ++k) words[k] = from[i + std::size_t{k} * lanes];
      for (std::uint32_t k = 0; k < kTogether; ++k) to[i + std::size_t{k} * lanes] = words[k];
    }
    for (; i < n; i += lanes) to[i] = from[i];
  }
};
static_assert(sizeof(CopyPieces) <= 3968, "a kernel's parameters are 4096 bytes on every device");

}  // namespace

void copy_by_kernel(const Device& device, std::span<const Copy> copies, const Stream& stream) {
  constexpr std::uint32_t kLeastShift = 11, kMostShift = 26;  // 2 KiB: a group's lanes have 8 bytes each
  constexpr std::uint32_t kPiecesAGroup = 4;
  std::size_t left = copies.size();
  std::size_t bytes = 0;
  for (const Copy& copy : copies) bytes += copy.bytes;
  // Enough groups to keep the bus full, and pieces for each that even out unlike copies.
  const std::uint64_t groups = std::uint64_t{2} * device.properties().processors;
  CopyPieces some{};
  some.piece_shift = kLeastShift;
  while (some.piece_shift < kMostShift && bytes >> some.piece_shift > groups * kPiecesAGroup)
    ++some.piece_shift;
  for (const Copy* copy = copies.data(); left != 0;) {
    some.n = static_cast<std::uint32_t>(std::min<std::size_t>(left, CopyPieces::kMost));
    std::uint32_t pieces = 0;
    for (std::uint32_t i = 0; i < some.n; ++i, ++copy) {
      pieces += static_cast<std::uint32_t>((copy->bytes + (std::size_t{1} << some.piece_shift) - 1) >>
                                           some.piece_shift);
      some.copies[i] = *copy;
      some.ends[i] = pieces;
    }
    left -= some.n;
    device.launch(LaunchShape{std::min<std::uint64_t>(groups, pieces) * kGroupLanes, kGroupLanes}, some,
                  stream);
  }
}

}  // namespace esker::transfer::detail
