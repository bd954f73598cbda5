// One kernel an election, whatever the operation.
#include "elections.hpp"

#include <esker/lane.hpp>

namespace gups {
namespace {

/// Whichever `op` names.
struct Any {
  Send send;
  enum Op { kInc, kAdd, kXor, kPut, kAm } op;
  template <class Item, class... Election>
  ESKER_HD void operator()(Item&& item, std::uint64_t k, Election&&... election) const {
    switch (op) {
      case kInc:
        return send.inc(item, k, election...);
      case kAdd:
        return send.add(item, k, election...);
      case kXor:
        return send.exclusive_or(item, k, election...);
      case kPut:
        return send.put(item, k, election...);
      case kAm:
        return send.am(item, k, election...);
    }
  }
};

Any::Op to_op(const std::string& name) {
  return name == "inc"   ? Any::kInc
         : name == "add" ? Any::kAdd
         : name == "xor" ? Any::kXor
         : name == "put" ? Any::kPut
                         : Any::kAm;
}

}  // namespace

void send_with_election(esker::Runtime& rt, const std::string& election, const std::string& op,
                        std::uint64_t updates, const Send& send) {
  using esker::GroupItem;
  const Any call{send, to_op(op)};
  if (election == "per-lane") {
    rt.launch(
        updates,
        [call] ESKER_LAMBDA(esker::WorkItem item) { call(item, item.global_id(), esker::PerLane{}); },
        "gups");
  } else if (election == "auto-group") {
    rt.launch(
        updates, [call] ESKER_LAMBDA(GroupItem & item) { call(item, item.global_id()); }, "gups");
  } else if (election == "per-wave") {
    rt.launch(
        updates, [call] ESKER_LAMBDA(GroupItem & item) { call(item, item.global_id(), esker::PerWave{}); },
        "gups");
  } else if (election == "predicated") {
    rt.launch(
        updates, [call] ESKER_LAMBDA(GroupItem & item) { call(item, item.global_id(), esker::Predicated{}); },
        "gups");
  } else {
    rt.launch(
        updates,
        [call] ESKER_LAMBDA(GroupItem & item) {
          auto& state = item.group_lane().scratch<esker::FineGrainState<1024>>();
          esker::FineGrainBarrier<1024> members(item.group_lane(), state);
          members.join();
          item.group().sync();
          call(item, item.global_id(), esker::FineGrain<1024>{members});
          members.leave();
        },
        "gups");
  }
}

}  // namespace gups
