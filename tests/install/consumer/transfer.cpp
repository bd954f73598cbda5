// A user's program that needs transfers alone: it predicts a batch, and runs one.
#include <cstdio>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

int main() {
  const esker::transfer::Topology system = esker::transfer::example_system();
  const esker::transfer::CommandStream stream{.to = 0, .bytes = 6'000'000};
  const double predicted =
      esker::transfer::align_ends(system, esker::transfer::model_of(system, {stream})).makespan_s;
  std::printf("%.3f ms on %s, here: %s\n", predicted * 1e3, system.name().c_str(),
              esker::transfer::machine_name(esker::transfer::open_all_devices()).c_str());
  return predicted > 0.0009 && predicted < 0.0011 ? 0 : 1;
}
