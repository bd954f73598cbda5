// The nodes of a task graph: channels and their functions.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

namespace esker::tasks {

/// A channel, its function, and the channels that the function may spawn into: see node().
template <class T, class Function>
struct Node {
  using Element = T;
  std::uint32_t graph, number;
  std::uint32_t targets;  // a bit a channel
  bool is_mixed;          // names channels of several graphs
  Function function;

  /// The channels, and outputs, that the function spawns into.
  template <class... Targets>
  Node into(const Targets&... to) const {
    Node node = *this;
    ((node.targets |= 1u << to.number), ...);
    ((node.is_mixed = node.is_mixed || to.graph != graph), ...);
    return node;
  }
};

namespace detail {

/// The nodes of a graph.
template <class... Nodes>
struct NodeList {
  template <class Visit>
  ESKER_HD void visit(std::uint32_t, const Visit&) const {}
};
template <class First, class... Rest>
struct NodeList<First, Rest...> {
  First first;
  NodeList<Rest...> rest;

  ESKER_HD explicit NodeList(const First& node, const Rest&... nodes) : first{node}, rest{nodes...} {}
  /// Calls visit(node) with the one of this channel.
  template <class Visit>
  ESKER_HD void visit(std::uint32_t channel, const Visit& visit) const {
    if (first.number == channel) {
      visit(first);
    } else {
      rest.visit(channel, visit);
    }
  }
};

}  // namespace detail

}  // namespace esker::tasks
