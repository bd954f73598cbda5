// Table 1 of Verner et al., on the systems as they are modelled.
#include <fmt/format.h>

#include "../../apps/batch/models.hpp"
#include "bench.hpp"

namespace esker::bench {

nlohmann::json take_methods(const TransferBench&) {
  using namespace batch_apps;
  constexpr Method kMethods[] = {Method::kBatch, Method::kBandwidth, Method::kTimeDivision};
  const struct {
    const char* system;
    double domain_s[3], wafer_mb[3];  // as the paper has them
  } printed[] = {{"nehalem", {20.03, 25.59, 23.10}, {82.46, 59.28, 60.24}},
                 {"sandy-bridge", {3.18, 25.19, 6.43}, {156.77, 128.10, 112.58}}};
  nlohmann::json all;
  fmt::print("{:13} {:14} {:>10} {:>8} {:>10} {:>12} {:>10} {:>8}\n", "", "", "domain s", "paper",
             "a phase's", "wafer MB", "by use", "paper");
  for (const auto& row : printed) {
    const auto topology = transfer::modelled_system(row.system);
    double domain[3], phase[3], both[3], use[3];
    for (int m = 0; m < 3; ++m) {
      DomainModel of_all, of_phase;
      of_phase.reserves_for_all = false;
      WaferModel whole, utilisation;
      utilisation.is_preemption_counted = false;
      domain[m] = model_domain(kMethods[m], topology, of_all).total_s;
      phase[m] = model_domain(kMethods[m], topology, of_phase).total_s;
      both[m] = model_wafer(kMethods[m], topology, whole) / 1e6;
      use[m] = model_wafer(kMethods[m], topology, utilisation) / 1e6;
      fmt::print("{:13} {:14} {:10.3f} {:8.2f} {:10.3f} {:12.2f} {:10.2f} {:8.2f}\n", row.system,
                 to_string(kMethods[m]), domain[m], row.domain_s[m], phase[m], both[m], use[m],
                 row.wafer_mb[m]);
      all[row.system][to_string(kMethods[m])] = {{"domain_s", domain[m]},
                                                 {"domain_s_paper", row.domain_s[m]},
                                                 {"domain_s_parts_of_a_phase", phase[m]},
                                                 {"wafer_mb", both[m]},
                                                 {"wafer_mb_utilisation_alone", use[m]},
                                                 {"wafer_mb_paper", row.wafer_mb[m]}};
    }
    for (int m = 1; m < 3; ++m) {
      fmt::print(
          "{:13} batch against {:14} domain {:.2f} (paper {:.2f}), wafer by use {:.3f} (paper {:.3f}), "
          "by the whole test {:.3f}\n",
          row.system, to_string(kMethods[m]), domain[m] / domain[0], row.domain_s[m] / row.domain_s[0],
          use[0] / use[m], row.wafer_mb[0] / row.wafer_mb[m], both[0] / both[m]);
      all[row.system][to_string(kMethods[m])]["domain_ratio"] = domain[m] / domain[0];
      all[row.system][to_string(kMethods[m])]["domain_ratio_paper"] = row.domain_s[m] / row.domain_s[0];
      all[row.system][to_string(kMethods[m])]["wafer_ratio"] = use[0] / use[m];
      all[row.system][to_string(kMethods[m])]["wafer_ratio_paper"] = row.wafer_mb[0] / row.wafer_mb[m];
      all[row.system][to_string(kMethods[m])]["wafer_ratio_whole_test"] = both[0] / both[m];
    }
  }
  return all;
}

}  // namespace esker::bench
