// A PE's GPU as the runtime and the network's owner see it. net/gpu/engine/ implements it; a build without a
// device has no implementation.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <esker/aggregator/buffer.hpp>
#include <esker/aggregator/node_buffers.hpp>
#include <esker/device/device.hpp>
#include <esker/net/apply_pool.hpp>
#include <esker/net/block_memory.hpp>
#include <esker/net/handler_table.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker {

struct DeviceSettings {
  std::uint32_t pe;
  std::uint32_t n_pes;            // destinations
  bool projecting;                // destinations beyond this PE all loop back to it through the network
  std::uint32_t rank_on_host;     // picks the GPU
  bool heap_on_device;            // else in pinned host memory, where the host applies
  std::uint32_t direct_messages;  // Config's
  std::uint64_t heap_bytes;       // 0: half of the GPU's free memory, over the PEs that share it
  std::uint32_t pes_on_host;
  std::uint32_t package_slots;
  std::uint32_t package_bytes;
  std::uint32_t frame_bytes;  // of the largest frame
};

/// What a PE tells its peers so that they can write into its inbox: words for four gathers.
struct InboxOffer {
  static constexpr std::size_t kWords = 24;
  std::array<std::uint64_t, kWords> words{};
};

/// Counters of the messages that do not pass the host, at the end of the last progress kernel.
struct DeviceTraffic {
  std::uint64_t sent = 0;      // by lanes and handlers, past the host queue
  std::uint64_t local = 0;     // of them, to this PE
  std::uint64_t applied = 0;   // on the device, by any path
  std::uint64_t direct = 0;    // of them, applied in peers' heaps by lanes here
  std::uint64_t packages = 0;  // to peers
  std::uint64_t bytes = 0;
  std::uint64_t by_handlers = 0;
  std::uint64_t asked = 0;     // of those sent, requests to peers
  std::uint64_t answered = 0;  // of those applied, replies
};

/// Where a GPU's replies go. Neither call waits.
class ReplySink {
 public:
  /// They all go to this PE, whatever their addresses say; copied during the call.
  virtual void send_replies(std::uint32_t pe, const PackageView& replies) = 0;
  /// A closed buffer of them.
  virtual void send_replies(Buffer* buffer) = 0;

 protected:
  ~ReplySink() = default;
};

/// State    open -> linked -> running -> closed -> retracted.
/// Contract The constructing thread makes the calls of the first part, the network's owner those of the
///          second, any thread those of the third. Kernels are on stream(), or whoever launched them has
///          waited for them.
/// Errors   Error{kDevice} or {kOutOfMemory} from any call, naming the kernel where one failed.
class DeviceEngine : public BlockMemory {
 public:
  virtual ~DeviceEngine() = default;

  // The user's thread, which has constructed it.

  virtual const Device& device() const = 0;
  virtual std::byte* heap_base() const = 0;
  virtual std::uint64_t heap_limit() const = 0;
  virtual void clear(std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual void read(std::uint64_t offset, void* to, std::uint64_t bytes) = 0;
  virtual void write(std::uint64_t offset, const void* from, std::uint64_t bytes) = 0;
  /// Messages may touch offsets below this from now on.
  virtual void set_heap_end(std::uint64_t bytes) = 0;

  virtual PackageQueue host_queue() const = 0;
  /// Messages of handlers for PEs that this GPU does not reach. The network's owner empties it, and never
  /// waits.
  virtual PackageQueue progress_queue() const = 0;
  virtual const gpu::PeState* pe_state() const = 0;

  virtual InboxOffer offer() = 0;
  /// `offers[pe]` are those of all PEs. With `use_peers` it opens the memory of the PEs that this GPU
  /// reaches. Returns a bit for each of them, by its number among the PEs of its host, and another one where
  /// lanes here reach its heap.
  virtual std::uint64_t open_peers(const std::vector<InboxOffer>& offers, bool use_peers) = 0;
  /// `opened[pe]` is the result of open_peers() there. PEs that have opened each other's memory become links;
  /// the rest are reached through the network. Returns how many links there are.
  virtual std::uint32_t link(const std::vector<std::uint64_t>& opened) = 0;
  /// After link(): which PE is no link, and why; of several the first.
  virtual std::string why_not_linked() const = 0;
  /// After the last barrier, when nothing is under way between PEs: closes the memory that open_peers() has
  /// opened.
  virtual void close_peers() = 0;
  /// All PEs have returned from close_peers(), so the memory that this one has offered may be freed. If the
  /// job fails before that, it stays allocated to the end of the process: peers' kernels, for which this PE
  /// cannot wait, may still write into it, which is undefined on a GPU once it is freed.
  virtual void retract_offer() = 0;
  /// The handler with this index is known to lanes from now on.
  virtual void add_handler(std::uint32_t index, const HandlerTable::Entry& entry) = 0;
  /// Packages that a group of lanes keeps open, one for each way out: the links, the host, and where there
  /// are handlers this PE itself.
  virtual std::uint32_t bins() const = 0;

  virtual void* stream() const = 0;
  /// Before and after a kernel is started on stream(). `error` is "" or what went wrong.
  virtual void begin_launch(const char* kernel) = 0;
  virtual void end_launch(const std::string& error) = 0;
  /// After the network's owner and the aggregators have ended: lanes that wait for them drop their messages.
  /// Waits until nothing runs; false: something still runs after `patience`, if that is not 0.
  virtual bool abandon(std::chrono::seconds patience) = 0;

  // The network's owner.

  /// A progress kernel runs, or a frame is on the device: step() soon finds the end of it.
  virtual bool is_under_way() const = 0;
  /// Whether a kernel is still running on stream(). Throws if one has failed.
  virtual bool was_running() = 0;
  /// At most once, before the first frame: host memory, aligned to 128 bytes, that the device copies frames
  /// from. Elsewhere a frame is copied once more.
  virtual std::shared_ptr<std::byte> receive_memory(std::size_t bytes) = 0;
  /// Sends a frame to the device, which applies it: job.left becomes 0 at a later step(). False: not now.
  virtual bool try_submit(ApplyJob& job) = 0;
  /// Takes the results of what has ended, and starts a progress kernel if `wanted`, or if frames or the last
  /// progress kernel call for one. With `handlers`, messages for handlers may be about. True if something
  /// moved. Throws, or ends the job, where a lane has reported a fault. Replies to the requests of frames go
  /// to `replies`, before their jobs end.
  virtual bool step(bool wanted, bool handlers, ReplySink& replies) = 0;
  /// Progress kernels will soon be wanted: the thread that starts them stays awake.
  virtual void expect_progress() = 0;
  /// Lanes of this PE have sent active messages since complete_round().
  virtual bool has_called_handlers() const = 0;
  /// A barrier has found that no kernel runs and every message of every PE is applied.
  virtual void complete_round() = 0;
  /// Progress kernels started so far.
  virtual std::uint64_t progress_started() const = 0;
  /// A progress kernel that began after `progress` progress kernels had been started has ended, and no frame
  /// is left: every message that had arrived when it began is applied, and traffic() counts it. With handlers
  /// (step()) also: it has found nothing for any of them, so every message that handlers had sent has left.
  virtual bool has_completed_since(std::uint64_t progress) const = 0;
  virtual std::uint32_t links() const = 0;
  virtual std::uint32_t pe_of_link(std::uint32_t link) const = 0;
  /// Messages to and from the link's PE that did not pass the host, by the last progress kernel.
  virtual std::uint64_t sent_to(std::uint32_t link) const = 0;
  virtual std::uint64_t applied_from(std::uint32_t link) const = 0;
  /// Whether progress kernels are wanted here and at the links' PEs, since the last call: lanes wait for
  /// space, or kernels have ended and may have left messages in mailboxes.
  virtual bool take_drain_request() = 0;

  // Any thread.

  /// As the network's owner last published it.
  virtual DeviceTraffic traffic() const = 0;
  /// For the hang report: likewise, without a call to the device.
  virtual std::string was_doing() const = 0;
};

/// Null where the build has no device or the machine has none.
std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSettings& settings);

}  // namespace esker
