// Refused: the first argument of a shmem_ call is the lane
#include <esker/esker.hpp>

void send(esker::Runtime& rt, esker::SymmetricArray<std::uint64_t> words) { shmem_inc(rt, &words[0], 0); }
