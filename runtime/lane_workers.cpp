// Lanes that send, on a team of host threads.
#include <esker/runtime/lane_workers.hpp>

#include <esker/aggregator/trace.hpp>
#include <esker/device/error.hpp>

namespace esker {

LaneWorkers::LaneWorkers(std::uint32_t threads, const detail::KernelContext& context,
                         const std::string& thread_name)
    : team_{threads, [thread_name, tracer = context.tracer](std::uint32_t member) {
              set_thread_name(thread_name);
              if (tracer != nullptr) tracer->name_thread("lane thread " + std::to_string(member));
            }} {
  workers_.reserve(threads);
  for (std::uint32_t i = 0; i < threads; ++i)
    workers_.push_back(detail::HostWorker{context, Outbox{context}});
}

void LaneWorkers::run(std::uint64_t groups, const detail::GroupFunction& function,
                      const std::function<bool()>& between, const char* name) {
  const cpu::ThreadTeam::Work work = [&](std::uint32_t member, cpu::ThreadTeam::Chunks& chunks) {
    detail::HostWorker& worker = workers_[member];
    const TraceSpan span(worker.context.tracer, TraceWhat::kRun, name);
    set_running_kernel(name);
    chunks.run([&](std::uint64_t first, std::uint64_t last) { function(worker, first, last); });
    chunks.keep_error(
        [&] { Outbox::Filling(worker.outbox).close(); });  // also after an exception: what was sent was sent
    set_running_kernel(nullptr);
  };
  team_.run(groups, work, between);
}

}  // namespace esker
