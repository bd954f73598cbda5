// Points of files, in parts by rows: CSV and NumPy's .npy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../file/file.hpp"
#include "../file/part.hpp"

namespace inputs {

/// Points in row order: coordinate c of point p is values[p * columns + c]. Real is float or double.
template <class Real>
struct Points {
  std::size_t columns = 0;  // coordinates a point, also where there is no point
  std::vector<Real> values;

  std::size_t rows() const { return values.size() / columns; }
  std::span<const Real> operator[](std::size_t p) const {
    return std::span(values).subspan(p * columns, columns);
  }
};

// What the functions below share:
// Contract Each point of the file belongs to exactly one part, and the parts are in the file's order. What
//          the file has is rounded to Real; what does not fit Real, infinities and NaN are errors, as
//          everything malformed is: esker::Error{kConfiguration} with file, line or byte, and reason. An
//          error outside its own part may escape a part.
// Cost     Memory is the part and a few buffers of 64 KiB; a part reads its own share of the file.

/// Text, a point a line: numbers between commas, blanks around them allowed, or between blanks. The first
/// line says how many; if none of its fields is a number it is a header, and the second one says it. Empty
/// lines are skipped. Parts are ranges of bytes: their numbers of points differ where lines differ in length.
template <class Real>
Points<Real> read_csv(const std::string& file, Part part = {});

/// Format version 1.0 or 2.0, little-endian float32 or float64 in C order, two dimensions, neither of them 0.
/// A part has rows range_of(rows, part).
template <class Real>
Points<Real> read_npy(const std::string& file, Part part = {});

/// The one of the two that the file's first bytes ask for.
template <class Real>
Points<Real> read_points(const std::string& file, Part part = {});

/// Whether the file starts as .npy files do, whatever its name is.
bool is_npy(const File& file);

}  // namespace inputs
