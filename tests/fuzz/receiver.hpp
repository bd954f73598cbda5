// The PE that fuzzed frames arrive at: its number and its handlers.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <esker/net/handler_table.hpp>

namespace esker {

inline constexpr std::uint32_t kFuzzPes = 4;
inline constexpr std::uint32_t kFuzzReceiver = 1;

// In the order of registration, from 1.
inline constexpr std::uint16_t kAddAndForward = 1;  // 2 words: adds its argument, sends an inc onwards
inline constexpr std::uint16_t kFillOrThrow = 2;    // 9 words: fills 64 bytes; throws if the first is odd
inline constexpr std::uint16_t kTouchByte = 3;      // 1 word: a target of one byte
inline constexpr std::uint16_t kFetchOn = 4;        // 4 words: keeps the first argument, and asks on

/// Targets are reached by memcpy: what lies in the heap is bytes that any message may have written.
class FuzzHandlers {
 public:
  FuzzHandlers() {
    table_.add({"add_and_forward", 2, 8, 8, [](HostCall& call, void* target, const void* arguments) {
                  HandlerContext context(call);
                  std::uint64_t value = 0;
                  std::uint64_t argument = 0;
                  std::memcpy(&value, target, sizeof value);
                  std::memcpy(&argument, arguments, sizeof argument);
                  value += argument;
                  std::memcpy(target, &value, sizeof value);
                  const auto pe = static_cast<std::uint32_t>(argument % kFuzzPes);
                  esker::detail::SenderAccess::post(context, Command{Operation::kInc, Operand::kUint64, 0},
                                                    {address_word(pe, 8)});
                }});
    table_.add({"fill_or_throw", 9, 64, 8, [](HostCall&, void* target, const void* arguments) {
                  std::uint64_t first = 0;
                  std::memcpy(&first, arguments, sizeof first);
                  if (first % 2 == 1) throw std::runtime_error("odd");
                  std::memcpy(target, arguments, 64);
                }});
    table_.add({"touch_byte", 1, 1, 1, [](HostCall& call, void* target, const void*) {
                  HandlerContext context(call);
                  const auto byte = static_cast<unsigned char>(context.source() + 1);
                  std::memcpy(target, &byte, 1);
                }});
    table_.add({"fetch_on", 4, 8, 8, [](HostCall& call, void* target, const void* arguments) {
                  HandlerContext context(call);
                  std::memcpy(target, arguments, 8);
                  const auto pe = static_cast<std::uint32_t>(context.source());
                  esker::detail::SenderAccess::post(context,
                                                    Command{Operation::kFetchInc, Operand::kUint64, kFetchOn},
                                                    {address_word(pe, 16), 24, 1, 2});
                }});
  }
  const HandlerTable& table() const { return table_; }

 private:
  HandlerTable table_;
};

}  // namespace esker
