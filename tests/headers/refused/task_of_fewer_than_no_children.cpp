// Refused: a task's kMaxSpawns is 0 to 65536
#include <esker/tasks.hpp>

struct Fewer {
  static constexpr int kMaxSpawns = -1;
  void operator()(auto& task) const { task.give(1); }
};

long run(const esker::Device& device) { return esker::tasks::run(device, Fewer{}); }
