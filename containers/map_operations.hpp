// What a map's operations send, and the handlers that carry them out where the key belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <esker/containers/bucket.hpp>
#include <esker/containers/hash.hpp>
#include <esker/containers/sending.hpp>
#include <esker/runtime.hpp>

namespace esker::containers {

/// Of an operation that needs nothing but the key.
struct NoArguments {};

/// What find() brings.
template <class Value>
struct Found {
  Value value;  // zeros where there is none
  bool exists;
};

/// A message: the key as a bucket stores it, and what the operation is given.
template <class Stored, class Arguments>
struct Keyed {
  Stored stored;
  Arguments arguments;
  ESKER_HD Stored key() const { return stored; }
};
template <class Stored>
struct Keyed<Stored, NoArguments> {
  Stored stored;
  ESKER_HD Stored key() const { return stored; }
};

/// Arguments that have the key within them travel as they are: a program can pack both tighter.
template <class Arguments, class Stored>
concept CarriesKey = requires(const Arguments& arguments) {
  { arguments.key() } -> std::same_as<Stored>;
};

namespace detail {

template <class Arguments, class Stored>
struct VisitMessage {
  using Type = Keyed<Stored, Arguments>;
};
template <class Stored, CarriesKey<Stored> Arguments>
struct VisitMessage<Arguments, Stored> {
  using Type = Arguments;
};

}  // namespace detail

namespace detail {

ESKER_PASS_BEGIN

// What a visitor takes: with the context, with the key, with both or with neither.
template <class Function, class Key, class Value, class... Arguments>
inline constexpr bool kTakesValue = std::is_invocable_v<const Function&, Value&, const Arguments&...>;
template <class Function, class Key, class Value, class... Arguments>
inline constexpr bool kTakesContext =
    std::is_invocable_v<const Function&, HandlerContext&, Value&, const Arguments&...>;
template <class Function, class Key, class Value, class... Arguments>
inline constexpr bool kTakesKey =
    std::is_invocable_v<const Function&, const Key&, Value&, const Arguments&...>;
template <class Function, class Key, class Value, class... Arguments>
inline constexpr bool kTakesBoth =
    std::is_invocable_v<const Function&, HandlerContext&, const Key&, Value&, const Arguments&...>;
template <class Function, class... Types>
inline constexpr bool kVisits = kTakesValue<Function, Types...> || kTakesContext<Function, Types...> ||
                                kTakesKey<Function, Types...> || kTakesBoth<Function, Types...>;

template <class Map, class Function, class... Arguments>
ESKER_HD void call_visitor(const Map& map, HandlerContext& context, typename Map::Slot& slot,
                           const Function& function, const Arguments&... arguments) {
  using Key = typename Map::KeyType;
  using Value = typename Map::ValueType;
  if constexpr (kTakesValue<Function, Key, Value, Arguments...>) {
    function(slot.value, arguments...);
  } else if constexpr (kTakesContext<Function, Key, Value, Arguments...>) {
    function(context, slot.value, arguments...);
  } else {
    const Key key = map.key_of(context.pe(), slot);
    if constexpr (kTakesKey<Function, Key, Value, Arguments...>) {
      function(key, slot.value, arguments...);
    } else {
      function(context, key, slot.value, arguments...);
    }
  }
}

/// The handler of visit (kInserts: of visit_or_insert).
template <class Map, class Message, class Function, bool kInserts>
struct Visit {
  Map map;
  Function function;

  ESKER_HD void operator()(HandlerContext& context, typename Map::Slot& home, const Message& message) const {
    typename Map::Slot* const slot = find_slot(home, message.key());
    if (slot == nullptr) {
      if constexpr (kInserts) map.lose(context.pe(), home, message.key());
      return;
    }
    if (!slot->exists()) {
      if constexpr (!kInserts) return;
      slot->take(message.key());
    }
    if constexpr (std::is_same_v<Message, Keyed<typename Map::Stored, NoArguments>>) {
      call_visitor(map, context, *slot, function);
    } else if constexpr (requires { message.arguments; }) {
      call_visitor(map, context, *slot, function, message.arguments);
    } else {
      call_visitor(map, context, *slot, function, message);
    }
  }
};

/// The handler of insert (kAssigns: of assign).
template <class Map, class Message, bool kAssigns>
struct Insert {
  Map map;

  ESKER_HD void operator()(HandlerContext& context, typename Map::Slot& home, const Message& message) const {
    typename Map::Slot* const slot = find_slot(home, message.key());
    if (slot == nullptr) {
      map.lose(context.pe(), home, message.key());
      return;
    }
    if (slot->exists()) {
      if constexpr (kAssigns) slot->value = message.arguments;
      return;
    }
    slot->take(message.key());
    slot->value = message.arguments;
  }
};

ESKER_PASS_END

/// Where an answer goes, on the PE that asks: an offset in the heap, and a handler or none.
struct ReplyWord {
  static constexpr unsigned kOffsetBits = 48;
  std::uint64_t word;

  ESKER_HD std::uint64_t offset() const { return word & ((std::uint64_t{1} << kOffsetBits) - 1); }
  ESKER_HD std::uint16_t handler() const { return static_cast<std::uint16_t>(word >> kOffsetBits); }
};

/// Of a continuation's arguments, what is behind the value: it travels with the question.
template <class Arguments, class Value>
inline constexpr std::size_t kRestBytes = sizeof(Arguments) - sizeof(Found<Value>);

template <class Stored, std::size_t kBytes>
struct Question {
  Stored stored;
  ReplyWord reply;
  std::byte rest[kBytes];
};
template <class Stored>
struct Question<Stored, 0> {
  Stored stored;
  ReplyWord reply;
};

ESKER_PASS_BEGIN

/// The handler of find: answers by a put.
template <class Map>
struct Find {
  ESKER_HD void operator()(HandlerContext& context, typename Map::Slot& home,
                           const Question<typename Map::Stored, 0>& question) const {
    using Value = typename Map::ValueType;
    Found<Value> found{};
    if (const typename Map::Slot* const slot = find_slot(home, question.stored);
        slot != nullptr && slot->exists()) {
      found.value = slot->value;
      found.exists = true;
    }
    std::byte* const base = esker::detail::SenderAccess::heap(context).base;
    shmem_put(context, reinterpret_cast<Found<Value>*>(base + question.reply.offset()), found,
              context.source());
  }
};

/// Answers by a handler's call.
template <class Map, class Target, class Arguments>
struct FindThen {
  using Value = typename Map::ValueType;
  static constexpr std::size_t kRest = kRestBytes<Arguments, Value>;

  ESKER_HD void operator()(HandlerContext& context, typename Map::Slot& home,
                           const Question<typename Map::Stored, kRest>& question) const {
    std::byte bytes[sizeof(Arguments)] = {};
    Found<Value> found{};
    if (const typename Map::Slot* const slot = find_slot(home, question.stored);
        slot != nullptr && slot->exists()) {
      found.value = slot->value;
      found.exists = true;
    }
    __builtin_memcpy(bytes, &found, sizeof found);
    if constexpr (kRest > 0) __builtin_memcpy(bytes + sizeof found, question.rest, kRest);
    Arguments arguments;
    __builtin_memcpy(&arguments, bytes, sizeof arguments);
    std::byte* const base = esker::detail::SenderAccess::heap(context).base;
    shmem_am(context, Handler<Target, Arguments>{question.reply.handler()},
             reinterpret_cast<Target*>(base + question.reply.offset()), arguments, context.source());
  }
};

ESKER_PASS_END

}  // namespace detail

namespace detail {

/// Where an answer is to go on the PE that asks.
template <class Context>
ESKER_HD std::uint64_t reply_address(Context&& context, const void* target, std::uint64_t bytes,
                                     std::uint32_t alignment) {
  return esker::detail::checked_address(context, "map find", target, bytes, alignment, context.pe(),
                                        esker::detail::TargetOf::kReply);
}
template <class Program>
requires kIsProgram<Program> std::uint64_t reply_address(Program&& rt, const void* target,
                                                         std::uint64_t bytes, std::uint32_t alignment) {
  return esker::detail::HostMessages::offset_of(rt, "Map::find", "the reply's target", target, bytes,
                                                alignment);
}

}  // namespace detail

/// An operation of a map that a program has registered. Trivially copyable; called with the sender (a lane, a
/// handler's context or the Runtime), the key and the arguments. It returns at once; quiet() or barrier_all()
/// says when it has been carried out.
template <class Map, class Arguments>
class MapOperation {
 public:
  using Message = typename detail::VisitMessage<Arguments, typename Map::Stored>::Type;
  using Handler = esker::Handler<typename Map::Slot, Message>;

  MapOperation() = default;
  MapOperation(const Map& map, Handler handler) : map_{map}, handler_{handler} {}

  template <class Context, class... Election>
  requires(!CarriesKey<Arguments, typename Map::Stored> && !std::is_same_v<Arguments, NoArguments>) ESKER_HD
      void
      operator()(Context&& context, const typename Map::KeyType& key,
                 const std::type_identity_t<Arguments>& arguments, Election&&... election) const {
    const auto at = map_.place(key);
    call(context, handler_, at.home, Message{at.stored, arguments}, at.pe,
         std::forward<Election>(election)...);
  }
  template <class Context>
  requires(std::is_same_v<Arguments, NoArguments>) ESKER_HD void operator()(
      Context&& context, const typename Map::KeyType& key) const {
    const auto at = map_.place(key);
    call(context, handler_, at.home, Message{at.stored}, at.pe);
  }

  /// For messages that a program makes itself: by shmem_am() to map.place(key), with arguments whose key() is
  /// what is stored of it.
  ESKER_HD Handler handler() const { return handler_; }

 private:
  Map map_;
  Handler handler_;
};

/// find() of a map, whose answers are Results: Found<Value>*, or what then() has made.
template <class Map, class Result>
class MapFind;

template <class Map, class Value>
class MapFind<Map, Found<Value>*> {
 public:
  using Message = detail::Question<typename Map::Stored, 0>;
  static_assert(Putable<Found<Value>>,
                "a value and a bool make no word of 1, 2, 4, 8 or 16 bytes: take the answer by a handler, "
                "register_find<Target, Arguments>()");

  MapFind() = default;
  MapFind(const Map& map, Handler<typename Map::Slot, Message> handler) : map_{map}, handler_{handler} {}

  /// `result` is in this PE's own heap.
  template <class Context>
  ESKER_HD void operator()(Context&& context, Found<Value>* result, const typename Map::KeyType& key) const {
    const auto at = map_.place(key);
    const std::uint64_t to = detail::reply_address(context, result, sizeof *result, sizeof *result);
    if (to == esker::detail::kNoAddress) return;
    call(context, handler_, at.home, Message{at.stored, {to & kOffsetMask}}, at.pe);
  }

 private:
  Map map_;
  Handler<typename Map::Slot, Message> handler_;
};

template <class Map, class Target, class Arguments>
class MapFind<Map, Then<Target, Arguments>> {
 public:
  using Value = typename Map::ValueType;
  static constexpr std::size_t kRest = detail::kRestBytes<Arguments, Value>;
  using Message = detail::Question<typename Map::Stored, kRest>;

  MapFind() = default;
  MapFind(const Map& map, Handler<typename Map::Slot, Message> handler) : map_{map}, handler_{handler} {}

  template <class Context>
  ESKER_HD void operator()(Context&& context, const Then<Target, Arguments>& reply,
                           const typename Map::KeyType& key) const {
    const auto at = map_.place(key);
    const std::uint64_t to = detail::reply_address(context, reply.target, sizeof(Target), alignof(Target));
    if (to == esker::detail::kNoAddress) return;
    if constexpr (kIsProgram<Context>) {
      if (reply.handler.index == 0) bad_handler("Map::find");
    } else {
      if (!esker::detail::is_registered(context, reply.handler.index, "map find")) return;
    }
    Message message{};
    message.stored = at.stored;
    message.reply.word = (to & kOffsetMask) | std::uint64_t{reply.handler.index}
                                                  << detail::ReplyWord::kOffsetBits;
    if constexpr (kRest > 0) {
      __builtin_memcpy(message.rest,
                       reinterpret_cast<const std::byte*>(&reply.arguments) + sizeof(Found<Value>), kRest);
    }
    call(context, handler_, at.home, message, at.pe);
  }

 private:
  Map map_;
  Handler<typename Map::Slot, Message> handler_;
};

}  // namespace esker::containers
