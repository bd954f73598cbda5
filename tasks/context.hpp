// What a task's function is given: it gives its result, spawns, or fails.
#pragma once

#include <cstdint>
#include <tuple>
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
  std::uint32_t* hot;  // what the domain has at hand
  RunState* run;
  std::uint32_t
      level;  // the word where the level starts that has the batch's frames, and that it spawns into
  std::uint32_t frames;  // that the level has
};

/// How a frame goes on. True: it waits again.
template <class Scheduler>
using Resume = bool (*)(Place<Scheduler> place, std::uint32_t frame);

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

  template <bool kIsRead, std::size_t... Is>
  ESKER_HD void store(std::index_sequence<Is...>) {
    is_stored_ = true;
    context_.template store<kIsRead>(static_cast<const Numbered<Is, Children>&>(children_).value...);
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
    if (speaks()) put(static_cast<Result>(value));
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
  /// Somebody has ended the run, or wants to: long tasks may look, and return.
  ESKER_HD bool stop_requested() const {
    const bool has_ended = place_.run->has_ended_or_should();  // all domains may be in long tasks
    if constexpr (kIsWhole) return Lanes::wave().broadcast(has_ended, 0);
    return has_ended;
  }

  /// Adds to the run's sum (Report::sum). Cheaper than an atomic in memory: a domain keeps its part at hand.
  ESKER_HD void add(std::uint64_t value) {
    if (speaks()) Scheduler::sums(place_.hot)[Lanes::sum_of(frame_)] += value;
  }

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

  // --- For tasks that a whole wave runs (kWholeWave). All its lanes call the function, and whatever is
  // above, converged and with the same values: that is done once.

  /// Lanes of a wave; 1 on the CPU.
  static constexpr std::uint32_t kLanes = Lanes::kLanes;
  /// What the lanes do together: a LaneGroup.
  ESKER_HD auto wave() const {
    static_assert(kIsWhole, "wave() is of tasks that say `static constexpr bool kWholeWave = true`");
    return Lanes::wave();
  }
  /// This lane's number, below kLanes.
  ESKER_HD std::uint32_t lane() const { return wave().index(); }
  /// What lanes have read and written happens before what they read and write next.
  ESKER_HD void sync() const { wave().sync(); }
  /// The numbers below n, each by one lane.
  template <class Function>
  ESKER_HD void for_each(std::uint32_t n, Function&& function) const {
    for (std::uint32_t i = lane(); i < n; i += kLanes) function(i);
  }
  /// The wave's scratchpad, of the task's kScratchBytes, for the time of this call: 16-byte aligned, with any
  /// content.
  template <class T>
  ESKER_HD T& scratch() const {
    static_assert(kIsWhole && sizeof(T) <= kScratchBytesOf<Task> && alignof(T) <= 16 &&
                      std::is_trivially_destructible_v<T>,
                  "scratch() is of tasks of a whole wave: say `static constexpr std::size_t kScratchBytes`");
    return *Lanes::template in_scratch<T>(place_.hot + Scheduler::kScratchAt);
  }

  // --- For the scheduler, and Spawned.

  /// A continuation reads the results of children from number 0 on; other children have the last numbers.
  template <bool kIsRead, class... Children>
  ESKER_HD void store(const Children&... children) {
    spawned_ += sizeof...(Children);
    if (spawned_ > Checked<Task>::kMaxSpawns) {
      report(Outcome::kMisuse, 1, spawned_, Checked<Task>::kMaxSpawns);
      return;
    }
    if constexpr (!kIsRead) unread_ += sizeof...(Children);
    const std::uint32_t first = kIsRead ? 0 : Checked<Task>::kMaxSpawns - unread_;
    if constexpr (kIsWhole) {
      std::uint32_t child = first;
      if (speaks()) (store_one(children, count_of<Children>()++, child++), ...);
      return;
    }
    if constexpr (sizeof...(Children) > 0) {
      using First = std::tuple_element_t<0, std::tuple<Children...>>;
      std::uint32_t child = 0;
      if constexpr ((std::is_same_v<Children, First> && ...)) {
        const Places places = reserve<First>(sizeof...(Children));
        ((store_one(children, places.first + child * places.stride, first + child), ++child), ...);
      } else {
        ((store_one(children, reserve<Children>(1).first, first + child), ++child), ...);
      }
    }
  }

  template <class Next, class... Children>
  ESKER_HD void keep(const Next& next) {
    static_assert(Scheduler::kJoins,
                  "then(): tasks whose Results are void say `static constexpr bool kJoins = true`");
    static_assert(std::is_trivially_copyable_v<Next>,
                  "then() keeps its function byte by byte: it captures by value");
    static_assert(std::is_empty_v<Next> || sizeof(Next) <= kKeepBytesOf<Task>,
                  "then() keeps more than the task's size: say `static constexpr std::size_t kKeepBytes`");
    waits_ = true;
    ++answers_;
    if (!speaks()) return;
    const Resume<Scheduler> resume = &Context::template resume_frame<Next, Children...>;
    store_columns(frame(Layout::kResume), place_.frames, resume);
    store_columns(frame(Layout::kParent), place_.frames, ref_);
    if constexpr (!std::is_empty_v<Next>) store_columns(frame(Layout::kKeep), place_.frames, next);
  }

  /// After the function has returned. True: it waits for children.
  ESKER_HD bool finish() {
    if constexpr (!std::is_void_v<Result>) {
      if (answers_ != 1) report(Outcome::kMisuse, 2, answers_, 0);
    } else if constexpr (Scheduler::kJoins) {
      if (answers_ > 1) report(Outcome::kMisuse, 2, answers_, 0);  // the last continuation alone is kept
    }
    return waits_;
  }

 private:
  static constexpr bool kIsWhole = kIsWholeWave<Task>;
  /// One lane does for all what a task of the whole wave does.
  ESKER_HD static bool speaks() {
    if constexpr (kIsWhole) return Lanes::wave().index() == 0;
    return true;
  }

  template <class Child>
  static constexpr bool kIsSpawned = kIsOneOfTypes<Child, SpawnsOf<Task>>;

  /// Word w of this task's frame.
  ESKER_HD std::uint32_t* frame(std::uint32_t w) const {
    return place_.hot + place_.level + Layout::frame_column(w, place_.frames) + frame_;
  }

  template <class Child>
  ESKER_ALWAYS_INLINE ESKER_HD Places reserve(std::uint32_t number) {
    return Lanes::reserve(count_of<Child>(), number);
  }
  /// Tasks of that type in the level.
  template <class Child>
  ESKER_HD std::uint32_t& count_of() const {
    return place_.hot[place_.level + Layout::kCount + Set::template kIndex<Child>];
  }
  template <class Child>
  ESKER_HD void store_one(const Child& child, std::uint32_t at, std::uint32_t number) {
    constexpr std::uint32_t kType = Set::template kIndex<Child>;
    const std::uint32_t capacity = Layout::capacity(place_.frames);
    std::uint32_t* to = place_.hot + place_.level + Layout::tasks_at(kType, place_.frames) + at;
    if constexpr (Scheduler::kJoins) {
      const std::uint32_t result = place_.level + Layout::result_column(number, place_.frames) + frame_;
      store_columns(to, capacity, Ref::to(result, place_.frames));
      to += capacity;
    }
    store_columns(to, capacity, child);
  }

  template <class R>
  ESKER_HD void put(const R& result) {
    store_columns(place_.hot + ref_.word(), ref_.stride(), result);
  }

  ESKER_HD void report(Outcome how, std::int32_t code, std::uint64_t a, std::uint64_t b) {
    if (speaks()) place_.run->end(how, Set::template kIndex<Task>, code, a, b);
  }

  /// Calls next(context, results...), without those of children that give none.
  template <class Next, class... Children>
  ESKER_HD static bool resume_frame(Place<Scheduler> place, std::uint32_t frame) {
    place.hot = Lanes::at_hand(place.hot);
    const std::uint32_t* const first = place.hot + place.level + Layout::kHeaderWords + frame;
    Context context(place, frame, load_columns<Ref>(first + Layout::kParent * place.frames, place.frames));
    const std::uint32_t* const results = first + Layout::kResults * place.frames;
    if constexpr (std::is_empty_v<Next>) {
      call_next<0>(Types<Children...>{}, Next{}, context, results);
    } else {
      const Next next = load_columns<Next>(first + Layout::kKeep * place.frames, place.frames);
      call_next<0>(Types<Children...>{}, next, context, results);
    }
    return context.finish();
  }
  template <std::uint32_t kNumber, class First, class... Rest, class Next, class... Results>
  ESKER_HD static void call_next(Types<First, Rest...>, const Next& next, Context& context,
                                 const std::uint32_t* words, const Results&... results) {
    if constexpr (std::is_void_v<ResultOf<First>>) {
      call_next<kNumber + 1>(Types<Rest...>{}, next, context, words, results...);
    } else {
      const std::uint32_t frames = context.place_.frames;
      call_next<kNumber + 1>(
          Types<Rest...>{}, next, context, words, results...,
          load_columns<ResultOf<First>>(words + kNumber * Set::kResultWords * frames, frames));
    }
  }
  template <std::uint32_t kNumber, class Next, class... Results>
  ESKER_HD static void call_next(Types<>, const Next& next, Context& context, const std::uint32_t*,
                                 const Results&... results) {
    if constexpr (kIsWhole) Lanes::wave().sync();  // one lane may write into the frame now: all have read it
    next(context, results...);
  }

  const Place<Scheduler> place_;
  const std::uint32_t frame_;  // also the task's number in its batch
  const Ref ref_;
  std::uint32_t spawned_ = 0, unread_ = 0, answers_ = 0;
  bool waits_ = false;
};

}  // namespace esker::tasks::detail
