// What stands for METIS in a build without it.
#include <esker/error.hpp>

#include "metis_owners.hpp"

namespace inputs {

std::vector<VertexPartition::Owner> metis_owners(std::uint64_t, VertexPartition::Owner, std::uint64_t,
                                                 const EdgeStream&) {
  throw esker::Error(esker::Error::Kind::kConfiguration,
                     "METIS partition: this build has no METIS; configure it with -DESKER_METIS=ON");
}

}  // namespace inputs
