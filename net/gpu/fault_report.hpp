// What a lane reports to the host when something is wrong, and the message that the host makes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace esker::gpu {

enum class Fault : std::uint32_t {
  kNone,
  kBadPe,           // a lane's call names a PE that does not exist
  kBadTarget,       // a lane's call names a target outside the heap
  kMisaligned,      // or one that is not aligned as the call demands
  kNoHandler,       // a lane's call names a default Handler
  kBadIndex,        // a lane's call names an element that a distributed array does not have
  kBadArrival,      // a message that arrived has an address outside the heap
  kHandlersOutrun,  // handlers have sent more than fits
  kNotReserved      // a kernel of the program's own sends, for which nothing is reserved
};

/// Of one lane; words that the fault does not need are 0.
struct FaultReport {
  Fault fault;
  std::uint32_t pe;          // the call's destination; kBadArrival: the message's source
  std::uint32_t lane;        // of its group
  std::uint32_t is_handler;  // 1: a handler's call
  std::uint64_t group;
  std::uint64_t offset;  // of the target in the heap; kHandlersOutrun: messages that the queue holds;
                         // kBadIndex: the index
  std::uint64_t bytes;   // of the target; kBadIndex: elements
  char call[24];         // "shmem_put"; ends in 0
  std::uint32_t alignment = 1;
  std::uint32_t of_reply = 0;  // 1: the target is that of a request's reply
};
static_assert(std::is_trivially_copyable_v<FaultReport> && std::is_standard_layout_v<FaultReport>);
static_assert(offsetof(FaultReport, fault) == 0 && offsetof(FaultReport, pe) == 4 &&
                  offsetof(FaultReport, lane) == 8 && offsetof(FaultReport, is_handler) == 12 &&
                  offsetof(FaultReport, group) == 16 && offsetof(FaultReport, offset) == 24 &&
                  offsetof(FaultReport, bytes) == 32 && offsetof(FaultReport, call) == 40 &&
                  offsetof(FaultReport, alignment) == 64 && offsetof(FaultReport, of_reply) == 68 &&
                  sizeof(FaultReport) == 72,
              "host and device agree");

/// What the host adds to a report.
struct FaultContext {
  std::string_view kernel;  // that was launched last
  std::uint32_t n_pes;
  std::uint64_t heap_bytes;  // allocated so far
};

/// Misuse ends the job with a message; the other faults are an Error.
bool is_misuse(Fault fault);
std::string message_of(const FaultReport& report, const FaultContext& context);
/// Calls misuse(), or throws Error{kOutOfMemory} (kHandlersOutrun) or Error{kNetwork} (kBadArrival).
[[noreturn]] void raise_fault(const FaultReport& report, const FaultContext& context);

}  // namespace esker::gpu
