// The public calls, and the start of a job.
#include <esker/runtime/runtime.hpp>

#include <exception>

#include <esker/net/loopback/transport.hpp>
#include <esker/runtime/build_info.hpp>
#include <esker/runtime/impl.hpp>

#if ESKER_WITH_MPI
#include <esker/net/mpi/transport.hpp>
#endif

namespace esker {

const char* to_string(Collective collective) {
  switch (collective) {
    case Collective::kStart:
      return "Runtime";
    case Collective::kAllocate:
      return "heap().allocate";
    case Collective::kFree:
      return "heap().free";
    case Collective::kRegister:
      return "register_handler";
    case Collective::kBarrier:
      return "barrier_all";
    case Collective::kReduce:
      return "all_reduce";
    case Collective::kEnd:
      return "~Runtime";
  }
  return "no collective call of Esker";
}

Medium choose_medium(const Config& config) {
#if ESKER_WITH_MPI
  const bool use_mpi =
      config.transport == TransportKind::kMpi ||
      (config.transport == TransportKind::kAuto && (mpi::started_by_launcher() || mpi::is_initialised()));
  if (use_mpi) {
    return {[](const TransportLimits& limits) { return mpi::connect(limits); },
            mpi::find_ownership() == mpi::Ownership::kOwnThread};
  }
#endif
  auto world = std::make_shared<loopback::World>(1);
  return {[world](const TransportLimits& limits) { return world->connect(0, limits); }, true};
}

void Runtime::Impl::start_together() {
  const std::uint64_t version = hash_text(build_info().version);
  const std::uint64_t still_untouched = pool_bytes_ + std::uint64_t{n_pes_} * kMpiBytesAPeer;
  declared_bytes_ = resident_bytes() + still_untouched;
  const bool fits = available_host_bytes() / pes_on_host_ >= still_untouched;
  const auto blocks = gather(Collective::kStart, {version, config_.node_buffer_bytes, memory_.limit_bytes(),
                                                  declared_bytes_, fits ? 1u : 0u, destinations()});
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    const auto& other = blocks[pe].values;
    const auto& first = blocks[0].values;
    if (other[0] != first[0]) {
      throw Error(Error::Kind::kConfiguration,
                  fmt::format("PE {} and PE 0 run different versions of Esker", pe));
    }
    // Where it is automatic it differs with the hosts, and the least holds for all.
    if (config_.heap_bytes == 0) memory_.lower_limit(other[2]);
    if (other[1] != first[1] || (config_.heap_bytes != 0 && other[2] != first[2]) || other[5] != first[5]) {
      throw Error(
          Error::Kind::kConfiguration,
          fmt::format("PE {} has node_buffer_bytes {}, heap_bytes {}, destinations {}; PE 0 has {}, {}, {}: "
                      "these must be the same on every PE",
                      pe, other[1], other[2], other[5], first[1], first[2], first[5]));
    }
    if (other[4] == 0) {
      throw Error(
          Error::Kind::kOutOfMemory,
          fmt::format(
              "PE {}'s host has too little memory for the PEs on it: each needs {:.1f} MiB beside its "
              "heap; use fewer PEs a host, or lower --node-buffer-bytes",
              pe, static_cast<double>(other[3]) / (1 << 20)));
    }
  }
  if (device_) link_peers();
  if (pe_ != 0 || config_.startup == StartupPrint::kQuiet) return;
  for (const std::string& warning : config_.warnings)
    std::fputs(("esker: warning: " + warning + "\n").c_str(), stderr);
  std::fputs(
      fmt::format("esker {}: {} PE{}, {} on PE 0's host, {} each; {}{}; heap up to {:.1f} MiB a PE, "
                  "beside it at most {:.1f} MiB\n",
                  build_info().version, n_pes_, n_pes_ == 1 ? "" : "s", pes_on_host_,
                  device_ ? fmt::format("{} ({} by peer memory)", device_->name(), device_->links())
                          : fmt::format("{} lane thread{}", workers_count_, workers_count_ == 1 ? "" : "s"),
                  transport_name_, owner_.has_own_thread() ? "" : ", driven by the program's own thread",
                  static_cast<double>(memory_.limit_bytes()) / (1 << 20),
                  static_cast<double>(declared_bytes_) / (1 << 20))
          .c_str(),
      stderr);
}

Runtime::Runtime(int& argc, char** argv) : Runtime(config_from_arguments(argc, argv)) {}

Runtime::Runtime(const Config& config) : impl_{std::make_unique<Impl>(config, choose_medium(config))} {}

Runtime::Runtime(const Config& config, Connect connect)
    : impl_{std::make_unique<Impl>(config, Medium{std::move(connect), true})} {}

Runtime::~Runtime() { impl_->end(std::uncaught_exceptions() > impl_->exceptions_at_start()); }

std::uint32_t Runtime::pe() const noexcept { return impl_->pe(); }
std::uint32_t Runtime::n_pes() const noexcept { return impl_->n_pes(); }
const Config& Runtime::config() const noexcept { return impl_->config(); }
std::uint32_t Runtime::host_threads() const noexcept { return impl_->host_threads(); }
SymmetricHeap& Runtime::heap() noexcept { return *impl_; }
void Runtime::quiet() { impl_->quiet(); }
void Runtime::barrier_all() { impl_->barrier(Collective::kBarrier); }
void Runtime::all_reduce(std::span<std::uint64_t> values, Reduction reduction) {
  impl_->all_reduce(values, reduction);
}
void Runtime::all_reduce(std::span<double> values, Reduction reduction) {
  impl_->all_reduce(values, reduction);
}
bool Runtime::runs_on_device() const noexcept { return impl_->runs_on_device(); }
void* Runtime::stream() const noexcept {
  impl_->leave_place(0);
  return impl_->stream();
}
void Runtime::leave_place(std::uint32_t scratch_bytes) { impl_->leave_place(scratch_bytes); }
std::string Runtime::device_name() const { return impl_->device_name(); }
void* Runtime::begin_launch(const char* kernel) { return impl_->begin_launch(kernel); }
void Runtime::end_launch(const std::string& error) { impl_->end_launch(error); }
void Runtime::refuse_launch(const char* kernel) const {
  throw Error(
      Error::Kind::kDevice,
      fmt::format("launch of '{}': this source was compiled for the host alone and the runtime is on {}; "
                  "compile it with the device's compiler, or use --device cpu",
                  kernel, device_name()));
}
const DeviceContext& Runtime::device_context() const noexcept {
  impl_->leave_place(0);
  return impl_->context();
}
const DeviceContext& Runtime::context() const noexcept { return impl_->context(); }
Statistics Runtime::statistics() const { return impl_->statistics(); }
StageStatistics Runtime::stage_statistics() const { return impl_->stage_statistics(); }
std::uint64_t Runtime::declared_memory_bytes() const { return impl_->declared_memory_bytes(); }
const std::string& Runtime::transport_name() const noexcept { return impl_->transport_name(); }
void Runtime::run_groups(const LaunchShape& shape, const char* name, const GroupFunction& function) {
  impl_->run_groups(shape, name, function);
}
std::uint16_t Runtime::add_handler(HandlerTable::Entry entry) { return impl_->add_handler(std::move(entry)); }

}  // namespace esker
