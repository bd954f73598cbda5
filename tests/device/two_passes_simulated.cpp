// The simulated GPU's pass.
#define TWO_PASSES_NAME use_all_on_simulated
#include "two_passes.hpp"
