// One processor, a GPU or the host's cores, for programs that send no messages and for what a program does
// beside them. Needs no Runtime and no MPI.
//
//   Device         open(), properties(), memory<T>(), pinned<T>(), managed<T>(), copy(), fill(), launch()
//   DeviceArray, PinnedArray, ManagedArray    memory that they own
//   Stream, Event  work in order, and marks in it
//   DeviceGraph    work that is put together once and launched many times
//
// What kernels take is in lane.hpp.
#pragma once

#include <esker/device/device.hpp>
