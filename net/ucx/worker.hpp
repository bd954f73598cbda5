// A worker of UCX for active messages, and what it needs.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
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
/// Has `callback` called, with `argument`, for each active message of this number, when it is here as a
/// whole. The callback may keep the data: aligned to a cache line.
void handle(const Worker& worker, unsigned message, ucp_am_recv_callback_t callback, void* argument);
/// What peers make endpoints of.
std::vector<std::byte> address_of(const Worker& worker);
/// To the worker of this address. `lost` is called, with `argument`, when UCX cannot reach it any more.
ucp_ep_h make_endpoint(const Worker& worker, const std::vector<std::byte>& address, ucp_err_handler_cb_t lost,
                       void* argument);
/// Waits until what it has sent has gone; calls `progress` meanwhile, and ends by what that throws.
void close_endpoint(ucp_ep_h endpoint, const std::function<void()>& progress);

}  // namespace esker::ucx
