// PEs are threads of one process: for tests, and for one PE where there is no MPI.
#pragma once

#include <functional>
#include <memory>

#include <esker/net/transport.hpp>

namespace esker::loopback {

/// What a test may do to a frame under way.
enum class Fate { kDeliver, kLose };

/// The medium that n PEs share. Outlives its transports.
class World {
 public:
  explicit World(std::uint32_t n_pes);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// One transport a PE; each is used by one thread.
  std::unique_ptr<Transport> connect(std::uint32_t pe, TransportLimits limits);

  /// Fault injection: called for each frame before delivery, may change its bytes. Set before connect().
  using Tamper = std::function<Fate(std::uint32_t from, std::uint32_t to, std::vector<std::byte>& frame)>;
  void set_tamper(Tamper tamper);

  class Shared;

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace esker::loopback
