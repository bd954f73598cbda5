// Whether a job in which nothing moves can still end: what PEs say of themselves, and what follows from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

/// What a PE says of itself when a peer asks. Travels as wire::Kind::kStatusReply.
struct PeStatus {
  bool waits = false;                 // for others, or in a handler: it does not go on by itself
  std::chrono::milliseconds still{};  // since something moved there
  std::string doing;                  // "is in barrier_all for 60.0 s"

  std::uint64_t word() const { return static_cast<std::uint64_t>(still.count()) << 1 | (waits ? 1 : 0); }
  static PeStatus from(std::uint64_t word, std::string_view doing) {
    return {(word & 1) != 0, std::chrono::milliseconds{static_cast<std::int64_t>(word >> 1)},
            std::string(doing)};
  }
};

/// One PE's part of an inquiry.
struct PeAnswer {
  std::optional<PeStatus> status;      // none: it has not answered
  std::chrono::milliseconds silent{};  // then: since the first question that it has not answered
  bool may_be_silent = false;  // then: its process is stopped, or the program's thread owns the network
  std::string why_silent;      // then: "state T (stopped)"
  std::string name;            // for messages, where it is not "PE" and its number
  std::int64_t process = 0;    // 0: not known
};

enum class Outlook {
  kMoves,      // something has moved within the limit
  kMayEnd,     // some PE goes on by itself, or may answer later
  kCannotEnd,  // every PE waits for others
};

/// By what all PEs have answered, or failed to.
Outlook judge(std::span<const PeAnswer> answers, std::chrono::milliseconds limit);

/// Which PEs keep `pe` waiting, and with what. Nothing has moved for `still`.
std::string describe_wait(std::span<const PeAnswer> answers, std::chrono::milliseconds still, Outlook outlook,
                          std::uint32_t pe);

/// When to ask, and whether the answers are there.
///
/// State    idle -> asking -> idle ...
/// Contract One thread, the network's owner. Off if the limit is 0.
class HangInquiry {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kTimeToAnswer{2000};

  HangInquiry(std::uint32_t pe, std::uint32_t n_pes, std::chrono::milliseconds limit)
      : pe_{pe}, limit_{limit}, asked_(n_pes), answers_(n_pes) {}

  /// Starts an inquiry if this PE has waited so long, at growing intervals, that one is due.
  bool start_if_due(const PeStatus& mine, Clock::time_point now);
  /// Those that have no question of this PE unanswered.
  std::vector<std::uint32_t> to_ask(Clock::time_point now);
  void heard_answer(std::uint32_t pe, PeStatus status);
  /// A PE of a lower number asks all PEs the same: one inquiry is enough.
  void heard_question(std::uint32_t pe, Clock::time_point now);
  /// An inquiry is under way, and every PE has answered or had the time to.
  bool is_complete(Clock::time_point now) const;
  /// Ends the inquiry.
  std::vector<PeAnswer> take_answers(const PeStatus& mine, Clock::time_point now);
  /// What came of it says when to ask again.
  void schedule(Outlook outlook, std::span<const PeAnswer> answers, Clock::time_point now);

 private:
  const std::uint32_t pe_;
  const std::chrono::milliseconds limit_;
  bool asking_ = false;
  Clock::time_point asked_at_;
  Clock::time_point next_;
  std::vector<std::optional<Clock::time_point>> asked_;  // by PE: a question that it has not answered
  std::vector<std::optional<PeStatus>> answers_;
};

}  // namespace esker
