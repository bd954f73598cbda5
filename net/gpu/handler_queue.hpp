// What handlers send on the device goes into the open packages of their progress kernel's group, or, where
// these have no space, into queues of single messages, which lanes that have just sent, and progress kernels,
// send on.
//
// Nothing here may need lanes to come together: handlers run wherever their ownership blocks have let their
// lanes get to, while the rest of the wave may wait for all (docs/design/handlers.md).
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/net/gpu/outbox.hpp>

#if defined(ESKER_ON_GPU)

namespace esker {

ESKER_HD inline HandlerContext::HandlerContext(const gpu::PeState& pe_state, std::uint32_t source,
                                               std::uint16_t handler)
    : heap_{pe_state.heap},
      pe_{pe_state.pe},
      n_pes_{pe_state.n_pes},
      source_{source},
      handler_{handler},
      device_{&pe_state, 0, 0} {}

ESKER_HD inline void HandlerContext::post_words(Command command, std::uint32_t width,
                                                const std::uint64_t* words) {
  const gpu::PeState& pe_state = *device_.pe_state;
  const std::uint32_t bin = pe_state.bin(words[0] >> kOffsetBits);
  std::byte* const heap = gpu::heap_in_reach(pe_state, bin, command);
  if (heap == nullptr) return post_package(gpu::package_for(pe_state, bin), command, width, words);
  if (is_request(command.operation)) {
    const gpu::Fetched fetched = gpu::fetch_own<true>(heap, command, width, words);
    const gpu::ReplyMessage reply =
        gpu::reply_message(command, width, pe_, fetched, [=](std::uint32_t r) { return words[r]; });
    if (command.handler != 0) {
      const Command call{Operation::kActiveMessage, Operand::kNone, command.handler};
      return post_package(pe_state.self_link, call, reply.width, reply.words);
    }
    gpu::apply_own<true>(pe_state.heap.base, reply.command, reply.width, reply.words);
  } else {
    gpu::apply_own<true>(heap, command, width, words);
  }
  ++device_.sent;
  ++device_.applied;
  if (bin != gpu::kSelf) gpu::ProgressOutbox::count_direct();
}

ESKER_HD inline void HandlerContext::post_package(std::uint32_t bin, Command command, std::uint32_t width,
                                                  const std::uint64_t* words) {
  ++device_.sent;
  if (!gpu::ProgressOutbox::try_append(bin, command, width, words))
    gpu::queue_message(*device_.pe_state, command.word(), width, words, 1);
}

ESKER_HD inline void HandlerContext::count() {
  if (device_.sent > 0) gpu::ProgressOutbox::count_of_handlers(device_.sent, device_.applied);
}

namespace gpu {

inline constexpr std::uint32_t kTakeTries = 4;

/// One message a lane out of the handlers' queue.
struct HandlerMessage {
  std::uint32_t command;
  std::uint32_t width;  // 0: this lane has got none
  std::uint64_t words[kMaxMessageWords];
};

/// Takes up to one message a lane from a shard. Collective over the active lanes; waits for nobody. Returns
/// how many: none, too, where others have been before it a few times.
template <class ActiveLanes>
ESKER_NOINLINE ESKER_HD std::uint32_t take_handler_messages(const PeState& pe_state, std::uint32_t shard,
                                                            ActiveLanes active, Position mine,
                                                            HandlerMessage& message) {
  message.width = 0;
  if (!pe_state.has_handlers()) return 0;
  HandlerQueue queue = pe_state.handler_queue(shard);
  const bool leads = mine.index + 1 == mine.total;
  std::uint64_t head = 0;
  std::uint32_t batch = 0;
  for (std::uint32_t tries = 0; tries < kTakeTries && batch == 0; ++tries) {
    head = active.of_leader(leads ? queue.was_head() : std::uint64_t{0});
    const bool full = queue.was_full(head + mine.index);
    const Position place = active.position_among(full);
    const bool in_batch = full && place.index == mine.index;  // no gap below
    batch = active.position_among(in_batch).total;
    if (batch == 0) return 0;
    if (leads && !queue.try_take(head, batch)) batch = 0;
    batch = active.of_leader(batch);
  }
  if (mine.index < batch) {
    const std::uint64_t ticket = head + mine.index;
    const auto& header = queue.header(ticket);
    message.command = header.command;
    message.width = header.words;
    for (std::uint32_t r = 0; r < message.width; ++r)
      message.words[r] = queue.row(ticket, message.width, r)[0];
    queue.release(ticket);
  }
  return batch;
}

/// Sends on what handlers have sent and a shard holds, a message a lane. Collective over the active lanes.
/// Returns how many it has taken.
template <class Outbox, class ActiveLanes>
ESKER_NOINLINE ESKER_HD std::uint32_t send_on(std::uint32_t seed, std::uint32_t shard, ActiveLanes active) {
  const Position mine = active.position_among(true);
  HandlerMessage message;
  const std::uint32_t taken = take_handler_messages(pe_state_here(), shard, active, mine, message);
  if (taken == 0) return 0;
  Outbox outbox(seed);
  for (bool has = message.width > 0; active.any(has);) {
    // Command by command: packages of another would be closed for each.
    const std::uint32_t command = active.of_first(has, message.command);
    if (has && message.command == command) {
      (void)outbox.append(Command::from_word(message.command), message.width, message.words);
      has = false;
    }
    active.sync();
  }
  outbox.count_applied();
  return taken;
}

}  // namespace gpu
}  // namespace esker

#endif
