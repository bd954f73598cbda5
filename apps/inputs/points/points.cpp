// Which format a file has.
#include "points.hpp"

namespace inputs {

template <class Real>
Points<Real> read_points(const std::string& file, Part part) {
  return is_npy(File(file)) ? read_npy<Real>(file, part) : read_csv<Real>(file, part);
}

template Points<float> read_points(const std::string&, Part);
template Points<double> read_points(const std::string&, Part);

}  // namespace inputs
