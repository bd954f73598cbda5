// GroupLane, a lane that can work with the others of its group: the back end of this compiler pass.
#pragma once

#include <esker/device/platform.hpp>

#if defined(ESKER_ON_CUDA)
#include <esker/device/cuda/group.hpp>
#elif defined(ESKER_ON_HIP)
#include <esker/device/hip/group.hpp>
#elif defined(ESKER_ON_SIMULATED)
#include <esker/device/simulated/group.hpp>
#else
#include <esker/device/cpu/group.hpp>
#endif
