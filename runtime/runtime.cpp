// The public calls, and the start of a job.
#include <esker/runtime.hpp>

#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include <esker/build_info.hpp>
#include <esker/net/loopback/transport.hpp>
#include <esker/runtime/impl.hpp>
#include <esker/runtime/launcher.hpp>

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

namespace {

/// Gives `transport` back, unless its one PE is one of several processes that a launcher has started: as many
/// jobs would each do all the work, and each verify it.
std::unique_ptr<Transport> not_one_of_many(std::unique_ptr<Transport> transport, const char* what_to_do) {
  if (transport->n_pes() > 1) return transport;
  const auto launched = find_launched_processes();
  if (!launched) return transport;
  const std::string name = transport->name();
  transport->close(true);
  throw Error(
      Error::Kind::kConfiguration,
      fmt::format("Runtime: {}={} says that a launcher has started {} processes, but this one is alone "
                  "over {}: {}; if each is to be a job of its own, unset {}",
                  launched->variable, launched->processes, launched->processes, name, what_to_do,
                  launched->variable));
}

#if ESKER_WITH_MPI
// A Runtime of this process has initialised MPI, and finalises it at its end.
std::atomic<bool> mpi_is_a_runtimes{false};

Medium over_mpi() {
  if (mpi_is_a_runtimes.load()) {
    throw Error(
        Error::Kind::kConfiguration,
        "Runtime: an earlier Runtime of this process has initialised MPI for itself, and MPI cannot be "
        "initialised again: keep one Runtime for the whole program, or call MPI_Init_thread with "
        "MPI_THREAD_MULTIPLE before the first Runtime and MPI_Finalize after the last");
  }
  const auto ownership = mpi::find_ownership();
  mpi_is_a_runtimes.store(!mpi::is_initialised());
  return {[](const TransportLimits& limits) {
            return not_one_of_many(
                mpi::connect(limits),
                "start it by that MPI's own mpirun, or build Esker with the launcher's MPI");
          },
          ownership == mpi::Ownership::kOwnThread};
}
#endif

}  // namespace

Medium choose_medium(const Config& config) {
#if ESKER_WITH_MPI
  const bool use_mpi =
      config.transport == TransportKind::kMpi ||
      (config.transport == TransportKind::kAuto && (mpi::started_by_launcher() || mpi::is_initialised()));
  if (use_mpi) return over_mpi();
  const char* const what_to_do = config.transport == TransportKind::kLoopback
                                     ? "use --transport mpi, or leave --transport out"
                                     : "use --transport mpi";
#else
  const char* const what_to_do = "this library was built without MPI; configure it with -DESKER_MPI=ON";
#endif
  auto world = std::make_shared<loopback::World>(1);
  return {[world, what_to_do](const TransportLimits& limits) {
            return not_one_of_many(world->connect(0, limits), what_to_do);
          },
          true};
}

/// In a handler of what a lane of `kernel` has thrown.
void Runtime::Impl::throw_with_kernel(const char* kernel) {
  failure_.raise_if_set();  // which lanes throw too, while they wait
  const auto lane = workers_->throwing_lane();
  const std::string who =
      lane ? fmt::format("lane {} of group {} of kernel '{}'", lane->lane, lane->group, kernel)
           : fmt::format("kernel '{}'", kernel);
  auto kind = Error::Kind::kKernel;
  try {
    throw;
  } catch (const Error& error) {
    kind = error.kind();
    thrown_ = fmt::format("{}: {}", who, error.what());
  } catch (const std::exception& error) {
    thrown_ = fmt::format("{} has thrown: {}", who, error.what());
  } catch (...) {
    thrown_ = fmt::format("{} has thrown what is no std::exception", who);
  }
  std::throw_with_nested(Error(kind, thrown_));
}

void Runtime::Impl::start_together() {
  const std::uint64_t version = hash_text(build_info().version);
  const std::uint64_t still_untouched = pool_bytes_ + std::uint64_t{n_pes_} * kMpiBytesAPeer;
  declared_bytes_ = resident_bytes() + still_untouched;
  const bool fits = std::min(available_host_bytes() / pes_on_host_, address_space_left()) >= still_untouched;
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
              "heap; use fewer PEs a host, lower --node-buffer-bytes, or raise a limit of address space "
              "(ulimit -v)",
              pe, static_cast<double>(other[3]) / (1 << 20)));
    }
  }
  if (device_) link_peers();
  if (pe_ != 0) return;
  for (const std::string& warning : config_.warnings)
    std::fputs(("esker: warning: " + warning + "\n").c_str(), stderr);
  if (config_.startup == StartupPrint::kQuiet) return;
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

Runtime::Runtime(const Config& config, detail::Medium medium) : impl_{start(config, std::move(medium))} {}

Runtime::~Runtime() {
  const std::unique_ptr<Impl> impl(impl_);
  impl->end(std::uncaught_exceptions() > impl->exceptions_at_start());
}

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
void* Runtime::stream() const noexcept { return impl_->stream(); }
gpu::Occupancy& Runtime::occupancy() noexcept { return impl_->occupancy(); }
void Runtime::reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes,
                      std::uint32_t scratch_bytes) {
  impl_->reserve(kernel, group_lanes, scratch_bytes);
}
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
  impl_->run_groups(shape, name, function);
}
std::uint16_t Runtime::add_handler(HandlerTable::Entry entry) { return impl_->add_handler(std::move(entry)); }

}  // namespace esker
