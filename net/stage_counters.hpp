// How long buffers take from stage to stage on this PE, and how full they are; always counted.
#pragma once

#include <esker/aggregator/histogram.hpp>

namespace esker {

/// Written by the network's owner, read by anyone. One clock reading a node buffer and stage.
struct StageCounters {
  DurationCounters gather;  // first message to closing, of every buffer that this PE routed
  DurationCounters send;    // handed to the transport to reported sent, of buffers to other PEs
  DurationCounters apply;   // received, or routed if it stays here, to applied
  FillCounters fill;        // as gather
};

}  // namespace esker
