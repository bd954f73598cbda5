// What every trace file has in common: the JSON that Perfetto and chrome://tracing read, and its times.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include <esker/device/platform.hpp>

namespace esker {

/// A text in JSON: in quotes, with what JSON does not allow inside them escaped; what is no UTF-8 is
/// replaced.
ESKER_API std::string json_text(std::string_view text);

/// The steady clock's way to the time of day. Microseconds since 1970 leave a double, which is what readers
/// keep them in, a quarter of one; since midnight (UTC) they leave it less than a nanosecond.
struct TraceClock {
  std::int64_t midnight_s;  // since 1970
  std::int64_t offset_ns;   // from the steady clock to the time since that midnight

  ESKER_API static TraceClock read();
  double us(std::int64_t steady_ns) const { return static_cast<double>(steady_ns + offset_ns) / 1e3; }
};

/// Writes a trace.
///
/// State    begin() -> events -> end().
/// Contract Names and arguments are JSON already. Readers take process 0 and thread 0 for the idle ones:
///          numbers start at 1.
class ESKER_API TraceJson {
 public:
  explicit TraceJson(std::ostream& out) : out_{out}, clock_{TraceClock::read()} {}

  const TraceClock& clock() const { return clock_; }
  void begin();
  /// What readers call a process or a thread, and where they put it: `what` is "process_name",
  /// "thread_sort_index", ...
  void metadata(const char* what, std::uint64_t process, std::uint64_t thread, std::string_view argument);
  /// An event up to its time. The caller appends ,"member":value pairs and the closing }.
  std::string& event(const char* phase, std::string_view name, std::uint64_t process, std::uint64_t thread,
                     std::int64_t steady_ns);
  /// `other` is a JSON object. All has been handed to the stream.
  void end(std::string_view other);

 private:
  static constexpr std::size_t kFlushAt = 1 << 20;
  void separate();
  void flush();

  std::ostream& out_;
  const TraceClock clock_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace esker
