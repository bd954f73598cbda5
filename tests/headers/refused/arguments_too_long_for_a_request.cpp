// Refused: the arguments of the reply's handler are too long to travel with the request
// Beside the value, a compare and swap has room for 40 bytes.
#include <cstdint>

#include <esker/handler.hpp>
#include <esker/shmem.hpp>

struct Arrived {
  std::uint64_t value;
  std::uint64_t more[6];
};

void ask(esker::HandlerContext& context, esker::Handler<std::uint64_t, Arrived> handler,
         std::uint64_t* word) {
  esker::shmem_compare_swap(context, esker::then(handler, word, {}), word, 1, 2, 0);
}
