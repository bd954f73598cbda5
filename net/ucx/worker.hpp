// A worker of UCX for active messages, and what it needs.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

namespace esker::ucx {

/// Error{kNetwork}: the call, and what UCX says.
[[noreturn]] void fail(ucs_status_t status, std::string_view call);
inline void check(ucs_status_t status, std::string_view call) {
  if (status != UCS_OK) fail(status, call);
}

template <auto function>
struct Ended {
  template <class T>
  void operator()(T* p) const {
    function(p);
  }
};
using Context = std::unique_ptr<std::remove_pointer_t<ucp_context_h>, Ended<ucp_cleanup>>;
using Worker = std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, Ended<ucp_worker_destroy>>;

/// With the settings of the environment, ESKER_UCX_* before UCX_*.
Context make_context(std::uint32_t n_pes, std::uint32_t pes_on_host);
/// For any thread, one at a time.
Worker make_worker(const Context& context);
/// What peers make endpoints of.
std::vector<std::byte> address_of(const Worker& worker);

}  // namespace esker::ucx
