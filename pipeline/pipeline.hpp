// Pipelines between host threads and GPUs: stages that live as long as the pipeline, and topics between
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/engine.hpp>
#include <esker/pipeline/kernel.hpp>
#include <esker/pipeline/node.hpp>
#include <esker/pipeline/options.hpp>
#include <esker/pipeline/report.hpp>
#include <esker/pipeline/seat.hpp>

namespace esker::pipeline {

ESKER_PASS_BEGIN

/// Stages that give each other frames, on the host and on devices, from a start to an exact end.
///
///     pipeline::Pipeline p(device);
///     const auto in = p.topic<Block>({.name = "in", .frame_bytes = 64 << 10});
///     const auto out = p.topic<Block>({.name = "out", .frame_bytes = 64 << 10});
///     p.run(pipeline::on_host::source("read", read).into(in), pipeline::on_device::map("encode", in, out,
///     encode),
///           pipeline::on_host::frames("write", write).from(out));
///
/// State    Topics are made -> runs, one at a time, any number, with the same stages or others.
/// Contract One thread, but for stop(). Items are trivially copyable. A topic has its producers on the host
/// or
///          on one device; each of its subscribers gets every frame. While a run goes on nothing is allocated
///          and nothing is launched; on the GPU nothing is left after it.
/// Progress Each stage has a team of its own at least, so a producer that waits for room waits for a
///          stage that runs. Only in a loop could stages wait for each other: there nobody waits, and a
///          frame without room ends the run.
/// End      A stage ends when all of its inputs have; a loop when what feeds it has ended and nothing
///          is in it (docs/design/exact-end.md). Never a time-out.
/// Errors   Error{kConfiguration}: the stages are wrong, and how. Error{kOutOfMemory}. wait() and run()
///          throw a PipelineError: a stage failed, or the run was stopped, with how many frames were
///          not done; or what a stage of the host has thrown.
class Pipeline {
 public:
  explicit Pipeline(const Device& device, const Options& options = {})
      : Pipeline(std::vector<Device>{device}, options) {}
  /// Each device stage says which of them it is on: on_device::map(...).on(1).
  explicit Pipeline(const std::vector<Device>& devices, const Options& options = {})
      : devices_{devices}, options_{options}, engine_{devices, options} {}

  /// At most 24.
  template <class T>
  Topic<T> topic(const TopicOptions& options = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "items cross processors byte by byte");
    static_assert(alignof(T) <= kLineBytes, "frames begin at multiples of 128 bytes");
    return {engine_.number(), engine_.add_topic(options, sizeof(T))};
  }

  /// Runs from the first frame to the end.
  template <class... Stages>
  const Report& run(const Stages&... stages) {
    start(stages...);
    return wait();
  }
  /// The same, and returns at once.
  template <class... Stages>
  void start(const Stages&... stages) {
    std::vector<detail::StageFacts> facts{stages.facts...};
    std::vector<std::uint64_t> held(1 + devices_.size());  // groups, by side
    if constexpr ((... || (Stages::kSide == Side::kDevice))) {
      const auto nodes = detail::device_nodes(0, std::tuple<>(), stages...);
      const detail::StageKernel<std::decay_t<decltype(nodes)>> kernel{nullptr, {}, {}, nodes};
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        if (devices_[d].backend() != Backend::kCpu)
          held[1 + d] = devices_[d].resident_groups(kernel, options_.group_lanes);
      }
      engine_.prepare(facts, held);
      begin([&] {
        serve_on_host(0, stages...);
        for (std::uint32_t side = 1; side < held.size(); ++side)
          launch(kernel, side, static_cast<std::uint32_t>(facts.size()));
      });
    } else {
      engine_.prepare(facts, held);
      begin([&] { serve_on_host(0, stages...); });
    }
  }
  /// Until the run has ended.
  const Report& wait() {
    engine_.wait();
    return engine_.report();
  }
  /// Sources end, as if they had returned false, and what is under way is done. False: not within that time,
  /// and the run has been stopped. wait() follows, which then throws if that was before its end.
  bool drain(std::chrono::milliseconds deadline) {
    engine_.request_drain();
    if (engine_.wait_for(deadline)) return true;
    engine_.stop();
    return false;
  }
  /// Ends the run now. Any thread.
  void stop() { engine_.stop(); }

  /// Of the last run.
  const Report& report() const { return engine_.report(); }

 private:
  /// What throws leaves a pipeline that can run.
  template <class Serve>
  void begin(const Serve& serve) {
    try {
      serve();
      engine_.go();
    } catch (...) {
      engine_.abandon();
      throw;
    }
  }
  void serve_on_host(std::uint32_t) {}
  template <class First, class... Rest>
  void serve_on_host(std::uint32_t number, const First& first, const Rest&... rest) {
    if (engine_.side(number) == detail::kHostSide) {
      engine_.serve(number, [&](Doorbell& bell, bool has_gpu, std::uint32_t index) {
        const auto node = first.node(number);
        return std::make_unique<detail::ServedSeat<std::decay_t<decltype(node)>>>(
            bell, has_gpu, engine_.host(), node, index);
      });
    }
    serve_on_host(number + 1, rest...);
  }
  template <class Kernel>
  void launch(Kernel kernel, std::uint32_t side, std::uint32_t n_stages) {
    kernel.run = engine_.device_view(side);
    std::uint32_t groups = 0, n = 0;
    for (std::uint32_t s = 0; s < n_stages; ++s) {
      if (engine_.side(s) != side) continue;
      groups += engine_.teams(s);
      kernel.stages[n] = s;
      kernel.ends[n] = groups;
      ++n;
    }
    if (groups == 0) return;
    const LaunchShape shape{std::uint64_t{groups} * options_.group_lanes, options_.group_lanes};
    devices_[side - 1].launch(shape, kernel, engine_.stream(side));
  }

  const std::vector<Device> devices_;
  const Options options_;
  detail::Engine engine_;
};

ESKER_PASS_END

}  // namespace esker::pipeline
