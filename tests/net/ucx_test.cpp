// The UCX transport, alone or with shared memory on hosts of two PEs, under mpirun.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/mpi/transport.hpp>
#include <esker/net/shared/transport.hpp>
#include <esker/net/ucx/transport.hpp>

#include "hosts.hpp"
#include "transport_job.hpp"

namespace esker::testing {
namespace {

TEST(Ucx, FrameBeyondTheLimitIsAnErrorWithBothSizes) {
  if (transport->name().rfind("ucx", 0) != 0) GTEST_SKIP() << "it is " << transport->name();
  run([](Transport& t) {
    const std::vector<std::byte> frame(kLimits.frame_bytes + 1);
    try {
      t.try_send((t.pe() + 2) % t.n_pes(), frame, nullptr);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kNetwork);
      EXPECT_NE(std::string(error.what()).find("a frame of 1001 bytes is longer than 1000"),
                std::string::npos)
          << error.what();
    }
    gather(t, {});
  });
}

/// "", "alone", "tcp": UCX alone. "hosts": with shared memory on hosts of two PEs. "refused": PE 1 does not
/// want it, so nobody uses it. "must", "cannot": the same, and there is no such transport of UCX's, and PE 0
/// says that all must use it: an error everywhere, null.
std::unique_ptr<Transport> connect(std::string_view how) {
  constexpr std::string_view kCases[] = {"", "alone", "tcp", "hosts", "refused", "must", "cannot"};
  if (std::find(std::begin(kCases), std::end(kCases), how) == std::end(kCases))
    throw std::runtime_error("no such case");
  std::unique_ptr<Transport> mpi = mpi::connect(kLimits);
  Wish wish = how == "refused" ? Wish::kIfAllCan : Wish::kMust;
  if ((how == "refused" || how == "must") && mpi->pe() == 1) wish = Wish::kOff;
  try {
    std::unique_ptr<Transport> ucx = ucx::connect(std::move(mpi), kLimits, wish);
    const bool goes_by_ucx = ucx->name().find("ucx") != std::string::npos;
    if (how == "must" || how == "cannot" || goes_by_ucx == (how == "refused"))
      throw std::runtime_error("it is " + ucx->name());
    if (how != "hosts") return ucx;
    return shared::connect(std::make_unique<Hosts>(std::move(ucx)), kLimits, Wish::kMust);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (how == "must" && text.find("PE 1: it has --transport mpi") != std::string::npos) return nullptr;
    if (how == "cannot" && text.find("PE 0: UCX: ucp_init: ") != std::string::npos) return nullptr;
    throw;
  }
}

}  // namespace
}  // namespace esker::testing

int main(int argc, char** argv) { return esker::testing::run_job(argc, argv, esker::testing::connect); }
