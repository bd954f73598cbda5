// Choosing a progress kernel's shape.
#include <fmt/format.h>

#include <algorithm>
#include <esker/net/gpu/engine/launcher.hpp>
#include <esker/net/gpu/progress_kernel.hpp>

namespace esker::gpu {

Launcher::Launcher(const OpenedDevice& device, const HandlerRegistry& handlers, const PeState* pe_state,
                   bool is_shared)
    : device_{device}, handlers_{handlers}, pe_state_{pe_state}, reserved_bytes_{is_shared ? 0 : kNoLaunch} {
  device_.use();
  load_plain_progress_kernel();
}

void Launcher::reserve(std::uint32_t scratch_bytes) {
  if (scratch_bytes >= reserved_bytes_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  reserved_bytes_.store(scratch_bytes, std::memory_order_relaxed);
}

void Launcher::start(const ProgressRequest& request) {
  device_.use();
  // A group a processor; beside a kernel as many as find space there. More would begin only when these have
  // ended, and until then nobody would poll their mailboxes (docs/design/progress-kernels-and-occupancy.md).
  const std::uint32_t processors = device_.processors();
  ProgressShape shape{request.beside_kernel
                          ? std::max(1u, processors * kGroupsHeld / ProgressPolicy::kReservedPart)
                          : processors,
                      ProgressPolicy::kPoolBytes};
  // Each applies what is not for a handler, and what is for one of them.
  std::string error;
  if (handlers_.known() == 0) {
    error = start_plain_progress_kernel(pe_state_, request.number, shape, device_.progress_stream());
  } else {
    const HandlerRegistry::Handler& handler = handlers_[request.handler];
    const std::lock_guard lock(mutex_);  // a kernel that leaves less comes after this progress kernel
    const std::uint32_t reserved = reserved_bytes_.load(std::memory_order_relaxed);
    if (request.beside_kernel && reserved != kNoLaunch &&
        reserved > handler.scratch_bytes + ProgressPolicy::kPoolBytes)
      shape.pool_bytes = reserved - handler.scratch_bytes;
    error = handler.code.start_progress_kernel(handler.index, pe_state_, request.number, shape,
                                               device_.progress_stream());
  }
  if (!error.empty())
    throw Error(Error::Kind::kDevice, fmt::format("a progress kernel on {}: {}", device_.name(), error));
}

}  // namespace esker::gpu
