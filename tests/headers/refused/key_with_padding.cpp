// Refused: keys are compared by their bytes: this type has padding
#include <esker/containers.hpp>

struct Padded {
  std::uint64_t number;
  std::uint32_t more;
};
esker::containers::Set<Padded> set;
