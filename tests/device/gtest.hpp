// GoogleTest, for sources that a device compiler compiles too.
#pragma once

#include <gtest/gtest.h>

#if defined(ESKER_TEST_HIP)
#include <string>
#include <type_traits>
#include <utility>
// clang 15 crashes when it meets the constraints of this pair for the first time while it works out, for
// HIP, which side the implicit members of a map node are for. Having met them before, it does not.
static_assert(!std::is_copy_assignable_v<std::pair<const std::string, ::testing::internal::CodeLocation> >);
#endif
