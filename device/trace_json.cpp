// The text of traces.
#include <esker/device/trace_json.hpp>

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

namespace esker {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TraceClock TraceClock::read() {
  using std::chrono::nanoseconds;
  const auto now = [](auto clock) {
    return std::chrono::duration_cast<nanoseconds>(decltype(clock)::now().time_since_epoch()).count();
  };
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  std::int64_t offset = 0;
  for (int i = 0; i < 16; ++i) {  // the pair with the least between its two readings
    const std::int64_t before = now(std::chrono::steady_clock{});
    const std::int64_t real = now(std::chrono::system_clock{});
    const std::int64_t after = now(std::chrono::steady_clock{});
    if (after - before >= shortest) continue;
    shortest = after - before;
    offset = real - (before + after) / 2;
  }
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kDay = 24 * 60 * 60;
  const std::int64_t midnight = (now(std::chrono::steady_clock{}) + offset) / kSecond / kDay * kDay;
  return {midnight, offset - midnight * kSecond};
}

void TraceJson::begin() { text_ += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"; }

void TraceJson::metadata(const char* what, std::uint64_t process, std::uint64_t thread,
                         std::string_view argument) {
  separate();
  text_ += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, process, thread,
                       argument);
}

std::string& TraceJson::event(const char* phase, std::string_view name, std::uint64_t process,
                              std::uint64_t thread, std::int64_t steady_ns) {
  separate();
  text_ += fmt::format(R"({{"ph":"{}","name":{},"cat":"esker","pid":{},"tid":{},"ts":{:.3f})", phase, name,
                       process, thread, clock_.us(steady_ns));
  return text_;
}

void TraceJson::end(std::string_view other) {
  text_ += fmt::format("\n],\"otherData\":{}}}\n", other);
  flush();
}

void TraceJson::separate() {
  if (text_.size() > kFlushAt) flush();
  if (!is_first_) text_ += ",\n";
  is_first_ = false;
}
void TraceJson::flush() {
  out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
  text_.clear();
}

}  // namespace esker
