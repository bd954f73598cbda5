// Registers active-message handlers on all PEs alike.
#pragma once

#include <cstdint>

#include <esker/net/handler_table.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/device_context.hpp>
#include <esker/runtime/lane_executor.hpp>

namespace esker {

/// Contract. add() by the user's thread, collective; table() is for any thread, before it too.
class HandlerRegistry {
 public:
  const HandlerTable& table() const { return table_; }

  /// The number under which messages name the handler. Error{kHandler} if the PEs register different ones, or
  /// too many.
  std::uint16_t add(HandlerTable::Entry entry, const JobShape& job, Collectives& collectives,
                    LaneExecutor& executor, detail::KernelContext& context);

 private:
  HandlerTable table_;
  std::uint32_t count_ = 0;
};

}  // namespace esker
