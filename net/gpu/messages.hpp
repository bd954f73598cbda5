// Messages that have arrived on a GPU, as lanes read them.
#pragma once

#include <cstdint>
#include <esker/aggregator/command.hpp>
#include <esker/net/gpu/pe_state.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// Messages of one command: word r of message i is words[r * stride + i].
struct Messages {
  Command command;
  std::uint32_t width;  // words of a message
  std::uint32_t count;
  std::uint32_t stride;
  const std::uint64_t* words;
  std::uint32_t source;

  ESKER_HD std::uint64_t word(std::uint32_t r, std::uint32_t i) const { return words[r * stride + i]; }
  ESKER_HD std::uint64_t offset(std::uint32_t i) const { return word(0, i) & kOffsetMask; }
};

/// Of requests: the offset of each one's target, and that of its reply.
class RequestAddresses {
 public:
  ESKER_HD explicit RequestAddresses(const Messages& m)
      : m_{m},
        is_packed_{is_packed(m.command, m.width)},
        shift_{operand_shift(m.command.operand)},
        reply_at_{message_words(m.command) - 1} {}

  /// Rows before this one are operands, from row 1 on.
  ESKER_HD std::uint32_t operands_end() const { return reply_at_; }
  ESKER_HD std::uint64_t target(std::uint32_t i) const {
    return is_packed_ ? packed_target(m_.word(0, i), shift_) : m_.offset(i);
  }
  ESKER_HD std::uint64_t reply_to(std::uint32_t i) const {
    return is_packed_ ? packed_reply_to(m_.word(0, i), shift_) : m_.word(reply_at_, i) & kOffsetMask;
  }

 private:
  const Messages& m_;
  const bool is_packed_;
  const std::uint32_t shift_;
  const std::uint32_t reply_at_;
};

/// Whether an operation of `bytes` may be applied there, as far as this kernel has heard.
ESKER_HD inline bool is_inside(const HeapView& heap, std::uint64_t at, std::uint32_t bytes,
                               std::uint32_t alignment) {
  return heap.bytes >= bytes && at <= heap.bytes - bytes && at % alignment == 0;
}
/// Whether it may where is_inside() says no: a PE that has come out of allocate() earlier may send to what
/// this kernel has not heard of yet. Tells the host if not.
ESKER_NOINLINE ESKER_HD inline bool may_be_inside(const PeState& pe_state, std::uint64_t at,
                                                  std::uint32_t bytes, std::uint32_t alignment,
                                                  std::uint32_t source) {
  const std::uint64_t end = pe_state.words->heap_end.load_relaxed();
  if (is_inside({nullptr, end}, at, bytes, alignment)) return true;
  report_fault(pe_state, {Fault::kBadArrival, source, 0, 0, 0, at, bytes, "apply"});
  return false;
}

/// Which kernels may apply a package: 0, any; else the progress kernels of that handler.
ESKER_HD constexpr std::uint32_t kind_of(Command command) {
  if (is_request(command.operation)) return kRequests + 1;
  return is_call(command) ? command.handler + 1u : 0;
}

}  // namespace esker::gpu

#endif
