// How many teams a stage on the device begins with.
#pragma once

#include <cstdint>

#include <esker/device.hpp>

namespace pipe_apps {

/// Of the only stage with much to do: all that fit a GPU; on the CPU a thread a core.
inline std::uint32_t device_teams(const esker::Device& device) {
  return device.backend() == esker::Backend::kCpu ? device.properties().processors : 0;
}

}  // namespace pipe_apps
