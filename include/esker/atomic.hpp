// Words that several lanes, or a lane and the host, change: SystemAtomic<T>, DeviceAtomic<T>, GroupAtomic<T>.
//
// T has 4 or 8 bytes. The type says who takes part, the method which order it has:
//   load_relaxed, load_acquire, store_relaxed, store_release,
//   fetch_add_relaxed, fetch_add_acq_rel,
//   compare_exchange_relaxed, compare_exchange_acquire, compare_exchange_acq_rel
// On the CPU the scopes are the same; on a GPU a narrower one is cheaper. A GroupAtomic stands in scratchpad.
#pragma once

#include <esker/device/atomic.hpp>
