// Times each path of copies at the points of a CopyProfile.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <esker/transfer/copy/copy_batch.hpp>
#include <esker/transfer/copy/copy_profile.hpp>

namespace esker::transfer {

namespace {

constexpr std::size_t kShort = std::size_t{1}
                               << 20;  // in all: microseconds, which others of the machine blur
constexpr std::size_t kGap = 256;      // between two copies: adjacent ones would be one

double median_us(Copier& copier, CopyPath path, const std::vector<Copy>& copies, const Stream& stream,
                 std::uint32_t repeats) {
  std::vector<double> us;
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    const auto began = std::chrono::steady_clock::now();
    copier.copy_by(path, copies, stream);
    stream.synchronize();
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
  }
  us.erase(us.begin());  // warm-up
  std::nth_element(us.begin(), us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2), us.end());
  return us[us.size() / 2];
}

}  // namespace

CopyProfile measure_copies(const Device& device, const CopyMeasurement& how) {
  CopyProfile profile;
  Copier copier(device, profile);
  const Stream stream = device.stream();
  const Allocation what{.what = "measuring copies"};
  const auto host = device.pinned<std::byte>(how.bytes, what);
  const DeviceArray<std::byte> here = device.memory<std::byte>(how.bytes, what);
  const DeviceArray<std::byte> there = device.memory<std::byte>(how.bytes, what);
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost, Direction::kWithin}) {
    std::byte* const to = direction == Direction::kToHost ? host.data() : here.data();
    const std::byte* const from = direction == Direction::kToDevice ? host.data() : there.data();
    for (const CopyPath path : {CopyPath::kSeparate, CopyPath::kBatchCall, CopyPath::kKernel}) {
      for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
        for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
          const std::size_t n = CopyProfile::count_at(c), bytes = CopyProfile::bytes_at(s);
          if (n * (bytes + kGap) > how.bytes) {
            // By the size before, or on the line through the two numbers before.
            const double less =
                c < 2 ? profile.at(direction, path, c, s - 1) : profile.at(direction, path, c - 1, s);
            profile.set(direction, path, c, s,
                        c < 2 ? 2 * less : less + 2 * (less - profile.at(direction, path, c - 2, s)));
            continue;
          }
          std::vector<Copy> copies;
          for (std::size_t i = 0; i < n; ++i)
            copies.push_back({to + i * (bytes + kGap), from + i * (bytes + kGap), bytes});
          profile.set(
              direction, path, c, s,
              median_us(copier, path, copies, stream, n * bytes <= kShort ? 5 * how.repeats : how.repeats));
        }
      }
    }
  }
  return profile;
}

}  // namespace esker::transfer
