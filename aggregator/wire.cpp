// Checks and reads node buffers.
#include <esker/aggregator/wire.hpp>

#include <fmt/format.h>

#include <cstring>

namespace esker::wire {
namespace {

/// Words of a message; 0 for whatever is no command, fields that a command does not use included.
std::uint32_t words_of(Command command, const HandlerWords& handlers) {
  if (is_call(command)) {
    return command.operand == Operand::kNone ? handlers.words_of_handler(command.handler) : 0;
  }
  const std::uint32_t words = message_words(command);
  if (command.handler == 0 || words == 0) return words;
  if (!is_request(command.operation)) return 0;
  const std::uint32_t handler_words = handlers.words_of_handler(command.handler);
  const std::uint32_t value = value_words(command.operand);
  if (handler_words < 1 + value) return 0;
  const std::uint32_t all = words + carried_words(command.operand, handler_words);
  return all <= kMaxMessageWords ? all : 0;
}

/// `rest`: what follows the run's header.
std::string defect_in_bytes_call(const RunHeader& run, std::span<const std::byte> rest) {
  std::uint64_t bytes = 0;
  if (run.count != 1 || run.words < 2 || rest.size() < 2 * sizeof bytes)
    return fmt::format("is one message with bytes, but has {} of {} words", run.count, run.words);
  std::memcpy(&bytes, rest.data() + sizeof bytes, sizeof bytes);
  if (bytes > std::uint64_t{run.words - 2} * 8 || bytes / 8 + (bytes % 8 != 0 ? 1 : 0) != run.words - 2)
    return fmt::format("has a message with {} bytes in {} words", bytes, run.words);
  return {};
}

std::string defect_in_runs(std::span<const std::byte> frame, const FrameHeader& header,
                           const Expected& expected) {
  std::size_t at = sizeof(FrameHeader);
  std::uint64_t messages = 0;
  for (std::uint32_t i = 0; i < header.runs; ++i) {
    if (frame.size() - at < sizeof(RunHeader)) {
      return fmt::format("run {} of {} starts at byte {} of {}", i, header.runs, at, frame.size());
    }
    RunHeader run;
    std::memcpy(&run, frame.data() + at, sizeof run);
    at += sizeof run;
    const Command command = Command::from_word(run.command);
    std::uint32_t words = words_of(command, *expected.handlers);
    if (is_bytes_call(command) && expected.handlers->takes_bytes(command.handler)) {
      words = run.words;
      if (std::string defect = defect_in_bytes_call(run, frame.subspan(at)); !defect.empty())
        return fmt::format("run {} {}", i, defect);
    }
    if (words == 0) {
      return fmt::format("run {} has the unknown command {:#010x}", i, run.command);
    }
    if (is_packed(command, run.words)) words = run.words;
    if (run.words != words) {
      return fmt::format("run {} of command {:#010x} has {} words a message, not {}", i, run.command,
                         run.words, words);
    }
    if (run.reserved != 0) return fmt::format("run {} has {} in its reserved field", i, run.reserved);
    const std::uint64_t bytes = std::uint64_t{run.count} * words * 8;
    if (bytes > frame.size() - at) {
      return fmt::format("run {} has {} messages of {} bytes, but {} bytes are left", i, run.count, words * 8,
                         frame.size() - at);
    }
    at += bytes;
    messages += run.count;
  }
  if (at != frame.size()) return fmt::format("the runs end at byte {} of {}", at, frame.size());
  if (messages != header.messages) {
    return fmt::format("the runs hold {} messages, the header says {}", messages, header.messages);
  }
  return {};
}

std::string defect_in_block(std::span<const std::byte> frame, const FrameHeader& header) {
  if (frame.size() < kBlockBytesAt) {
    return fmt::format("{} bytes are shorter than the headers of a block, {}", frame.size(), kBlockBytesAt);
  }
  if (header.runs != 0 || header.messages != 1) {
    return fmt::format("a block's frame with {} runs and {} messages", header.runs, header.messages);
  }
  const BlockHeader block = block_header(frame.data());
  if (block.reserved[0] != 0 || block.reserved[1] != 0) return "reserved fields of the block are not zero";
  const std::uint64_t carried = frame.size() - kBlockBytesAt;
  if ((carried == 0) != (header.kind == Kind::kBlockRequest) || block.bytes < carried ||
      block.first > block.bytes - carried) {
    return fmt::format("{} bytes from byte {} of a block of {}, kind {}", carried, block.first, block.bytes,
                       static_cast<unsigned>(header.kind));
  }
  if (header.kind == Kind::kBlockReply) return {};  // it lies as the request has said
  if (block.piece_bytes == 0 || block.stride < block.piece_bytes || block.bytes % block.piece_bytes != 0) {
    return fmt::format("a block of {} bytes in pieces of {} every {} bytes", block.bytes, block.piece_bytes,
                       block.stride);
  }
  return {};
}

}  // namespace

std::string find_defect(std::span<const std::byte> frame, const Expected& expected) {
  if (frame.size() < sizeof(FrameHeader)) {
    return fmt::format("{} bytes are shorter than a header of {}", frame.size(), sizeof(FrameHeader));
  }
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.magic != kMagic) return fmt::format("magic {:#010x} is not {:#010x}", header.magic, kMagic);
  if (header.version != kVersion) {
    return fmt::format("version {} is not {}: the PEs run different builds", header.version, kVersion);
  }
  if (header.bytes != frame.size()) {
    return fmt::format("{} bytes arrived of a frame of {}", frame.size(), header.bytes);
  }
  if (header.source >= expected.n_pes) {
    return fmt::format("source PE {} is not below {}", header.source, expected.n_pes);
  }
  if (header.destination != expected.receiver) {
    return fmt::format("it is for PE {}, not for PE {}", header.destination, expected.receiver);
  }
  if (header.reserved[0] != 0 || header.reserved[1] != 0) return "reserved fields are not zero";
  if (header.text_bytes != 0 && header.kind != Kind::kFailure && header.kind != Kind::kStatusReply &&
      header.kind != Kind::kLetter) {
    return fmt::format("{} bytes of text in a frame of kind {}", header.text_bytes,
                       static_cast<unsigned>(header.kind));
  }
  switch (header.kind) {
    case Kind::kMessages:
      return defect_in_runs(frame, header, expected);
    case Kind::kBlock:
    case Kind::kBlockRequest:
    case Kind::kBlockReply:
      return defect_in_block(frame, header);
    case Kind::kQuietRequest:
    case Kind::kQuietReply:
    case Kind::kHangReport:
    case Kind::kDrainRequest:
    case Kind::kDirectQuietRequest:
    case Kind::kDirectQuietReply:
    case Kind::kStatusRequest:
    case Kind::kStatusReply:
    case Kind::kLetter:
    case Kind::kFailure:
      if (header.runs != 0 || header.messages != 0 ||
          frame.size() - sizeof(FrameHeader) != header.text_bytes) {
        return fmt::format("a control frame of {} bytes with {} runs, {} messages and {} bytes of text",
                           frame.size(), header.runs, header.messages, header.text_bytes);
      }
      return {};
  }
  return fmt::format("unknown kind {}", static_cast<unsigned>(header.kind));
}

RunReader::RunReader(const std::byte* frame) : position_{frame + sizeof(FrameHeader)} {
  FrameHeader header;
  std::memcpy(&header, frame, sizeof header);
  left_ = header.runs;
}

bool RunReader::next(Run& run) {
  if (left_ == 0) return false;
  --left_;
  RunHeader header;
  std::memcpy(&header, position_, sizeof header);
  position_ += sizeof header;
  run.command = Command::from_word(header.command);
  run.words = header.words;
  run.count = header.count;
  run.address = reinterpret_cast<const std::uint64_t*>(position_);
  position_ += std::size_t{header.count} * header.words * 8;
  return true;
}

BlockHeader block_header(const std::byte* frame) {
  BlockHeader header;
  std::memcpy(&header, frame + sizeof(FrameHeader), sizeof header);
  return header;
}

FrameHeader make_header(Kind kind, std::uint32_t source, std::uint32_t destination) {
  FrameHeader header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = kind;
  header.source = source;
  header.destination = destination;
  header.bytes = sizeof(FrameHeader);
  return header;
}

}  // namespace esker::wire
