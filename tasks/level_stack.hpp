// The levels of a domain's stack: the highest at hand, in scratchpad on a GPU, the rest in pages of memory.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/tasks/context.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// State    Levels 0 to highest(). At hand are those from `hot_low_` to highest() + 1, kHotLevels at most. A
///          level below is a record in the pages, which hold the levels in their order.
/// Contract All lanes of the domain call, converged. What a member holds is the same in all of them. While
///          tasks of highest() run, the level below it, which has their frames, and the level above it are at
///          hand.
template <class S>
class LevelStack {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Layout = typename S::Layout;
  using Page = typename S::Page;
  using Join = typename S::Join;
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  ESKER_HD LevelStack(const Lanes& lanes, RunState& run, std::uint32_t* hot)
      : lanes_{lanes}, run_{run}, hot_{hot} {}

  /// Level 0 alone, empty.
  ESKER_HD void begin() {
    level_ = hot_low_ = 0;
    first_page_ = last_page_ = kNone;
    clear(0);
    find_lowest_from_the_start();
  }

  ESKER_HD std::uint32_t highest() const { return level_; }
  /// The words of a level that is at hand.
  ESKER_HD std::uint32_t* at(std::uint32_t level) const {
    return hot_ + (level % S::kHotLevels) * Layout::kWords;
  }
  /// The type with most tasks in a level with this header; kTypes: it has none.
  ESKER_HD static std::uint32_t type_with_tasks(const std::uint32_t* header) {
    std::uint32_t best = Set::kTypes, most = 0;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      if (header[Layout::kCount + t] > most) {
        most = header[Layout::kCount + t];
        best = t;
      }
    }
    return best;
  }

  /// Makes the level above the highest, empty. False: there is no memory.
  ESKER_HD bool make_space() {
    if (level_ + 1 - hot_low_ == S::kHotLevels && !put_away()) return false;
    clear(level_ + 1);
    return true;
  }
  ESKER_HD void up() { ++level_; }
  /// The highest level, which is empty, is given up.
  ESKER_HD void down() {
    --level_;
    bring_back();
  }

  /// Moves the lowest level that is at hand to the pages.
  ESKER_HD bool put_away() {
    const std::uint32_t* const level = at(hot_low_);
    constexpr std::uint32_t kHead = Page::record_header(Set::kTypes);
    std::uint32_t size = kHead + Layout::kHeaderWords;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) size += level[Layout::kCount + t] * Layout::columns_of(t);
    const bool has_frames = S::kJoins && level[Layout::kHasFrames] != 0;
    if (has_frames) size += Layout::kFrameWords * kBatch;
    std::uint32_t used = last_page_ == kNone ? Page::kWords : page_words(last_page_)[Page::kUsed];
    std::uint32_t previous = last_page_ == kNone ? 0 : last_record_;
    if (used + size > Page::kWords) {
      const std::uint32_t page = lanes_.of_leader([&] { return run_.pages.try_take(); });
      is_low_ = lanes_.of_leader([&] { return run_.pages.was_low() ? 1u : 0u; }) != 0;
      if (page == kNone) {
        lanes_.leader([&] { (void)run_.end(Outcome::kOutOfMemory); });
        return false;
      }
      lanes_.leader([&] {
        std::uint32_t* const words = page_words(page);
        words[Page::kBelow] = last_page_;
        words[Page::kAbove] = kNone;
        if (last_page_ != kNone) page_words(last_page_)[Page::kAbove] = page;
      });
      if (first_page_ == kNone) first_page_ = page;
      last_page_ = page;
      used = Page::kHeaderWords;
      previous = 0;
    }
    std::uint32_t* const record = page_words(last_page_) + used;
    lanes_.leader([&] {
      record[Page::kSize] = size;
      record[Page::kPrevious] = previous;
      for (std::uint32_t t = 0; t < Set::kTypes; ++t) record[Page::kStored + t] = level[Layout::kCount + t];
      for (std::uint32_t w = 0; w < Layout::kHeaderWords; ++w) record[kHead + w] = level[w];
      page_words(last_page_)[Page::kUsed] = used + size;
    });
    std::uint32_t* to = record + kHead + Layout::kHeaderWords;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = level[Layout::kCount + t];
      for (std::uint32_t c = 0; c < Layout::columns_of(t); ++c, to += count) {
        const std::uint32_t* const from = level + Layout::tasks_at(t) + c * Layout::kCapacity;
        lanes_.for_many(count, [&](std::uint32_t i) { to[i] = from[i]; });
      }
    }
    if (has_frames) {
      const std::uint32_t* const from = level + Layout::kFramesAt;
      lanes_.for_many(Layout::kFrameWords * kBatch, [&](std::uint32_t i) { to[i] = from[i]; });
    }
    lanes_.sync();
    if (lowest_.level == hot_low_) {
      lowest_.page = last_page_;
      lowest_.record = used;
    }
    last_record_ = used;
    ++hot_low_;
    ++spilled_;
    return true;
  }

  /// Moves all levels to the pages, and says in a join record where they are. False: there is no memory.
  ESKER_HD bool put_all_away(std::uint32_t* join) {
    while (hot_low_ <= level_) {
      if (!put_away()) return false;
    }
    lanes_.leader([&] {
      join[Join::kLevel] = level_;
      join[Join::kFirstPage] = first_page_;
      join[Join::kLastPage] = last_page_;
    });
    return true;
  }
  /// The highest levels are at hand again after put_all_away(), of this domain or of another.
  ESKER_HD void take_back(const std::uint32_t* join) {
    level_ = join[Join::kLevel];
    first_page_ = join[Join::kFirstPage];
    last_page_ = join[Join::kLastPage];
    hot_low_ = level_ + 1;
    find_last_record();
    find_lowest_from_the_start();
    bring_back();
  }
  /// For tests: a level that could stay at hand goes to the pages.
  ESKER_HD bool has_levels_to_spare() const { return hot_low_ + 1 < level_; }

  /// Tasks that another domain may have: of one type, in one level.
  struct Spare {
    std::uint32_t type;  // kTypes: there are none
    std::uint32_t* header;
    std::uint32_t* tasks;  // their columns ...
    std::uint32_t stride;  // ... so far apart
    bool is_highest;
  };
  /// Those of the lowest level that has some: the largest subtrees.
  ESKER_HD Spare find_spare() {
    constexpr std::uint32_t kHead = Page::record_header(Set::kTypes);
    while (lowest_.level < hot_low_) {
      std::uint32_t* const words = page_words(lowest_.page);
      std::uint32_t* const record = words + lowest_.record;
      const std::uint32_t type = type_with_tasks(record + kHead);
      if (type != Set::kTypes) {
        std::uint32_t* tasks = record + kHead + Layout::kHeaderWords;
        for (std::uint32_t t = 0; t < type; ++t) tasks += record[Page::kStored + t] * Layout::columns_of(t);
        return {type, record + kHead, tasks, record[Page::kStored + type], false};
      }
      lowest_.record += record[Page::kSize];
      if (lowest_.record >= words[Page::kUsed] && words[Page::kAbove] != kNone) {
        lowest_.page = words[Page::kAbove];
        lowest_.record = Page::kHeaderWords;
      }
      ++lowest_.level;
    }
    for (std::uint32_t level = hot_low_; level <= level_; ++level) {
      const std::uint32_t type = type_with_tasks(at(level));
      if (type != Set::kTypes)
        return {type, at(level), at(level) + Layout::tasks_at(type), Layout::kCapacity, level == level_};
    }
    return {Set::kTypes, nullptr, nullptr, 0, false};
  }

  /// Pages were few when this domain last took one.
  ESKER_HD bool is_low() const { return is_low_; }
  ESKER_HD std::uint64_t spilled() const { return spilled_; }

 private:
  ESKER_HD std::uint32_t* page_words(std::uint32_t page) const {
    return run_.page_words + std::size_t{page} * Page::kWords;
  }

  /// An empty level.
  ESKER_HD void clear(std::uint32_t level) {
    std::uint32_t* const words = at(level);
    lanes_.leader([&] {
      words[Layout::kJoin] = kNone;
      words[Layout::kHasFrames] = 0;
      for (std::uint32_t t = 0; t < Set::kTypes; ++t) words[Layout::kCount + t] = 0;
    });
    if constexpr (S::kJoins) {
      std::uint32_t* const resume_words = words + Layout::frame_column(Layout::kResume);
      lanes_.for_each(kBatch,
                      [&](std::uint32_t i) { store_columns(resume_words + i, kBatch, Resume<S>{nullptr}); });
    }
  }

  /// Brings the highest level, and the one below it, back from the pages.
  ESKER_HD void bring_back() {
    while (hot_low_ > 0 && hot_low_ + 1 > level_) fetch_one();
  }
  ESKER_HD void fetch_one() {
    constexpr std::uint32_t kHead = Page::record_header(Set::kTypes);
    --hot_low_;
    std::uint32_t* const level = at(hot_low_);
    const std::uint32_t* const record = page_words(last_page_) + last_record_;
    clear(hot_low_);
    lanes_.leader([&] {
      for (std::uint32_t w = 0; w < Layout::kHeaderWords; ++w) level[w] = record[kHead + w];
    });
    const std::uint32_t* from = record + kHead + Layout::kHeaderWords;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = level[Layout::kCount + t], stored = record[Page::kStored + t];
      for (std::uint32_t c = 0; c < Layout::columns_of(t); ++c, from += stored) {
        std::uint32_t* const to = level + Layout::tasks_at(t) + c * Layout::kCapacity;
        lanes_.for_many(count, [&](std::uint32_t i) { to[i] = from[i]; });
      }
    }
    if (S::kJoins && level[Layout::kHasFrames] != 0) {
      std::uint32_t* const to = level + Layout::kFramesAt;
      lanes_.for_many(Layout::kFrameWords * kBatch, [&](std::uint32_t i) { to[i] = from[i]; });
    }
    if (lowest_.level >= hot_low_) lowest_.level = hot_low_;
    const std::uint32_t page = last_page_, at_record = last_record_, previous = record[Page::kPrevious];
    const std::uint32_t below = page_words(page)[Page::kBelow];
    lanes_.sync();
    if (previous != 0) {
      last_record_ = previous;
      lanes_.leader([&] { page_words(page)[Page::kUsed] = at_record; });
      return;
    }
    last_page_ = below;
    if (below == kNone) {
      first_page_ = kNone;
    } else {
      find_last_record();
    }
    lanes_.leader([&] {
      if (below != kNone) page_words(below)[Page::kAbove] = kNone;
      run_.pages.give_back(page);
    });
  }

  /// The lowest level that may have tasks. Where it is in the pages, its record.
  struct Lowest {
    std::uint32_t level, page, record;
  };

  ESKER_HD void find_lowest_from_the_start() { lowest_ = {0, first_page_, Page::kHeaderWords}; }
  /// The last record of the last page is found from the page's start.
  ESKER_HD void find_last_record() {
    const std::uint32_t* const words = page_words(last_page_);
    last_record_ = Page::kHeaderWords;
    while (last_record_ + words[last_record_ + Page::kSize] < words[Page::kUsed])
      last_record_ += words[last_record_ + Page::kSize];
  }

  Lanes lanes_;
  RunState& run_;
  std::uint32_t* const hot_;
  std::uint32_t level_ = 0;    // the highest
  std::uint32_t hot_low_ = 0;  // the lowest that is at hand
  std::uint32_t first_page_ = kNone, last_page_ = kNone, last_record_ = 0;
  Lowest lowest_{};
  bool is_low_ = false;
  std::uint64_t spilled_ = 0;
};

}  // namespace esker::tasks::detail
