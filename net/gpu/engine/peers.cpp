// Opening the memory of the GPUs of a host: of other processes by IPC, of the own process by address.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <esker/net/gpu/engine/peers.hpp>
#include <esker/net/host.hpp>

namespace esker::gpu {

/// The words of an InboxOffer.
struct Peers::Offer {
  std::uint64_t host;
  std::uint64_t process;
  char device[16];            // its PCI address: processes may count devices differently
  std::uint64_t inbox, heap;  // addresses in that process
  std::uint64_t usable;       // 1: from other processes too; 2: from its own; 0: there is none
  std::uint64_t mailboxes;    // that the inbox has: the last for the PE itself
  MemoryHandle inbox_handle, heap_handle;

  static std::vector<Offer> of_all(const std::vector<InboxOffer>& words) {
    std::vector<Offer> all(words.size());
    for (std::size_t pe = 0; pe < all.size(); ++pe)
      std::memcpy(&all[pe], words[pe].words.data(), sizeof(Offer));
    return all;
  }
};

namespace {

/// Bits of open()'s result: an inbox by its PE's number, its heap by that and kHeaps.
constexpr std::uint32_t kHeaps = 32;
static_assert(kMaxLinks <= kHeaps && kHeaps + kMaxLinks <= 64);

/// An inbox has a part for each PE of the host that may be a link, by its number there, and the last one for
/// the PE itself. A part is the mailbox from that PE, its receiver's turn words, and the sender's turn words
/// of the mailbox towards that PE.
constexpr std::size_t kMailboxBytes = Mailbox::kStorageBytes + 2 * Mailbox::kTurnBytes;
/// The mailbox in part `part` of the receiver's inbox. In the sender's inbox, part `back` is the receiver's.
Mailbox mailbox(std::byte* receiver, std::uint32_t part, std::byte* sender, std::uint32_t back) {
  std::byte* const storage = receiver + part * kMailboxBytes;
  std::byte* const senders = sender + back * kMailboxBytes + Mailbox::kStorageBytes + Mailbox::kTurnBytes;
  return {storage, reinterpret_cast<Mailbox::Turn*>(senders),
          reinterpret_cast<Mailbox::Turn*>(storage + Mailbox::kStorageBytes)};
}

/// This process's number of the device at that PCI address; -1 if it does not see it.
int device_at(const char* address) {
  int device = -1;
  if (ESKER_GPU(DeviceGetByPCIBusId)(&device, address) == ESKER_GPU(Success)) return device;
  (void)ESKER_GPU(GetLastError)();
  return -1;
}

}  // namespace

Peers::~Peers() {
  close();
  if (is_exposed_) inbox_.keep();
}

void Peers::close() {
  for (void* const peer : opened_) (void)ESKER_GPU(IpcCloseMemHandle)(peer);
  opened_.clear();
}

std::uint32_t Peers::mailboxes() const { return std::min(settings_.pes_on_host, kMaxLinks) + 1; }

InboxOffer Peers::offer(std::byte* heap) {
  Offer mine{};
  mine.host = Host::here().identity();
  mine.process = static_cast<std::uint64_t>(getpid());
  require(ESKER_GPU(DeviceGetPCIBusId)(mine.device, sizeof mine.device, number()),
          "asking for the device's address");
  if (settings_.heap_on_device) {
    inbox_ = device_.memory<std::byte>(kMailboxBytes * mailboxes(), {"the inbox"});
    mine.mailboxes = mailboxes();
    mine.inbox = reinterpret_cast<std::uint64_t>(inbox_.data());
    mine.heap = reinterpret_cast<std::uint64_t>(heap);
    const auto describe = [](MemoryHandle& handle, void* at) {
      return ESKER_GPU(IpcGetMemHandle)(&handle, at) == ESKER_GPU(Success);
    };
    mine.usable = describe(mine.inbox_handle, inbox_.data()) && describe(mine.heap_handle, heap) ? 1 : 2;
    (void)ESKER_GPU(GetLastError)();
    is_exposed_ = settings_.pes_on_host > 1;
  }
  static_assert(sizeof(MemoryHandle) == 64 && sizeof(Offer) <= sizeof(InboxOffer::words));
  InboxOffer words;
  std::memcpy(words.words.data(), &mine, sizeof mine);
  return words;
}

std::uint64_t Peers::open(const std::vector<InboxOffer>& offers, bool use_peers) {
  const std::vector<Offer> all = Offer::of_all(offers);
  const std::uint32_t me = settings_.pe;
  const Offer& mine = all[me];
  peers_.resize(all.size());
  std::uint32_t on_host = 0;
  sharers_ = 0;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Offer& other = all[pe];
    if (other.host != mine.host) continue;
    peers_[pe].number = on_host++;
    if (std::strcmp(other.device, mine.device) != 0) continue;
    if (other.process == mine.process || is_shared_at_a_time(number())) ++sharers_;
  }
  if (!use_peers || settings_.projecting) is_exposed_ = false;
  std::uint64_t opened = 0;
  for (std::size_t pe = 0; is_exposed_ && pe < all.size(); ++pe) {
    Peer& peer = peers_[pe];
    if (pe == me || peer.number == Peer::kElsewhere) continue;
    try_open(mine, all[pe], peer);
    if (peer.inbox != nullptr) opened |= std::uint64_t{1} << peer.number;
    if (peer.heap != nullptr) opened |= std::uint64_t{1} << (kHeaps + peer.number);
  }
  return opened;
}

void Peers::try_open(const Offer& mine, const Offer& theirs, Peer& peer) {
  const std::uint32_t me = peers_[settings_.pe].number;
  if (theirs.usable == 0) {
    peer.why_not = "its heap is not in a GPU's memory";
    return;
  }
  if (theirs.usable == 2 && theirs.process != mine.process) {
    peer.why_not = "its GPU's driver hands no memory to other processes";
    return;
  }
  if (peer.number + 1 >= mine.mailboxes || me + 1 >= theirs.mailboxes) {
    peer.why_not = fmt::format("of a host {} PEs reach each other", kMaxLinks);
    return;
  }
  std::byte* inbox = nullptr;
  ApiError error = open(inbox, mine, theirs, theirs.inbox, theirs.inbox_handle);
  if (error == ESKER_GPU(Success) && settings_.direct_messages > 0 && takes_atomics_to(theirs))
    error = open(peer.heap, mine, theirs, theirs.heap, theirs.heap_handle);
  if (error == ESKER_GPU(Success)) {
    peer.inbox = inbox;
    return;
  }
  (void)ESKER_GPU(GetLastError)();
  peer.why_not = fmt::format("opening its memory from GPU {}: {}", number(), text_of(error));
}

std::uint32_t Peers::link(const std::vector<std::uint64_t>& opened, PeState& pe_state) {
  const std::uint32_t me = settings_.pe;
  std::vector<std::uint8_t> bins(settings_.n_pes, static_cast<std::uint8_t>(kNetwork));
  if (!settings_.projecting && settings_.heap_on_device) bins[me] = static_cast<std::uint8_t>(kSelf);
  pe_state.most_direct = settings_.direct_messages;
  std::uint32_t links = 0;
  if (!inbox_.empty()) {
    std::byte* const own = inbox_.data();
    const std::uint32_t mine_there = peers_[me].number;
    for (std::uint32_t pe = 0; pe < peers_.size(); ++pe) {
      if (pe == me) continue;
      const Peer& peer = peers_[pe];
      // Both PEs know both words, and so decide alike.
      const bool is_open_there = peer.inbox != nullptr && (opened[pe] >> mine_there & 1) != 0;
      if (!is_open_there) {
        if (why_not_linked_.empty()) {
          why_not_linked_ = fmt::format(
              "PE {} does not reach the GPU of PE {}: {}", me, pe,
              peer.inbox == nullptr ? peer.why_not : "that one does not reach this one's, and says why");
        }
        continue;
      }
      pe_state.pe_of[links] = pe;
      pe_state.to[links] = mailbox(peer.inbox, mine_there, own, peer.number);
      pe_state.from[links] = mailbox(own, peer.number, peer.inbox, mine_there);
      pe_state.heap_of[links] = peer.heap;
      requests_arrive_in_packages_ |= (opened[pe] >> (kHeaps + mine_there) & 1) == 0;
      bins[pe] = static_cast<std::uint8_t>(links);
      ++links;
    }
    pe_state.pe_of[links] = me;
    pe_state.to[links] = pe_state.from[links] = mailbox(own, mailboxes() - 1, own, mailboxes() - 1);
    pe_state.self_link = links;
    pe_state.links = links + 1;
  } else {
    why_not_linked_ = fmt::format("PE {}'s heap is not in a GPU's memory", me);
  }

  bins_ = device_.memory<std::uint8_t>(bins.size(), {"the table of destinations"});
  device_.copy(bins_.data(), bins.data(), bins.size());
  pe_state.bin_of = bins_.data();
  std::copy_n(bins.begin(), std::min<std::size_t>(bins.size(), PeState::kNear), pe_state.near_bins);
  pe_state.has_network = std::find(bins.begin(), bins.end(), kNetwork) != bins.end();
  requests_arrive_ = pe_state.has_network || requests_arrive_in_packages_;
  return links;
}

/// Whether the atomics of this PE and those of the peer, on the peer's heap, are atomic to each other.
bool Peers::takes_atomics_to(const Offer& peer) const {
  const int device = device_at(peer.device);
  if (!kHeapTakesPeersAtomics || device < 0) return false;
  if (device == number()) return true;
  int value = 0;
  const bool known = ESKER_GPU(DeviceGetP2PAttribute)(&value, ESKER_GPU(DevP2PAttrNativeAtomicSupported),
                                                      number(), device) == ESKER_GPU(Success);
  (void)ESKER_GPU(GetLastError)();
  return known && value != 0;
}

/// Opens memory of a peer that has `address` there.
ApiError Peers::open(std::byte*& at, const Offer& mine, const Offer& theirs, std::uint64_t address,
                     const MemoryHandle& handle) {
  if (theirs.process == mine.process) {
    if (const int device = device_at(theirs.device); device != number()) {
      const ApiError error = ESKER_GPU(DeviceEnablePeerAccess)(device, 0);
      if (error != ESKER_GPU(Success) && error != ESKER_GPU(ErrorPeerAccessAlreadyEnabled)) return error;
      (void)ESKER_GPU(GetLastError)();
    }
    at = reinterpret_cast<std::byte*>(address);
    return ESKER_GPU(Success);
  }
  void* opened = nullptr;
  const ApiError error = ESKER_GPU(IpcOpenMemHandle)(&opened, handle, ESKER_GPU(IpcMemLazyEnablePeerAccess));
  if (error != ESKER_GPU(Success)) return error;
  opened_.push_back(opened);
  at = static_cast<std::byte*>(opened);
  return error;
}

}  // namespace esker::gpu
