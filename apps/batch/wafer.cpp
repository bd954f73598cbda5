// A defect is a pixel far from its left neighbour; the report has a byte a pixel.
#include "wafer.hpp"

#include <random>
#include <thread>

namespace batch_apps {

using esker::Device;
using esker::DeviceArray;
using esker::Lane;
using esker::Stream;
using esker::transfer::Admission;
using esker::transfer::Batch;
using esker::transfer::CommandStream;
using Clock = std::chrono::steady_clock;

namespace {

ESKER_HD std::uint8_t inspect(std::uint8_t left, std::uint8_t pixel) {
  const int difference = static_cast<int>(pixel) - static_cast<int>(left);
  return difference > 100 || difference < -100 ? 1 : 0;
}

struct Inspect {
  const std::uint8_t* image;
  std::uint8_t* report;
  std::uint64_t n;
  ESKER_HD void operator()(Lane lane) const {
    const std::uint64_t i = lane.global_id();
    if (i < n) report[i] = inspect(i == 0 ? image[0] : image[i - 1], image[i]);
  }
};

}  // namespace

Ran run_wafer(Method method, const Machine& machine, const WaferRun& run, std::uint64_t seed, bool verify) {
  Phases phases(method, machine);
  const std::uint64_t n = run.image_bytes;
  const auto image = machine.devices[0].pinned<std::uint8_t>(n),
             report = machine.devices[0].pinned<std::uint8_t>(n);
  std::mt19937_64 random(seed);
  std::vector<DeviceArray<std::uint8_t>> images, reports;
  const std::uint64_t cuts[] = {0, n * 4 / 10, n * 5 / 10, n * 6 / 10, n};
  Batch there, back;
  for (std::size_t p = 0; p < 4; ++p) {
    const std::size_t device = p % machine.devices.size();
    const std::uint64_t size = cuts[p + 1] - cuts[p];
    images.push_back(machine.devices[device].memory<std::uint8_t>(size));
    reports.push_back(machine.devices[device].memory<std::uint8_t>(size));
    const auto kernel = [size, from = images[p].data(), to = reports[p].data()](const Device& d,
                                                                                const Stream& s) {
      d.launch(size, Inspect{from, to, size}, s);
    };
    CommandStream to, from;
    to.to = from.from = static_cast<std::int32_t>(device);
    to.destination = images[p].data();
    to.source = image.data() + cuts[p];
    from.destination = report.data() + cuts[p];
    from.source = reports[p].data();
    to.bytes = from.bytes = size;
    to.kernel = kernel;
    to.kernel_time = time_kernel(machine.devices[device], kernel);
    there.push_back(to);
    back.push_back(from);
  }
  Ran ran;
  const double needed = phases.predict(there) + phases.predict(back);
  const Clock::time_point start = Clock::now();
  for (std::uint32_t i = 0; i < run.images; ++i) {
    std::this_thread::sleep_until(start + i * run.period);
    const Clock::time_point released = start + i * run.period;
    for (std::uint64_t at = 0; at < n; at += 8) {
      const std::uint64_t word = random();
      for (std::uint64_t b = 0; b < 8 && at + b < n; ++b)
        image[at + b] = static_cast<std::uint8_t>(word >> 8 * b);
    }
    std::fill(report.data(), report.data() + n, std::uint8_t{2});
    const Clock::time_point began = Clock::now();
    if (method == Method::kBatch) {
      const auto left = [&] { return run.deadline - (Clock::now() - released); };
      // The image is of no use without the report.
      const auto for_report = std::chrono::nanoseconds(static_cast<std::int64_t>(phases.predict(back) * 1e9));
      const Admission first = phases.queue().submit(there, left() - for_report);
      const Admission second = first.is_accepted ? phases.queue().submit(back, left()) : first;
      if (!second.is_accepted) {
        if (first.is_accepted) first.batch->synchronize();
        ++ran.refused;
        ran.cause = second.reason;
        continue;
      }
      phases.add(*first.batch);
      phases.add(*second.batch);
      phases.finish(began, &ran);
    } else {
      if (needed > std::chrono::duration<double>(run.deadline - (Clock::now() - released)).count()) {
        ++ran.refused;
        ran.cause = "its copies one by one take longer than its deadline leaves";
        continue;
      }
      phases.add(there);
      phases.add(back);
      phases.finish(began, &ran);
      if (Clock::now() > released + run.deadline) ++ran.late;
    }
    if (!verify) continue;
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::uint64_t at = cuts[p]; at < cuts[p + 1]; ++at)
        ran.is_right =
            ran.is_right && report[at] == inspect(at == cuts[p] ? image[at] : image[at - 1], image[at]);
    }
  }
  // Where no image was inspected nothing is verified.
  ran.is_right = ran.is_right && (!verify || ran.refused < run.images);
  return ran;
}

}  // namespace batch_apps
