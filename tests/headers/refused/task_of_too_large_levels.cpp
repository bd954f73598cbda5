// Refused: these tasks are too large
// The words of a stack are a multiple of 2^32, and some.
#include <esker/tasks.hpp>

struct Wide {
  static constexpr int kMaxSpawns = 1 << 16;
  char bytes[1012];
  void operator()(auto& task) const { task.give(1); }
};

long run(const esker::Device& device) { return esker::tasks::run(device, Wide{}); }
