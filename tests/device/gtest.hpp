// GoogleTest, for sources that a device compiler compiles too.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "../slow.hpp"

#if defined(ESKER_TEST_HIP)
#include <string>
#include <type_traits>
// clang 15 crashes when it meets the constraints of this pair for the first time while it works out, for
// HIP, which side the implicit members of a map node are for. Having met them before, it does not.
static_assert(!std::is_copy_assignable_v<std::pair<const std::string, ::testing::internal::CodeLocation> >);
#endif

namespace esker::testing {

/// Lanes and lanes a group of the largest launch in tests of every way to launch. For sanitizers, and on a
/// simulated GPU, each switch between the fibers of a group is work.
inline constexpr std::pair<std::uint32_t, std::uint32_t> kLargest =
    kIsSlow ? std::pair{250u, 96u} : std::pair{700u, 256u};

}  // namespace esker::testing
