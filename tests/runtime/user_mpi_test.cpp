// A program that uses MPI itself: before, beside and after Esker. The argument says who starts MPI, and how.
//
//   user_mpi_test single|funneled|multiple   MPI is the program's, at this level; under mpirun or alone
//   user_mpi_test failure                    the same, where PE 1 leaves Esker by an exception and all go on
//   user_mpi_test late                       rank 1 makes its Runtime late, and rank 0 says that it waits
//   user_mpi_test none                       nobody starts MPI, and there is no launcher: one PE
//   user_mpi_test esker                      Esker does, under mpirun: a second Runtime is refused
//   user_mpi_test refused                    a launcher of another MPI says that there are more PEs
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <esker/config.hpp>
#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kLanes = 20'000;
constexpr std::uint32_t kGroupLanes = 8;
constexpr int kSkipped = 77;

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// Queue and buffers so small that lanes wait for the network most of the time. The transport is the
/// environment's.
esker::Config small_config() {
  esker::Config config = esker::Config::from_environment();
  config.heap_bytes = 2 << 20;
  config.huge_pages = false;
  config.package_bytes = 1024;
  config.package_slots = 2;
  config.node_buffer_bytes = 1024;
  config.buffers_per_destination = 2;
  config.cpu_threads = 2;
  config.hang_seconds = 30;
  config.startup = esker::StartupPrint::kQuiet;
  return config;
}

struct Amount {
  std::uint64_t value;
};

/// Every PE counts on every PE, by increments and by a handler that progress kernels half of its calls on.
void count_everywhere(std::uint32_t n_pes, const std::string& transport) {
  esker::Runtime rt(small_config());
  require(rt.n_pes() == n_pes, fmt::format("{} PEs instead of {}", rt.n_pes(), n_pes));
  require(rt.transport_name().rfind(transport, 0) == 0, "the transport is " + rt.transport_name());
  const auto words = rt.heap().allocate<std::uint64_t>(4);
  const auto handler = rt.register_handler<std::uint64_t, Amount>(
      "add_and_pass_on",
      [](esker::HandlerContext& context, std::uint64_t& word, const Amount& amount, auto self) {
        word += amount.value % 2;
        if (amount.value > 1) shmem_am(context, self, &word, {1}, (context.pe() + 1) % context.n_pes());
      });

  rt.launch(kLanes, [=](esker::WorkItem item) {
    shmem_inc(item, &words[0], static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
  });
  rt.barrier_all();
  // Lane i of each PE counts on PE i % n.
  const std::uint64_t expected = n_pes * ((kLanes + n_pes - 1 - rt.pe()) / n_pes);
  require(words[0] == expected, fmt::format("{} increments instead of {}", words[0], expected));

  rt.launch(kLanes, [=](esker::WorkItem item) {
    const Amount amount{1 + item.global_id() % 2};
    shmem_am(item, handler, &words[1], amount, static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
  });
  rt.barrier_all();
  std::uint64_t sum[1] = {words[1]};
  rt.all_reduce(std::span<std::uint64_t>(sum), esker::Reduction::kSum);
  require(sum[0] == kLanes * n_pes, fmt::format("{} handler calls instead of {}", sum[0], kLanes * n_pes));

  // All messages come from the other lane thread: this one, which may be the network's owner, has nothing to
  // do but to keep the network going.
  const auto user_thread = std::this_thread::get_id();
  std::atomic<bool> other_has_begun{false};
  std::atomic<std::uint64_t> lanes_of_the_other{0};  // of one group, or of both where this thread comes late
  const esker::LaunchShape two_groups{2 * kGroupLanes, kGroupLanes, kGroupLanes};
  const auto send_from_the_other = [&, words](esker::WorkItem item) {
    if (std::this_thread::get_id() == user_thread) {
      while (!other_has_begun.load()) std::this_thread::yield();
      return;
    }
    other_has_begun.store(true);
    ++lanes_of_the_other;
    for (std::uint64_t i = 0; i < kLanes; ++i) shmem_inc(item, &words[3], (item.pe() + 1) % item.n_pes());
  };
  rt.launch_shape(two_groups, send_from_the_other);
  rt.barrier_all();
  std::uint64_t both[2] = {words[3], kLanes * lanes_of_the_other};
  rt.all_reduce(std::span<std::uint64_t>(both), esker::Reduction::kSum);
  require(both[0] == both[1] && both[1] > 0, fmt::format("{} increments instead of {}", both[0], both[1]));

  // One PE at a time writes to its neighbour and is told by quiet() alone that this is done.
  for (std::uint32_t turn = 0; turn < n_pes; ++turn) {
    const std::uint32_t next = (turn + 1) % n_pes;
    if (rt.pe() == turn) {
      rt.launch(1, [=](esker::WorkItem item) { shmem_put(item, &words[2], 1000 + turn, next); });
      rt.quiet();
    }
    rt.barrier_all();
    if (rt.pe() == next) require(words[2] == 1000 + turn, "a put is missing");
  }
}

/// Every PE has two at a time, and each counts by itself.
void count_by_two() {
  esker::Runtime first(small_config());
  esker::Runtime second(small_config());
  const auto of_first = first.heap().allocate<std::uint64_t>(1);
  const auto of_second = second.heap().allocate<std::uint64_t>(1);
  const std::uint32_t next = (first.pe() + 1) % first.n_pes();
  first.launch(1000, [=](esker::WorkItem item) { shmem_inc(item, of_first.data(), next); });
  second.launch(2000, [=](esker::WorkItem item) { shmem_inc(item, of_second.data(), next); });
  second.barrier_all();
  first.barrier_all();
  require(of_first[0] == 1000 && of_second[0] == 2000, "two Runtimes mix up what they count");
}

/// Whether Runtime is refused with all of `words` in the message.
bool is_refused(const std::vector<std::string>& words, const esker::Config& config = small_config()) {
  try {
    esker::Runtime rt(config);
  } catch (const esker::Error& error) {
    const std::string message = error.what();
    for (const std::string& word : words)
      require(message.find(word) != std::string::npos, "no \"" + word + "\" in: " + message);
    return true;
  }
  return false;
}

/// What `call` prints on standard error.
template <class Call>
std::string printed_by(const Call& call) {
  std::FILE* const file = std::tmpfile();
  require(file != nullptr, "no temporary file");
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  call();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text(4096, 0);
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

void meet_a_late_one(int rank) {
  esker::Config config = small_config();
  config.hang_seconds = 1;
  if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds{2500});
  const std::string text = printed_by([&] { esker::Runtime rt(config); });
  const std::string warning = "esker: rank 0 of 2 has waited 1 s for the others to make this Runtime";
  const std::size_t at = text.find(warning);
  require((rank == 0) == (at != std::string::npos), "rank " + std::to_string(rank) + " has printed: " + text);
  require(rank == 1 || text.find(warning, at + 1) == std::string::npos, "it is said twice: " + text);
}

/// The program's own communication, which Esker's must not disturb.
void sum_by_mpi(int n_pes) {
  int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  require(sum == n_pes, fmt::format("MPI_Allreduce gives {} instead of {}", sum, n_pes));
}

/// PE 1 leaves a job of two by an exception; messages of PE 0 set out for it only then.
void leave_by_an_exception(int pe) {
  esker::Config config = small_config();
  config.cpu_threads = 1;
  config.package_slots = 64;
  config.node_buffer_bytes = 64 << 10;  // by a rendezvous
  config.buffers_per_destination = 8;
  int told = 0;
  try {
    esker::Runtime rt(config);
    const auto words = rt.heap().allocate<std::uint64_t>(4);
    rt.barrier_all();
    if (pe == 1) throw std::logic_error("the program's own fault");
    // A launch that drives the network itself would learn of PE 1's end before it sends.
    rt.launch(kLanes, [=](esker::WorkItem item) { shmem_inc(item, &words[0], 1); });
    MPI_Recv(&told, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rt.quiet();
    require(false, "quiet() returns though PE 1 has left");
  } catch (const std::logic_error&) {
    require(pe == 1, "PE 0 has not thrown that");
    MPI_Send(&told, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  } catch (const esker::Error& error) {
    require(pe == 0 && std::string(error.what()).find("PE 1") != std::string::npos, error.what());
  }
}

int with_mpi(int argc, char** argv, const std::string& level) {
  const int required = level == "multiple" ? MPI_THREAD_MULTIPLE
                       : level == "single" ? MPI_THREAD_SINGLE
                                           : MPI_THREAD_FUNNELED;
  int provided = MPI_THREAD_SINGLE;
  if (level == "single") {
    MPI_Init(&argc, &argv);
    MPI_Query_thread(&provided);
  } else {
    MPI_Init_thread(&argc, &argv, required, &provided);
  }
  if (provided != required) {
    std::fputs(fmt::format("MPI provides level {} where {} was asked for\n", provided, required).c_str(),
               stderr);
    MPI_Finalize();
    return kSkipped;
  }
  int n_pes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n_pes);
  sum_by_mpi(n_pes);
  try {
    int pe = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &pe);
    if (level == "late") meet_a_late_one(pe);
    if (level == "failure") {
      leave_by_an_exception(pe);
      sum_by_mpi(n_pes);
    }
    for (int round = 0; round < 2; ++round) {
      const bool ucx = small_config().transport == esker::TransportKind::kUcx;
      count_everywhere(static_cast<std::uint32_t>(n_pes), ucx ? "ucx" : "mpi");
      sum_by_mpi(n_pes);
    }
    if (level == "multiple") count_by_two();
  } catch (const std::exception& error) {
    std::fputs(fmt::format("user_mpi_test: {}\n", error.what()).c_str(), stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}

int without_launcher() {
  try {
    for (int round = 0; round < 2; ++round) count_everywhere(1, "loopback");
    count_by_two();
  } catch (const std::exception& error) {
    std::fputs(fmt::format("user_mpi_test: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
  int initialised = 0;
  MPI_Initialized(&initialised);
  return initialised == 0 ? 0 : 1;
}

/// Esker initialises MPI and finalises it with its Runtime.
int with_eskers_mpi() {
  const std::vector<std::string> what_to_do = {"Runtime:", "one Runtime", "MPI_Init_thread", "MPI_Finalize"};
  try {
    esker::Config bad = small_config();
    bad.package_bytes = 100;
    require(is_refused({"package_bytes"}, bad), "a Runtime begins with bad settings");
    {
      esker::Runtime rt(small_config());
      require(rt.n_pes() == 2, "there are not two PEs");
      require(is_refused(what_to_do), "a second Runtime at a time begins");
      const auto word = rt.heap().allocate<std::uint64_t>(1);
      rt.launch(10, [=](esker::WorkItem item) { shmem_inc(item, word.data(), 1 - item.pe()); });
      rt.barrier_all();
      require(word[0] == 10, "the first Runtime is disturbed");
    }
    require(is_refused(what_to_do), "a Runtime begins after the last one has finalised MPI");
  } catch (const std::exception& error) {
    std::fputs(fmt::format("user_mpi_test: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
  return 0;
}

int with_another_launcher() {
  try {
    require(is_refused({"PMI_SIZE=4", "started 4 processes", "alone over mpi (", "mpirun", "unset PMI_SIZE"}),
            "four jobs of one PE begin");
  } catch (const std::exception& error) {
    std::fputs(fmt::format("user_mpi_test: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string level = argc > 1 ? argv[1] : "";
  if (level == "none") return without_launcher();
  if (level == "esker") return with_eskers_mpi();
  if (level == "refused") return with_another_launcher();
  if (level != "single" && level != "funneled" && level != "multiple" && level != "failure" &&
      level != "late")
    return 2;
  return with_mpi(argc, argv, level);
}
