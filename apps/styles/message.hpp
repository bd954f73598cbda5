// What a lane has to say, as a value: one of the runtime's operations, not yet sent.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <esker/esker.hpp>

namespace styles {

// Each has `target`, the local address that stands for the same offset on PE `pe`, and send(), which calls
// the operation, with an election or without. A default one is nobody's: its fields are set before it is
// sent.

template <class T>
struct Put {
  T* target = nullptr;
  std::uint32_t pe = 0;
  T value{};
  template <class Item, class... Election>
  ESKER_HD void send(Item&& item, Election&&... election) const {
    esker::shmem_put(item, target, value, pe, std::forward<Election>(election)...);
  }
};

template <class T>
struct Inc {
  T* target = nullptr;
  std::uint32_t pe = 0;
  template <class Item, class... Election>
  ESKER_HD void send(Item&& item, Election&&... election) const {
    esker::shmem_inc(item, target, pe, std::forward<Election>(election)...);
  }
};

template <class T>
struct Add {
  T* target = nullptr;
  std::uint32_t pe = 0;
  T value{};
  template <class Item, class... Election>
  ESKER_HD void send(Item&& item, Election&&... election) const {
    esker::shmem_add(item, target, value, pe, std::forward<Election>(election)...);
  }
};

template <class Target, class Arguments>
struct Call {
  Target* target = nullptr;
  std::uint32_t pe = 0;
  esker::Handler<Target, Arguments> handler{};
  Arguments arguments{};
  template <class Item, class... Election>
  ESKER_HD void send(Item&& item, Election&&... election) const {
    esker::shmem_am(item, handler, target, arguments, pe, std::forward<Election>(election)...);
  }
};

/// Of the handler that a message calls; 0 for the operations, which are the same in every message of a type.
template <class Message>
ESKER_HD std::uint16_t handler_of(const Message& message) {
  if constexpr (requires { message.handler; }) return message.handler.index;
  return 0;
}
template <class Message>
ESKER_HD void set_handler(Message& message, std::uint16_t index) {
  if constexpr (requires { message.handler; }) message.handler.index = index;
}

/// What a kernel's lanes send, one message after the other: the part of an application that all styles share.
///
/// Contract. Trivially copyable; kernels take it by value. start(id) is the state of lane `id`; next() makes
/// the lane's next message, or returns false, and then it is not asked again. Messages of one superstep are
/// of one type, and of one handler.
template <class S>
concept Source = std::is_trivially_copyable_v<S> && std::is_trivially_copyable_v<typename S::Message> &&
    std::is_trivially_copyable_v<typename S::State> &&
    requires(const S& source, typename S::State& state, typename S::Message& message, std::uint64_t id) {
  { source.start(id) } -> std::same_as<typename S::State>;
  { source.next(state, message) } -> std::same_as<bool>;
};

}  // namespace styles
