// The format of a node buffer: Figure A-2 of the thesis, generalised. docs/reference/wire_format.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <esker/aggregator/command.hpp>

namespace esker::wire {

inline constexpr std::uint32_t kMagic = 0x524b5345;  // "ESKR" in little-endian memory
inline constexpr std::uint16_t kVersion = 5;

/// What a frame is. Those of messages carry runs, those of blocks a BlockHeader and bytes, the rest `value`
/// and at times a text.
enum class Kind : std::uint16_t {
  kMessages = 1,
  kQuietRequest,        // value: sequence number up to which the sender wants to know
  kQuietReply,          // value: sequence number up to which everything has been applied
  kFailure,             // value: Error::Kind; text: why the sender has failed
  kHangReport,          // value: messages that the sender has sent to the receiver
  kDrainRequest,        // lanes of the sender wait for space in the receiver's inbox
  kDirectQuietRequest,  // value: messages through the inbox up to which the sender wants to know
  kDirectQuietReply,    // value: messages through the inbox that have been applied
  kStatusRequest,       // the sender has seen nothing move for long, and asks what the receiver does
  kStatusReply,         // value and text: runtime/hang_inquiry.hpp
  kLetter,              // value: of a run; text: what PEs' programs tell each other (net/mail.hpp)
  kBlock,               // bytes of a block for the receiver's heap
  kBlockRequest,        // the sender wants a block of the receiver's heap
  kBlockReply,          // bytes of that block
};

constexpr bool is_block(Kind kind) {
  return kind == Kind::kBlock || kind == Kind::kBlockRequest || kind == Kind::kBlockReply;
}

/// At the start of every frame. Little-endian, like every host that we build for.
struct FrameHeader {
  std::uint32_t magic;
  std::uint16_t version;
  Kind kind;
  std::uint32_t source;       // PE
  std::uint32_t destination;  // PE; differs from the receiver's only in the one-node projection
  std::uint64_t sequence;     // of messages and blocks: 1, 2, ... for each pair of PEs
  std::uint32_t bytes;        // of the frame, this header included
  std::uint32_t messages;
  std::uint32_t runs;
  std::uint32_t text_bytes;  // kFailure, kStatusReply, kLetter: bytes of text after the header
  std::uint64_t value;
  std::uint64_t reserved[2];  // zero
};
static_assert(sizeof(FrameHeader) == 64 && std::is_trivially_copyable_v<FrameHeader>);
static_assert(offsetof(FrameHeader, sequence) == 16 && offsetof(FrameHeader, value) == 40);

/// In front of each run: `count` addresses, then words - 1 arrays of `count` values.
struct RunHeader {
  std::uint32_t command;
  std::uint32_t words;
  std::uint32_t count;
  std::uint32_t reserved;  // zero
};
static_assert(sizeof(RunHeader) == 16 && std::is_trivially_copyable_v<RunHeader>);

inline constexpr std::size_t kRunAlignment = 8;

/// In front of a block's bytes. The block is `bytes` long; in a heap it lies in pieces of `piece_bytes`,
/// whose starts are `stride` apart.
struct BlockHeader {
  std::uint64_t offset;  // kBlock, kBlockRequest: of the first piece in the receiver's heap
  std::uint64_t piece_bytes;
  std::uint64_t stride;
  std::uint64_t first;        // kBlock, kBlockReply: of the block's bytes, the first one in this frame
  std::uint64_t bytes;        // of the whole block
  std::uint64_t number;       // kBlockRequest, kBlockReply: of the request, at the PE that asks
  std::uint64_t reserved[2];  // zero
};
static_assert(sizeof(BlockHeader) == 64 && std::is_trivially_copyable_v<BlockHeader>);
inline constexpr std::size_t kBlockBytesAt = sizeof(FrameHeader) + sizeof(BlockHeader);

/// One run, read in place.
struct Run {
  Command command;
  std::uint32_t words;
  std::uint32_t count;
  const std::uint64_t* address;  // heap offsets
  /// Value array r, 1 <= r < words.
  const std::uint64_t* row(std::uint32_t r) const { return address + std::size_t{r} * count; }
};

/// Words of the active message with this handler index; 0 = no such handler.
class HandlerWords {
 public:
  virtual std::uint32_t words_of_handler(std::uint16_t handler) const = 0;
  /// There is such a handler, and its messages are of any size.
  virtual bool takes_bytes(std::uint16_t /*handler*/) const { return false; }

 protected:
  ~HandlerWords() = default;
};

/// What a receiver holds a frame against.
struct Expected {
  std::uint32_t n_pes;
  std::uint32_t receiver;
  const HandlerWords* handlers;
};

/// Empty if the frame's structure is sound: magic, version, kind, lengths, every run within the frame
/// and of a known command, counts that add up. Addresses are checked when they are applied, against the
/// heap of that moment. Otherwise what is wrong, with the values. Reads nothing outside `frame`, which
/// is aligned to 8 bytes.
std::string find_defect(std::span<const std::byte> frame, const Expected& expected);

/// Steps through the runs of a frame that find_defect() passed.
class RunReader {
 public:
  explicit RunReader(const std::byte* frame);
  bool next(Run& run);

 private:
  const std::byte* position_;
  std::uint32_t left_;
};

/// Of a frame of a block that find_defect() passed.
BlockHeader block_header(const std::byte* frame);

/// A header with everything set but kind-specific fields.
FrameHeader make_header(Kind kind, std::uint32_t source, std::uint32_t destination);

}  // namespace esker::wire
