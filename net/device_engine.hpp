// A PE's GPU as the runtime and the network's owner see it. The implementation is net/gpu/engine.cpp; a build
// without a device has none.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <esker/device/gpu/occupancy.hpp>
#include <esker/net/apply_pool.hpp>
#include <esker/net/handler.hpp>
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

/// Counters of what does not pass the host, at the end of the last pass.
struct DeviceTraffic {
  std::uint64_t sent = 0;      // by lanes and handlers, past the host queue
  std::uint64_t local = 0;     // of them, to this PE
  std::uint64_t applied = 0;   // on the device, by any path
  std::uint64_t direct = 0;    // of them, applied in peers' heaps by lanes here
  std::uint64_t packages = 0;  // to peers
  std::uint64_t bytes = 0;
  std::uint64_t by_handlers = 0;
};

/// State    open -> linked -> running -> closed -> let go.
/// Contract The constructing thread makes the calls of the first part, the network's owner those of the
///          second. Kernels are on stream(), or were waited for by whoever launched them.
/// Errors   Error{kDevice} or {kOutOfMemory} from any call, naming the kernel where one failed.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;

  // The user's thread.

  virtual std::string name() const = 0;  // "cuda: NVIDIA H200, GPU 0 of 4"
  virtual std::byte* heap_base() const = 0;
  virtual std::uint64_t heap_limit() const = 0;
  virtual void clear(std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual void read(std::uint64_t offset, void* to, std::uint64_t bytes) = 0;
  virtual void write(std::uint64_t offset, const void* from, std::uint64_t bytes) = 0;
  /// Messages may touch offsets below this from now on.
  virtual void set_heap_end(std::uint64_t bytes) = 0;

  virtual PackageQueue host_queue() const = 0;
  /// What handlers send to PEs that this GPU does not reach: for the network's owner, who never waits.
  virtual PackageQueue progress_queue() const = 0;
  virtual const gpu::PeState* pe_state() const = 0;

  virtual InboxOffer offer() = 0;
  /// `offers[pe]` of all PEs. With `use_peers` opens the memory of those that this GPU reaches. Returns a bit
  /// for each of them, by its number among the PEs of its host.
  virtual std::uint64_t open_peers(const std::vector<InboxOffer>& offers, bool use_peers) = 0;
  /// `opened[pe]`: what open_peers() has returned there. PEs that have opened each other's memory become
  /// links; the rest are reached through the network. Returns how many links there are.
  virtual std::uint32_t link(const std::vector<std::uint64_t>& opened) = 0;
  /// After link(): which PE is none, and why; of several the first.
  virtual std::string why_not_linked() const = 0;
  /// After the last barrier, where nothing is under way between PEs: closes what open_peers() has opened.
  virtual void close_peers() = 0;
  /// All PEs have come out of close_peers(), so that what this one has offered may be freed. Where a job
  /// fails before that it stays allocated to the end of the process: peers' kernels, which nobody can wait
  /// for, may still write into it, and a GPU calls that undefined once it is freed.
  virtual void let_memory_go() = 0;
  /// The handler with this index is known to lanes from now on.
  virtual void add_handler(std::uint32_t index, const HandlerTable::Entry& entry) = 0;
  /// Packages that a group of lanes keeps open, one for each way out: the links, the host, and where there
  /// are handlers this PE itself.
  virtual std::uint32_t bins() const = 0;

  virtual void* stream() const = 0;
  /// Plans launches and progress kernels.
  virtual gpu::Occupancy& occupancy() = 0;
  /// A kernel follows on stream() / has been started, with what went wrong or "".
  virtual void begin_launch(const char* kernel) = 0;
  virtual void end_launch(const std::string& error) = 0;
  /// After the network's owner and the aggregators have ended: lanes that wait for them drop what they send.
  /// Waits until nothing runs; false: something still does after `patience`, if that is not 0.
  virtual bool abandon(std::chrono::seconds patience) = 0;

  // The network's owner.

  /// A progress kernel or a frame is: its end is worth looking for often.
  virtual bool is_under_way() const = 0;
  /// Whether a kernel is still running on stream(). Throws if one has failed.
  virtual bool was_running() = 0;
  /// Takes a frame to the device, where it is applied: job.left becomes 0 at a later step(). False: not now.
  virtual bool try_submit(ApplyJob& job) = 0;
  /// Looks for what has ended, and starts a progress kernel if there is reason to, or `wanted`. With
  /// `handlers`, messages for handlers may be about. True if something moved.
  virtual bool step(bool wanted, bool handlers) = 0;
  /// Passes will soon be wanted: whoever starts them is awake by then.
  virtual void expect_progress() = 0;
  /// Lanes of this PE have sent active messages since settle().
  virtual bool has_called_handlers() const = 0;
  /// No kernel runs, and all that any PE has sent is applied.
  virtual void settle() = 0;
  /// Passes started so far.
  virtual std::uint64_t progress_started() const = 0;
  /// A progress kernel that began after `progress kernels` progress kernels had been started has ended, and
  /// no frame is left: what had arrived by then is applied, and traffic() says so. With handlers (step()),
  /// also: it has found nothing, for any of them, so all that handlers had sent has left.
  virtual bool settled_since(std::uint64_t progress) const = 0;
  virtual std::uint32_t links() const = 0;
  virtual std::uint32_t pe_of_link(std::uint32_t link) const = 0;
  /// Messages to and from the link's PE that did not pass the host, by the last pass.
  virtual std::uint64_t sent_to(std::uint32_t link) const = 0;
  virtual std::uint64_t applied_from(std::uint32_t link) const = 0;
  /// Lanes wait for others to make room, or kernels have ended and left something; asked once, forgotten.
  virtual bool take_starving() = 0;
  virtual DeviceTraffic traffic() const = 0;
  /// For the hang report, on any thread: as the owner last said, without a call to the device.
  virtual std::string was_doing() const = 0;
};

/// Null where the build has no device or the machine has none.
std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSettings& settings);
/// GPUs of the back end that was built; 0 if there is none or nothing was built.
std::uint32_t count_devices();

}  // namespace esker
