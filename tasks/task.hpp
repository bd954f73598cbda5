// What a task type says about itself, and the set of types that one run needs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>

namespace esker::tasks {

/// Task types, for a task's `using Spawns`.
template <class... Tasks>
struct Types {};

namespace detail {

// --- What one type says, or what holds where it says nothing.

template <class T>
consteval auto result_of() {
  if constexpr (requires { typename T::Result; }) {
    return std::type_identity<typename T::Result>{};
  } else {
    return std::type_identity<long>{};
  }
}
template <class T>
using ResultOf = typename decltype(result_of<T>())::type;

template <class T>
consteval auto spawns_of() {
  if constexpr (requires { typename T::Spawns; }) {
    return std::type_identity<typename T::Spawns>{};
  } else {
    return std::type_identity<Types<T>>{};
  }
}
template <class T>
using SpawnsOf = typename decltype(spawns_of<T>())::type;

/// A task that is to run on another PE, until a courier has it (Context::spawn_at()).
template <class T>
struct Placed {
  using Result = ResultOf<T>;
  using Spawns = Types<T>;
  static constexpr int kMaxSpawns = 0;
  static constexpr std::size_t kKeepBytes = 0;
  static constexpr std::uint32_t kTaskAt = alignof(T) <= 4 ? 1 : alignof(T) / 4;  // in words
  std::uint32_t pe;
  T task;
};
template <class T>
inline constexpr bool kIsPlaced = false;
template <class T>
inline constexpr bool kIsPlaced<Placed<T>> = true;

template <class... Ts>
consteval Types<Placed<Ts>...> placed(Types<Ts...>) {
  return {};
}
/// What a type spawns on other PEs, as Placed.
template <class T>
consteval auto placed_of() {
  if constexpr (requires { typename T::SpawnsAt; }) {
    return placed(typename T::SpawnsAt{});
  } else {
    return Types<>{};
  }
}

template <class T>
inline constexpr std::size_t kKeepBytesOf = [] {
  if constexpr (requires { T::kKeepBytes; }) return std::size_t{T::kKeepBytes};
  return sizeof(T);
}();

/// Whether all lanes of a domain run a task of this type together.
template <class T>
inline constexpr bool kIsWholeWave = [] {
  if constexpr (requires { T::kWholeWave; }) return bool{T::kWholeWave};
  return false;
}();
/// Scratchpad of a task that a whole wave runs.
template <class T>
inline constexpr std::size_t kScratchBytesOf = [] {
  if constexpr (requires { T::kScratchBytes; }) return std::size_t{T::kScratchBytes};
  return std::size_t{0};
}();

/// Whether a task of a whole wave keeps more at hand than a lane's usual registers: waves have more, and are
/// fewer.
template <class T>
inline constexpr bool kManyRegistersOf = [] {
  if constexpr (requires { T::kManyRegisters; }) return bool{T::kManyRegisters};
  return false;
}();

/// Bytes of a value between tasks; none of void.
template <class T>
inline constexpr std::size_t kSizeOf = [] {
  if constexpr (std::is_void_v<T>)
    return std::size_t{0};
  else
    return sizeof(T);
}();

inline constexpr std::size_t kMostResultBytes = 64;
// So that a level's words are counted in 32 bits. A batch of tasks, or of a graph's elements, is on a host
// thread's stack.
inline constexpr std::uint64_t kMostMaxSpawns = 1 << 16;
inline constexpr std::size_t kMostTaskBytes = 1 << 16;

template <class T>
struct Checked {
  static_assert(std::is_trivially_copyable_v<T>, "a task is copied byte by byte: it is trivially copyable");
  static_assert(
      requires { T::kMaxSpawns; },
      "a task says `static constexpr int kMaxSpawns`: the most that one call spawns");
  static_assert(static_cast<std::uint64_t>(T::kMaxSpawns) <= kMostMaxSpawns,
                "a task's kMaxSpawns is 0 to 65536: more children are spawned by children");
  static_assert(sizeof(T) <= kMostTaskBytes, "a task has at most 64 KiB");
  static_assert(kSizeOf<ResultOf<T>> <= kMostResultBytes, "a task's Result has at most 64 bytes");
  static_assert(
      std::is_void_v<ResultOf<T>> ||
          std::is_trivially_copyable_v<std::conditional_t<std::is_void_v<ResultOf<T>>, int, ResultOf<T>>>,
      "a task's Result is trivially copyable");
  static_assert(kIsWholeWave<T> || kScratchBytesOf<T> == 0,
                "kScratchBytes is of tasks that say `static constexpr bool kWholeWave = true`");
  static constexpr std::uint32_t kMaxSpawns = T::kMaxSpawns;
};

// --- Lists of types.

template <class T, class... Ts>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Ts> || ...);
template <class T, class List>
inline constexpr bool kIsOneOfTypes = false;
template <class T, class... Ts>
inline constexpr bool kIsOneOfTypes<T, Types<Ts...>> = kIsOneOf<T, Ts...>;

/// All types that are reached from Todo by Spawns and SpawnsAt, each once.
template <class Done, class Todo>
struct Closure;
template <class... Done>
struct Closure<Types<Done...>, Types<>> {
  using Type = Types<Done...>;
};
template <class A, class B>
struct Concat;
template <class... As, class... Bs>
struct Concat<Types<As...>, Types<Bs...>> {
  using Type = Types<As..., Bs...>;
};
template <class... Done, class T, class... Todo>
struct Closure<Types<Done...>, Types<T, Todo...>> {
  template <bool kKnown, class>
  struct Next {
    using Type = typename Closure<Types<Done...>, Types<Todo...>>::Type;
  };
  template <class Dummy>
  struct Next<false, Dummy> {
    using Reached = typename Concat<SpawnsOf<T>, decltype(placed_of<T>())>::Type;
    using Type = typename Closure<Types<Done..., T>, typename Concat<Types<Todo...>, Reached>::Type>::Type;
  };
  using Type = typename Next<kIsOneOf<T, Done...>, void>::Type;
};

constexpr std::size_t larger(std::size_t a, std::size_t b) { return a < b ? b : a; }
template <class... Numbers>
constexpr std::size_t largest(Numbers... numbers) {
  std::size_t most = 0;
  ((most = larger(most, numbers)), ...);
  return most;
}
constexpr std::uint32_t words(std::size_t bytes) { return static_cast<std::uint32_t>((bytes + 3) / 4); }

template <class List>
struct SetOf;
/// What a run knows of its types: those that its first task reaches.
template <class... Ts>
struct SetOf<Types<Ts...>> {
  static constexpr std::uint32_t kTypes = sizeof...(Ts);
  /// The number of a type: that of its channel.
  template <class T>
  static constexpr std::uint32_t kIndex = [] {
    std::uint32_t index = 0;
    bool found = false;
    ((found = found || std::is_same_v<T, Ts>, index += found ? 0 : 1), ...);
    return index;
  }();
  static constexpr bool kPlaces = (kIsPlaced<Ts> || ...);
  static constexpr std::uint32_t kMostSpawns =
      static_cast<std::uint32_t>(largest(std::size_t{Checked<Ts>::kMaxSpawns}...));
  ESKER_HD static constexpr std::uint32_t payload_words(std::uint32_t type) {
    std::uint32_t index = 0, found = 0;
    ((found += index++ == type ? words(sizeof(Ts)) : 0), ...);
    return found;
  }
  ESKER_HD static constexpr bool is_placed(std::uint32_t type) {
    std::uint32_t index = 0;
    return ((index++ == type && kIsPlaced<Ts>) || ...);
  }
  static constexpr std::uint32_t kMostPayloadWords = words(largest(sizeof(Ts)...));
  static constexpr std::uint32_t kResultWords = words(largest(kSizeOf<ResultOf<Ts>>...));
  static constexpr std::uint32_t kKeepWords = words(largest(kKeepBytesOf<Ts>...));
  static constexpr bool kHasWholeWave = (kIsWholeWave<Ts> || ...);
  static constexpr bool kIsAllWholeWave = (kIsWholeWave<Ts> && ...);
  ESKER_HD static constexpr bool is_whole_wave(std::uint32_t type) {
    std::uint32_t index = 0;
    bool found = false;
    ((found = found || (index++ == type && kIsWholeWave<Ts>)), ...);
    return found;
  }
  static constexpr bool kManyRegisters = (kManyRegistersOf<Ts> || ...);
  static constexpr std::uint32_t kScratchWords = words(largest(kScratchBytesOf<Ts>...));
  /// Calls function(type_identity<T>) for the type with this number.
  template <class Function>
  ESKER_HD static void visit(std::uint32_t type, Function&& function) {
    std::uint32_t index = 0;
    ((index++ == type ? (function(std::type_identity<Ts>{}), 0) : 0), ...);
  }
};

template <class Root>
using SetFrom = SetOf<typename Closure<Types<>, Types<Root>>::Type>;

}  // namespace detail
}  // namespace esker::tasks
