// What the sources of the simulated GPU's runtime share: its current device, and how it moves memory.
#pragma once

#include <cstddef>

namespace esker::simulated {

inline constexpr int kDevices = 16;  // at most
inline constexpr int kProcessors = 2;

/// The calling thread's.
int current_device();
/// Whether kernels of device `from` reach memory of device `to`.
bool has_access(int from, int to);

/// Whose memory it is: -1: the host's.
int device_of(const void* at);

/// Whole pages of zeros are no memory: it is touched where it is used.
void fill(void* at, int value, std::size_t bytes);
/// What a kernel reads while it is written comes in whole words, the last one after the others.
void copy(void* to, const void* from, std::size_t bytes);

}  // namespace esker::simulated
