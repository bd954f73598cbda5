// Whom an atomic operation is for.
#pragma once

namespace esker {

/// Who takes part. On the CPU all three are the same; on a device a narrower scope is cheaper and
/// orders less. A group's words stand in scratchpad.
enum class Scope { kGroup, kDevice, kSystem };

}  // namespace esker
