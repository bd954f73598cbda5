// Naps of host threads.
#pragma once

#include <sys/prctl.h>

namespace esker {

/// Makes this thread's naps end on time: by default Linux ends a nap up to 50 us late, to wake for several at
/// once. For threads that wait for a GPU, which rings no bell and is done in less.
inline void use_fine_timers() { (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); }

}  // namespace esker
