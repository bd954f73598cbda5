// What this library was built as: ESKER_BUILT_COMMIT is written in each build, runtime/CMakeLists.txt has the
// other definitions.
#include <esker/config.hpp>

#include <algorithm>
#include <built_commit.hpp>

#include <esker/device/device_backend.hpp>

namespace esker {

bool BuildInfo::has_device(std::string_view name) const {
  return std::find(devices.begin(), devices.end(), name) != devices.end();
}

bool BuildInfo::has_transport(std::string_view name) const {
  return std::find(transports.begin(), transports.end(), name) != transports.end();
}

const BuildInfo& build_info() {
  static const BuildInfo info = [] {
    BuildInfo built{ESKER_BUILT_VERSION, ESKER_BUILT_COMMIT, {"cpu"}, {"loopback"}};
    const std::string device = ESKER_BUILT_DEVICE;
    if (device == "CUDA") built.devices.emplace_back("cuda");
    if (device == "HIP") built.devices.emplace_back("hip");
    if (ESKER_BUILT_MPI) built.transports.emplace_back("mpi");
    if (ESKER_BUILT_UCX) built.transports.emplace_back("ucx");
    return built;
  }();
  return info;
}

std::uint32_t gpus_here() { return detail::count_gpus(); }

}  // namespace esker
