// The host's pass.
#define TWO_PASSES_NAME use_all_on_host
#include "two_passes.hpp"
