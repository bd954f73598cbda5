// Blocks of bytes from and to any PE's heap, and active messages of any size: members of Runtime, and calls
// of lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/device/platform.hpp>
#include <esker/net/handler.hpp>

namespace esker {

/// A block in pieces: `pieces` of `elements` each. At each end their starts are a stride apart, counted in
/// elements; 0: they follow each other without a gap.
struct BlockShape {
  std::uint64_t elements;
  std::uint64_t pieces = 1;
  std::uint64_t target_stride = 0;
  std::uint64_t source_stride = 0;
};

namespace detail {
struct BlockCall {
  const char* name;  // the user's call, for reports
  bool gets;         // else it puts
  void* target;
  const void* source;
  std::uint64_t element_bytes;
  BlockShape shape;
  std::uint32_t pe;
};
struct BytesCall {
  const char* name;
  std::uint16_t handler;
  const void* target;
  std::uint32_t target_bytes, target_alignment;
  const void* data;
  std::uint64_t bytes;
  std::uint32_t pe;
};
}  // namespace detail

/// Made by Runtime::register_bytes_handler; as a Handler, whose messages carry bytes instead of arguments.
template <class Target>
struct BytesHandler {
  std::uint16_t index = 0;
};

/// What Runtime can do with blocks.
///
/// Contract. The Runtime's thread; local; never waits. A block is applied some time before quiet() here, or
///           barrier_all(), returns: until then the memory of this PE's side, source of a put or result of a
///           get, is the call's, and means nothing that is read there. It may be any memory of the host, or
///           lie in this PE's heap; kernels that write it, or read it before, have ended (quiet()). No byte
///           is at the same time in a block and in another operation or block that writes it: parts of a
///           block are applied in any order, and not by whole words. Blocks wait for messages, and not the
///           other way round, so they may be of any size. To this PE itself, and in the one-node projection,
///           a block is a copy, done on return.
/// Errors.   A PE that does not exist, a side in a heap that is outside its allocated part, pieces of the
/// target
///           that overlap: abort with the values. What the runtime has failed with is thrown; from then on
///           neither side is touched. An exception that leaves the program's scope with a source or result in
///           it while a block is under way is misuse that nobody notices: quiet() first.
class ESKER_API BlockOperations {
 public:
  /// `count` elements from `source` here to `target`, which stands for the same offset on PE `pe`.
  template <class T>
  void put_block(T* target, const std::type_identity_t<T>* source, std::uint64_t count, std::uint32_t pe) {
    put_block(target, source, BlockShape{count}, pe);
  }
  template <class T>
  void put_block(T* target, const std::type_identity_t<T>* source, const BlockShape& shape,
                 std::uint32_t pe) {
    static_assert(std::is_trivially_copyable_v<T>);
    start_block({"put_block", false, target, source, sizeof(T), shape, pe});
  }
  /// The other way: from `source`, which stands for the same offset on PE `pe`, to `result` here. In the
  /// shape `target` is the result.
  template <class T>
  void get_block(T* result, const std::type_identity_t<T>* source, std::uint64_t count, std::uint32_t pe) {
    get_block(result, source, BlockShape{count}, pe);
  }
  template <class T>
  void get_block(T* result, const std::type_identity_t<T>* source, const BlockShape& shape,
                 std::uint32_t pe) {
    static_assert(std::is_trivially_copyable_v<T>);
    start_block({"get_block", true, result, source, sizeof(T), shape, pe});
  }

  /// Collective. As register_handler(), of `handler(HandlerContext&, Target&, std::span<const std::byte>)`,
  /// which gets what call_bytes() was given; the bytes are aligned to 8, and valid during the call.
  ///
  /// Errors. Error{kHandler} as there, and where the heap is in a GPU's memory: it runs on the host alone.
  template <class Target, class Function>
  BytesHandler<Target> register_bytes_handler(const std::string& name, Function function) {
    static_assert(std::is_invocable_v<Function&, HandlerContext&, Target&, std::span<const std::byte>>,
                  "a handler of bytes takes (HandlerContext&, Target&, std::span<const std::byte>)");
    return {add_bytes_handler(
        {name, 0, sizeof(Target), alignof(Target),
         [function = std::move(function)](HostCall& call, void* target, const void* argument) mutable {
           HandlerContext context(call);
           const auto& bytes = *static_cast<const BytesArgument*>(argument);
           function(context, *static_cast<Target*>(target),
                    std::span<const std::byte>(bytes.at, bytes.bytes));
         }})};
  }
  /// An active message with `bytes`, which are copied before it returns. It is a message like any other, but
  /// a frame of its own: for few and long ones. Waits where 256 MiB of them have not left this PE.
  ///
  /// Errors. Misuse: more bytes than a node buffer has space for, node_buffer_bytes less 96.
  template <class Target>
  void call_bytes(BytesHandler<Target> handler, Target* target, std::span<const std::byte> bytes,
                  std::uint32_t pe) {
    const std::uint16_t index = handler.index;  // nvcc 13.0 loses a dependent member within braces
    send_bytes(
        {"call_bytes", index, target, sizeof(Target), alignof(Target), bytes.data(), bytes.size(), pe});
  }

 protected:
  BlockOperations() = default;
  ~BlockOperations() = default;

 private:
  void start_block(const detail::BlockCall& call);
  void send_bytes(const detail::BytesCall& call);
  std::uint16_t add_bytes_handler(HandlerEntry entry);
};

}  // namespace esker
