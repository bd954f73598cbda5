// Choosing a progress kernel's shape.
#include <fmt/format.h>

#include <esker/net/gpu/engine/launcher.hpp>
#include <esker/net/gpu/progress_kernel.hpp>

namespace esker::gpu {

Launcher::Launcher(OpenedDevice& device, const HandlerRegistry& handlers, const PeState* pe_state,
                   bool is_shared)
    : device_{device}, handlers_{handlers}, pe_state_{pe_state} {
  device_.use();
  Occupancy& occupancy = device_.occupancy();
  if (is_shared) occupancy.expect_unplanned();
  plain_scratch_bytes_ = load_plain_progress_kernel(occupancy);
  constexpr auto kOfHandlers = static_cast<std::uint32_t>(sizeof(ProgressLists));
  guest_ =
      occupancy.add_guest({"progress kernels, which call handlers and serve other PEs",
                           plain_scratch_bytes_ + kOfHandlers + ProgressPolicy::kPoolBytes, kGroupsHeld});
}

void Launcher::start(const ProgressRequest& request) {
  device_.use();
  // Each applies what is not for a handler, and what is for one of them. More groups than fit beside a kernel
  // would begin only when these have ended, and until then nobody would poll their mailboxes
  // (docs/design/progress-kernels-and-occupancy.md).
  const bool is_plain = handlers_.known() == 0;
  const std::uint32_t own_bytes = is_plain ? plain_scratch_bytes_ : handlers_[request.handler].scratch_bytes;
  const Occupancy::Turn turn =
      device_.occupancy().guest_turn(guest_, request.beside_kernel, own_bytes, ProgressPolicy::kPoolBytes);
  const ProgressShape shape{turn.groups, turn.lent_bytes};
  std::string error;
  if (is_plain) {
    error = start_plain_progress_kernel(pe_state_, request.number, shape, device_.progress_stream());
  } else {
    const HandlerRegistry::Handler& handler = handlers_[request.handler];
    error = handler.code.start_progress_kernel(handler.index, pe_state_, request.number, shape,
                                               device_.progress_stream());
  }
  if (!error.empty())
    throw Error(Error::Kind::kDevice, fmt::format("a progress kernel on {}: {}", device_.name(), error));
}

}  // namespace esker::gpu
