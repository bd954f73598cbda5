#include <esker/pipeline/crossing.hpp>

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include <esker/error.hpp>

namespace esker::pipeline {

namespace {
constexpr const char *kModule = "pipeline", *kName = "batched_from";
}

std::uint64_t batched_from(const Device& device) {
  constexpr std::uint64_t kOtherwise = std::uint64_t{1} << 20;
  const std::optional<std::string> kept = read_machine(kModule, kName, kind_of(device.properties()));
  if (!kept.has_value()) return kOtherwise;
  std::uint64_t bytes = 0;
  const char* const end = kept->data() + kept->size();
  if (const auto [last, error] = std::from_chars(kept->data(), end, bytes);
      error != std::errc() || last != end)
    throw Error(Error::Kind::kConfiguration,
                fmt::format("pipeline: in '{}' /{}/{} is {}, not a number of bytes: measure again",
                            machine_file(), kModule, kName, *kept));
  return bytes;
}

void keep_batched_from(const Device& device, std::uint64_t bytes) {
  keep_machine(kModule, kName, kind_of(device.properties()), std::to_string(bytes));
}

}  // namespace esker::pipeline
