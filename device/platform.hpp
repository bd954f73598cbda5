// Which compiler pass this is: the only file that asks for a vendor's macros.
//
// A CUDA or HIP source is compiled twice, once for the host and once for the device. Exactly one of
// ESKER_ON_CPU, ESKER_ON_CUDA, ESKER_ON_HIP and ESKER_ON_SIMULATED is defined in each pass, so the host pass
// of a device build holds the CPU back end, and one kernel source runs on both. For a simulated GPU there is
// but one pass, which is the device's; sources of the same program that hold no kernels are the host's.
#pragma once

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#endif

#if defined(__CUDA_ARCH__)
#define ESKER_ON_CUDA 1
#elif defined(__HIP_DEVICE_COMPILE__)
#define ESKER_ON_HIP 1
#elif defined(ESKER_SIMULATED_PASS)
#define ESKER_ON_SIMULATED 1
#else
#define ESKER_ON_CPU 1
#endif

#if !defined(ESKER_ON_CPU)
#define ESKER_ON_GPU 1
#endif

// A source that a device compiler compiles may launch kernels on the GPU.
#if defined(__CUDACC__) || defined(__HIPCC__) || defined(ESKER_ON_SIMULATED)
#define ESKER_DEVICE_COMPILER 1
#define ESKER_HD __host__ __device__
#define ESKER_LAMBDA __host__ __device__
#else
#define ESKER_HD
#define ESKER_LAMBDA
#endif

// A device function that is called where kernels are large already.
#if defined(ESKER_ON_CUDA)
#define ESKER_NOINLINE __noinline__
#else
#define ESKER_NOINLINE __attribute__((noinline))
#endif

// A function that asks which lanes are converged: lanes of another call, with other arguments, must not be
// among them.
#if defined(ESKER_ON_CUDA) || defined(ESKER_ON_HIP)
#define ESKER_ALWAYS_INLINE __forceinline__
#else
#define ESKER_ALWAYS_INLINE [[gnu::always_inline]] inline
#endif

// Around the types and functions whose definition depends on the pass. A program with a simulated GPU links
// sources of both passes, which must not define one name in two ways, so there the device's have a namespace
// of their own. CUDA and HIP want the same names in both passes: the name of a kernel contains them.
#if defined(ESKER_ON_SIMULATED)
#define ESKER_PASS_BEGIN inline namespace simulated_pass {
#define ESKER_PASS_END }
#else
#define ESKER_PASS_BEGIN
#define ESKER_PASS_END
#endif

// The back end of this pass says how a lane gives way, and a few facts about itself.
#if defined(ESKER_ON_CUDA)
#include <esker/device/cuda/platform.hpp>
#elif defined(ESKER_ON_HIP)
#include <esker/device/hip/platform.hpp>
#elif defined(ESKER_ON_SIMULATED) || defined(ESKER_DEVICE_SIMULATED)
#include <esker/device/simulated/platform.hpp>
#else
#include <esker/device/cpu/platform.hpp>
#endif

// What users of the library link to: a shared library hides the rest.
#define ESKER_API __attribute__((visibility("default")))

namespace esker {

/// Size of the unit in which a cache, a bus or a peer link moves memory: words that different sides
/// write stand at least this far apart.
inline constexpr unsigned kLineBytes = 128;

namespace detail {
/// Stands for the compiler in the name of a template's instance whose definition depends on it.
#if defined(ESKER_DEVICE_COMPILER)
struct DevicePass {};
using Pass = DevicePass;
#else
struct HostPass {};
using Pass = HostPass;
#endif
}  // namespace detail

}  // namespace esker
