// Jobs in the order of arrival.
#include <esker/net/dispatch.hpp>

#include <utility>

namespace esker {

void Dispatch::apply(const Arrival& arrival) {
  std::unique_ptr<Job> job;
  if (free_.empty()) {
    job = std::make_unique<Job>();
  } else {
    job = std::move(free_.back());
    free_.pop_back();
  }
  job->job.header = arrival.header;
  job->job.frame = arrival.bytes;
  job->job.heap_bytes = heap_bytes_.load(std::memory_order_acquire);
  job->arrival = arrival;
  job->handed_out = false;
  jobs_.push_back(std::move(job));
  step();
}

bool Dispatch::step() {
  bool moved = false;
  for (const auto& job : jobs_) {
    if (job->handed_out) continue;
    job->job.left.store(1, std::memory_order_relaxed);
    job->handed_out = true;  // where the applier throws it is not tried again
    if (!applier_->try_submit(job->job)) {
      job->handed_out = false;
      break;
    }
    moved = true;
  }
  return moved;
}

std::optional<Arrival> Dispatch::take_applied() {
  if (jobs_.empty() || !jobs_.front()->handed_out ||
      jobs_.front()->job.left.load(std::memory_order_acquire) != 0) {  // [job]
    return std::nullopt;
  }
  free_.push_back(std::move(jobs_.front()));
  jobs_.pop_front();
  return free_.back()->arrival;
}

}  // namespace esker
