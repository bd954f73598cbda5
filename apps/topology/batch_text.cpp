// Batches from text.
#include "batch_text.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/config.hpp>

namespace {

using esker::transfer::Batch;
using esker::transfer::CommandStream;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::int32_t place_of(const std::string& text) {
  if (text == "host") return esker::transfer::kHost;
  const std::uint64_t device = esker::parse_count(text);
  if (device > 1'000'000) throw std::invalid_argument("is no device");
  return static_cast<std::int32_t>(device);
}

CommandStream stream_of(const std::string& text) {
  CommandStream stream;
  const std::vector<std::string> parts = split(text, ':');
  const std::vector<std::string> ends = split(parts[0], '>');
  const bool has_copy = ends.size() == 2;
  if (ends.size() > 2 || parts.size() < 2 || parts.size() > (has_copy ? 3u : 2u))
    throw std::invalid_argument("is not FROM>TO:BYTES, FROM>TO:BYTES:KERNEL or DEVICE:KERNEL");
  stream.to = place_of(ends.back());
  if (has_copy) stream.from = place_of(ends[0]);
  if (has_copy) stream.bytes = esker::parse_size(parts[1]);
  if (!has_copy || parts.size() == 3) stream.kernel_time = esker::parse_duration(parts.back());
  return stream;
}

}  // namespace

Batch batch_of(const std::string& given) {
  Batch batch;
  constexpr const char* kBlanks = " \t\r\n";  // a file's last line has an end
  const std::size_t first = std::min(given.find_first_not_of(kBlanks), given.size());
  const std::string text = given.substr(first, given.find_last_not_of(kBlanks) + 1 - first);
  try {
    if (text.starts_with('[')) {
      for (const nlohmann::json& one : nlohmann::json::parse(text)) {
        CommandStream stream;
        stream.to = place_of(one.at("to").get<std::string>());
        for (const auto& [name, value] : one.items()) {
          if (name != "to" && name != "from" && name != "bytes" && name != "kernel")
            throw std::invalid_argument(fmt::format("a stream has no '{}'", name));
        }
        stream.from = place_of(one.value("from", std::string("host")));
        stream.bytes = esker::parse_size(one.value("bytes", std::string("0")));
        stream.kernel_time = esker::parse_duration(one.value("kernel", std::string("0")));
        batch.push_back(stream);
      }
      return batch;
    }
    for (const std::string& part : split(text, ',')) batch.push_back(stream_of(part));
    return batch;
  } catch (const std::exception& error) {
    throw esker::UsageError(fmt::format("--batch '{}': {}", text, error.what()));
  }
}
