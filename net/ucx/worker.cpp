// Calls that set UCX up.
#include <esker/net/ucx/worker.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::ucx {
namespace {
constexpr std::size_t kAlignment = 64;  // of the data of messages
}

void fail(ucs_status_t status, std::string_view call) {
  throw Error(Error::Kind::kNetwork, fmt::format("UCX: {}: {}", call, ucs_status_string(status)));
}

Context make_context(std::uint32_t n_pes, std::uint32_t pes_on_host) {
  ucp_config_t* read = nullptr;
  check(ucp_config_read("ESKER", nullptr, &read), "ucp_config_read");
  const std::unique_ptr<ucp_config_t, Ended<ucp_config_release>> settings(read);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_PPN | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM;
  params.estimated_num_eps = n_pes;
  params.estimated_num_ppn = pes_on_host;
  params.name = "esker";
  ucp_context_h context = nullptr;
  check(ucp_init(&params, settings.get(), &context), "ucp_init");
  return Context(context);
}

Worker make_worker(const Context& context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.am_alignment = kAlignment;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(context.get(), &params, &worker), "ucp_worker_create");
  return Worker(worker);
}

void handle(const Worker& worker, unsigned message, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
  handler.cb = callback;
  handler.arg = argument;
  check(ucp_worker_set_am_recv_handler(worker.get(), &handler), "ucp_worker_set_am_recv_handler");
}

std::vector<std::byte> address_of(const Worker& worker) {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check(ucp_worker_get_address(worker.get(), &address, &bytes), "ucp_worker_get_address");
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> copy(first, first + bytes);
  ucp_worker_release_address(worker.get(), address);
  return copy;
}

// A mode of UCX's that handles errors would go without its shared memory.
ucp_ep_h make_endpoint(const Worker& worker, const std::vector<std::byte>& address, ucp_err_handler_cb_t lost,
                       void* argument) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_handler.cb = lost;
  params.err_handler.arg = argument;
  ucp_ep_h endpoint = nullptr;
  check(ucp_ep_create(worker.get(), &params, &endpoint), "ucp_ep_create");
  return endpoint;
}

void close_endpoint(ucp_ep_h endpoint, const std::function<void()>& progress) {
  const ucp_request_param_t param{};
  void* const request = ucp_ep_close_nbx(endpoint, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS) progress();
  ucp_request_free(request);
}

}  // namespace esker::ucx
