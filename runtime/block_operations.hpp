// Blocks of bytes from and to any PE's heap: put_block and get_block, members of Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>

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
}  // namespace detail

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

 protected:
  BlockOperations() = default;
  ~BlockOperations() = default;

 private:
  void start_block(const detail::BlockCall& call);
};

}  // namespace esker
