// Their phases as batches of the model.
#include "models.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace batch_apps {

using namespace esker::transfer;

const char* to_string(Method method) {
  return method == Method::kBatch ? "batch" : method == Method::kBandwidth ? "bandwidth" : "time-division";
}

Method method_of(const std::string& name) {
  for (const Method m : {Method::kBatch, Method::kBandwidth, Method::kTimeDivision}) {
    if (name == to_string(m)) return m;
  }
  throw std::invalid_argument(name + " is no method");
}

Timeline schedule(Method method, const Topology& topology, const std::vector<StreamModel>& streams) {
  switch (method) {
    case Method::kBatch:
      return align_ends(topology, streams);
    case Method::kBandwidth:
      return allocate_bandwidth(topology, streams);
    case Method::kTimeDivision:
      return divide_time(topology, streams);
  }
  return {};
}

DomainTimes model_domain(Method method, const Topology& t, const DomainModel& model) {
  const std::uint32_t host = t.host(), gpus[] = {t.device(0), t.device(1)};
  std::vector<StreamModel> scatter, gather, exchange, up, down;
  for (int i = 0; i < 2; ++i) {
    scatter.push_back({host, gpus[i], model.bytes / 2});
    gather.push_back({gpus[i], host, model.bytes / 2});
    exchange.push_back({gpus[i], gpus[1 - i], model.boundary_bytes});
    up.push_back({gpus[i], host, model.boundary_bytes});
    down.push_back({host, gpus[i], model.boundary_bytes});
  }
  DomainTimes times;
  if (method == Method::kBandwidth && model.reserves_for_all) {
    std::vector<StreamModel> all = scatter;
    for (const auto& phase : {gather, up, down}) all.insert(all.end(), phase.begin(), phase.end());
    times.scatter_s = allocate_bandwidth(t, scatter, all).makespan_s;
    times.gather_s = allocate_bandwidth(t, gather, all).makespan_s;
    const double exchanged =
        allocate_bandwidth(t, up, all).makespan_s + allocate_bandwidth(t, down, all).makespan_s;
    times.iteration_s = model.boundary_s + std::max(model.interior_s, exchanged);
  } else {
    for (const std::uint32_t gpu : gpus) exchange.push_back({gpu, gpu, 0, model.interior_s});
    times.scatter_s = schedule(method, t, scatter).makespan_s;
    times.gather_s = schedule(method, t, gather).makespan_s;
    times.iteration_s = model.boundary_s + schedule(method, t, exchange).makespan_s;
  }
  times.total_s = times.scatter_s + model.iterations * times.iteration_s + times.gather_s;
  return times;
}

double model_wafer(Method method, const Topology& t, const WaferModel& model) {
  const double parts[] = {0.4, 0.1, 0.1, 0.4};
  const auto is_valid = [&](double bytes) {
    std::vector<StreamModel> there, back;
    for (std::uint32_t i = 0; i < 4; ++i) {
      there.push_back({t.host(), t.device(i), parts[i] * bytes, bytes / model.kernel_bytes_per_s});
      back.push_back({t.device(i), t.host(), parts[i] * bytes});
    }
    const auto ns = [](double s) { return static_cast<std::uint64_t>(std::ceil(s * 1e9)); };
    const std::vector<SporadicTask> tasks{
        {ns(schedule(method, t, there).makespan_s), ns(model.image_period_s)},
        {ns(schedule(method, t, back).makespan_s), ns(model.report_period_s)}};
    return model.is_preemption_counted ? test_edf(tasks).is_feasible : fits_utilisation(tasks);
  };
  double fits = 1, above = 1e10;
  while (above - fits > 1e3) {
    const double middle = (fits + above) / 2;
    (is_valid(middle) ? fits : above) = middle;
  }
  return fits;
}

}  // namespace batch_apps
