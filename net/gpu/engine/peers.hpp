// The PEs of this host whose GPU memory a PE reaches: their inboxes and heaps, and who shares its GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/device/gpu/api.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// State    made -> offered -> opened -> linked -> closed -> retracted.
/// Contract One thread, whose current device is this PE's in each call. The destructor too; no kernel runs
///          any more when it is called. Between offered and retracted, peers' kernels may write into the
///          inbox and the heap: a destructor that is called meanwhile leaves the inbox allocated.
/// Errors   Error{kDevice} or {kOutOfMemory}. A peer that cannot be reached is no error.
class Peers {
 public:
  Peers(const DeviceSettings& settings, const Device& device) : settings_{settings}, device_{device} {}
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Makes the inbox, where the heap is on the device.
  InboxOffer offer(std::byte* heap);
  /// DeviceEngine::open_peers().
  std::uint64_t open(const std::vector<InboxOffer>& offers, bool use_peers);
  /// DeviceEngine::link(): fills in the links and the table of destinations of `pe_state`.
  std::uint32_t link(const std::vector<std::uint64_t>& opened, PeState& pe_state);
  /// After link(): lanes of some PE do not reach this one's heap, and so send it their requests: by any way;
  /// in packages of mailboxes. Which PE reaches which may differ by direction.
  bool requests_arrive() const { return requests_arrive_; }
  bool requests_arrive_in_packages() const { return requests_arrive_in_packages_; }
  /// DeviceEngine::why_not_linked().
  const std::string& why_not_linked() const { return why_not_linked_; }
  /// After open(): PEs whose kernels run on this GPU at a time, this one included.
  std::uint32_t sharers() const { return sharers_; }
  /// Closes the memory of peers.
  void close();
  /// Peers have closed the memory of this PE.
  void retract_offer() { is_exposed_ = false; }
  bool is_exposed() const { return is_exposed_; }

 private:
  struct Offer;
  /// A PE of the job, with its number among the PEs of this host.
  struct Peer {
    static constexpr std::uint32_t kElsewhere = ~0u;
    std::uint32_t number = kElsewhere;
    std::byte* inbox = nullptr;  // null: not opened
    std::byte* heap = nullptr;   // null: lanes here do not reach it
    std::string why_not = "it is on another host";
  };

  int number() const { return static_cast<int>(device_.properties().index); }
  std::uint32_t mailboxes() const;
  bool takes_atomics_to(const Offer& peer) const;
  void try_open(const Offer& mine, const Offer& theirs, Peer& peer);
  ApiError open(std::byte*& at, const Offer& mine, const Offer& theirs, std::uint64_t address,
                const MemoryHandle& handle);

  const DeviceSettings& settings_;
  const Device& device_;
  std::uint32_t sharers_ = 1;
  DeviceArray<std::byte> inbox_;
  DeviceArray<std::uint8_t> bins_;
  std::vector<Peer> peers_;    // of all PEs, this one included
  std::vector<void*> opened_;  // peers' inboxes and heaps
  std::string why_not_linked_;
  bool is_exposed_ = false;
  bool requests_arrive_ = false;
  bool requests_arrive_in_packages_ = false;
};

}  // namespace esker::gpu
