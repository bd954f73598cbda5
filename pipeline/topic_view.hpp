// A topic, as both of its sides see it: a bounded, ordered sequence of frames (XeFlow, section 4; a tunnel in
// HiWayLib).
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/pipeline/frame.hpp>

namespace esker::pipeline::detail {

using Word = SystemAtomic<std::uint64_t>;
inline constexpr std::uint64_t kOpen = ~std::uint64_t{0};  // `end`, while there may be more

/// A word that one side polls, on a line of its own.
struct alignas(kLineBytes) PolledWord {
  Word word;
};

/// What is polled: acquired once it is ready. A GPU drops its processor's L1 cache with each load that
/// acquires, and functions of other teams read from there while this one waits (docs/lab/pipelines.md).
template <class Ready>
ESKER_HD bool is_ready(const Word& word, const Ready& ready) {
  return ready(word.load_relaxed()) && ready(word.load_acquire());
}

/// How far teams of a GPU have got with frames of a topic whose words are the host's, in the GPU's memory:
/// those whose frame is far from there wait here, and leave the bus to others. Only a hint: they look
/// themselves, too, though seldom, since frames need not come in order.
struct Progress {
  static constexpr std::uint64_t kWindow = 32, kFarPolls = 64;
  /// The end has been seen; the other bits are how many frames there are.
  static constexpr std::uint64_t kEndedBit = std::uint64_t{1} << 63;

  PolledWord* at;  // one more than the last frame; null: none of this, all look at once

  ESKER_HD std::uint64_t get() const { return at->word.load_relaxed(); }
  ESKER_HD void reach(std::uint64_t frame) const {
    if (at == nullptr) return;
    std::uint64_t now = get();
    while (now <= frame && !at->word.compare_exchange_relaxed(now, frame + 1)) {
    }
  }
  ESKER_HD void end(std::uint64_t frames) const {
    if (at != nullptr) at->word.store_relaxed(kEndedBit | frames);
  }
};

/// What producers keep of a frame of items that are emitted one at a time.
struct SlotNotes {
  Word voids;  // positions without an item; of a map, whose parts may all say so: not 0: the frame has failed
  Word opened_ns;  // by their clock, where they are teams of a GPU
  std::uint64_t born_ns;
};

/// Trivially copyable: the host and the GPU have one each, which may name different memory for the frames.
///
/// State    A frame of number f is in slot f modulo slots, in round f / slots. A slot is free -> being
///          filled -> published -> taken by each subscriber -> free.
/// Contract Producers are on one side, host or GPU, and so is each subscriber. Producers reserve
///          positions, of which each frame has 2^shift: one for each item that is emitted, or all of a
///          frame at once. Whoever reserves a frame's position 0 waits until the slot is free, and
///          opens it for the others; who is outside of the topic's loop waits first, and then reserves.
/// Protocol `tail` counts the positions that are reserved. `filled` of a slot counts those that are
///          written or void; whoever completes a round of it publishes the frame. `freed` of a
///          subscriber and slot counts rounds that it has read. `end` is the number of frames, once
///          there will be no more.
/// Ordering [fill]  what was written before add_filled()     happens before what follows a take()
///          [reuse] what a subscriber read before release()  happens before what a producer writes next
///          [end]   all frames are published                 happens before end() is seen
///          No word is changed by both sides, so no atomic crosses the bus. Words lie where they are
///          polled, as far as the polling side's memory can be written by the other.
struct TopicView {
  std::byte* frames;
  FrameWords* words;  // one a slot
  PolledWord* tail;   // producers'
  PolledWord* end;    // producers write it
  Word* filled;       // producers', one a slot
  Word* opened;       // producers', one a slot: rounds
  Word* freed;        // subscriptions x slots: rounds
  SlotNotes* notes;   // producers', one a slot
  std::uint64_t stride;
  std::uint32_t slots_shift, shift;
  std::uint32_t capacity;  // items of a frame that is opened whole
  std::uint32_t subscriptions;
  // Threads of the host sleep until it is published, or freed: those who do it ring the bell.
  std::uint32_t rings_publish, rings_release;
  std::uint32_t is_in_loop;  // its producers may be those that it waits for
  PolledWord* drops_from;    // WhenFull::kDropOldest: `next` of the one subscriber; else null
  PolledWord* dropped;       // frames
  std::uint64_t flush_ns;    // items wait so long at most for others
  Progress room;             // that producers have found

  ESKER_HD std::uint64_t slots() const { return std::uint64_t{1} << slots_shift; }
  ESKER_HD std::uint64_t slot_of(std::uint64_t frame) const { return frame & (slots() - 1); }
  ESKER_HD std::uint64_t round_of(std::uint64_t frame) const { return frame >> slots_shift; }
  ESKER_HD std::uint64_t positions() const { return std::uint64_t{1} << shift; }
  template <class T>
  ESKER_HD T* items(std::uint64_t frame) const {
    return reinterpret_cast<T*>(frames + slot_of(frame) * stride);
  }

  // Producers.

  /// The slot of this frame is free.
  ESKER_HD bool has_room(std::uint64_t frame) const {
    const std::uint64_t slot = slot_of(frame), round = round_of(frame);
    if (round == 0) return true;
    for (std::uint32_t s = 0; s < subscriptions; ++s) {
      if (!is_ready(freed[s * slots() + slot], [&](std::uint64_t r) { return r >= round; }))
        return false;  // [reuse]
    }
    return true;
  }
  /// The same for those who ask again and again: `polls` times until now.
  ESKER_HD bool finds_room(std::uint64_t frame, std::uint32_t polls) const {
    if (room.at == nullptr) return has_room(frame);
    if ((polls % Progress::kFarPolls != 0 && frame >= room.get() + Progress::kWindow) || !has_room(frame))
      return false;
    room.reach(frame);
    return true;
  }
  /// Half of the slots are free of frames that are older: for producers outside of a loop, who leave those
  /// inside it room.
  ESKER_HD bool has_room_outside(std::uint64_t frame) const {
    const std::uint64_t half = (slots() + 1) / 2;
    return has_room(frame) && (frame < half || has_room(frame - half + slots()));
  }
  /// Of WhenFull::kDropOldest: the frame that is in the way goes, if nobody has taken it. On the host.
  void drop_oldest(std::uint64_t frame) const {
    std::uint64_t oldest = frame - slots();
    std::uint32_t count = 0;
    if (round_of(frame) == 0 || !sees(oldest, count)) return;
    if (!drops_from->word.compare_exchange_relaxed(oldest, oldest + 1)) return;
    (void)dropped->word.fetch_add_relaxed(1);
    release(0, frame - slots());
  }
  /// `n` positions of the frame are written; true: all of it is, and the caller publishes it.
  ESKER_HD bool add_filled(std::uint64_t frame, std::uint64_t n) const {
    const std::uint64_t all = (round_of(frame) + 1) << shift;
    return filled[slot_of(frame)].fetch_add_acq_rel(n) + n == all;  // [fill]
  }
  /// Of a map, which fills a frame in so many parts: one of them is written.
  ESKER_HD bool add_filled_part(std::uint64_t frame, std::uint32_t parts) const {
    return parts == 1 ||
           filled[slot_of(frame)].fetch_add_acq_rel(1) + 1 == (round_of(frame) + 1) * parts;  // [fill]
  }
  /// The caller has filled the frame, alone or as the last one.
  ESKER_HD void publish(std::uint64_t frame, std::uint32_t count, std::uint64_t tag, std::uint64_t born_ns,
                        bool has_failed) const {
    describe(frame, tag, born_ns);
    words[slot_of(frame)].published.store_release(published_word(frame, count, has_failed));  // [fill]
  }
  // The same in two steps, with fence_system() between them: one fence for several words.
  ESKER_HD void describe(std::uint64_t frame, std::uint64_t tag, std::uint64_t born_ns) const {
    FrameWords& w = words[slot_of(frame)];
    w.tag = tag;
    w.born_ns = born_ns;
  }
  ESKER_HD void publish_after_fence(std::uint64_t frame, std::uint32_t count, bool has_failed) const {
    words[slot_of(frame)].published.store_after_fence(published_word(frame, count, has_failed));  // [fill]
  }
  /// {round + 1: 32 bits, failed: 1 bit, items: 31 bits}
  ESKER_HD std::uint64_t published_word(std::uint64_t frame, std::uint32_t count, bool has_failed) const {
    return (round_of(frame) + 1) << 32 | (has_failed ? kFailedBit : 0u) | count;
  }
  static constexpr std::uint32_t kFailedBit = 1u << 31;
  /// Publishes a frame of items that were emitted one at a time.
  ESKER_HD void publish_emitted(std::uint64_t frame) const {
    const std::uint64_t slot = slot_of(frame);
    const auto count = static_cast<std::uint32_t>(positions() - notes[slot].voids.load_relaxed());
    notes[slot].voids.store_relaxed(0);
    publish(frame, count, 0, notes[slot].born_ns, false);
  }
  /// Whoever reserved position 0, once the slot is free.
  ESKER_HD void open(std::uint64_t frame, std::uint64_t born_ns, std::uint64_t now_ns) const {
    const std::uint64_t slot = slot_of(frame);
    notes[slot].born_ns = born_ns;
    notes[slot].opened_ns.store_relaxed(now_ns);
    opened[slot].store_release(round_of(frame) + 1);  // [reuse]
  }
  ESKER_HD bool is_open(std::uint64_t frame) const {
    return is_ready(opened[slot_of(frame)], [&](std::uint64_t r) { return r > round_of(frame); });  // [reuse]
  }
  /// What has been emitted goes, though its frame is not full. False: there is none, or not yet. Any lane or
  /// thread.
  ESKER_HD bool flush() const {
    std::uint64_t position = tail->word.load_relaxed();
    while ((position & (positions() - 1)) != 0) {
      const std::uint64_t frame = position >> shift;
      if (!is_open(frame)) return false;  // whoever opens it emits, too
      const std::uint64_t next = (frame + 1) << shift;
      if (!tail->word.compare_exchange_relaxed(position, next)) continue;
      notes[slot_of(frame)].voids.store_relaxed(next - position);
      if (add_filled(frame, next - position)) publish_emitted(frame);
      return true;
    }
    return false;
  }
  /// The same of a frame that has been open for flush_ns.
  ESKER_HD bool flush_old(std::uint64_t now_ns) const {
    const std::uint64_t position = tail->word.load_relaxed(), frame = position >> shift;
    if ((position & (positions() - 1)) == 0 || !is_open(frame)) return false;
    const std::uint64_t opened_ns = notes[slot_of(frame)].opened_ns.load_relaxed();
    return now_ns > opened_ns && now_ns - opened_ns >= flush_ns && flush();
  }
  /// There will be no more frames than have been reserved, which are whole ones.
  ESKER_HD void close(std::uint64_t frames_in_all) const { end->word.store_release(frames_in_all); }  // [end]

  // Subscribers.

  /// The frame is published, as these words say, which are its own or a copy of them. `count` is how many
  /// items are in it, with kFailedBit if a stage has marked it.
  ESKER_HD bool sees(const FrameWords& its, std::uint64_t frame, std::uint32_t& count) const {
    const std::uint64_t word = its.published.load_acquire();  // [fill]
    count = static_cast<std::uint32_t>(word);
    return says_published(word, frame);
  }
  ESKER_HD bool says_published(std::uint64_t word, std::uint64_t frame) const {
    return word >> 32 == ((round_of(frame) + 1) & 0xffffffffu);
  }
  ESKER_HD bool sees(std::uint64_t frame, std::uint32_t& count) const {
    return sees(words[slot_of(frame)], frame, count);
  }
  /// The frame is or has been there. Nothing is acquired: sees() follows.
  ESKER_HD bool was_published(const FrameWords& its, std::uint64_t frame) const {
    const auto round = static_cast<std::uint32_t>(its.published.load_relaxed() >> 32);
    return static_cast<std::int32_t>(round - static_cast<std::uint32_t>(round_of(frame) + 1)) >= 0;
  }
  ESKER_HD bool was_published(std::uint64_t frame) const {
    return was_published(words[slot_of(frame)], frame);
  }
  /// After sees() has said no: the frame will not come.
  ESKER_HD bool has_ended_before(std::uint64_t frame) const {
    return is_ready(end->word, [&](std::uint64_t n) { return n <= frame; });  // [end]
  }
  /// All lanes of the team have read it.
  ESKER_HD void release(std::uint32_t subscription, std::uint64_t frame) const {
    freed[subscription * slots() + slot_of(frame)].store_release(round_of(frame) + 1);  // [reuse]
  }
  ESKER_HD void release_after_fence(std::uint32_t subscription, std::uint64_t frame) const {
    freed[subscription * slots() + slot_of(frame)].store_after_fence(round_of(frame) + 1);  // [reuse]
  }
};

/// Of one stage to one topic. Words are in the stage's own memory.
struct SubscriptionView {
  std::uint32_t topic, index;  // among the topic's
  PolledWord* next;            // frames that teams have claimed
  PolledWord* done;            // frames whose function has returned
  Progress seen;               // frames that teams of a GPU have seen published
  FrameWords* copies;  // of a map whose frames have parts: of the words of the host's frames, one a slot,
                       // made by the team that has the first part; else null
};

}  // namespace esker::pipeline::detail
