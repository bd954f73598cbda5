// What was measured on this machine, kept for later programs: one file of JSON, whose parts belong to
// modules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <esker/device/device_backend.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// ESKER_MACHINE_FILE, else esker/machine.json in the user's folder of caches (XDG_CACHE_HOME, or .cache in
/// HOME). "": neither is known.
ESKER_API std::string machine_file();

/// The name under which devices of this kind keep what was measured: "cuda: NVIDIA H200".
ESKER_API std::string kind_of(const DeviceProperties& device);

/// What `module` has kept as `what` of `whom`: text that is valid JSON.
///
/// Errors. Error{kConfiguration}: the file is there, and is no JSON object; it is named.
ESKER_API std::optional<std::string> read_machine(const std::string& module, const std::string& what,
                                                  const std::string& whom);
/// All of whom it has kept that.
ESKER_API std::vector<std::string> known_to_machine(const std::string& module, const std::string& what);
/// Other parts of the file stay as they are. `json` is valid JSON. Another process reads the old file or the
/// new one.
///
/// Errors. Error{kConfiguration}: the file cannot be written, or the one that is there not be read; it is
///         named.
ESKER_API void keep_machine(const std::string& module, const std::string& what, const std::string& whom,
                            const std::string& json);

}  // namespace esker
