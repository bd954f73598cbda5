// The public calls.
#include <esker/collectives.hpp>
#include <esker/runtime.hpp>

#include <fmt/format.h>

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include <esker/device/device.hpp>
#include <esker/device/error.hpp>
#include <esker/runtime/impl.hpp>
#include <esker/runtime/medium.hpp>
#include <esker/runtime/pe_group.hpp>

namespace esker {

Runtime::Runtime(int& argc, char** argv) : Runtime(config_from_arguments(argc, argv)) {}

Runtime::Impl* Runtime::start(const Config& config, Medium medium) {
  try {
    return new Impl(config, std::move(medium));
  } catch (const std::bad_alloc&) {
    const auto limit = address_space_limit();
    throw Error(
        Error::Kind::kOutOfMemory,
        fmt::format(
            "Runtime: this process is out of memory{}: its package queue takes {}, and there are node "
            "buffers for each PE beside it; lower --package-slots, --package-bytes, "
            "--buffers-per-destination, --node-buffer-bytes or --heap-bytes",
            limit ? fmt::format(", of which it may map {} (ulimit -v)", in_mib(*limit)) : "",
            in_mib(std::uint64_t{config.package_slots} * config.package_bytes)));
  } catch (const std::system_error& error) {
    throw Error(
        Error::Kind::kOutOfMemory,
        fmt::format("Runtime: a thread cannot be started: {}; lower --cpu-threads, or raise the limits "
                    "of threads (ulimit -u) and of address space (ulimit -v)",
                    error.what()));
  }
}

Runtime::Runtime(const Config& config) : impl_{start(config, choose_medium(config))} {}

Runtime::Runtime(const Communicator& pes, const Config& config)
    : impl_{start(config, pes.group_->medium(config))} {}

Runtime::Runtime(const Config& config, detail::Medium medium) : impl_{start(config, std::move(medium))} {}

Runtime::~Runtime() {
  const std::unique_ptr<Impl> impl(impl_);
  impl->end(std::uncaught_exceptions() > impl->exceptions_at_start());
}

std::uint32_t Runtime::pe() const noexcept { return impl_->job().pe; }
std::uint32_t Runtime::n_pes() const noexcept { return impl_->job().n_pes; }
const Config& Runtime::config() const noexcept { return impl_->config(); }
std::uint32_t Runtime::host_threads() const noexcept { return impl_->host_threads(); }
SymmetricHeap& Runtime::heap() noexcept { return impl_->heap(); }
void Runtime::quiet() { impl_->collectives().quiet(); }
void Runtime::barrier_all() { impl_->collectives().barrier(Collective::kBarrier); }
void Runtime::all_reduce(std::span<std::uint64_t> values, Reduction reduction) {
  esker::all_reduce(*this, values, reduction);
}
void Runtime::all_reduce(std::span<double> values, Reduction reduction) {
  esker::all_reduce(*this, values, reduction);
}
void BlockOperations::start_block(const detail::BlockCall& call) {
  static_cast<Runtime*>(this)->impl_->blocks().start(call, nullptr);
}
void BlockOperations::send_bytes(const detail::BytesCall& call) {
  static_cast<Runtime*>(this)->impl_->send_bytes(call);
}
std::uint16_t BlockOperations::add_bytes_handler(HandlerEntry entry) {
  auto& impl = *static_cast<Runtime*>(this)->impl_;
  if (!impl.heap().on_host()) {
    throw Error(
        Error::Kind::kHandler,
        fmt::format("register_bytes_handler '{}': handlers of messages of any size run on the host, and the "
                    "heap is in the memory of {}; use --heap host, or register_handler",
                    entry.name, static_cast<Runtime*>(this)->device_name()));
  }
  return impl.add_handler(std::move(entry));
}
bool Runtime::runs_on_device() const noexcept { return impl_->executor().on_device(); }
void* Runtime::stream() const noexcept { return impl_->executor().stream(); }
void Runtime::reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes,
                      std::uint32_t scratch_bytes) {
  impl_->reserve(kernel, group_lanes, scratch_bytes);
}
const Device& Runtime::device() const noexcept { return impl_->executor().device(); }
gpu::Occupancy& Runtime::occupancy() noexcept { return *device().occupancy(); }
std::string Runtime::device_name() const { return device().name(); }
void* Runtime::begin_launch(const char* kernel) { return impl_->launches().begin(kernel); }
void Runtime::end_launch(const std::string& error) { impl_->launches().end(error); }
void Runtime::refuse_launch(const char* kernel) const {
  throw Error(
      Error::Kind::kDevice,
      fmt::format("launch of '{}': this source was compiled for the host alone and the runtime is on {}; "
                  "compile it with the device's compiler, or use --device cpu",
                  kernel, device_name()));
}
DeviceContext Runtime::device_context() const noexcept { return DeviceContext(impl_->context()); }
const detail::KernelContext& Runtime::context() const noexcept { return impl_->context(); }
Statistics Runtime::statistics() const { return impl_->statistics(); }
StageStatistics Runtime::stage_statistics() const { return impl_->stage_statistics(); }
std::uint64_t Runtime::declared_memory_bytes() const { return impl_->declared_memory_bytes(); }
const std::string& Runtime::transport_name() const noexcept { return impl_->transport_name(); }
LaunchShape Runtime::shape_of(std::uint64_t lanes) const noexcept {
  return {lanes, config().group_lanes, config().wave_lanes};
}
GroupExecution Runtime::group_execution() const noexcept { return config().group_execution; }
void Runtime::run_groups(const LaunchShape& shape, const char* name, detail::GroupFunction function) {
  impl_->launches().run_groups(shape, name, function);
}
std::uint16_t Runtime::add_handler(HandlerEntry entry) { return impl_->add_handler(std::move(entry)); }

std::uint64_t HostOperations::address(const char* call, const void* target, std::uint64_t bytes,
                                      std::uint64_t alignment, std::uint32_t pe, detail::TargetOf of) const {
  const detail::KernelContext& context = static_cast<const Runtime&>(*this).context();
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(target) - context.heap.base);
  if (pe >= context.n_pes || detail::is_outside(context.heap.bytes, offset, bytes) || offset % alignment != 0)
    detail::bad_host_target(call, of, offset, bytes, alignment, context.heap.bytes, pe, context.n_pes);
  return address_word(pe, offset);
}
std::byte* HostOperations::reach(std::uint64_t address) const {
  const auto& runtime = static_cast<const Runtime&>(*this);
  const auto pe = static_cast<std::uint32_t>(address >> kOffsetBits);
  std::byte* const heap = pe == own_pe() ? runtime.context().heap.base : runtime.impl_->reached_heap(pe);
  return heap == nullptr ? nullptr : heap + (address & kOffsetMask);
}
void HostOperations::require_handler(const char* call, std::uint16_t handler) {
  if (handler == 0) detail::no_host_handler(call);
}
void HostOperations::post(Command command, std::uint32_t width, std::uint32_t count,
                          const std::uint64_t* rows) {
  static_cast<Runtime&>(*this).impl_->sender().post(command, width, count, rows);
}
std::uint32_t HostOperations::own_pe() const noexcept { return static_cast<const Runtime&>(*this).pe(); }

std::uint64_t HostOperations::offset_of(const char* call, const char* what, const void* at,
                                        std::uint64_t bytes, std::uint64_t alignment) const {
  const HeapView& heap = static_cast<const Runtime&>(*this).context().heap;
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - heap.base);
  if (detail::is_outside(heap.bytes, offset, bytes)) {
    misuse(fmt::format("{}: {} of {} bytes at heap offset {} is outside the symmetric heap of {} bytes", call,
                       what, bytes, static_cast<std::int64_t>(offset), heap.bytes));
  }
  if (offset % alignment != 0) {
    misuse(fmt::format("{}: {} of {} bytes at heap offset {} is not aligned to {} bytes", call, what, bytes,
                       offset, alignment));
  }
  return offset;
}
bool HostOperations::is_on_device(const void* at) const {
  const auto& rt = static_cast<const Runtime&>(*this);
  return rt.runs_on_device() && rt.device().range_of(at).place == MemoryPlace::kDevice;
}

}  // namespace esker
