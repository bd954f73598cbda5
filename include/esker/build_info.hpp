// What this library was built as.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <esker/device/platform.hpp>

namespace esker {

struct ESKER_API BuildInfo {
  std::string version;
  std::string commit;                   // at configure time; "unknown" outside a git checkout
  std::vector<std::string> devices;     // as --device takes them; "cpu" is always one
  std::vector<std::string> transports;  // as --transport takes them; "loopback" is always one

  bool has_device(std::string_view name) const;
  bool has_transport(std::string_view name) const;
};

ESKER_API const BuildInfo& build_info();

/// GPUs of the back end that was built, on this machine; 0 where there is none, or no driver.
ESKER_API std::uint32_t gpus_here();

}  // namespace esker
