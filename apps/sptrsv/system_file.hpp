// Sparse lower triangular systems from files.
#pragma once

#include <cstdint>
#include <string>

#include "system.hpp"

namespace sptrsv {

/// The lower triangle of a Matrix Market file. Where `is_dominant`, or where a row has nothing or 0 on the
/// diagonal, diagonals are 1 more than the magnitudes of their row. The right side is random.
///
/// Errors. esker::Error{kConfiguration} with the file, the line and the reason.
System read_system(const std::string& path, bool is_dominant, std::uint64_t seed);

}  // namespace sptrsv
