// Refused: the reply to a request for a T goes to a T*, or to then(handler, target, arguments), whose
#include <cstdint>

#include <esker/handler.hpp>
#include <esker/shmem.hpp>

void ask(esker::HandlerContext& context, std::uint32_t* result, std::uint64_t* word) {
  esker::shmem_fetch_inc(context, result, word, 0);
}
