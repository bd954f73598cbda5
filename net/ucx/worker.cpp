// Calls that set UCX up.
#include <esker/net/ucx/worker.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::ucx {

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
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(context.get(), &params, &worker), "ucp_worker_create");
  return Worker(worker);
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

}  // namespace esker::ucx
