// An exchange by MPI's collectives.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <esker/net/exchange.hpp>

namespace esker::mpi {

/// One exchange, and what MPI may touch until it is done.
class Moving {
 public:
  explicit Moving(std::shared_ptr<Exchange> exchange) : exchange_{std::move(exchange)} {}

  /// Collective, once.
  void begin(std::uint32_t pe, MPI_Comm communicator);
  bool test();

 private:
  std::shared_ptr<Exchange> exchange_;
  std::vector<int> send_counts_, send_starts_, receive_counts_, receive_starts_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace esker::mpi
