// A buffer that slides over the stream.
#include "line_reader.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace inputs {

LineReader::LineReader(std::unique_ptr<ByteStream> bytes, std::uint64_t offset)
    : bytes_{std::move(bytes)}, offset_{offset}, last_offset_{offset} {}

/// Reads more behind what is there; false at the end of the stream.
bool LineReader::fill() {
  if (ended_) return false;
  if (begin_ == 0 && end_ == capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(2 * capacity_);
    std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    capacity_ *= 2;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t n = bytes_->read({buffer_.get() + end_, capacity_ - end_});
  end_ += n;
  ended_ = n == 0;
  return !ended_;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = 0;
  const void* newline = nullptr;
  do {
    newline = std::memchr(buffer_.get() + begin_ + searched, '\n', end_ - begin_ - searched);
    searched = end_ - begin_;
    if (newline == nullptr && searched >= kMostLineBytes) {
      last_offset_ = offset_;
      ++lines_;
      throw Malformed(
          fmt::format("the line does not end within {} MiB, the most that is taken", kMostLineBytes >> 20));
    }
  } while (newline == nullptr && fill());
  if (newline == nullptr && begin_ == end_) return std::nullopt;

  const char* first = buffer_.get() + begin_;
  const std::size_t length = newline == nullptr
                                 ? end_ - begin_
                                 : static_cast<std::size_t>(static_cast<const char*>(newline) - first);
  const std::size_t taken = length + (newline == nullptr ? 0 : 1);
  begin_ += taken;
  last_offset_ = offset_;
  offset_ += taken;
  ++lines_;
  std::string_view line(first, length);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<char> LineReader::peek() {
  if (begin_ == end_ && !fill()) return std::nullopt;
  return buffer_[begin_];
}

}  // namespace inputs
