// Frames put together field by field: what tests and the fuzzer hold the library's own frames against.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <esker/aggregator/wire.hpp>

namespace esker {

/// Handler h has messages of h words, for 1 <= h <= kMaxMessageWords.
class OneHandlerAWordCount final : public wire::HandlerWords {
 public:
  std::uint32_t words_of_handler(std::uint16_t handler) const override {
    return handler <= kMaxMessageWords ? handler : 0;
  }
};

constexpr Command built_in(Operation operation, Operand operand) { return {operation, operand, 0}; }
constexpr Command active_message(std::uint16_t handler) {
  return {Operation::kActiveMessage, Operand::kNone, handler};
}

/// Contract. bytes() has no spare capacity, so a sanitizer sees the first byte read beyond a frame.
class FrameBuilder {
 public:
  FrameBuilder(wire::Kind kind, std::uint32_t source, std::uint32_t destination) {
    header_.magic = wire::kMagic;
    header_.version = wire::kVersion;
    header_.kind = kind;
    header_.source = source;
    header_.destination = destination;
    if (kind == wire::Kind::kMessages) header_.sequence = 1;
  }

  /// Rows of equal length: the addresses, then each array of values.
  FrameBuilder& run(Command command, const std::vector<std::vector<std::uint64_t>>& rows) {
    const auto count = static_cast<std::uint32_t>(rows.front().size());
    append(wire::RunHeader{command.word(), static_cast<std::uint32_t>(rows.size()), count, 0});
    for (const auto& row : rows) {
      for (const std::uint64_t word : row) append(word);
    }
    ++header_.runs;
    header_.messages += count;
    return *this;
  }
  FrameBuilder& value(std::uint64_t value) {
    header_.value = value;
    return *this;
  }
  FrameBuilder& text(std::string_view text) {
    header_.text_bytes = static_cast<std::uint32_t>(text.size());
    for (const char c : text) append(c);
    return *this;
  }

  std::vector<std::byte> bytes() const {
    wire::FrameHeader header = header_;
    header.bytes = static_cast<std::uint32_t>(sizeof header + body_.size());
    std::vector<std::byte> all(header.bytes);
    std::memcpy(all.data(), &header, sizeof header);
    std::copy(body_.begin(), body_.end(), all.data() + sizeof header);
    return all;
  }

 private:
  template <class T>
  void append(const T& value) {
    const std::size_t at = body_.size();
    body_.resize(at + sizeof value);
    std::memcpy(body_.data() + at, &value, sizeof value);
  }

  wire::FrameHeader header_{};
  std::vector<std::byte> body_;
};

/// Writes one field of a frame, at its byte offset.
template <class T>
void overwrite(std::vector<std::byte>& frame, std::size_t at, T value) {
  std::memcpy(frame.data() + at, &value, sizeof value);
}

}  // namespace esker
