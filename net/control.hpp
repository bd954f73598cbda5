// Control messages: what PEs' runtimes tell each other beside the users' messages.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include <esker/aggregator/wire.hpp>
#include <esker/net/shipping.hpp>

namespace esker {

/// Contract. The network's owner calls; on() comes before its first step. A kind without a listener is
///           ignored. A control message overtakes what is queued for its PE.
class Control {
 public:
  struct Message {
    std::uint32_t source;
    std::uint64_t value;
    std::string_view text;
  };
  using Listener = std::function<void(const Message&)>;

  Control(Shipping& shipping, std::uint32_t pe, std::uint32_t n_pes, std::uint32_t frame_bytes)
      : shipping_{shipping}, pe_{pe}, n_pes_{n_pes}, frame_bytes_{frame_bytes} {}

  void on(wire::Kind kind, Listener listener) { listeners_[index(kind)] = std::move(listener); }

  std::size_t most_text_bytes() const { return frame_bytes_ - sizeof(wire::FrameHeader); }
  /// What does not fit in a frame of `text` is cut off.
  void send(wire::Kind kind, std::uint32_t pe, std::uint64_t value, std::string_view text = {});
  /// To every other PE: `value(pe)`.
  template <class Value>
  void send_to_all(wire::Kind kind, Value value, std::string_view text = {}) {
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      if (pe != pe_) send(kind, pe, value(pe), text);
    }
  }
  /// A control frame has arrived.
  void receive(const Arrival& arrival) const;

  std::uint32_t pe() const { return pe_; }
  std::uint32_t n_pes() const { return n_pes_; }

 private:
  static std::size_t index(wire::Kind kind) { return static_cast<std::size_t>(kind); }

  Shipping& shipping_;
  const std::uint32_t pe_;
  const std::uint32_t n_pes_;
  const std::uint32_t frame_bytes_;
  std::array<Listener, static_cast<std::size_t>(wire::Kind::kLetter) + 1> listeners_;
};

}  // namespace esker
