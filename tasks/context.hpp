// What a task's function is given: it gives its result, spawns, or fails.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <esker/device/platform.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level.hpp>
#include <esker/tasks/state.hpp>
#include <esker/tasks/task.hpp>

namespace esker::tasks::detail {

/// Where a batch runs. By value: what a continuation gets stays in registers.
template <class Scheduler>
struct Place {
  std::uint32_t* hot;  // the domain's levels that are at hand, by their number modulo kHotLevels
  RunState* run;
  std::uint32_t* results;  // of the bundle that the stack was made of: a column a word
  std::uint32_t level;     // that the tasks were in
  std::uint32_t children;  // the level that they spawn into

  ESKER_HD std::uint32_t* at(std::uint32_t number) const {
    return hot + (number % Scheduler::kHotLevels) * Scheduler::Layout::kWords;
  }
};

/// How a frame goes on.
template <class Scheduler>
using Resume = void (*)(Place<Scheduler> place, std::uint32_t frame);

/// A lane's tasks that call continuations.
template <class Scheduler, class Task>
class Context;

/// Children that a task has spawned: they run whether or not then() follows.
template <class Scheduler, class Task, class... Children>
class Spawned {
 public:
  ESKER_HD Spawned(Context<Scheduler, Task>& context, const Children&... children)
      : context_{context}, children_{children...} {}
  ESKER_HD ~Spawned() {
    if (!is_stored_) store<false>(std::index_sequence_for<Children...>{});
  }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;

  /// When all that this task has spawned is done, `next(task, results...)` runs, with the results of these
  /// children in their order, but for those that give none. It gives the task's result or spawns again. It is
  /// kept until then: at most kKeepBytes, which a task type may state and is else the task's own size.
  template <class Next>
  ESKER_HD void then(const Next& next) && {
    store<true>(std::index_sequence_for<Children...>{});
    context_.template keep<Next, Children...>(next);
  }

 private:
  template <class T>
  struct Held {
    T value;
  };
  template <std::size_t I, class T>
  struct Numbered : Held<T> {};
  template <class Indices>
  struct Tuple;
  template <std::size_t... Is>
  struct Tuple<std::index_sequence<Is...>> : Numbered<Is, Children>... {
    ESKER_HD explicit Tuple(const Children&... children) : Numbered<Is, Children>{{children}}... {}
  };

  template <bool kThen, std::size_t... Is>
  ESKER_HD void store(std::index_sequence<Is...>) {
    is_stored_ = true;
    context_.template store<kThen>(static_cast<const Numbered<Is, Children>&>(children_).value...);
  }

  Context<Scheduler, Task>& context_;
  Tuple<std::index_sequence_for<Children...>> children_;
  bool is_stored_ = false;
};

/// Contract One task's, for the time of one call of its function or of a continuation. `Task` is whose result
///          it gives.
template <class Scheduler, class Task>
class Context {
  using Set = typename Scheduler::Set;
  using Layout = typename Scheduler::Layout;
  using Lanes = DomainLanes;
  using Result = ResultOf<Task>;

 public:
  ESKER_HD Context(const Place<Scheduler>& place, std::uint32_t frame, Ref ref)
      : place_{place}, frame_{frame}, ref_{ref} {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The task's result. Once, unless it spawns and goes on by then().
  template <class Value>
  ESKER_HD void give(const Value& value) {
    static_assert(!std::is_void_v<Result>, "this task's Result is void: it gives nothing");
    static_assert(std::is_convertible_v<Value, Result>, "give() takes the task's Result");
    put(static_cast<Result>(value));
    ++answers_;
  }

  /// Runs the children, in any order and at any time, and lets a continuation wait for them: then(). At most
  /// kMaxSpawns a call, of types that the task names in Spawns (itself, if it names none).
  template <class... Children>
  ESKER_HD Spawned<Scheduler, Task, Children...> spawn(const Children&... children) {
    static_assert((kIsSpawned<Children> && ...),
                  "spawn() of a type that the task does not name: add it to its `using Spawns = Types<...>`");
    static_assert(sizeof...(Children) <= Checked<Task>::kMaxSpawns,
                  "more children than the task's kMaxSpawns");
    return Spawned<Scheduler, Task, Children...>(*this, children...);
  }

  /// Ends the run: run() throws an Error with this code and these values. The task should return.
  ESKER_HD void fail(std::int32_t code, std::uint64_t a = 0, std::uint64_t b = 0) {
    report(Outcome::kFailed, code, a, b);
  }
  /// Somebody has ended the run: long tasks may look, and return.
  ESKER_HD bool stop_requested() const { return place_.run->has_ended(); }

  /// Runs the child on that PE, whoever has nothing to do; else as spawn(). Of types that the task names in
  /// SpawnsAt.
  template <class Child>
  ESKER_HD Spawned<Scheduler, Task, Placed<Child>> spawn_at(std::uint32_t pe, const Child& child) {
    static_assert(Scheduler::kRemote, "spawn_at(): tasks run on other PEs in a DistributedForkJoin alone");
    static_assert(kIsOneOfTypes<Placed<Child>, decltype(placed_of<Task>())>,
                  "spawn_at() of a type that the task does not name in `using SpawnsAt = Types<...>`");
    if (pe >= n_pes()) report(Outcome::kMisuse, 3, pe, n_pes());
    return Spawned<Scheduler, Task, Placed<Child>>(*this, Placed<Child>{pe, child});
  }
  /// This PE, and how many there are: 0 and 1 where the run is not over PEs.
  ESKER_HD std::uint32_t pe() const { return place_.run->pe; }
  ESKER_HD std::uint32_t n_pes() const { return place_.run->n_pes; }

  /// What Options::local points to.
  template <class T>
  ESKER_HD T& local() const {
    return *static_cast<T*>(place_.run->local);
  }

  /// Adds to the run's sum (Report::sum). Cheaper than an atomic in memory: a domain keeps its part at hand.
  ESKER_HD void add(std::uint64_t value) { Lanes::add(Scheduler::sum_of(place_.hot), value); }

  // --- For the scheduler, and Spawned.

  /// Those whose results then() wants are the first by number; others count from the last down.
  template <bool kThen, class... Children>
  ESKER_HD void store(const Children&... children) {
    spawned_ += sizeof...(Children);
    if (spawned_ > Checked<Task>::kMaxSpawns) {
      report(Outcome::kMisuse, 1, spawned_, Checked<Task>::kMaxSpawns);
      return;
    }
    std::uint32_t child = kThen ? 0 : Checked<Task>::kMaxSpawns - spawned_;
    (store_one(children, child++), ...);
  }

  template <class Next, class... Children>
  ESKER_HD void keep(const Next& next) {
    static_assert(Scheduler::kJoins,
                  "then(): tasks whose Results are void say `static constexpr bool kJoins = true`");
    static_assert(std::is_trivially_copyable_v<Next>,
                  "then() keeps its function byte by byte: it captures by value");
    static_assert(std::is_empty_v<Next> || sizeof(Next) <= kKeepBytesOf<Task>,
                  "then() keeps more than the task's size: say `static constexpr std::size_t kKeepBytes`");
    std::uint32_t* const level = place_.at(place_.level);
    const Resume<Scheduler> resume = &Context::template resume_frame<Next, Children...>;
    store_columns(&level[Layout::frame_column(Layout::kResume) + frame_], Scheduler::kBatch, resume);
    store_columns(&level[Layout::frame_column(Layout::kParent) + frame_], Scheduler::kBatch, ref_);
    if constexpr (!std::is_empty_v<Next>) {
      store_columns(&level[Layout::frame_column(Layout::kKeep) + frame_], Scheduler::kBatch, next);
    }
    level[Layout::kHasFrames] = 1;  // the same from every lane
    ++answers_;
  }

  /// After the function has returned.
  ESKER_HD void check() {
    if constexpr (!std::is_void_v<Result>) {
      if (answers_ != 1) report(Outcome::kMisuse, 2, answers_, 0);
    }
  }

 private:
  template <class Child>
  static constexpr bool kIsSpawned = kIsOneOfTypes<Child, SpawnsOf<Task>>;

  template <class Child>
  ESKER_ALWAYS_INLINE ESKER_HD void store_one(const Child& child, std::uint32_t number) {
    constexpr std::uint32_t kType = Set::template kIndex<Child>;
    std::uint32_t* const level = place_.at(place_.children);
    const std::uint32_t i = Lanes::reserve(level[Layout::kCount + kType]);
    std::uint32_t* const tasks = level + Layout::tasks_at(kType) + i;
    store_columns(tasks, Layout::kCapacity,
                  Ref{static_cast<std::uint16_t>(frame_), static_cast<std::uint16_t>(number)});
    store_columns(tasks + Layout::kCapacity, Layout::kCapacity, child);
  }

  template <class R>
  ESKER_HD void put(const R& result) {
    if (place_.level == 0) {
      store_columns(place_.results + ref_.frame, Scheduler::kBatch, result);
    } else {
      store_columns(&place_.at(place_.level - 1)[Layout::result_column(ref_.child, 0) + ref_.frame],
                    Scheduler::kBatch, result);
    }
  }

  ESKER_HD void report(Outcome how, std::int32_t code, std::uint64_t a, std::uint64_t b) {
    RunState& run = *place_.run;
    if (!run.end(how)) return;
    run.error_code = code;
    run.error_type = Set::template kIndex<Task>;
    run.error_values[0] = a;
    run.error_values[1] = b;
  }

  /// Calls next(context, results...), without those of children that give none.
  template <class Next, class... Children>
  ESKER_HD static void resume_frame(Place<Scheduler> place, std::uint32_t frame) {
    std::uint32_t* const level = place.at(place.level);
    const Ref ref =
        load_columns<Ref>(&level[Layout::frame_column(Layout::kParent) + frame], Scheduler::kBatch);
    Context context(place, frame, ref);
    if constexpr (std::is_empty_v<Next>) {
      call_next<0>(Types<Children...>{}, Next{}, context, level + frame);
    } else {
      const Next next =
          load_columns<Next>(&level[Layout::frame_column(Layout::kKeep) + frame], Scheduler::kBatch);
      call_next<0>(Types<Children...>{}, next, context, level + frame);
    }
    context.check();
  }
  template <std::uint32_t kNumber, class First, class... Rest, class Next, class... Results>
  ESKER_HD static void call_next(Types<First, Rest...>, const Next& next, Context& context,
                                 const std::uint32_t* frame, const Results&... results) {
    if constexpr (std::is_void_v<ResultOf<First>>) {
      call_next<kNumber + 1>(Types<Rest...>{}, next, context, frame, results...);
    } else {
      call_next<kNumber + 1>(
          Types<Rest...>{}, next, context, frame, results...,
          load_columns<ResultOf<First>>(frame + Layout::result_column(kNumber, 0), Scheduler::kBatch));
    }
  }
  template <std::uint32_t kNumber, class Next, class... Results>
  ESKER_HD static void call_next(Types<>, const Next& next, Context& context, const std::uint32_t*,
                                 const Results&... results) {
    next(context, results...);
  }

  const Place<Scheduler> place_;
  const std::uint32_t frame_;  // also the task's number in its batch
  const Ref ref_;
  std::uint32_t spawned_ = 0, answers_ = 0;
};

}  // namespace esker::tasks::detail
