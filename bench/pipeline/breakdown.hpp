// HiWayLib's techniques added one by one (Figure 11), on two programs that need them.
#pragma once

#include <nlohmann/json.hpp>

#include "bench.hpp"

namespace esker::bench {

/// Tasks that split until they are small, on the GPU: what contends for queues, and has an end to be
/// detected.
nlohmann::json take_recursion(const PipelineBench& bench);
/// Five points of a grid that the host makes: what has data to share between tasks.
nlohmann::json take_stencil(const PipelineBench& bench);

}  // namespace esker::bench
