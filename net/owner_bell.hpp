// Where the network's owner sleeps.
#pragma once

#include <esker/queue/doorbell.hpp>

namespace esker {

/// Contract. Whoever has news for the owner rings; peers that share memory ring `steps`.
struct OwnerBell {
  Doorbell& steps;    // for the thread that makes the owner's steps, if it makes one more in the check before
  Doorbell beside{};  // for the owner's thread, while another one makes them

  void ring() {
    steps.ring();
    beside.ring();  // the other one may have just stopped
  }
};

}  // namespace esker
