// The levels of a domain's stack: the highest at hand, in scratchpad on a GPU, the rest in pages of memory.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// State    Levels stand one after the other in segments 0 to segment(). At hand are the segments from
///          hot_low_ to segment(), kHotSegments at most; each of the others is a page. A level is named by
///          the word at hand where it starts, which stays the same while it goes to a page and comes back:
///          segment n is always at place n modulo kHotSegments.
/// Contract All lanes of the domain call, converged. What a member holds is the same in all of them.
template <class S>
class LevelStack {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Layout = typename S::Layout;
  using Page = typename S::Page;
  using Join = typename S::Join;

 public:
  ESKER_HD LevelStack(const Lanes& lanes, RunState& run, std::uint32_t* hot, std::uint32_t domain)
      : lanes_{lanes}, run_{run}, hot_{hot}, domain_{domain} {}

  // --- Levels at hand.

  ESKER_HD std::uint32_t top() const { return top_; }
  ESKER_HD std::uint32_t* words(std::uint32_t level) const { return hot_ + level; }
  ESKER_HD bool is_bottom() const { return segment_ == 0 && hot_[top_ + Layout::kPrevious] == kNone; }
  /// The level below a level, if it may give tasks to the next batch; kNone.
  ESKER_HD std::uint32_t below(std::uint32_t level) const {
    const std::uint32_t previous = hot_[level + Layout::kPrevious];
    if (previous != kNone) return previous;
    if constexpr (S::kReach > 0) {
      const std::uint32_t segment = segment_of(level);
      if (segment_ - segment < S::kReach && segment > hot_low_) return last(segment - 1);
    }
    return kNone;
  }
  /// Of a level at hand.
  ESKER_HD std::uint32_t segment_of(std::uint32_t level) const {
    return segment_ - (segment_ - level / S::kSegmentWords) % S::kHotSegments;
  }
  /// The type with most tasks in a level; kTypes: it has none.
  ESKER_HD static std::uint32_t type_with_tasks(const std::uint32_t* level) {
    if constexpr (Set::kTypes == 1) return level[Layout::kCount] == 0 ? 1 : 0;
    std::uint32_t best = Set::kTypes, most = 0;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      if (level[Layout::kCount + t] > most) {
        most = level[Layout::kCount + t];
        best = t;
      }
    }
    return best;
  }

  // --- Up and down.

  /// Level 0 alone, empty, with so many frames.
  ESKER_HD void begin(std::uint32_t frames) {
    segment_ = hot_low_ = 0;
    first_page_ = last_page_ = kNone;
    top_ = next_ = 0;
    next_segment_ = 0;
    previous_ = kNone;
    clear_next(frames, 0);
    lanes_.sync();
    lowest_ = {0, 0, kNone};
  }
  /// Finds a place for a level above the highest. False: there is no memory.
  ESKER_HD bool find_space(std::uint32_t frames) {
    next_ = end_of(top_);
    next_segment_ = segment_;
    previous_ = top_;
    if (!S::kJoins || next_ + Layout::level_words(frames) > start_of(segment_) + S::kSegmentWords) {
      if (segment_ + 1 - hot_low_ == S::kHotSegments && !put_away(lowest_at_hand_used())) return false;
      next_segment_ = segment_ + 1;
      next_ = start_of(next_segment_);
      previous_ = kNone;
    }
    return true;
  }
  /// The level there is empty. One lane's, or all do the same; sync() must follow.
  ESKER_HD void clear_next(std::uint32_t frames, std::uint32_t lowest) const {
    std::uint32_t* const level = words(next_);
    lanes_.first([&] {
      level[Layout::kJoin] = kNone;
      level[Layout::kPrevious] = previous_;
      level[Layout::kFrames] = frames;
      level[Layout::kWaiting] = level[Layout::kWaiting + 1] = 0;
      level[Layout::kLowest] = lowest;
      for (std::uint32_t t = 0; t < Set::kTypes; ++t) level[Layout::kCount + t] = 0;
    });
  }
  ESKER_HD std::uint32_t next() const { return next_; }
  /// That level is the highest.
  ESKER_HD void up() {
    if (next_segment_ != segment_) {
      remember_highest();
      segment_ = next_segment_;
    }
    top_ = next_;
  }
  /// The highest level, which is empty, is given up.
  ESKER_HD void down() {
    const std::uint32_t previous = hot_[top_ + Layout::kPrevious];
    if (previous != kNone) {
      top_ = previous;
    } else {
      --segment_;
      if (segment_ < hot_low_) fetch();
      top_ = last(segment_);
    }
    if (lowest_.segment > segment_ || (lowest_.segment == segment_ && lowest_.level > top_)) {
      lowest_ = {segment_, top_, kNone};
    }
  }
  /// Segments from this one on are at hand.
  ESKER_HD void bring_back(std::uint32_t segment) {
    while (hot_low_ > segment) fetch();
  }

  // --- Pages.

  /// All levels go to pages, and a join record says where they are. False: there is no memory.
  ESKER_HD bool put_all_away(std::uint32_t* join) {
    remember_highest();
    while (hot_low_ <= segment_) {
      if (!put_away(used(hot_low_))) return false;
    }
    lanes_.leader([&] {
      join[Join::kTop] = top_;
      join[Join::kSegment] = segment_;
      join[Join::kFirstPage] = first_page_;
      join[Join::kLastPage] = last_page_;
    });
    return true;
  }
  /// The highest level is at hand again after put_all_away(), of this domain or of another.
  ESKER_HD void take_back(const std::uint32_t* join) {
    top_ = join[Join::kTop];
    segment_ = join[Join::kSegment];
    first_page_ = join[Join::kFirstPage];
    last_page_ = join[Join::kLastPage];
    hot_low_ = segment_ + 1;
    lowest_ = {0, 0, first_page_};
    fetch();
  }
  /// For tests: a segment that could stay at hand goes to a page.
  ESKER_HD bool put_one_away() { return hot_low_ + 1 >= segment_ || put_away(lowest_at_hand_used()); }
  /// Pages that were kept for the next time go back to the pool.
  ESKER_HD void release() {
    if (spare_pages_ == 0) return;
    lanes_.leader([&] {
      for (std::uint32_t i = 0; i < spare_pages_; ++i) run_.pages.give_back(hot_[S::kSparePagesAt + i]);
    });
    spare_pages_ = 0;
  }
  /// Pages were few when this domain last took one.
  ESKER_HD bool is_low() const { return is_low_; }
  ESKER_HD std::uint64_t spilled() const { return spilled_; }

  // --- What can be given away.

  /// The lowest level that has tasks: the largest subtrees. nullptr: none has.
  ESKER_HD std::uint32_t* find_lowest() {
    remember_highest();
    while (true) {
      const bool is_at_hand = lowest_.segment >= hot_low_;
      std::uint32_t* const page = is_at_hand ? nullptr : page_words(lowest_.page);
      std::uint32_t* const level = is_at_hand
                                       ? words(lowest_.level)
                                       : page + Page::kLevels + (lowest_.level - start_of(lowest_.segment));
      if (type_with_tasks(level) != Set::kTypes) return level;
      if (lowest_.segment == segment_ && lowest_.level == top_) return nullptr;
      const std::uint32_t end = lowest_.level + size_of(level);
      if (end < start_of(lowest_.segment) + (is_at_hand ? used(lowest_.segment) : page[Page::kUsed])) {
        lowest_.level = end;
      } else {
        lowest_.page = is_at_hand ? kNone : page[Page::kAbove];
        lowest_.level = start_of(++lowest_.segment);
      }
    }
  }

 private:
  ESKER_HD static std::uint32_t start_of(std::uint32_t segment) {
    return segment % S::kHotSegments * S::kSegmentWords;
  }
  ESKER_HD static std::uint32_t size_of(const std::uint32_t* level) {
    return Layout::level_words(level[Layout::kFrames]);
  }
  ESKER_HD std::uint32_t end_of(std::uint32_t level) const { return level + size_of(words(level)); }
  /// Of a segment at hand that is not the highest, or after remember_highest().
  ESKER_HD std::uint32_t& used(std::uint32_t segment) const {
    return hot_[S::kUsedAt + segment % S::kHotSegments];
  }
  ESKER_HD std::uint32_t& last(std::uint32_t segment) const {
    return hot_[S::kLastAt + segment % S::kHotSegments];
  }
  ESKER_HD std::uint32_t* page_words(std::uint32_t page) const {
    return Lanes::in_memory(run_.page_words) + std::size_t{page} * Page::kWords;
  }
  ESKER_HD void remember_highest() const {
    lanes_.leader([&] {
      used(segment_) = end_of(top_) - start_of(segment_);
      last(segment_) = top_;
    });
  }
  ESKER_HD std::uint32_t lowest_at_hand_used() const {
    return hot_low_ == segment_ ? end_of(top_) - start_of(segment_) : used(hot_low_);
  }

  /// Moves the lowest segment that is at hand, with so many words in use, to a page.
  ESKER_HD bool put_away(std::uint32_t size) {
    std::uint32_t page = 0;
    if (spare_pages_ > 0) {
      page = hot_[S::kSparePagesAt + --spare_pages_];
    } else {
      const auto taken = lanes_.of_leader([&] { return pack(run_.pages.try_take(domain_)); });
      page = static_cast<std::uint32_t>(taken);
      is_low_ = taken >> 32 != 0;
      if (page == kNone) {
        lanes_.leader([&] { (void)run_.end(Outcome::kOutOfMemory); });
        return false;
      }
    }
    std::uint32_t* const to = page_words(page);
    const std::uint32_t* const from = hot_ + start_of(hot_low_);
    lanes_.for_many(size, [&](std::uint32_t i) { to[Page::kLevels + i] = from[i]; });
    lanes_.leader([&] {
      to[Page::kBelow] = last_page_;
      to[Page::kAbove] = kNone;
      to[Page::kUsed] = size;
      to[Page::kLast] = hot_low_ == segment_ ? top_ : last(hot_low_);
      if (last_page_ != kNone) page_words(last_page_)[Page::kAbove] = page;
    });
    if (first_page_ == kNone) first_page_ = page;
    last_page_ = page;
    if (lowest_.segment == hot_low_) lowest_.page = page;
    ++hot_low_;
    ++spilled_;
    return true;
  }

  /// Brings the highest segment that is in a page back.
  ESKER_HD void fetch() {
    --hot_low_;
    const std::uint32_t page = last_page_;
    std::uint32_t* const from = page_words(page);
    std::uint32_t* const to = hot_ + start_of(hot_low_);
    const std::uint32_t size = from[Page::kUsed], below = from[Page::kBelow];
    lanes_.sync();  // lanes may still look at a level that was given up, and stood in the same place
    lanes_.for_many(size, [&](std::uint32_t i) { to[i] = from[Page::kLevels + i]; });
    lanes_.leader([&] {
      used(hot_low_) = size;
      last(hot_low_) = from[Page::kLast];
      if (below != kNone) page_words(below)[Page::kAbove] = kNone;
    });
    last_page_ = below;
    if (below == kNone) first_page_ = kNone;
    lanes_.leader([&] {
      if (spare_pages_ < kMostSparePages) {
        hot_[S::kSparePagesAt + spare_pages_] = page;
      } else {
        run_.pages.give_back(page);
      }
    });
    if (spare_pages_ < kMostSparePages) ++spare_pages_;
  }
  ESKER_HD static std::uint64_t pack(Pools::Taken taken) {
    return std::uint64_t{taken.is_low} << 32 | taken.number;
  }

  /// No level below this one has tasks.
  struct Lowest {
    std::uint32_t segment, level;
    std::uint32_t page;  // of the segment, if it is not at hand
  };

  static constexpr std::uint32_t kMostSparePages = S::kMostSparePages;

  Lanes lanes_;
  RunState& run_;
  std::uint32_t* const hot_;
  const std::uint32_t domain_;
  std::uint32_t top_ = 0, segment_ = 0;        // the highest level, and its segment
  std::uint32_t next_ = 0, next_segment_ = 0;  // the place that find_space() has found ...
  std::uint32_t previous_ = kNone;             // ... and what it is above of, in its segment
  std::uint32_t hot_low_ = 0;                  // the lowest segment at hand
  std::uint32_t first_page_ = kNone, last_page_ = kNone;
  std::uint32_t spare_pages_ = 0;
  Lowest lowest_{};
  bool is_low_ = false;
  std::uint64_t spilled_ = 0;
};

}  // namespace esker::tasks::detail
