// Making a container by several collective calls, of which each may throw.
#pragma once

#include <esker/error.hpp>
#include <esker/runtime.hpp>

namespace esker::containers {

/// Runs `part`, which makes more of `container`. Where that throws an Error, on every PE alike, the
/// container, which nobody has got yet, is freed before.
template <class Container, class Part>
void or_free(Runtime& rt, Container& container, Part part) {
  try {
    part();
  } catch (const Error&) {
    container.free(rt);
    throw;
  }
}

}  // namespace esker::containers
