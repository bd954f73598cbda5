// The hang report.
#include <esker/runtime/hang_watch.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace esker {

std::chrono::milliseconds HangWatch::still(std::uint64_t activity, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (activity != last_activity_ || now - polled_at_ > away_) {
    last_activity_ = activity;
    moved_at_ = now;
  }
  polled_at_ = now;
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - moved_at_);
}

std::string find_stuck_stage(const StageSnapshot& s) {
  std::uint64_t received = 0;
  std::uint64_t buffers_received = 0;
  std::uint64_t buffers_applied = 0;
  for (const auto& peer : s.peers) {
    received += peer.messages_received;
    buffers_received += peer.buffers_received;
    buffers_applied += peer.buffers_applied;
  }
  if (!s.handler.empty()) return fmt::format("apply: handler '{}' has not returned", s.handler);
  if (s.network_stuck) return "ship: the network thread is inside one step";
  if (s.published > s.aggregated) {
    return fmt::format("aggregate: {} published messages are not repacked{}", s.published - s.aggregated,
                       s.aggregator_blocked ? ", no node buffer comes back" : "");
  }
  if (s.aggregated + s.sent_by_handlers > s.routed) {
    return fmt::format("aggregate: {} messages are in node buffers that are not closed",
                       s.aggregated + s.sent_by_handlers - s.routed);
  }
  if (buffers_received > buffers_applied) {
    return fmt::format("apply: {} buffers with {} messages have arrived and are not applied",
                       buffers_received - buffers_applied, received - s.applied);
  }
  return {};
}

void write_hang_report(const StageSnapshot& s, const std::string& headline, const std::string& file_prefix) {
  const std::string prefix =
      s.name.empty() ? fmt::format("esker: PE {}: ", s.pe) : fmt::format("esker: {}: ", s.name);
  const std::string stuck = find_stuck_stage(s);
  std::string text = prefix + headline + "\n";
  text += fmt::format("{}  user thread: {}\n", prefix, s.user_thread);
  text += fmt::format("{}  network thread: {}\n", prefix,
                      s.network_thread.empty() ? "nothing asked of it" : "waits for " + s.network_thread);
  if (!s.device.empty()) text += fmt::format("{}  GPU: {}\n", prefix, s.device);
  text +=
      fmt::format("{}  stuck stage here: {}\n", prefix, stuck.empty() ? "none by this PE's counters" : stuck);
  text += fmt::format("{}  package queue: {} of {} slots taken; {} node buffers open{}\n", prefix,
                      s.slots_occupied, s.slots, s.open_buffers,
                      s.aggregator_blocked ? ", a package waits for one" : "");
  text += fmt::format(
      "{}  messages: {} published by lanes, {} sent by handlers, {} repacked, {} routed, {} applied\n",
      prefix, s.published, s.sent_by_handlers, s.aggregated, s.routed, s.applied);
  nlohmann::json json{{"pe", s.pe},
                      {"headline", headline},
                      {"user_thread", s.user_thread},
                      {"network_thread", s.network_thread},
                      {"device", s.device},
                      {"stuck_stage", stuck},
                      {"handler", s.handler},
                      {"published", s.published},
                      {"sent_by_handlers", s.sent_by_handlers},
                      {"aggregated", s.aggregated},
                      {"routed", s.routed},
                      {"applied", s.applied},
                      {"queue_slots", s.slots},
                      {"queue_slots_taken", s.slots_occupied},
                      {"open_buffers", s.open_buffers},
                      {"peers", nlohmann::json::array()}};
  for (std::size_t pe = 0; pe < s.peers.size(); ++pe) {
    const auto& peer = s.peers[pe];
    json["peers"].push_back({{"pe", pe},
                             {"messages_sent", peer.messages_sent},
                             {"buffers_sent", peer.buffers_sent},
                             {"messages_received", peer.messages_received},
                             {"buffers_received", peer.buffers_received},
                             {"buffers_applied", peer.buffers_applied}});
    if (peer.messages_sent + peer.messages_received == 0) continue;
    text += fmt::format("{}  PE {}: {} messages in {} buffers to it; {} in {} from it, {} buffers applied\n",
                        prefix, pe, peer.messages_sent, peer.buffers_sent, peer.messages_received,
                        peer.buffers_received, peer.buffers_applied);
  }
  const std::string file = fmt::format("{}.{}.json", file_prefix, s.pe);
  // Names of kernels and handlers may be no UTF-8.
  if (std::ofstream out(file);
      out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n') {
    text += fmt::format("{}  the same as JSON: {}\n", prefix, file);
  } else {
    text += fmt::format("{}  the JSON file {} cannot be written\n", prefix, file);
  }
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace esker
