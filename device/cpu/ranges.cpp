// Ranges where there is no device's profiler.
#include <esker/device/ranges.hpp>

namespace esker::ranges {

bool are_watched() { return false; }
void push(const char*) {}
void pop() {}

}  // namespace esker::ranges
