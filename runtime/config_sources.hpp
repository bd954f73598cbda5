// Where settings are written down, as text: a configuration file and the environment. Private.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace esker::detail {

struct FileLine {
  std::string name;
  std::string value;
  std::string where;  // "FILE:12"
};

/// Lines "name = value"; # starts a comment. Throws Error{kConfiguration} if the file cannot be read or a
/// line is none of these.
std::vector<FileLine> read_config_file(const std::string& path);

/// This process's ESKER_* variables.
std::map<std::string, std::string> process_environment();

}  // namespace esker::detail
