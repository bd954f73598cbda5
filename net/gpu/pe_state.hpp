// What lanes on a GPU, the host and the peers' GPUs share: mailboxes between PEs, frames from the network,
// counters, and the words in which a lane tells the host that something is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include <esker/aggregator/command.hpp>
#include <esker/device/atomic.hpp>
#include <esker/device/gpu/occupancy.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/gpu/mailbox.hpp>
#include <esker/net/handler.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker::gpu {

inline constexpr std::uint32_t kMaxLinks = 16;  // PEs whose GPUs this one reaches, itself excluded
inline constexpr std::uint32_t kFrames = 64;    // frames of the network that are on the device at a time
// Where messages that handlers have sent wait to be sent on: in so many queues, since taking from one is a
// compare-exchange, of so many messages. With half of one's places taken, handlers are no longer called.
inline constexpr std::uint32_t kHandlerShards = 64;
inline constexpr std::uint32_t kHandlerSlots = 1u << 13;
inline constexpr std::uint32_t kHandlerSlotBytes = kLineBytes;
static_assert(kHandlerSlotBytes >= kMaxMessageWords * 8);
// Ownership blocks share locks by number. Some 30 thousand are held at a time, and a message whose lock
// another ownership block holds costs as much as one that really meets another.
inline constexpr std::uint32_t kOwnershipLocks = 1u << 20;
inline constexpr std::uint32_t kProgressLanes = 256;  // of a progress kernel's group

/// Blocks of a group's pool for so many bins (net/gpu/outbox.hpp): enough that some are sent while others
/// fill.
inline constexpr std::uint32_t kLeastBlocks = 8, kMostBlocks = 32;
inline constexpr std::uint32_t kLeastProgressBlocks = 4;  // whose handlers do not wait for one
ESKER_HD constexpr std::uint32_t blocks_for(std::uint32_t bins, std::uint32_t a_bin,
                                            std::uint32_t least = kLeastBlocks) {
  const std::uint32_t blocks = bins * a_bin;
  return blocks < least ? least : blocks > kMostBlocks ? kMostBlocks : blocks;
}
/// Bytes of the pool of a progress kernel, for which every kernel leaves room: with it a progress kernel
/// takes a third of the 64 KiB that a processor has at least.
inline constexpr std::uint32_t kLeastProgressPool = 10 << 10;
/// What it is worth to lend a group whose lanes send to so many bins.
constexpr std::uint32_t most_pool_bytes(std::uint32_t bins) {
  return bins == 0 ? kLeastBlocks * 128 : blocks_for(bins, 4) * Mailbox::kPayloadWords * 8;
}

/// A part of a run of a frame, that one crew applies: word r of message i is
/// words[r * stride + i] from byte `at` of the frame on.
struct Chunk {
  std::uint32_t command;
  std::uint32_t words;
  std::uint32_t count;
  std::uint32_t stride;
  std::uint32_t at;
  std::uint32_t source;
};

/// A frame's turn, in device memory. The host publishes (generation, chunks, 0) once the frame stands in its
/// slot, the chunks in front of it from the last to the first, so that both are one copy; lanes take chunks
/// by compare-exchange, so one that comes late, with the cursor of another generation, gets nothing.
struct FrameTurn {
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> cursor;  // generation:24 | chunks:20 | next chunk:20
  DeviceAtomic<std::uint32_t> finished;                    // chunks of this generation

  ESKER_HD static constexpr std::uint64_t pack(std::uint64_t generation, std::uint64_t chunks) {
    return (generation & 0xffffff) << 40 | chunks << 20;
  }
  ESKER_HD static constexpr std::uint32_t next(std::uint64_t cursor) { return cursor & 0xfffff; }
  ESKER_HD static constexpr std::uint32_t chunks(std::uint64_t cursor) { return cursor >> 20 & 0xfffff; }
  ESKER_HD static constexpr std::uint64_t generation(std::uint64_t cursor) { return cursor >> 40; }
};

/// Counters of the device, in its memory; they only grow.
struct Totals {
  std::uint64_t applied;      // messages applied here, by any path
  std::uint64_t sent;         // messages that left lanes or handlers and do not pass the host queue
  std::uint64_t local;        // of them, those to this PE
  std::uint64_t direct;       // of them, those that lanes here have applied in peers' heaps
  std::uint64_t packages;     // to peers
  std::uint64_t bytes;        // in them
  std::uint64_t by_handlers;  // messages that handlers have sent
  std::uint64_t sent_to[kMaxLinks];
  std::uint64_t applied_from[kMaxLinks];
};

/// A word of Totals, for lanes.
ESKER_HD inline DeviceAtomic<std::uint64_t>& counter(std::uint64_t& word) {
  static_assert(sizeof(DeviceAtomic<std::uint64_t>) == sizeof(std::uint64_t));
  return reinterpret_cast<DeviceAtomic<std::uint64_t>&>(word);
}

/// What a lane has to report. The first one wins.
enum class Fault : std::uint32_t {
  kNone,
  kBadPe,           // a lane's call names a PE that does not exist
  kBadTarget,       // a lane's call names a target outside the heap
  kMisaligned,      // or one that is not aligned as the call demands
  kNoHandler,       // a lane's call names a default Handler
  kBadArrival,      // a message that arrived has an address outside the heap
  kHandlersOutrun,  // handlers have sent more than fits
  kNotReserved      // a kernel of the program's own sends, for which nothing is reserved
};

/// In host memory that lanes write: each word by one side.
struct HostWords {
  // A progress kernel's result, written by its last group. `progress kernel` last.
  struct Snapshot {
    Totals totals;
    std::uint64_t moved;            // messages applied or sent on in the progress kernel
    std::uint64_t handler_backlog;  // messages of handlers that nobody has sent on
    std::uint64_t waiting;          // waiting_bit()s of handlers whose messages the progress kernel has left
  } snapshot;
  SystemAtomic<std::uint64_t>
      progress_kernel;                   // number of the last progress kernel that has ended; [progress]
  SystemAtomic<std::uint32_t> starving;  // lanes wait for peers, or for the host, to make room
  SystemAtomic<std::uint32_t> calls_handlers;  // 1: lanes have sent active messages
  SystemAtomic<std::uint32_t> fault;           // 1: `report` stands; [fault]
  struct Report {
    Fault fault;
    std::uint32_t pe;
    std::uint32_t lane;
    std::uint32_t is_handler;
    std::uint64_t group;
    std::uint64_t offset;
    std::uint64_t bytes;
    char call[16];
    std::uint32_t alignment = 1;
  } report;
  SystemAtomic<std::uint64_t> frame_done[kFrames];  // generation whose chunks are all applied; [frame]
};

/// What the groups of a progress kernel have come to, together.
struct ProgressResult {
  std::uint64_t moved;
  std::uint64_t waiting;
};

/// Of a package's kind: above 0, a handler's. Those that share one are told apart by nobody.
ESKER_HD constexpr std::uint64_t waiting_bit(std::uint32_t kind) { return std::uint64_t{1} << kind % 64; }

/// One message a slot; the device's own, so its order costs no look beyond the device.
using HandlerQueue = BasicPackageQueue<DeviceAtomic>;
struct HandlerShard {
  HandlerQueue::Counter tail, head;
  alignas(kLineBytes) DeviceAtomic<std::uint32_t> calls;  // see HandlersRoom
};

/// Messages of a package as lists: all of an ownership block's are on one. In scratchpad, for each wave of a
/// progress kernel.
struct OwnershipLists {
  static constexpr std::uint32_t kMessages = 256;  // at a time
  static constexpr std::uint32_t kLists = 64;
  static constexpr std::uint32_t kEnd = 0xffff;
  GroupAtomic<std::uint32_t> heads[kLists];
  std::uint16_t next[kMessages];

  ESKER_HD void push(std::uint32_t list, std::uint32_t message) {
    std::uint32_t head = heads[list].load_relaxed();
    while (!heads[list].compare_exchange_relaxed(head, message)) {
    }
    next[message] = static_cast<std::uint16_t>(head);
  }
};
struct ProgressLists {
  OwnershipLists of_wave[kProgressLanes / 32];
};

struct PeState;

struct ProgressShape {
  std::uint32_t groups;
  std::uint32_t pool_bytes;  // of a group, for what its handlers send
};

/// A handler in a source file that a device compiler compiles, made by register_handler(). Its code stands in
/// progress kernels of its own (net/gpu/progress kernel.hpp): a kernel cannot call by address what was not
/// compiled with it.
struct HandlerOnDevice {
  /// Loads its progress kernel onto the current device; returns the scratchpad that a group of it takes
  /// beside its pool.
  std::function<std::uint32_t(const Occupancy&)> load;
  /// Starts a progress kernel that applies messages for handler `index` too: "", or what went wrong.
  std::function<std::string(std::uint32_t index, const PeState* pe_state, std::uint64_t number,
                            ProgressShape shape, void* stream)>
      start_progress_kernel;
};

/// Everything that lanes need. In device memory, where the host writes it in the order of the stream on which
/// kernels read it, and so between them; progress kernels, which have a stream of their own, have a copy of
/// their own. Each group copies it to its scratchpad, since acquiring empties the cache that it would
/// otherwise stay in.
struct PeState {
  HeapView heap;
  std::uint32_t pe;
  std::uint32_t n_pes;      // destinations
  std::uint32_t links;      // the last one leads to this PE itself
  std::uint32_t self_link;  // that one
  bool has_network;         // some destination is reached through the host
  // For each destination a link, kSelf or kNetwork; of the first ones here, of all in the table behind.
  static constexpr std::uint32_t kNear = 64;
  std::uint8_t near_bins[kNear];
  const std::uint8_t* bin_of;
  PackageQueue host_queue;
  PackageQueue
      progress_queue;  // the same for progress kernels, which lanes that wait must not keep from sending
  std::uint32_t pe_of[kMaxLinks];
  Mailbox to[kMaxLinks];
  Mailbox from[kMaxLinks];
  std::byte* heap_of[kMaxLinks];  // of the link's PE, where lanes here reach it; else null
  std::uint32_t most_direct;      // messages that a lane applies itself before those for peers travel
  FrameTurn* frame_turns;
  const std::byte* frames;  // kFrames slots of frame_bytes; null: the host applies
  std::uint64_t frame_bytes;
  std::uint64_t frame_at;        // of a frame in its slot; its first chunk ends there
  HandlerShard* handler_shards;  // null: there are no handlers
  std::byte* handler_slots;
  DeviceAtomic<std::uint32_t>* ownership_locks;
  Totals* totals;
  HostWords* host;
  DeviceAtomic<std::uint32_t>* fault_taken;
  DeviceAtomic<std::uint32_t>* progress_groups;  // groups of a progress kernel that have ended
  ProgressResult* progress_result;
  // 1: nobody empties any more what lanes fill. Thousands of waves look at it while they wait.
  const DeviceAtomic<std::uint32_t>* abandoned;
  const std::uint64_t* heap_end;  // of this moment: it may have grown since this copy was made

  ESKER_HD bool has_handlers() const { return handler_shards != nullptr; }
  /// Links that are used: the one to this PE itself where there are handlers alone.
  ESKER_HD std::uint32_t used_links() const { return links - (links > 0 && !has_handlers() ? 1 : 0); }
  /// Packages that a group of lanes keeps open, one for each way out.
  ESKER_HD std::uint32_t bins() const { return used_links() + (has_network ? 1 : 0); }
  ESKER_HD HandlerQueue handler_queue(std::uint32_t shard) const {
    constexpr std::size_t kBytes = HandlerQueue::storage_bytes(kHandlerSlots, kHandlerSlotBytes);
    HandlerShard& counters = handler_shards[shard];
    return {&counters.tail, &counters.head, handler_slots + shard * kBytes, kHandlerSlots, kHandlerSlotBytes};
  }
  ESKER_HD std::uint32_t bin(std::uint64_t destination) const {
    return destination < kNear ? near_bins[destination] : bin_of[destination];
  }
};
static_assert(std::is_trivially_copyable_v<PeState> && sizeof(PeState) % 8 == 0);

inline constexpr std::uint32_t kSelf = kMaxLinks;
inline constexpr std::uint32_t kNetwork = kMaxLinks + 1;

/// Before a lane sends a package: the host is to know whether handlers will run. The kernel's end orders it.
ESKER_HD inline void note_call(const PeState& pe_state, std::uint32_t command) {
  if (Command::from_word(command).operation == Operation::kActiveMessage)
    pe_state.host->calls_handlers.store_relaxed(1);
}

/// Tells the host. Any lane; the first report stands.
ESKER_NOINLINE ESKER_HD inline void tell(const PeState& pe_state, HostWords::Report what) {
  std::uint32_t none = 0;
  if (!pe_state.fault_taken->compare_exchange_relaxed(none, 1)) return;
  pe_state.host->report = what;
  pe_state.host->fault.store_release(1);  // [fault]
}

}  // namespace esker::gpu
