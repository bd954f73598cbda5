// Lines of numbers.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "../file/line_reader.hpp"
#include "points.hpp"

namespace inputs {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Calls visit(field) for each field of a line that is not blank.
template <class Visit>
void for_each_field(std::string_view line, Visit visit) {
  const bool has_commas = line.find(',') != std::string_view::npos;
  for (line = trim(line);;) {
    const std::size_t end = has_commas ? line.find(',') : line.find_first_of(" \t");
    visit(trim(line.substr(0, end)));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
    line = trim(line);
  }
}

struct Number {
  double value = 0;
  const char* fault = nullptr;  // why it is none
};

Number parse(std::string_view field) {
  if (field.empty()) return {.fault = "is empty"};
  // from_chars() takes no '+'.
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  Number number;
  const char* end = field.data() + field.size();
  const auto [rest, error] = std::from_chars(field.data(), end, number.value);
  if (error == std::errc::invalid_argument || rest != end) return {.fault = "is not a number"};
  if (error == std::errc::result_out_of_range) return {.fault = "is out of range"};
  if (!std::isfinite(number.value)) return {.fault = "is not finite"};
  return number;
}

/// What the beginning of the file says about all of it.
struct TextLayout {
  std::size_t columns;
  std::uint64_t first_point;  // bytes
};

TextLayout text_layout(const File& file, LineReader& lines) {
  bool may_be_header = true;
  while (const auto line = lines.next()) {
    if (trim(*line).empty()) continue;
    std::size_t fields = 0;
    std::size_t numbers = 0;
    for_each_field(*line, [&](std::string_view field) {
      ++fields;
      if (parse(field).fault == nullptr) ++numbers;
    });
    if (numbers > 0 || !may_be_header) return {fields, lines.last_offset()};
    may_be_header = false;
  }
  bad_file(file.path(), "holds no points");
}

}  // namespace

template <class Real>
Points<Real> read_csv(const std::string& path, Part part) {
  const File file(path);
  if (is_gzip(file)) bad_file(path, "is compressed: points are read from plain files");
  const auto in_lines_of = [&](LineReader& lines, const auto& read) {
    try {
      return read();
    } catch (const Malformed& malformed) {
      bad_line(path, file.line_of(lines.last_offset()), malformed.what());
    }
  };
  LineReader first_lines(file);
  const TextLayout layout = in_lines_of(first_lines, [&] { return text_layout(file, first_lines); });
  const Range range = range_of(file.size() - layout.first_point, part);
  const std::uint64_t begin = file.line_start(layout.first_point + range.begin);
  const std::uint64_t end = layout.first_point + range.end;
  LineReader lines(file, begin);

  Points<Real> points{layout.columns, {}};
  const auto fail = [&](const std::string& reason) {
    bad_line(path, file.line_of(lines.last_offset()), reason);
  };
  while (lines.offset() < end) {
    const auto line = in_lines_of(lines, [&] { return lines.next(); });
    if (!line) break;
    if (trim(*line).empty()) continue;
    std::size_t fields = 0;
    for_each_field(*line, [&](std::string_view field) {
      Number number = parse(field);
      if (std::abs(number.value) > std::numeric_limits<Real>::max()) number.fault = "is out of range";
      if (number.fault != nullptr) {
        fail(fmt::format("field {}, '{}', {}", fields + 1, field.substr(0, 40), number.fault));
      }
      ++fields;
      points.values.push_back(static_cast<Real>(number.value));
    });
    if (fields != layout.columns) {
      fail(fmt::format("{} numbers, where the first point of the file has {}", fields, layout.columns));
    }
  }
  return points;
}

template Points<float> read_csv(const std::string&, Part);
template Points<double> read_csv(const std::string&, Part);

}  // namespace inputs
