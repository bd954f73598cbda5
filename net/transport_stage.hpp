// Completion of what passes the transport: buffers that are submitted, queued, sent, received or not yet
// applied.
#pragma once

#include <cstdint>
#include <vector>

#include <esker/net/acknowledgements.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/dispatch.hpp>
#include <esker/net/host_handlers.hpp>
#include <esker/net/shipping.hpp>

namespace esker {

/// It has no messages of its own: senders count them before, appliers after.
class TransportStage final : public CompletionStage {
 public:
  TransportStage(Shipping& shipping, const Dispatch& dispatch, HostHandlers& handlers, Control& control)
      : shipping_{shipping},
        dispatch_{dispatch},
        handlers_{handlers},
        me_{control.pe()},
        replies_{control, wire::Kind::kQuietRequest, wire::Kind::kQuietReply},
        target_(control.n_pes()) {}

  /// Answers peers that ask how far this PE has applied their frames.
  bool step() override {
    bool moved = false;
    for (std::uint32_t pe = 0; pe < target_.size(); ++pe) {
      if (!replies_.answer(pe, shipping_.applied_from(pe))) continue;
      (void)handlers_.close_for(pe);  // it waits for the replies to its requests too
      moved = true;
    }
    return moved;
  }

  void flush() override { shipping_.take_submitted(); }  // they have their numbers now
  bool drained() override { return shipping_.is_idle() && dispatch_.is_empty(); }
  const char* waits_for() const override { return "this PE's messages to leave and to be applied"; }

  void ask_peers() override {
    for (std::uint32_t pe = 0; pe < target_.size(); ++pe) {
      target_[pe] = shipping_.last_sequence_to(pe);
      if (pe != me_) replies_.ask(pe, target_[pe]);
    }
  }
  bool have_peers_applied() override {
    for (std::uint32_t pe = 0; pe < target_.size(); ++pe) {
      if (pe == me_ ? shipping_.applied_from(pe) < target_[pe] : !replies_.is_applied(pe, target_[pe]))
        return false;
    }
    return true;
  }

 private:
  Shipping& shipping_;
  const Dispatch& dispatch_;
  HostHandlers& handlers_;
  const std::uint32_t me_;
  Acknowledgements replies_;
  std::vector<std::uint64_t> target_;  // of a quiet: the last frame to each PE
};

}  // namespace esker
