// Refused: the reply to a request for a T goes to a T*, or to then(handler, target, arguments), whose
//
// The value has to come first: it is what the reply fills in.
#include <esker/handler.hpp>
#include <esker/shmem.hpp>

struct Arrived {
  unsigned lane;
  unsigned value;
};

void ask(esker::HandlerContext& context, esker::Handler<unsigned, Arrived> handler, unsigned* word) {
  esker::shmem_get(context, esker::then(handler, word, {1, 2}), word, 0);
}
