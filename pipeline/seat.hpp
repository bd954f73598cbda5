// A place at a host stage: what one of its teams needs to serve it, whichever thread comes.
#pragma once

#include <cstdint>

#include <esker/pipeline/run_view.hpp>
#include <esker/pipeline/thread_server.hpp>
#include <esker/pipeline/thread_team.hpp>

namespace esker::pipeline::detail {

/// Contract One thread at a time, but for has_work(). What one thread did in its turn happens before the
///          next one's turn.
/// Errors   take_turn() throws what the stage's function throws; the seat is not used again after that.
class Seat {
 public:
  virtual ~Seat() = default;
  /// Takes one frame, or calls a source until it has published one. `stays`: goes on while there is
  /// something to do.
  virtual Turn take_turn(bool stays) = 0;
  /// take_turn() would find something to do. Any thread, at any time.
  virtual bool has_work() const = 0;
};

template <class Node>
class ServedSeat final : public Seat {
 public:
  ServedSeat(Doorbell& bell, bool has_gpu, const RunView& run, const Node& node, std::uint32_t index)
      : team_{bell, has_gpu}, node_{node}, server_{team_, run, node.number, index} {}
  Turn take_turn(bool stays) override { return server_.take_turn(node_, stays); }
  bool has_work() const override { return server_.has_work(node_); }

 private:
  ThreadTeam team_;
  const Node node_;
  ThreadServer server_;
};

}  // namespace esker::pipeline::detail
