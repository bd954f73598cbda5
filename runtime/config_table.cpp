// The one table of settings.
#include <esker/runtime/config_table.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <esker/config.hpp>

namespace esker::detail {
namespace {

using std::chrono::microseconds;

/// Names with commas between.
std::string in_a_row(const std::vector<std::string>& names) {
  std::string row;
  for (const std::string& name : names) row += (row.empty() ? "" : ", ") + name;
  return row;
}

[[noreturn]] void illegal(const char* reason) { throw std::invalid_argument(reason); }

struct Range {
  std::uint64_t least;
  std::uint64_t most;
  enum class Shape { kAny, kMultipleOf64, kMultipleOf128, kPowerOfTwo } shape = Shape::kAny;
  bool or_zero = false;

  std::uint64_t checked(std::uint64_t value) const {
    if (value == 0 && or_zero) return value;
    if (value < least) illegal("is too small");
    if (value > most) illegal("is too large");
    if (shape == Shape::kMultipleOf64 && value % 64 != 0) illegal("is not a multiple of 64");
    if (shape == Shape::kMultipleOf128 && value % 128 != 0) illegal("is not a multiple of 128");
    if (shape == Shape::kPowerOfTwo && (value & (value - 1)) != 0) illegal("is not a power of two");
    return value;
  }

  template <class Format>
  std::string in_words(Format format) const {
    std::string words = most == std::numeric_limits<std::uint64_t>::max()
                            ? fmt::format("{} or more", format(least))
                            : fmt::format("{} to {}", format(least), format(most));
    if (or_zero) words = "0, or " + words;
    if (shape == Shape::kMultipleOf64) words += ", a multiple of 64";
    if (shape == Shape::kMultipleOf128) words += ", a multiple of 128";
    if (shape == Shape::kPowerOfTwo) words += ", a power of two";
    return words;
  }
};
using Shape = Range::Shape;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

template <class T>
Setting size(std::string name, T Config::*field, Range range, std::string help) {
  return {std::move(name),
          "bytes",
          range.in_words(format_size),
          std::move(help),
          [=](Config& c, std::string_view v) { c.*field = static_cast<T>(range.checked(parse_size(v))); },
          [=](const Config& c) { return format_size(c.*field); },
          [=](const Config& c) { return nlohmann::json(c.*field); }};
}

template <class T>
Setting count(std::string name, std::string unit, T Config::*field, Range range, std::string help) {
  return {std::move(name),
          std::move(unit),
          range.in_words([](std::uint64_t n) { return std::to_string(n); }),
          std::move(help),
          [=](Config& c, std::string_view v) { c.*field = static_cast<T>(range.checked(parse_count(v))); },
          [=](const Config& c) { return std::to_string(c.*field); },
          [=](const Config& c) { return nlohmann::json(c.*field); }};
}

Setting duration(std::string name, microseconds Config::*field, microseconds least, microseconds most,
                 std::string help) {
  return {std::move(name),
          "",
          fmt::format("{} to {}", format_duration(least), format_duration(most)),
          std::move(help),
          [=](Config& c, std::string_view v) {
            const microseconds value = parse_duration(v);
            if (value < least) illegal("is too small");
            if (value > most) illegal("is too large");
            c.*field = value;
          },
          [=](const Config& c) { return format_duration(c.*field); },
          [=](const Config& c) { return nlohmann::json(format_duration(c.*field)); }};
}

Setting onoff(std::string name, bool Config::*field, std::string help) {
  return {std::move(name),
          "",
          "true or false",
          std::move(help),
          [=](Config& c, std::string_view v) { c.*field = parse_bool(v); },
          [=](const Config& c) { return std::string(c.*field ? "true" : "false"); },
          [=](const Config& c) { return nlohmann::json(c.*field); }};
}

Setting path(std::string name, std::string Config::*field, std::string help) {
  return {std::move(name),
          "",
          "a path",
          std::move(help),
          [=](Config& c, std::string_view v) {
            if (v.empty()) illegal("is empty");
            c.*field = v;
          },
          [=](const Config& c) { return c.*field; },
          [=](const Config& c) { return nlohmann::json(c.*field); }};
}

/// A file that is written only if it is named.
Setting optional_file(std::string name, std::string Config::*field, std::string help) {
  return {std::move(name),
          "",
          "a file; empty: off",
          std::move(help),
          [=](Config& c, std::string_view v) {
            if (v.ends_with('/')) illegal("is a folder");
            c.*field = v;
          },
          [=](const Config& c) { return c.*field; },
          [=](const Config& c) { return nlohmann::json(c.*field); }};
}

/// `names` are the enumerators' texts in their order; `allow` throws for one that this build lacks.
template <class E>
Setting choice(std::string name, E Config::*field, const std::vector<std::string>& names, std::string help,
               void (*allow)(std::string_view) = nullptr) {
  const auto text = [=](const Config& c) {
    const auto i = static_cast<std::size_t>(c.*field);
    return i < names.size() ? names[i] : std::to_string(i);  // an enumerator that is none: validate() says so
  };
  return {std::move(name),
          "",
          in_a_row(names),
          std::move(help),
          [=](Config& c, std::string_view v) {
            const auto it = std::find(names.begin(), names.end(), v);
            if (it == names.end()) illegal("is none of these");
            if (allow != nullptr) allow(v);
            c.*field = static_cast<E>(it - names.begin());
          },
          text,
          [=](const Config& c) { return nlohmann::json(text(c)); }};
}

void allow_device(std::string_view name) {
  if (name == "auto" || build_info().has_device(name)) return;
  throw std::invalid_argument(
      fmt::format("is not built: this library has {}; configure with -DESKER_DEVICE=CUDA or HIP for a device",
                  in_a_row(build_info().devices)));
}

void allow_transport(std::string_view name) {
  if (name == "auto" || build_info().has_transport(name)) return;
  throw std::invalid_argument(fmt::format("is not built: this library has {}; configure with -DESKER_{}=ON",
                                          in_a_row(build_info().transports), name == "ucx" ? "UCX" : "MPI"));
}

std::vector<Setting> make_settings() {
  using C = Config;
  constexpr std::uint64_t kKi = 1024;
  constexpr std::uint64_t kMi = kKi * kKi;
  return {
      choice("device", &C::device, {"auto", "cpu", "cuda", "hip"},
             "where kernels run; auto: the device that was built and is there, else cpu", allow_device),
      choice("transport", &C::transport, {"auto", "mpi", "ucx", "loopback"},
             "how PEs reach each other; ucx: frames by UCX, all else by mpi; auto: mpi where it was built, "
             "with ucx if that was too and the PEs do not all share memory, else loopback",
             allow_transport),
      choice(
          "heap", &C::heap, {"auto", "device", "host"},
          "where the symmetric heap stands; auto: with the lanes; host with lanes on a GPU: pinned memory"),
      choice("peer_memory", &C::peer_memory, {"auto", "on", "off"},
             "PEs of a host pass frames through memory that they share, and lanes on a GPU write into the "
             "inboxes "
             "of its other GPUs; auto: where both ends can open the memory; off: all through the network; "
             "on: an "
             "error where it cannot be had"),
      count(
          "direct_messages", "messages", &C::direct_messages, {0, 65536},
          "messages, all but active ones, min and max, that a lane on a GPU applies itself before those for "
          "the host's other GPUs travel in packages; 0: all travel, those of handlers too"),
      size("heap_bytes", &C::heap_bytes, {0, kNoLimit},
           "symmetric heap of a PE; 0: half the host's, or the GPU's free, memory, shared by the PEs on it; "
           "1 GiB where pinned"),

      size("package_bytes", &C::package_bytes, {kKi, kMi, Shape::kMultipleOf128},
           "payload of a package, one slot of the package queue"),
      count("package_slots", "slots", &C::package_slots, {1, kMi, Shape::kPowerOfTwo},
            "slots of the package queue"),
      count("device_package_slots", "slots", &C::device_package_slots, {1, kMi, Shape::kPowerOfTwo},
            "the same where lanes run on a GPU: enough to keep the bus busy"),

      onoff(
          "aggregate", &C::aggregate,
          "messages of several packages share a node buffer; off: each package's are sent alone, to compare"),
      count("aggregators", "threads", &C::aggregators, {1, 64}, "host threads that empty the package queue"),
      count("device_aggregators", "threads", &C::device_aggregators, {1, 64},
            "the same where lanes run on a GPU"),
      count("apply_helpers", "threads", &C::apply_helpers, {0, 64},
            "host threads that apply beside the network thread, each a slice of the heap"),
      size("node_buffer_bytes", &C::node_buffer_bytes, {kKi, 16 * kMi, Shape::kMultipleOf64, true},
           "messages packed for one destination before they are sent; 0: 64 KiB, and 512 KiB where lanes run "
           "on a GPU"),
      count("buffers_per_destination", "buffers", &C::buffers_per_destination, {2, kKi},
            "node buffers for each PE: one fills while others are on their way"),
      duration("aggregation_timeout", &C::aggregation_timeout, microseconds{0}, std::chrono::minutes{1},
               "a node buffer is sent, full or not, after this long without new messages"),
      duration("aggregation_max_age", &C::aggregation_max_age, microseconds{1}, std::chrono::minutes{1},
               "a node buffer is sent, full or not, at this age"),
      count("pending_messages", "messages", &C::pending_messages, {0, kNoLimit},
            "bound on a PE's messages that are not yet sent or applied; 0: unlimited"),
      count(
          "project_pes", "PEs", &C::project_pes, {0, 65536},
          "one-node projection: destinations that all loop back to this PE (thesis, section 3.2.3); 0: off"),

      count("cpu_threads", "threads", &C::cpu_threads, {0, 4096},
            "threads of the CPU back end, and of an application's own work on the host; 0: cores of the host "
            "over the PEs on it"),
      count("group_lanes", "lanes", &C::group_lanes, {1, kKi}, "lanes of a group, unless a launch says"),
      count("wave_lanes", "lanes", &C::wave_lanes, {1, 64}, "lanes of a wave on the CPU back end"),
      choice("group_execution", &C::group_execution, {"fibers", "threads"},
             "lanes of the CPU back end that use group operations; threads: for race detectors"),
      onoff("huge_pages", &C::huge_pages, "ask for huge pages for the heap in host memory"),

      count("hang_seconds", "seconds", &C::hang_seconds, {0, 1'000'000},
            "after this long without progress: end the job with a report if no PE can go on, else warn; 0: "
            "never"),
      path("hang_file", &C::hang_file, "where that report goes as JSON: FILE.<pe>.json"),
      optional_file("trace", &C::trace,
                    "write what each stage does to this file, for Perfetto; with several PEs to "
                    "NAME.<pe>.EXTENSION"),
      choice("startup", &C::startup, {"quiet", "summary"}, "what PE 0 prints at the start beside warnings"),
  };
}

std::string replaced(std::string_view text, char from, char to) {
  std::string result(text);
  std::replace(result.begin(), result.end(), from, to);
  return result;
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> table = make_settings();
  return table;
}

const Setting* find_setting(std::string_view name) {
  const std::string plain = replaced(name, '-', '_');
  for (const Setting& setting : settings()) {
    if (setting.name == plain) return &setting;
  }
  return nullptr;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) names.push_back(setting.name);
  return names;
}

std::string dashed(std::string_view name) { return replaced(name, '_', '-'); }

std::string variable(std::string_view name) {
  std::string result = "ESKER_";
  for (const char c : name) result += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

}  // namespace esker::detail
