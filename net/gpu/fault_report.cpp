// The messages of faults that lanes report.
#include <fmt/format.h>

#include <cstring>
#include <esker/device/error.hpp>
#include <esker/net/gpu/fault_report.hpp>

namespace esker::gpu {
namespace {

/// "shmem_put by lane 3 of group 7 of kernel 'K'"
std::string call_of(const FaultReport& report, const FaultContext& context) {
  const std::string_view call(report.call, strnlen(report.call, sizeof report.call));
  if (report.is_handler != 0) return fmt::format("{} in a handler", call);
  return fmt::format("{} by lane {} of group {} of kernel '{}'", call, report.lane, report.group,
                     context.kernel);
}

}  // namespace

bool is_misuse(Fault fault) {
  switch (fault) {
    case Fault::kBadPe:
    case Fault::kBadTarget:
    case Fault::kMisaligned:
    case Fault::kNoHandler:
    case Fault::kBadIndex:
    case Fault::kNotReserved:
      return true;
    default:
      return false;
  }
}

std::string message_of(const FaultReport& report, const FaultContext& context) {
  const std::string_view what = report.of_reply != 0 ? "the reply's target" : "a target";
  switch (report.fault) {
    case Fault::kBadPe:
      return fmt::format("{}: PE {} is not below {}", call_of(report, context), report.pe, context.n_pes);
    case Fault::kBadTarget:
      return fmt::format("{}: {} of {} bytes at heap offset {} is outside the symmetric heap of {} bytes",
                         call_of(report, context), what, report.bytes,
                         static_cast<std::int64_t>(report.offset), context.heap_bytes);
    case Fault::kMisaligned:
      return fmt::format("{}: {} of {} bytes at heap offset {}, for PE {}, is not aligned to {} bytes",
                         call_of(report, context), what, report.bytes, report.offset, report.pe,
                         report.alignment);
    case Fault::kNoHandler:
      return fmt::format(
          "{}: the Handler is a default one, which stands for no handler; send what "
          "Runtime::register_handler() has returned",
          call_of(report, context));
    case Fault::kBadIndex:
      return fmt::format("{}: index {} of an array of {} elements", call_of(report, context), report.offset,
                         report.bytes);
    case Fault::kNotReserved:
      return fmt::format(
          "KernelItem: lane {} of group {} of a kernel of the program's own sends, and nothing is reserved "
          "for "
          "that kernel: call rt.reserve_for(kernel, group_lanes) before its first launch",
          report.lane, report.group);
    case Fault::kHandlersOutrun:
      return fmt::format(
          "one of the device's queues for what handlers send holds {} messages that nothing has sent on yet, "
          "and no more fit: each message makes more than one new one, faster than they are applied",
          report.offset);
    default:
      return fmt::format(
          "a buffer from PE {}: an operation of {} bytes at heap offset {:#x}, which is misaligned or "
          "outside "
          "(the heap's allocated part ends at {:#x})",
          report.pe, report.bytes, report.offset, context.heap_bytes);
  }
}

void raise_fault(const FaultReport& report, const FaultContext& context) {
  const std::string message = message_of(report, context);
  if (is_misuse(report.fault)) misuse(message);
  throw Error(report.fault == Fault::kHandlersOutrun ? Error::Kind::kOutOfMemory : Error::Kind::kNetwork,
              message);
}

}  // namespace esker::gpu
