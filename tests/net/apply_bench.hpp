// A heap, frames for it, and what it must hold after them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/device/error.hpp>
#include <esker/net/apply.hpp>
#include <esker/net/apply_pool.hpp>

#include "../aggregator/one_pe.hpp"
#include "../runtime/seed.hpp"
#include "apply_reference.hpp"

namespace esker::testing {

inline constexpr std::uint32_t kPes = 4;
inline constexpr std::uint32_t kMe = 1;
inline constexpr std::uint32_t kSender = 2;
inline constexpr std::uint64_t kHeapBytes =
    5 * kOwnershipBytes + 192;  // the last ownership block is a part of one

inline wire::FrameHeader header_of(const std::vector<std::byte>& frame) {
  wire::FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  return header;
}
inline FrameBuilder messages() { return FrameBuilder(wire::Kind::kMessages, kSender, kMe); }

/// The heap lies between guards that nothing may touch.
class Heap {
 public:
  explicit Heap(std::uint64_t bytes = kHeapBytes) : bytes_{bytes}, all_((bytes + 2 * kGuard) / 8 + 1) {
    std::fill(all_.begin(), all_.end(), 0xabababababababab);
    std::fill_n(base(), bytes, std::byte{0});
  }
  HeapView view() { return {base(), bytes_}; }
  std::byte* base() { return reinterpret_cast<std::byte*>(all_.data()) + kGuard; }
  void fill(std::mt19937_64& random, Operand operand) {
    for (std::uint64_t at = 0; at + 8 <= bytes_; at += 8) {
      const std::uint64_t word = random_word(random, operand);
      std::memcpy(base() + at, &word, 8);
      if (operand == Operand::kFloat) std::memcpy(base() + at + 4, &word, 4);
    }
  }
  friend bool operator==(const Heap& a, const Heap& b) { return a.all_ == b.all_; }

 private:
  static constexpr std::uint64_t kGuard = 4096;
  std::uint64_t bytes_;
  std::vector<std::uint64_t> all_;
};

/// Random messages of one command: rows as a run has them. Addresses are often the same.
inline std::vector<std::vector<std::uint64_t>> random_rows(std::mt19937_64& random, Command command,
                                                           std::size_t count) {
  const std::uint32_t bytes = operand_bytes(command.operand);
  const std::uint64_t places = kHeapBytes / bytes;
  std::vector<std::vector<std::uint64_t>> rows(message_words(command));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t pick = random() % 8 == 0 ? places - 1 : random() % places;  // the last one too
    rows[0].push_back((random() % 4 == 0 ? pick % 3 : pick) * bytes);
    for (std::size_t r = 1; r < rows.size(); ++r) rows[r].push_back(random_word(random, command.operand));
  }
  return rows;
}

/// What a run does to a heap, message by message.
inline void apply_reference(Heap& heap, Command command,
                            const std::vector<std::vector<std::uint64_t>>& rows) {
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    std::vector<std::uint64_t> values;
    for (std::size_t r = 1; r < rows.size(); ++r) values.push_back(rows[r][i]);
    apply_one(command, heap.base() + rows[0][i], values);
  }
}

/// One applier a slice, on one thread, with what handlers send through.
class Appliers {
 public:
  Appliers(const HandlerTable& handlers, std::uint32_t slices)
      : pool_{4096, 8}, outbox_{kMe, kPes, pool_, OnExhausted::kGrow, sink_} {
    for (std::uint32_t i = 0; i < slices; ++i) {
      all_.push_back(std::make_unique<Applier>(handlers, i, slices));
    }
  }
  /// What each slice threw, "" where it threw nothing.
  std::vector<std::string> apply(const std::vector<std::byte>& frame, HeapView heap) {
    std::vector<std::string> errors;
    for (const auto& applier : all_) {
      HostCall call{heap, kMe, kPes, &outbox_};
      errors.emplace_back();
      try {
        applier->apply(header_of(frame), frame.data(), call);
      } catch (const Error& error) {
        errors.back() = std::string(to_string(error.kind())) + ": " + error.what();
      }
    }
    return errors;
  }
  std::uint64_t applied() const {
    std::uint64_t sum = 0;
    for (const auto& applier : all_) sum += applier->applied();
    return sum;
  }
  std::uint64_t sent() const {
    std::uint64_t sum = 0;
    for (const auto& applier : all_) sum += applier->sent_by_handlers();
    return sum;
  }
  std::uint64_t answered() const {
    std::uint64_t sum = 0;
    for (const auto& applier : all_) sum += applier->answered();
    return sum;
  }
  const HoldingSink& sink() const { return sink_; }
  const Applier& operator[](std::size_t slice) const { return *all_[slice]; }
  /// Messages that handlers sent, once closed.
  std::uint64_t close_and_count() {
    outbox_.close();
    std::uint64_t count = 0;
    for (const Buffer* buffer : sink_.held) count += buffer->messages;
    return count;
  }

 private:
  BufferPool pool_;
  HoldingSink sink_;
  NodeBuffers outbox_;
  std::vector<std::unique_ptr<Applier>> all_;
};

}  // namespace esker::testing
