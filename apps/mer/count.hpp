// Phase 1: lanes read their part of the text and send each k-mer to where it is counted.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "../styles/message.hpp"
#include "read_text.hpp"
#include "table.hpp"

namespace mer {

/// A lane has the windows that begin in its kChunk letters of the text.
template <class Word>
struct SendKmers {
  using Message = styles::Call<Slot<Word>, Seen<Word>>;
  static constexpr std::uint64_t kChunk = 512;

  struct State {
    inputs::RollingKmer<Word> window;
    std::uint64_t next;  // letter
    std::uint64_t end;
  };

  esker::SymmetricArray<std::uint8_t> letters;
  std::uint64_t length;  // of this PE's text
  unsigned k;
  Table<Word> table;
  esker::Handler<Slot<Word>, Seen<Word>> count;

  std::uint64_t lanes() const { return (length + kChunk - 1) / kChunk; }

  ESKER_HD State start(std::uint64_t id) const {
    const std::uint64_t end = (id + 1) * kChunk + k - 1;
    return {inputs::RollingKmer<Word>(k), id * kChunk, end < length ? end : length};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    while (state.next < state.end) {
      state.window.push(base_of(letters[state.next]));
      ++state.next;
      if (!state.window.is_full()) continue;
      std::uint8_t left = vote_of(letters[state.next - 1 - k]);
      std::uint8_t right = vote_of(letters[state.next]);
      if (state.window.is_reversed()) {
        const std::uint8_t before = left;
        left = right == kNone ? kNone : static_cast<std::uint8_t>(3 - right);
        right = before == kNone ? kNone : static_cast<std::uint8_t>(3 - before);
      }
      const auto at = table.place(state.window.canonical());
      message = {at.home, at.pe, count, Seen<Word>::of(at.stored, left, right)};
      return true;
    }
    return false;
  }
};
static_assert(inputs::kNoBase == kNone);

}  // namespace mer
