// NumPy's format: magic, version, the length of a header, the header as a Python dictionary, the array.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "points.hpp"

namespace inputs {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they stand in the file");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionAt = 6;
constexpr std::size_t kLengthAt = 8;
/// NumPy itself refuses longer headers.
constexpr std::uint64_t kMostHeaderBytes = 10'000;

struct Header {
  std::string type;
  bool fortran_order;
  std::vector<std::uint64_t> shape;
};

/// The dictionary: three keys in any order, each once.
class HeaderParser {
 public:
  /// `text` begins at byte `at` of the file.
  HeaderParser(const File& file, std::string_view text, std::uint64_t at)
      : file_{file}, text_{text}, at_{at} {}

  Header parse() {
    Header header;
    std::array<bool, 3> seen{};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      const std::size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3 || seen[which])
        fail(fmt::format("the header's key '{}' is unknown or twice there", key));
      seen[which] = true;
      if (which == 0) {
        // A list is a structured type.
        if (!text_.starts_with('\'') && !text_.starts_with('"')) fail("'descr' is not the name of one type");
        header.type = quoted();
      } else if (which == 1) {
        header.fortran_order = boolean();
      } else {
        header.shape = tuple();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!text_.empty()) fail("something follows the header's dictionary");
    if (!seen[0] || !seen[1] || !seen[2]) fail("the header lacks 'descr', 'fortran_order' or 'shape'");
    return header;
  }

  [[noreturn]] void fail(const std::string& reason) const { bad_byte(file_.path(), at_, reason); }

 private:
  void advance(std::size_t n) {
    text_.remove_prefix(n);
    at_ += n;
  }

  void skip_blanks() { advance(std::min(text_.find_first_not_of(" \t\n\r"), text_.size())); }

  bool accept(char c) {
    skip_blanks();
    if (!text_.starts_with(c)) return false;
    advance(1);
    skip_blanks();
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(fmt::format("the header has no '{}' here", c));
  }

  std::string_view quoted() {
    const char quote = text_.starts_with('"') ? '"' : '\'';
    const std::size_t end = text_.starts_with(quote) ? text_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("the header has no quoted text here");
    const std::string_view inside = text_.substr(1, end - 1);
    advance(end + 1);
    skip_blanks();
    return inside;
  }

  bool boolean() {
    const bool is_true = text_.starts_with("True");
    if (!is_true && !text_.starts_with("False")) fail("'fortran_order' is neither True nor False");
    advance(is_true ? 4 : 5);
    return is_true;
  }

  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    expect('(');
    while (!accept(')')) {
      std::uint64_t value = 0;
      const auto [rest, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc{}) fail("the shape has no size of 64 bits here");
      advance(static_cast<std::size_t>(rest - text_.data()));
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const File& file_;
  std::string_view text_;
  std::uint64_t at_;
};

/// What a file of the kind that we read says about its array.
struct ArrayLayout {
  bool is_double;
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t first_value;  // bytes
  std::uint64_t value_bytes() const { return is_double ? 8 : 4; }
};

ArrayLayout array_layout(const File& file) {
  std::array<char, 12> start{};
  const std::size_t n = file.read_at(0, start);
  if (!std::string_view(start.data(), n).starts_with(kMagic)) {
    bad_byte(file.path(), 0, "not a .npy file: the first six bytes are not \\x93NUMPY");
  }
  const int major = static_cast<unsigned char>(start[kVersionAt]);
  const int minor = static_cast<unsigned char>(start[kVersionAt + 1]);
  if (n > kLengthAt && ((major != 1 && major != 2) || minor != 0)) {
    bad_byte(file.path(), kVersionAt,
             fmt::format("format version {}.{}; 1.0 and 2.0 are read", major, minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t header_at = kLengthAt + length_bytes;
  if (n < header_at) bad_byte(file.path(), n, "the file is cut off before its header");
  std::uint64_t length = 0;
  for (std::size_t b = 0; b < length_bytes; ++b) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[kLengthAt + b])) << (8 * b);
  }
  if (length > kMostHeaderBytes || header_at + length > file.size()) {
    bad_byte(file.path(), kLengthAt,
             fmt::format("a header of {} bytes in a file of {}; at most {} are read", length, file.size(),
                         kMostHeaderBytes));
  }
  std::string text(length, ' ');
  text.resize(file.read_at(header_at, text));
  HeaderParser parser(file, text, header_at);
  const Header header = parser.parse();

  if (header.type != "<f4" && header.type != "<f8") {
    parser.fail(fmt::format("values of type '{}'; '<f4' and '<f8' are read", header.type));
  }
  if (header.fortran_order) parser.fail("the array is in Fortran order; C order is read");
  if (header.shape.size() != 2) {
    parser.fail(fmt::format("{} dimensions; two are read, points and coordinates", header.shape.size()));
  }
  ArrayLayout layout{header.type == "<f8", header.shape[0], header.shape[1], header_at + length};
  if (layout.rows == 0 || layout.columns == 0) parser.fail("the array is empty");
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(layout.rows, layout.columns, &bytes) ||
      __builtin_mul_overflow(bytes, layout.value_bytes(), &bytes) ||
      bytes != file.size() - layout.first_value) {
    parser.fail(fmt::format("{} x {} values of {} bytes are not the {} bytes that follow the header",
                            layout.rows, layout.columns, layout.value_bytes(),
                            file.size() - layout.first_value));
  }
  return layout;
}

/// Appends `count` values of type Stored from byte `at` on.
template <class Stored, class Real>
void append(const File& file, std::uint64_t at, std::uint64_t count, std::vector<Real>& values) {
  std::vector<char> buffer(std::size_t{1} << 16);
  constexpr std::uint64_t kValues = (std::size_t{1} << 16) / sizeof(Stored);
  values.reserve(count);
  while (values.size() < count) {
    const std::uint64_t n = std::min(kValues, count - values.size());
    file.read_all_at(at, std::span(buffer).first(n * sizeof(Stored)));
    for (std::uint64_t i = 0; i < n; ++i, at += sizeof(Stored)) {
      Stored value;
      std::memcpy(&value, buffer.data() + i * sizeof(Stored), sizeof(Stored));
      if (!std::isfinite(value)) bad_byte(file.path(), at, "the value is not finite");
      if (std::abs(static_cast<double>(value)) > static_cast<double>(std::numeric_limits<Real>::max())) {
        bad_byte(file.path(), at, fmt::format("the value {} is out of range", value));
      }
      values.push_back(static_cast<Real>(value));
    }
  }
}

}  // namespace

bool is_npy(const File& file) {
  std::array<char, kMagic.size()> start{};
  return file.read_at(0, start) == start.size() && std::string_view(start.data(), start.size()) == kMagic;
}

template <class Real>
Points<Real> read_npy(const std::string& path, Part part) {
  const File file(path);
  const ArrayLayout layout = array_layout(file);
  const Range rows = range_of(layout.rows, part);
  const std::uint64_t at = layout.first_value + rows.begin * layout.columns * layout.value_bytes();
  const std::uint64_t count = rows.size() * layout.columns;
  Points<Real> points{layout.columns, {}};
  if (layout.is_double) {
    append<double>(file, at, count, points.values);
  } else {
    append<float>(file, at, count, points.values);
  }
  return points;
}

template Points<float> read_npy(const std::string&, Part);
template Points<double> read_npy(const std::string&, Part);

}  // namespace inputs
