// The streams of a batch as legs and sequences, before they have times. For the schedulers.
#pragma once

#include <span>

#include <esker/transfer/batch/schedule.hpp>

namespace esker::transfer {

/// Checks the streams; legs, sequences and the streams' places in them. No times.
Timeline arrange(const Topology& topology, std::span<const StreamModel> streams);

/// The times of a schedule whose sequences have begins: runs it forwards, links shared by progressive
/// filling. Sets all else.
void run_forwards(const Topology& topology, std::span<const StreamModel> streams, Timeline* schedule);

/// Kernels of a sequence run from `begin_s` on, one after the other; and when each stream ends.
void set_kernel_times(std::span<const StreamModel> streams, Timeline* schedule, const Sequence& sequence,
                      double begin_s);

/// Utilisation and the schedule's bottleneck, by the makespan.
void set_utilisation(const Topology& topology, Timeline* schedule);

}  // namespace esker::transfer
