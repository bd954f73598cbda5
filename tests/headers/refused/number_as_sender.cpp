// Refused: the first argument of a shmem_ call is the lane
#include <esker/esker.hpp>

void send(esker::SymmetricArray<std::uint64_t> words) { esker::shmem_put(5, &words[0], 1, 0); }
