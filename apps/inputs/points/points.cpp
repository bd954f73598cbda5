// Which format a file has.
#include "points.hpp"

namespace inputs {

template <class Real>
Points<Real> read_points(const std::string& file, std::uint64_t part, std::uint64_t parts) {
  return is_npy(File(file)) ? read_npy<Real>(file, part, parts) : read_csv<Real>(file, part, parts);
}

template Points<float> read_points(const std::string&, std::uint64_t, std::uint64_t);
template Points<double> read_points(const std::string&, std::uint64_t, std::uint64_t);

}  // namespace inputs
