// What was measured on this machine, kept for later programs: one file of JSON, whose parts belong to
// modules.
#pragma once

#include <optional>
#include <string>

#include <esker/device/device_backend.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// ESKER_MACHINE_FILE, else esker/machine.json in the user's folder of caches (XDG_CACHE_HOME, or .cache in
/// HOME). "": neither is known.
ESKER_API std::string machine_file();

/// What `module` has kept under `name` for devices of this kind: text that is valid JSON.
///
/// Errors. Error{kConfiguration}: the file is there, and is no JSON object; it is named.
ESKER_API std::optional<std::string> read_machine(const std::string& module, const std::string& name,
                                                  const DeviceProperties& device);
/// Other parts of the file stay as they are. `json` is valid JSON. Another process reads the old file or the
/// new one.
///
/// Errors. Error{kConfiguration}: the file cannot be written; it is named.
ESKER_API void keep_machine(const std::string& module, const std::string& name,
                            const DeviceProperties& device, const std::string& json);

}  // namespace esker
