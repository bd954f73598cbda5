// Blocks of the user's thread and of lanes.
#include <esker/runtime/block_calls.hpp>

#include <fmt/format.h>

#include <cstring>
#include <string>

#include <esker/device/error.hpp>
#include <esker/runtime/shmem.hpp>

namespace esker {
namespace {

/// Of the pieces of one end.
BlockLayout layout_of(const BlockShape& shape, std::uint64_t stride, std::uint64_t element_bytes,
                      std::uint64_t bytes) {
  if (shape.pieces == 1 || stride == 0 || stride == shape.elements) return {bytes, bytes};
  return {shape.elements * element_bytes, stride * element_bytes};
}

std::string who(const char* call, const Caller* caller) {
  return caller == nullptr ? fmt::format("Runtime::{}", call) : detail::name_caller(call, *caller);
}

}  // namespace

void BlockCalls::start(const detail::BlockCall& call, const Caller* caller) {
  failure_.raise_if_set();
  const BlockShape& shape = call.shape;
  if (call.pe >= job_.destinations)
    misuse(fmt::format("{}: PE {} is not below {}", who(call.name, caller), call.pe, job_.destinations));
  std::uint64_t elements = 0, bytes = 0, target_end = 0, source_end = 0;
  if (__builtin_mul_overflow(shape.elements, shape.pieces, &elements) ||
      __builtin_mul_overflow(elements, call.element_bytes, &bytes) ||
      __builtin_mul_overflow(shape.target_stride, call.element_bytes, &target_end) ||
      __builtin_mul_overflow(shape.source_stride, call.element_bytes, &source_end)) {
    misuse(fmt::format(
        "{}: {} pieces of {} elements of {} bytes, {} and {} elements apart, are more than memory can hold",
        who(call.name, caller), shape.pieces, shape.elements, call.element_bytes, shape.target_stride,
        shape.source_stride));
  }
  if (shape.pieces > 1 && shape.target_stride != 0 && shape.target_stride < shape.elements) {
    misuse(fmt::format("{}: pieces of {} elements overlap where they are stored, {} elements apart",
                       who(call.name, caller), shape.elements, shape.target_stride));
  }
  if (shape.pieces > 1 && shape.source_stride != 0 && shape.source_stride < shape.elements) {
    misuse(fmt::format("{}: pieces of {} elements overlap where they are read, {} elements apart",
                       who(call.name, caller), shape.elements, shape.source_stride));
  }
  if (bytes == 0) return;
  auto* const target = static_cast<std::byte*>(call.target);
  auto* const source = const_cast<std::byte*>(static_cast<const std::byte*>(call.source));
  const BlockLayout to = layout_of(shape, shape.target_stride, call.element_bytes, bytes);
  const BlockLayout from = layout_of(shape, shape.source_stride, call.element_bytes, bytes);
  const std::uint64_t far = call.gets ? require_in_heap(source, from, bytes, call, caller)
                                      : require_in_heap(target, to, bytes, call, caller);
  if (call.pe == job_.pe || job_.destinations != job_.n_pes)
    return copy_here(target, to, source, from, bytes);
  BlockTransfer transfer{call.gets ? BlockTransfer::Kind::kGet : BlockTransfer::Kind::kPut,
                         call.pe,
                         call.gets ? target : source,
                         call.gets ? to : from,
                         far,
                         call.gets ? from : to,
                         bytes};
  network_.start_block(transfer);
}

std::uint64_t BlockCalls::require_in_heap(const void* at, const BlockLayout& layout, std::uint64_t bytes,
                                          const detail::BlockCall& call, const Caller* caller) const {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - heap_.base());
  const std::uint64_t end = heap_.end().load(std::memory_order_acquire);
  if (layout.is_inside(offset, bytes, end)) return offset;
  misuse(fmt::format(
      "{}: a {} of {} bytes in pieces of {} every {} at heap offset {}, for PE {}, is outside the "
      "symmetric heap of {} bytes",
      who(call.name, caller), call.gets ? "source" : "target", bytes, layout.piece_bytes, layout.stride,
      static_cast<std::int64_t>(offset), call.pe, end));
}

void BlockCalls::copy_here(std::byte* to, const BlockLayout& to_layout, const std::byte* from,
                           const BlockLayout& from_layout, std::uint64_t bytes) const {
  from_layout.for_each_stretch(0, bytes, [&](std::uint64_t from_at, std::uint64_t at, std::uint64_t length) {
    to_layout.for_each_stretch(at, length, [&](std::uint64_t to_at, std::uint64_t part, std::uint64_t n) {
      if (memory_ != nullptr) return memory_->copy(to + to_at, from + from_at + part, n);
      std::memmove(to + to_at, from + from_at + part, n);
    });
  });
  if (memory_ != nullptr) memory_->wait_for_copies();
}

void BlockCalls::send_bytes(const detail::BytesCall& call, const Caller* caller) {
  failure_.raise_if_set();
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(call.target) - heap_.base());
  const std::uint64_t end = heap_.end().load(std::memory_order_acquire);
  if (call.handler == 0) {
    caller == nullptr ? detail::no_host_handler(call.name) : detail::no_handler(*caller, call.name);
  } else if (call.pe >= job_.destinations || detail::is_outside(end, offset, call.target_bytes) ||
             offset % call.target_alignment != 0) {
    if (caller == nullptr) {
      detail::bad_host_target(call.name, detail::TargetOf::kCall, offset, call.target_bytes,
                              call.target_alignment, end, call.pe, job_.destinations);
    }
    detail::bad_target(*caller, call.name, detail::TargetOf::kCall, offset, call.target_bytes,
                       call.target_alignment, end, call.pe, job_.destinations);
  }
  constexpr std::uint64_t kAround = sizeof(wire::FrameHeader) + sizeof(wire::RunHeader) + 16;
  if (const std::uint64_t most = (frame_bytes_ - kAround) / 8 * 8; call.bytes > most) {
    misuse(fmt::format(
        "{}: a message with {} bytes is longer than a node buffer allows, {} (--node-buffer-bytes)",
        who(call.name, caller), call.bytes, most));
  }
  const auto words = static_cast<std::uint32_t>(2 + (call.bytes + 7) / 8);
  wire::FrameHeader header = wire::make_header(wire::Kind::kMessages, job_.pe, call.pe);
  header.bytes = static_cast<std::uint32_t>(sizeof header + sizeof(wire::RunHeader) + words * std::size_t{8});
  header.messages = header.runs = 1;
  const Command command{Operation::kActiveMessage, Operand::kBytes1, call.handler};
  const wire::RunHeader run{command.word(), words, 1, 0};
  auto* const buffer = new Buffer(header.bytes, nullptr);
  std::byte* at = buffer->bytes.get();
  const auto append = [&](const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(at, from, bytes);
    at += bytes;
  };
  std::memset(at + header.bytes - 8, 0, 8);  // behind the last byte
  append(&header, sizeof header);
  append(&run, sizeof run);
  append(&offset, sizeof offset);
  append(&call.bytes, sizeof call.bytes);
  append(call.data, call.bytes);
  buffer->used = header.bytes;
  buffer->messages = 1;
  buffer->destination = call.pe;
  buffer->journey.opened_ns = buffer->journey.closed_ns = steady_ns();
  network_.submit_call(buffer);
}

}  // namespace esker
