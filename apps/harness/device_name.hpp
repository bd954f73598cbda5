// What --device names, as Device::open() takes it.
#pragma once

#include <esker/config.hpp>

namespace harness {

inline const char* device_name(esker::DeviceKind kind) {
  switch (kind) {
    case esker::DeviceKind::kCpu:
      return "cpu";
    case esker::DeviceKind::kCuda:
      return "cuda";
    case esker::DeviceKind::kHip:
      return "hip";
    case esker::DeviceKind::kAuto:
      break;
  }
  return "auto";
}

}  // namespace harness
