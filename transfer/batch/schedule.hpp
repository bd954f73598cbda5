// When the command streams of a batch copy and run their kernels, and how long all of it takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/batch/topology.hpp>

namespace esker::transfer {

/// A command stream as the model sees it: a copy, a kernel on a device, or a copy to a device and then a
/// kernel there.
struct StreamModel {
  std::uint32_t from = 0, to = 0;  // nodes: memories and devices. A kernel alone: `to` is its device
  double bytes = 0;                // 0: no copy
  double kernel_s = 0;             // 0: no kernel
  double pieces = 1;               // of the copy: each but the first costs its link's further_s
};

/// A copy of a stream: its only one, or one of the two through host memory of a staged one.
struct Leg {
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t stream = 0;
  Topology::Route route;
  double bytes = 0;
  std::uint32_t source = kNone;  // of the second of two: the first one, whose bytes it takes on
  double startup_s = 0;
  double begin_s = 0, end_s = 0;
  std::uint32_t bottleneck = kNone;  // the link that kept it longest; kNone: none did
};

/// Legs and kernels that run one after the other, since they need the same engine: all copies, then all
/// kernels.
struct Sequence {
  std::vector<std::uint32_t> legs;
  std::vector<std::uint32_t> kernels;  // streams
  double kernels_s = 0;
  double begin_s = 0;
};

struct StreamTimes {
  double copy_begin_s = 0, copy_end_s = 0, kernel_begin_s = 0, kernel_end_s = 0;
  double end_s = 0;  // of the last of it
};

struct Timeline {
  std::vector<StreamTimes> streams;
  std::vector<Leg> legs;
  std::vector<Sequence> sequences;
  double makespan_s = 0;
  std::vector<double> utilisation;        // a link: bytes that it carries over those that it could
  std::uint32_t bottleneck = Leg::kNone;  // the link of the highest; kNone: nothing is copied
};

/// Bytes of a staged copy that are in host memory before they go on.
inline constexpr double kStageBytes = 1 << 20;

// Three ways to share links. In all of them:
//
// - Streams whose copies need the same engine are merged: their copies run one after the other, in the order
//   of the streams, but the first halves of staged ones before all others, and then their kernels. On a
//   device of Engines::kOne this is so of both directions, on one of Engines::kCaller of everything.
// - Kernels of streams that share no engine run at the same time; a kernel's time is given, and holds
//   beside what else the batch runs on its device.
// - A copy between devices that is staged is two, in pieces of kStageBytes: none goes on before it is there.
// - A copy takes its startup beside its bytes. Further ones of a merged stream take their link's further_s.
//
// Errors. Error{kTransfer}: a node that is not there or cannot be an end, no route, a copy within a device, a
//         kernel after a copy to host memory (it has no place in the model: another batch), a number that is
//         negative or no number.

/// The batch method (Verner et al., Algorithm 1): streams end together. Computed from the end backwards:
/// kernels first, then copies, each from the moment at which its kernel must begin, with the bandwidth that
/// the others leave it. The makespan has the longest startup added, the paper's SetupTime.
///
/// Where a copy is staged, its first half is moved to begin a piece before the second, as in section 3.2;
/// then the times are those of the batch run forwards with these starts.
ESKER_API Timeline align_ends(const Topology& topology, std::span<const StreamModel> streams);

/// Bandwidth allocation: each link's bandwidth is divided equally among the streams that need it, and no
/// part changes hands. A stream of `reserved`, if there are any, has its part whether or not it is among
/// `streams`: an application of several phases reserves for all of them.
ESKER_API Timeline allocate_bandwidth(const Topology& topology, std::span<const StreamModel> streams,
                                      std::span<const StreamModel> reserved = {});

/// Time division: one copy at a time, at full bandwidth; those with the longest kernels first, which no order
/// beats where each stream has an engine of its own. Kernels overlap copies.
ESKER_API Timeline divide_time(const Topology& topology, std::span<const StreamModel> streams);

/// What becomes of a schedule's starts if its streams are these: the batch run forwards, links shared by
/// progressive filling. Of a schedule of align_ends() and its own streams: the same times.
///
/// Errors. Error{kTransfer}: the schedule has other streams, or they go other ways; bytes and times may be
///         others.
ESKER_API Timeline replay(const Topology& topology, std::span<const StreamModel> streams,
                          const Timeline& schedule);

}  // namespace esker::transfer
