// What PEs' answers say about a job in which nothing moves.
#include <esker/runtime/hang_inquiry.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace esker {
namespace {
using std::chrono::milliseconds;
constexpr milliseconds kLeastBetween{200};
constexpr std::size_t kMostNamed = 8;

double in_seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }
}  // namespace

Outlook judge(std::span<const PeAnswer> answers, milliseconds limit) {
  bool may_end = false;
  for (const PeAnswer& answer : answers) {
    if (answer.status) {
      if (answer.status->still < limit) return Outlook::kMoves;
      may_end |= !answer.status->waits;
    } else {
      // A PE that neither answers nor is stopped is inside one step: a handler that does not return.
      may_end |= answer.may_be_silent || answer.silent < limit;
    }
  }
  return may_end ? Outlook::kMayEnd : Outlook::kCannotEnd;
}

std::string describe_wait(std::span<const PeAnswer> answers, milliseconds still, Outlook outlook,
                          std::uint32_t pe) {
  const bool goes_on = outlook == Outlook::kMayEnd;
  const auto name_of = [&](std::size_t i) {
    return answers[i].name.empty() ? fmt::format("PE {}", i) : answers[i].name;
  };
  const std::string prefix = fmt::format("esker: {}{}: ", goes_on ? "warning: " : "", name_of(pe));
  std::string text =
      fmt::format("{}nothing has moved for {:.0f} s (ESKER_HANG_SECONDS; 0 turns this off); {}\n", prefix,
                  in_seconds(still), goes_on ? "the job goes on" : "every PE waits, and none can go on");
  const auto add = [&](std::size_t i) {
    const PeAnswer& answer = answers[i];
    text += fmt::format("{}  {}{} {}\n", prefix, name_of(i),
                        answer.process != 0 ? fmt::format(" (process {})", answer.process) : "",
                        answer.status ? answer.status->doing : "does not answer: " + answer.why_silent);
  };
  std::size_t named = 0;
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].status && answers[i].status->waits) {
      ++waiting;
    } else if (++named <= kMostNamed) {
      add(i);
    }
  }
  if (named > kMostNamed) text += fmt::format("{}  and {} more like these\n", prefix, named - kMostNamed);
  add(pe);
  if (waiting > 1)
    text += fmt::format("{}  and {} more {}\n", prefix, waiting - 1, waiting == 2 ? "PE waits" : "PEs wait");
  return text;
}

bool HangInquiry::start_if_due(const PeStatus& mine, Clock::time_point now) {
  if (limit_.count() == 0) return false;
  if (!mine.waits || mine.still < limit_) {
    asking_ = false;
    next_ = {};
    return false;
  }
  if (asking_ || now < next_) return false;
  asking_ = true;
  asked_at_ = now;
  std::fill(answers_.begin(), answers_.end(), std::nullopt);
  return true;
}

std::vector<std::uint32_t> HangInquiry::to_ask(Clock::time_point now) {
  std::vector<std::uint32_t> pes;
  for (std::uint32_t pe = 0; pe < asked_.size(); ++pe) {
    if (pe == pe_ || asked_[pe]) continue;
    asked_[pe] = now;
    pes.push_back(pe);
  }
  return pes;
}

void HangInquiry::heard_answer(std::uint32_t pe, PeStatus status) {
  asked_[pe].reset();
  answers_[pe] = std::move(status);
}

void HangInquiry::heard_question(std::uint32_t pe, Clock::time_point now) {
  if (pe < pe_ && !asking_) next_ = std::max(next_, now + limit_);
}

bool HangInquiry::is_complete(Clock::time_point now) const {
  if (!asking_) return false;
  if (now - asked_at_ >= kTimeToAnswer) return true;
  for (std::uint32_t pe = 0; pe < answers_.size(); ++pe) {
    if (pe != pe_ && !answers_[pe]) return false;
  }
  return true;
}

std::vector<PeAnswer> HangInquiry::take_answers(const PeStatus& mine, Clock::time_point now) {
  asking_ = false;
  std::vector<PeAnswer> all(answers_.size());
  for (std::uint32_t pe = 0; pe < all.size(); ++pe) {
    all[pe].status = pe == pe_ ? mine : answers_[pe];
    if (asked_[pe]) all[pe].silent = std::chrono::duration_cast<milliseconds>(now - *asked_[pe]);
  }
  return all;
}

void HangInquiry::schedule(Outlook outlook, std::span<const PeAnswer> answers, Clock::time_point now) {
  milliseconds least = milliseconds::max();
  for (const PeAnswer& answer : answers) {
    if (answer.status) least = std::min(least, answer.status->still);
  }
  // After a warning, at twice the time; else when the last that has moved may have been still for so long.
  const milliseconds mine = answers[pe_].status->still;
  next_ = now + std::max(kLeastBetween, outlook == Outlook::kMoves ? limit_ - least : mine);
}

}  // namespace esker
