// The text about a GPU in a hang report.
#include <fmt/format.h>

#include <esker/net/gpu/engine/diagnostics.hpp>

namespace esker::gpu {

void Diagnostics::publish(const Observation& observation) {
  const std::lock_guard lock(mutex_);
  seen_ = observation;
}

DeviceTraffic Diagnostics::traffic() const {
  const std::lock_guard lock(mutex_);
  const Totals& t = seen_.snapshot.totals;
  return {t.sent, t.local, t.applied, t.direct, t.packages, t.bytes, t.by_handlers, t.asked, t.answered};
}

std::string Diagnostics::describe(std::string_view kernel, std::span<const std::uint32_t> pe_of_link) const {
  const Observation seen = [this] {
    const std::lock_guard lock(mutex_);
    return seen_;
  }();
  const Totals& t = seen.snapshot.totals;
  std::string text = fmt::format(
      "kernel '{}'; progress kernel {} of {} ended, the last {}; {} frames on the device; by the last {} "
      "messages sent past the host ({} to itself), {} applied, {} of handlers not sent on",
      kernel, seen.progress_ended, seen.progress_started,
      seen.was_quiet ? "found nothing" : "found something", seen.frames, t.sent, t.local, t.applied,
      seen.snapshot.handler_backlog);
  for (std::size_t link = 0; link < pe_of_link.size(); ++link) {
    text += fmt::format("; PE {}: {} to it, {} from it applied", pe_of_link[link], t.sent_to[link],
                        t.applied_from[link]);
  }
  return text;
}

}  // namespace esker::gpu
