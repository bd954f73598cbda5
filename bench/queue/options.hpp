// Command line of esker-bench-queue.
#pragma once

#include <cstdint>
#include <string>

#include <esker/bench/harness/measure.hpp>

namespace esker::bench {

struct Options {
  Effort effort;
  std::uint32_t producers = 1;  // threads; the SPSC queue always has one of each
  std::uint32_t consumers = 1;
  double min_ratio = 0;  // 0: not demanded
  std::string json;      // empty: none
};

/// --help prints and exits with 0; a mistake is printed and exits with 2.
Options parse_options(int argc, char** argv);

}  // namespace esker::bench
