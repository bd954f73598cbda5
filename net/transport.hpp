// What a transport does for the network's owner: move frames, gather small blocks, say who died.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <esker/net/exchange.hpp>
#include <esker/queue/doorbell.hpp>

namespace esker {

/// What each PE contributes to a gather. Every collective of the runtime is made of these, all of one
/// size, so that PEs that call different collectives meet in one and find out.
struct GatherBlock {
  std::uint32_t collective = 0;  // which call this is
  std::uint32_t sequence = 0;    // how many collectives this PE has made
  std::array<std::uint64_t, 6> values{};
};
static_assert(sizeof(GatherBlock) == 56);

/// A frame that arrived. The bytes stay valid until release().
struct Frame {
  std::span<const std::byte> bytes;  // aligned to 8
  std::uint32_t slot = 0;            // the transport's
  std::int64_t taken_ns = 0;         // the network's: when try_receive() gave it
};

/// Writes a frame where the transport keeps it.
class FrameWriter {
 public:
  virtual void write(std::byte* frame) = 0;

 protected:
  ~FrameWriter() = default;
};

/// A peer's process, as far as it is known.
struct PeerProcess {
  std::int64_t id = 0;  // 0: not known, as on another host
  char state = 0;       // as in /proc/PID/stat: 'T' is stopped, 't' is stopped by a debugger
};

/// State    open -> closed. A transport is open once constructed.
/// Contract One thread at a time, the network's owner, makes every call, and the same one all of them where
///          is_for_any_thread() is false. Frames between one pair of PEs may
///          overtake each other. A frame handed to try_send() arrives once, unless a PE dies.
/// Progress No call waits, except close(), whose wait is bounded.
/// Errors   Error{kNetwork} from any call.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Other threads than the one that connected may call too, one at a time.
  virtual bool is_for_any_thread() const = 0;
  virtual std::uint32_t pe() const = 0;
  virtual std::uint32_t n_pes() const = 0;
  /// The number of a PE in MPI_COMM_WORLD, where it may be another one than here.
  virtual std::uint32_t world_rank(std::uint32_t of_pe) const { return of_pe; }
  /// PEs that share this PE's memory, itself included.
  virtual std::uint32_t pes_on_host() const = 0;
  /// What frames may come to take of this PE's memory, beside the caller's buffers and a message library's
  /// own.
  virtual std::uint64_t frame_memory_bytes() const { return 0; }
  /// For esker-info and the start-up line, for example "mpi (Open MPI 4.1.4)".
  virtual std::string name() const = 0;

  /// Starts sending; `bytes` stay untouched until poll_sent() gives `token` back. False: not now.
  virtual bool try_send(std::uint32_t pe, std::span<const std::byte> bytes, void* token) = 0;
  /// Frames to this PE may be written in place, so that their bytes are copied once on their way out.
  virtual bool writes_in_place(std::uint32_t /*pe*/) const { return false; }
  /// As try_send(), of a frame that `writer` writes now, if there is space. Requires writes_in_place(pe).
  virtual bool try_write(std::uint32_t /*pe*/, std::size_t /*bytes*/, FrameWriter& /*writer*/,
                         void* /*token*/) {
    return false;
  }
  /// Appends the tokens of finished sends. A send is finished only when its receiver has taken it, so
  /// what a PE has under way bounds what its receivers must hold.
  virtual void poll_sent(std::vector<void*>& tokens) = 0;

  /// Peers that share memory with this PE ring here when they have sent a frame, or completed a gather. The
  /// caller may sleep here, if it tries once more to receive, and tests its gather, in the check of wait():
  /// not for long, since other peers do not ring. nullptr: nobody does.
  virtual Doorbell* bell() { return nullptr; }
  /// Memory in which frames arrive, if the caller may choose it; 0: the transport, or its library, does.
  virtual std::size_t receive_bytes() const { return 0; }
  /// Before the first try_receive(): that memory, aligned to 128 bytes, such as a GPU reads itself. Kept for
  /// as long as a frame may arrive there.
  virtual void receive_into(const std::shared_ptr<std::byte>& /*memory*/) {}
  virtual std::optional<Frame> try_receive() = 0;
  virtual void release(const Frame& frame) = 0;

  /// Starts the one gather that may be under way. Collective.
  virtual void begin_gather(const GatherBlock& mine) = 0;
  /// True once `all`, one block a PE, is complete.
  virtual bool test_gather(std::span<GatherBlock> all) = 0;

  /// Starts the one exchange that may be under way, and no gather beside it. Collective. The transport keeps
  /// it until it is done; where it leaves before that, for ever.
  virtual void begin_exchange(std::shared_ptr<Exchange> exchange) = 0;
  /// True once this PE's part is done: `receive` is complete, and `send` needed no more.
  virtual bool test_exchange() = 0;

  /// The reason if a peer is known to have died, else empty.
  virtual std::string find_dead_peer() = 0;

  virtual PeerProcess find_process(std::uint32_t pe) const = 0;

  /// Collective; ends use. `orderly`: every PE arrives here with nothing under way. Otherwise the
  /// transport leaves without its peers, who find out by find_dead_peer() or from the launcher. Then it
  /// returns the tokens of sends that have not finished: their bytes stay where they are for ever, since the
  /// network may still read them.
  virtual std::vector<void*> close(bool orderly) = 0;

  /// Ends the whole job at once with this exit status.
  [[noreturn]] virtual void abort(int status) = 0;
};

/// For messages: "PE 3", or "PE 3 (world rank 5)" where the two differ.
inline std::string name_of(const Transport& transport, std::uint32_t pe) {
  const std::uint32_t rank = transport.world_rank(pe);
  return rank == pe ? fmt::format("PE {}", pe) : fmt::format("PE {} (world rank {})", pe, rank);
}

/// Bytes of the largest frame a transport must carry, and how many it keeps ready to receive.
struct TransportLimits {
  std::size_t frame_bytes;
  std::uint32_t receives;
};

}  // namespace esker
