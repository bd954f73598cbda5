// Parts with a halo on the inner side; boundaries first, then the exchange beside the interior.
#include "domain.hpp"

#include <random>
#include <utility>

namespace batch_apps {

using esker::Device;
using esker::DeviceArray;
using esker::Lane;
using esker::Stream;
using esker::transfer::Batch;
using esker::transfer::CommandStream;

namespace {

/// New words [first, first + n) of a part; beyond its ends there are zeros.
struct Step {
  const std::uint32_t* now;
  std::uint32_t* next;
  std::uint64_t words, first, n;
  ESKER_HD void operator()(Lane lane) const {
    if (lane.global_id() >= n) return;
    const std::uint64_t i = first + lane.global_id();
    const std::uint32_t left = i == 0 ? 0 : now[i - 1], right = i + 1 == words ? 0 : now[i + 1];
    next[i] = left + 3 * now[i] + right;
  }
};

std::vector<std::uint32_t> expected(std::vector<std::uint32_t> now, std::uint32_t iterations) {
  std::vector<std::uint32_t> next(now.size());
  for (std::uint32_t t = 0; t < iterations; ++t, std::swap(now, next)) {
    for (std::size_t i = 0; i < now.size(); ++i)
      next[i] = (i == 0 ? 0 : now[i - 1]) + 3 * now[i] + (i + 1 == now.size() ? 0 : now[i + 1]);
  }
  return now;
}

}  // namespace

Ran run_domain(Method method, const Machine& machine, const DomainRun& run, bool verify) {
  Phases phases(method, machine);
  // Part 0 is [own | halo], part 1 [halo | own].
  const std::uint64_t half = run.words / 2, halo = run.boundary, part = half + halo;
  const auto host = machine.devices[0].pinned<std::uint32_t>(run.words),
             result = machine.devices[0].pinned<std::uint32_t>(run.words);
  std::mt19937 random(1);
  for (std::uint64_t i = 0; i < run.words; ++i) host[i] = static_cast<std::uint32_t>(random());
  std::vector<DeviceArray<std::uint32_t>> now, next;
  for (int p = 0; p < 2; ++p) {
    now.push_back(machine.devices[static_cast<std::size_t>(p)].memory<std::uint32_t>(part));
    next.push_back(machine.devices[static_cast<std::size_t>(p)].memory<std::uint32_t>(part));
  }
  const auto copy = [](std::int32_t to, void* destination, std::int32_t from, const void* source,
                       std::uint64_t words) {
    CommandStream stream;
    stream.to = to;
    stream.destination = destination;
    stream.from = from;
    stream.source = source;
    stream.bytes = words * sizeof(std::uint32_t);
    return stream;
  };
  const auto step = [&](std::size_t p, std::uint64_t first, std::uint64_t n) {
    return [=, from = now[p].data(), to = next[p].data()](const Device& device, const Stream& stream) {
      device.launch(n, Step{from, to, part, first, n}, stream);
    };
  };
  // Where the inner boundary of a part is, its halo, and the rest of its own words.
  const std::uint64_t boundary_at[] = {half - halo, halo}, halo_at[] = {half, 0},
                      interior_at[] = {0, 2 * halo};
  const std::uint64_t own_at[] = {0, halo};
  std::chrono::nanoseconds boundary_time{1}, interior_time{1};
  for (std::size_t p = 0; p < 2; ++p) {
    boundary_time = std::max(boundary_time, time_kernel(machine.devices[p], step(p, boundary_at[p], halo)));
    interior_time =
        std::max(interior_time, time_kernel(machine.devices[p], step(p, interior_at[p], half - halo)));
  }
  const auto kernel = [](std::size_t p, auto body, std::chrono::nanoseconds time) {
    CommandStream stream;
    stream.to = static_cast<std::int32_t>(p);
    stream.kernel = std::move(body);
    stream.kernel_time = time;
    return stream;
  };

  const auto began = std::chrono::steady_clock::now();
  // The halo is the other part's boundary as it was before the first step.
  phases.add({copy(0, now[0].data(), esker::transfer::kHost, host.data(), half),
              copy(1, now[1].data() + halo, esker::transfer::kHost, host.data() + half, half)});
  phases.add({copy(0, now[0].data() + half, esker::transfer::kHost, host.data() + half, halo),
              copy(1, now[1].data(), esker::transfer::kHost, host.data() + half - halo, halo)});
  for (std::uint32_t t = 0; t < run.iterations; ++t) {
    Batch boundaries, rest;
    for (std::size_t p = 0; p < 2; ++p) {
      const std::size_t other = 1 - p;
      boundaries.push_back(kernel(p, step(p, boundary_at[p], halo), boundary_time));
      rest.push_back(copy(static_cast<std::int32_t>(other), next[other].data() + halo_at[other],
                          static_cast<std::int32_t>(p), next[p].data() + boundary_at[p], halo));
    }
    for (std::size_t p = 0; p < 2; ++p)
      rest.push_back(kernel(p, step(p, interior_at[p], half - halo), interior_time));
    phases.add(boundaries);
    phases.add(rest);
    std::swap(now, next);
  }
  Batch gather;
  for (std::size_t p = 0; p < 2; ++p)
    gather.push_back(copy(esker::transfer::kHost, result.data() + p * half, static_cast<std::int32_t>(p),
                          now[p].data() + own_at[p], half));
  phases.add(gather);
  Ran ran;
  phases.finish(began, &ran);
  if (!verify) return ran;
  const std::vector<std::uint32_t> right = expected({host.data(), host.data() + run.words}, run.iterations);
  ran.is_right = std::equal(right.begin(), right.end(), result.data());
  return ran;
}

}  // namespace batch_apps
