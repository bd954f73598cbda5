// The way of the library into whoever sends, past what users see of it.
#pragma once

#include <cstdint>
#include <utility>

#include <esker/aggregator/command.hpp>
#include <esker/device/platform.hpp>

namespace esker::detail {

/// A friend of each sender (WorkItem, GroupItem, HandlerContext), which has these as private members.
struct SenderAccess {
  /// The heap of this PE (HeapView).
  template <class Context>
  ESKER_HD static auto heap(const Context& context) -> decltype(context.heap()) {
    return context.heap();
  }
  /// Who it is, for messages (Caller).
  template <class Context>
  ESKER_HD static auto caller(const Context& context) -> decltype(context.caller()) {
    return context.caller();
  }
  /// On the host: of a lane's thread (ProducerServices).
  template <class Context>
  static auto services(const Context& context) -> decltype(context.services()) {
    return context.services();
  }
  /// On the host: where its packages go (PackageSink).
  template <class Context>
  static auto sink(Context& context) -> decltype(context.sink()) {
    return context.sink();
  }
  /// In device code: gpu::PeState*.
  template <class Context>
  ESKER_HD static auto pe_state(const Context& context) -> decltype(context.pe_state()) {
    return context.pe_state();
  }
  /// On a GPU: a message whose width is known when it runs.
  template <class Context>
  ESKER_HD static void post_words(Context&& context, Command command, std::uint32_t width,
                                  const std::uint64_t* words) {
    context.post_words(command, width, words);
  }
  template <class Context, std::uint32_t Words, class... Election>
  ESKER_HD static auto post(Context& context, Command command, const std::uint64_t (&words)[Words],
                            Election&&... election)
      -> decltype(context.post(command, words, std::forward<Election>(election)...)) {
    return context.post(command, words, std::forward<Election>(election)...);
  }
};

}  // namespace esker::detail
