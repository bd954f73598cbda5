// What a PE's GPU reaches of the others on its host: inboxes, heaps, and who shares it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/gpu/api.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// State    made -> offered -> opened -> linked -> closed -> free.
/// Contract One thread; its device is the current one in each call, the destructor's included, which comes
///          when no kernel runs any more. Between offered and free peers' kernels may write into the inbox
///          and the heap: a destructor that comes meanwhile leaves the inbox allocated.
/// Errors   Error{kDevice} or {kOutOfMemory}. A peer that cannot be reached is none.
class Links {
 public:
  Links(const DeviceSettings& settings, int device) : settings_{settings}, device_{device} {}
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Makes the inbox, where the heap is on the device.
  InboxOffer offer(std::byte* heap);
  /// DeviceEngine::open_peers().
  std::uint64_t open(const std::vector<InboxOffer>& offers, bool use_peers);
  /// DeviceEngine::link(): fills in what `state` says of destinations and links.
  std::uint32_t link(const std::vector<std::uint64_t>& opened, PeState& pe_state);
  /// DeviceEngine::why_not_linked().
  const std::string& why_not_linked() const { return why_not_linked_; }
  /// DeviceEngine::sharers().
  std::uint32_t sharers() const { return sharers_; }
  /// Of peers' memory.
  void close();
  /// Peers have closed this PE's.
  void set_free() { is_exposed_ = false; }
  bool is_exposed() const { return is_exposed_; }

 private:
  struct Offer;
  /// A PE of this host, by its number there, or of none.
  struct Peer {
    static constexpr std::uint32_t kElsewhere = ~0u;
    std::uint32_t number = kElsewhere;
    std::byte* inbox = nullptr;  // null: not opened
    std::byte* heap = nullptr;   // null: lanes here do not reach it
    std::string why_not = "it is on another host";
  };

  std::uint32_t mailboxes() const;
  bool takes_atomics_to(const Offer& peer) const;
  void try_open(const Offer& mine, const Offer& theirs, Peer& peer);
  ApiError open(std::byte*& at, const Offer& mine, const Offer& theirs, std::uint64_t address,
                const MemoryHandle& handle);

  const DeviceSettings& settings_;
  const int device_;
  std::uint32_t sharers_ = 1;
  DeviceMemory inbox_, bins_;
  std::vector<Peer> peers_;    // of all PEs; what this PE's says is its number
  std::vector<void*> opened_;  // peers' inboxes and heaps
  std::string why_not_linked_;
  bool is_exposed_ = false;
};

}  // namespace esker::gpu
