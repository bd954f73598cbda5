// The two applications of Verner et al., section 4.2, on systems that are modelled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/transfer.hpp>

namespace batch_apps {

enum class Method : std::uint8_t { kBatch, kBandwidth, kTimeDivision };
/// As --method takes it.
const char* to_string(Method method);
Method method_of(const std::string& name);
esker::transfer::Timeline schedule(Method method, const esker::transfer::Topology& topology,
                                   const std::vector<esker::transfer::StreamModel>& streams);

/// Domain decomposition on devices 0 and 1, in the paper's sizes.
struct DomainModel {
  double bytes = 3.69e9, boundary_bytes = 295.2e6;  // scattered in all; sent each way, each time
  double boundary_s = 1e-3, interior_s = 23e-3;
  std::uint32_t iterations = 100;
  /// Bandwidth allocation: each transfer of the application has its part all the time, and an exchange goes
  /// by way of host memory, for which alone parts are given. Else parts are those of one phase, and an
  /// exchange is as in the other methods.
  bool reserves_for_all = true;
};
struct DomainTimes {
  double scatter_s = 0, iteration_s = 0, gather_s = 0, total_s = 0;
};
DomainTimes model_domain(Method method, const esker::transfer::Topology& topology, const DomainModel& model);

/// Wafer inspection on devices 0 to 3. Read as: an image comes every 25 ms, is split 40, 10, 10 and 40 %, and
/// all four GPUs process it in the time that one takes for all of it at 10 GB/s, since the parts are made to
/// balance them; a report of the same size goes back every 60 ms. Its two batches are tasks of non-preemptive
/// EDF with these periods.
struct WaferModel {
  double image_period_s = 25e-3, report_period_s = 60e-3, kernel_bytes_per_s = 10e9;
  /// The whole of Jeffay's test; else its first condition alone, utilisation, which is what the figures of
  /// Table 1 meet with equality.
  bool is_preemption_counted = true;
};
/// The largest image that keeps all deadlines, in bytes.
double model_wafer(Method method, const esker::transfer::Topology& topology, const WaferModel& model);

}  // namespace batch_apps
