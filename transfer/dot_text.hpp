// Names in pictures for Graphviz.
#pragma once

#include <string>

namespace esker::transfer::detail {

/// What stands between the quotes of a label and reads as `text`.
inline std::string dot_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace esker::transfer::detail
