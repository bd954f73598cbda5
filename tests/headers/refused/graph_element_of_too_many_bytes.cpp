// Refused: an element has at most 64 KiB
#include <esker/tasks.hpp>

struct Large {
  char bytes[65537];
};

void make(esker::tasks::Graph& graph) { (void)graph.channel<Large>(); }
