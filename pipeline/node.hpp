// Stages as the user names them: what they take from, what they publish into, and their functions.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/pipeline/frame.hpp>

namespace esker::pipeline {

enum class StageKind : std::uint32_t { kSource, kMap, kFrames, kItems };
enum class Side : std::uint32_t { kHost, kDevice };

namespace detail {

/// Sides by number: the host, and the device of number i is side 1 + i.
inline constexpr std::uint32_t kHostSide = 0;

struct NoFunction {};
struct NoItem {};

/// A stage's functions, which go into the GPU's kernel.
template <StageKind kStageKind, class In, class Out, class Function, class AtEnd>
struct Node {
  static constexpr StageKind kKind = kStageKind;
  static constexpr bool kHasEnd = !std::is_same_v<AtEnd, NoFunction>;
  using Item = In;
  using OutItem = Out;
  std::uint32_t number;
  Function function;
  AtEnd at_end;
};

/// What is known of a stage before it runs.
struct StageFacts {
  std::string name;
  StageKind kind = StageKind::kFrames;
  std::uint32_t side = kHostSide;
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<std::uint32_t> pipelines;  // whose topics these are
  std::uint32_t workers = 0;             // 0: as many as are good
  std::uint32_t parts = 1;
  bool is_staged = false;
};

/// What a user says about a stage. Built in steps: from(), into(), at_end(), workers(), on().
template <StageKind kStageKind, Side kStageSide, class In, class Out, class Function, class AtEnd>
struct StageSpec {
  static constexpr StageKind kKind = kStageKind;
  static constexpr Side kSide = kStageSide;
  StageFacts facts;
  Function function;
  AtEnd end_function;

  /// Topics of one type that it takes from, each frame of each of them once: at most 4.
  template <class T, class... Ts>
  auto from(const Topic<T>& first, const Topic<Ts>&... more) const {
    static_assert(kKind == StageKind::kFrames || kKind == StageKind::kItems,
                  "a source has no input, and map() names its own");
    static_assert((std::is_same_v<T, Ts> && ...), "the inputs of a stage are of one type");
    StageSpec<kStageKind, kStageSide, T, Out, Function, AtEnd> next{facts, function, end_function};
    next.take(first);
    (next.take(more), ...);
    return next;
  }
  /// Topics that it may emit into.
  template <class... Ts>
  StageSpec into(const Topic<Ts>&... topics) const {
    StageSpec next = *this;
    (next.facts.outputs.push_back(topics.number), ...);
    (next.facts.pipelines.push_back(topics.pipeline), ...);
    return next;
  }
  /// `function(stage)` is called once, by one lane, after the stage's last input: it may emit what the stage
  /// has collected.
  template <class NewEnd>
  auto at_end(const NewEnd& end) const {
    return StageSpec<kStageKind, kStageSide, In, Out, Function, NewEnd>{facts, function, end};
  }
  /// Host threads, or groups of the GPU to begin with. 0: one thread; a fair part of the GPU.
  StageSpec workers(std::uint32_t n) const {
    StageSpec next = *this;
    next.facts.workers = n;
    return next;
  }
  /// Of the pipeline's devices the one of this number, from 0; else it is the first one.
  StageSpec on(std::uint32_t device) const {
    static_assert(kSide == Side::kDevice, "on() is for stages of on_device");
    StageSpec next = *this;
    next.facts.side = device == ~0u ? device : 1 + device;  // refused, as all beyond the last one
    return next;
  }
  /// On a GPU a team first copies a frame that is in the host's memory into the GPU's: for functions that
  /// read their input more than once, or not in order.
  StageSpec staged() const {
    StageSpec next = *this;
    next.facts.is_staged = true;
    return next;
  }
  /// Of a map whose output items depend on their own input items alone: so many teams work on a frame, each
  /// on a part of its items.
  StageSpec parts(std::uint32_t n) const {
    static_assert(kKind == StageKind::kMap, "parts() is for map()");
    StageSpec next = *this;
    next.facts.parts = n == 0 ? 1 : n;
    return next;
  }

  Node<kStageKind, In, Out, Function, AtEnd> node(std::uint32_t number) const {
    return {number, function, end_function};
  }
  template <class T>
  void take(const Topic<T>& topic) {
    facts.inputs.push_back(topic.number);
    facts.pipelines.push_back(topic.pipeline);
  }
};

template <StageKind kKind, Side kSide, class In, class Out, class Function>
auto make_stage(const std::string& name, const Function& function) {
  StageSpec<kKind, kSide, In, Out, Function, NoFunction> spec{{}, function, {}};
  spec.facts.name = name;
  spec.facts.kind = kKind;
  spec.facts.side = kSide == Side::kHost ? kHostSide : 1;
  return spec;
}
template <Side kSide, class In, class Out, class Function>
auto make_map(const std::string& name, const Topic<In>& in, const Topic<Out>& out, const Function& function) {
  auto spec = make_stage<StageKind::kMap, kSide, In, Out>(name, function);
  spec.take(in);
  spec.facts.outputs.push_back(out.number);
  spec.facts.pipelines.push_back(out.pipeline);
  return spec;
}

}  // namespace detail

/// Stages on host threads. The functions may be lambdas.
namespace on_host {

/// `bool function(stage)`: opens and publishes frames, or emits items. Called until it returns false.
template <class Function>
auto source(const std::string& name, const Function& function) {
  return detail::make_stage<StageKind::kSource, Side::kHost, detail::NoItem, detail::NoItem>(name, function);
}
/// `function(stage, const Frame<const In>& in, Frame<Out>& out)`: one frame for each, in the same order.
/// `out.count` is `in.count` if the function does not set it.
template <class In, class Out, class Function>
auto map(const std::string& name, const Topic<In>& in, const Topic<Out>& out, const Function& function) {
  return detail::make_map<Side::kHost>(name, in, out, function);
}
/// `function(stage, const Frame<const T>& frame)`.
template <class Function>
auto frames(const std::string& name, const Function& function) {
  return detail::make_stage<StageKind::kFrames, Side::kHost, detail::NoItem, detail::NoItem>(name, function);
}
/// `function(stage, const T& item)`.
template <class Function>
auto items(const std::string& name, const Function& function) {
  return detail::make_stage<StageKind::kItems, Side::kHost, detail::NoItem, detail::NoItem>(name, function);
}

}  // namespace on_host

/// Stages on a device of the pipeline's, each device's in one kernel. The functions are ESKER_HD, and copied
/// into the kernel. A team works on a frame: a group of the GPU, whose lanes all call the function; on the
/// CPU a host thread.
namespace on_device {

template <class In, class Out, class Function>
auto map(const std::string& name, const Topic<In>& in, const Topic<Out>& out, const Function& function) {
  return detail::make_map<Side::kDevice>(name, in, out, function);
}
template <class Function>
auto frames(const std::string& name, const Function& function) {
  return detail::make_stage<StageKind::kFrames, Side::kDevice, detail::NoItem, detail::NoItem>(name,
                                                                                               function);
}
/// Each lane calls it, for items of its own.
template <class Function>
auto items(const std::string& name, const Function& function) {
  return detail::make_stage<StageKind::kItems, Side::kDevice, detail::NoItem, detail::NoItem>(name, function);
}

}  // namespace on_device

}  // namespace esker::pipeline
