// How far peers have applied what this PE has sent them, and what they want to know of this one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <esker/net/control.hpp>

namespace esker {

/// The question behind quiet(), for one of the ways to a peer. Both sides count from 1 what travels that way.
///
/// Contract. The network's owner calls. Nothing is acknowledged without a question; a question is
///           answered once, when it can be.
class Acknowledgements {
 public:
  Acknowledgements(Control& control, wire::Kind request, wire::Kind reply)
      : control_{control},
        request_{request},
        reply_{reply},
        asked_(control.n_pes()),
        known_(control.n_pes()) {
    control.on(request, [this](const Control::Message& message) { raise(asked_, message); });
    control.on(reply, [this](const Control::Message& message) { raise(known_, message); });
  }
  Acknowledgements(const Acknowledgements&) = delete;
  Acknowledgements& operator=(const Acknowledgements&) = delete;

  void ask(std::uint32_t pe, std::uint64_t number) {
    if (!is_applied(pe, number)) control_.send(request_, pe, number);
  }
  /// `pe` has applied all up to this number, as far as is known here.
  bool is_applied(std::uint32_t pe, std::uint64_t number) const { return known_[pe] >= number; }

  /// Some PE waits for an answer.
  bool is_asked() const {
    return std::any_of(asked_.begin(), asked_.end(), [](std::uint64_t number) { return number != 0; });
  }
  /// This PE has applied all of `pe` up to `applied`: tells it if it waits for that. True if so.
  bool answer(std::uint32_t pe, std::uint64_t applied) {
    if (asked_[pe] == 0 || applied < asked_[pe]) return false;
    control_.send(reply_, pe, applied);
    asked_[pe] = 0;
    return true;
  }

 private:
  static void raise(std::vector<std::uint64_t>& numbers, const Control::Message& message) {
    numbers[message.source] = std::max(numbers[message.source], message.value);
  }

  Control& control_;
  const wire::Kind request_;
  const wire::Kind reply_;
  std::vector<std::uint64_t> asked_;  // by each PE: 0, or up to where it wants to know
  std::vector<std::uint64_t> known_;  // of this PE's, applied at each
};

}  // namespace esker
