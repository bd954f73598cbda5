// A number that stands for a text, so that PEs can compare their texts in a gather.
#pragma once

#include <cstdint>
#include <string_view>

namespace esker {

/// FNV-1a.
inline std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace esker
