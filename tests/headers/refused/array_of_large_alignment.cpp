// Refused: an array begins at a multiple of 128 bytes
// Whole pages, which vectors of instructions would take as aligned.
#include <esker/device.hpp>

struct alignas(4096) Page {
  char bytes[4096];
};

esker::DeviceArray<Page> pages(const esker::Device& device) { return device.memory<Page>(1); }
