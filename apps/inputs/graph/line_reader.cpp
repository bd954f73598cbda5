// A buffer that slides over the source.
#include "line_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "text_fields.hpp"

namespace graph {
namespace {

constexpr std::size_t kLongestLineBytes = 1 << 16;

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source)
    : source_{std::move(source)}, buffer_(kLongestLineBytes + 1) {}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  while (true) {
    const void* newline = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (newline != nullptr) {
      const auto at = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data());
      line = {buffer_.data() + begin_, at - begin_};
      bytes_ += line.size() + 1;
      begin_ = at + 1;
      break;
    }
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    searched = end_;
    if (end_ == buffer_.size()) {
      ++lines_;
      throw Malformed("the line is longer than 64 KiB");
    }
    const std::size_t got = source_->read(buffer_.data() + end_, buffer_.size() - end_);
    if (got == 0) {
      if (end_ == 0) return false;
      line = {buffer_.data(), end_};
      bytes_ += line.size();
      begin_ = end_;
      break;
    }
    end_ += got;
  }
  ++lines_;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

}  // namespace graph
