// The run of a plan.
#include <esker/transfer/plan/plan_execution.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/step_order.hpp>

namespace esker::transfer::detail {

namespace {

/// `steps`, and then `end`, which waits for what they have put on streams: also if they throw.
template <class Steps, class End>
void do_both(const Steps& steps, const End& end) {
  try {
    steps();
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    try {
      end();
    } catch (...) {
    }
    std::rethrow_exception(thrown);
  }
  end();
}

}  // namespace

PlanExecution::PlanExecution(std::vector<Device> devices) : devices_{std::move(devices)} {
  const auto refuse = [](const std::string& why) { throw Error(Error::Kind::kTransfer, "Plan: " + why); };
  if (devices_.empty()) refuse("it has no device");
  if (devices_.size() >= OperandGraph::kMostPlaces)
    refuse(fmt::format("{} devices, of {} at most", devices_.size(), OperandGraph::kMostPlaces - 1));
  for (const Device& device : devices_) {
    if (device.backend() != devices_[0].backend())
      refuse(fmt::format("its devices are '{}' and '{}', of different back ends", devices_[0].name(),
                         device.name()));
    streams_.push_back(device.stream());
    marks_.push_back(device.event());
  }
}

void PlanExecution::set_steps(std::vector<PlanStep> steps) {
  parts_.clear();
  steps_ = std::move(steps);
  addresses_.assign(steps_.size(), {});
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (const PlanStep::Used& used : steps_[s].used) addresses_[s].push_back(used.at);
  }
  order_steps();
}

void PlanExecution::order_steps() {
  std::vector<OrderedStep> ordered;
  ordered.reserve(steps_.size());
  for (const PlanStep& step : steps_) {
    OrderedStep& one = ordered.emplace_back(OrderedStep{step.place, {}});
    for (const PlanStep::Used& used : step.used) {
      const auto begin = reinterpret_cast<std::uintptr_t>(used.at);
      one.ranges.push_back({begin, begin + used.bytes, used.is_written});
    }
  }
  const auto waits = waits_between(ordered, places());
  order_.clear();
  order_.resize(steps_.size());
  std::vector<std::uint32_t> newest(places(), 0);
  for (std::uint32_t s = 0; s < steps_.size(); ++s) {
    const std::uint32_t place = steps_[s].place;
    order_[s].waits = waits[s];
    for (const std::uint32_t before : waits[s]) {
      // Without an event: the thread in run() waits for a stream as a whole if nothing is behind that step,
      // and has returned from the host's functions; add_to() puts these on the first device's stream.
      const std::uint32_t its_place = steps_[before].place;
      const bool needs_event = place == kHostPlace       ? its_place != 1 || newest[its_place] != before
                               : its_place == kHostPlace ? place != 1
                                                         : true;
      if (needs_event && !order_[before].done)
        order_[before].done.emplace(device_at(std::max(its_place, 1u)).event());
    }
    newest[place] = s;
  }
}

void PlanExecution::fork(const Stream& first) const {
  if (devices_.size() > 1) first.record(marks_[0]);
  for (std::size_t d = 1; d < devices_.size(); ++d) streams_[d].wait(marks_[0]);
}
void PlanExecution::join(const Stream& first) const {
  for (std::size_t d = 1; d < devices_.size(); ++d) {
    streams_[d].record(marks_[d]);
    first.wait(marks_[d]);
  }
}
void PlanExecution::synchronize(const Stream& first) const {
  std::exception_ptr thrown;
  for (std::uint32_t place = 1; place < places(); ++place) {
    try {
      stream_at(place, first).synchronize();
    } catch (...) {
      if (thrown == nullptr) thrown = std::current_exception();
    }
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void PlanExecution::put(std::uint32_t s, const Stream& first) {
  const PlanStep& step = steps_[s];
  const Device& device = device_at(step.place);
  const Stream& stream = stream_at(step.place, first);
  if (step.is_copy()) {
    device.copy_async(step.used[1].at, step.used[0].at, step.bytes(), stream);
  } else {
    (*step.device_function)(device, stream, addresses_[s].data());
  }
  if (order_[s].done) stream.record(*order_[s].done);
}

template <class Steps>
void PlanExecution::run_to_end(const Stream& first, const Steps& steps) {
  do_both(steps, [&] { synchronize(first); });
}

void PlanExecution::run(const Stream& first, bool waits_for_copies) {
  std::vector<std::uint32_t> newest(places(), 0);
  run_to_end(first, [&] {
    fork(first);
    for (std::uint32_t s = 0; s < steps_.size(); ++s) {
      const PlanStep& step = steps_[s];
      for (const std::uint32_t before : order_[s].waits) {
        const std::uint32_t its_place = steps_[before].place;
        if (its_place == kHostPlace) continue;  // it has returned
        if (step.place != kHostPlace) {
          stream_at(step.place, first).wait(*order_[before].done);
        } else if (newest[its_place] == before) {
          stream_at(its_place, first).synchronize();
        } else {
          order_[before].done->synchronize();
        }
      }
      newest[step.place] = s;
      if (step.place == kHostPlace) {
        (*step.host_function)(addresses_[s].data());
        continue;
      }
      put(s, first);
      if (step.is_copy() && waits_for_copies) stream_at(step.place, first).synchronize();
    }
  });
}

void PlanExecution::make_parts() {
  const auto n = static_cast<std::uint32_t>(steps_.size());
  std::vector<bool> is_waited_for(n, false);
  for (std::uint32_t s = 0; s < n; ++s) {
    if (steps_[s].place != kHostPlace) continue;
    for (const std::uint32_t before : order_[s].waits) is_waited_for[before] = true;
  }
  std::vector<Part> parts;
  std::vector<std::uint32_t> part_of(n);
  for (std::uint32_t begin = 0; begin < n;) {
    const auto number = static_cast<std::uint32_t>(parts.size());
    Part part{begin, begin + 1, {}, {}, {}};
    if (steps_[begin].place == kHostPlace) {
      for (const std::uint32_t before : order_[begin].waits) {
        if (steps_[before].place != kHostPlace)
          part.waits = std::max(part.waits.value_or(0), part_of[before]);
      }
    } else {
      while (part.end < n && steps_[part.end].place != kHostPlace && !is_waited_for[part.end - 1]) ++part.end;
      part.graph = devices_[0].graph(streams_[0], [this, begin, end = part.end](const Stream& stream) {
        add_steps(begin, end, stream);
      });
    }
    std::fill(part_of.begin() + part.begin, part_of.begin() + part.end, number);
    begin = part.end;
    parts.push_back(std::move(part));
  }
  std::uint32_t newest = 0;  // of devices
  for (std::uint32_t number = 0; number < parts.size(); ++number) {
    const Part& part = parts[number];
    if (!part.graph.empty()) newest = number;
    if (part.waits && *part.waits != newest && !parts[*part.waits].done)
      parts[*part.waits].done.emplace(devices_[0].event());
  }
  parts_ = std::move(parts);
}

void PlanExecution::replay(const Stream& first) {
  if (parts_.empty()) make_parts();
  run_to_end(first, [&] {
    std::uint32_t newest = 0;
    for (std::uint32_t number = 0; number < parts_.size(); ++number) {
      const Part& part = parts_[number];
      if (!part.graph.empty()) {
        newest = number;
        part.graph.launch(first);
        if (part.done) first.record(*part.done);
        continue;
      }
      if (part.waits && *part.waits == newest) {
        first.synchronize();
      } else if (part.waits) {
        parts_[*part.waits].done->synchronize();
      }
      (*steps_[part.begin].host_function)(addresses_[part.begin].data());
    }
  });
}

void PlanExecution::add_steps(std::uint32_t begin, std::uint32_t end, const Stream& first) {
  const auto add_one = [&](std::uint32_t s) {
    const PlanStep& step = steps_[s];
    const Stream& stream = stream_at(step.place, first);
    for (const std::uint32_t before : order_[s].waits) {
      // What was before these steps has ended.
      if (before >= begin && &stream_at(steps_[before].place, first) != &stream)
        stream.wait(*order_[before].done);
    }
    if (step.place != kHostPlace) return put(s, first);
    stream.call([this, s] { call_in_stream(s); });
    if (order_[s].done) stream.record(*order_[s].done);
  };
  const auto add_all = [&] {
    for (std::uint32_t s = begin; s < end; ++s) add_one(s);
  };
  fork(first);
  do_both(add_all, [&] { join(first); });
}

void PlanExecution::call_in_stream(std::uint32_t s) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) return;
  }
  try {
    (*steps_[s].host_function)(addresses_[s].data());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

void PlanExecution::throw_error() {
  std::exception_ptr thrown;
  {
    const std::lock_guard lock(mutex_);
    thrown = std::exchange(error_, nullptr);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace esker::transfer::detail
