// Which PE this is, and of how many.
#pragma once

#include <cstdint>

namespace esker {

struct JobShape {
  std::uint32_t pe;
  std::uint32_t n_pes;
  std::uint32_t destinations;  // n_pes; more in the one-node projection
  std::uint32_t pes_on_host;   // this one included
};

}  // namespace esker
