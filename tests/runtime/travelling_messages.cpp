// Active messages over loopback: sizes of arguments, and messages that travel on. A source of its own, since
// nvcc takes minutes for so many handlers.
#include <esker/runtime.hpp>

#include "active_message.hpp"
#include "messages.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

TEST_P(ActiveMessage, EachRunsOnceWithItsOwnArgumentsOfZeroToSixtyFourBytes) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_arguments<0>(rt);
    check_arguments<1>(rt);
    check_arguments<7>(rt);
    check_arguments<8>(rt);
    check_arguments<9>(rt);
    check_arguments<24>(rt);
    check_arguments<63>(rt);
    check_arguments<64>(rt);
  });
}

TEST_P(ActiveMessage, BarrierWaitsForChainsOverThePes) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_chains(rt, 1);
    check_chains(rt, 9);
  });
}

TEST_P(ActiveMessage, BarrierWaitsForPingPong) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_ping_pong(rt, 6);
    check_ping_pong(rt, 31);
  });
}

TEST_P(ActiveMessage, BarrierWaitsForFanOut) {
  run_pes(GetParam(), [](Runtime& rt) { check_fan_out(rt, 9, 8); });
}

}  // namespace
}  // namespace esker::testing
