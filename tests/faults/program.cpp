// Goes wrong in the way that its first argument names. Run by faults_test.py under mpirun.
//
// Each case is what a user's program could do. main catches nothing but what it says: an exception that
// leaves Esker ends the job as it would end a user's.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>
#include <esker/collectives.hpp>
#include <esker/config.hpp>
#include <esker/esker.hpp>
#include <esker/mpi.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Counters = esker::SymmetricArray<std::uint64_t>;
constexpr std::uint64_t kCounters = 4096;

struct Token {
  std::uint64_t value;
};

/// Tells the driver that this PE has come so far, in one write.
void say(const esker::Runtime& rt, const std::string& what) {
  std::fputs(fmt::format("PE {} (process {}): {}\n", rt.pe(), getpid(), what).c_str(), stdout);
  std::fflush(stdout);
}

/// Every PE increments every other's counters for as long as the job lives.
void run_for_long(esker::Runtime& rt, Counters counters) {
  say(rt, "runs");
  for (;;) {
    rt.launch(1 << 16, [=](esker::WorkItem item) {
      const std::uint64_t i = item.global_id();
      esker::shmem_inc(item, &counters[i % kCounters], static_cast<std::uint32_t>(i % item.n_pes()));
    });
    rt.barrier_all();
  }
}

[[noreturn]] void sleep_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours{1});
}

void long_run(esker::Runtime& rt) { run_for_long(rt, rt.heap().allocate<std::uint64_t>(kCounters)); }

/// Collective calls that move much, for as long as the job lives.
void move_for_long(esker::Runtime& rt) {
  say(rt, "runs");
  std::vector<std::uint64_t> values(std::size_t{4} << 20);
  for (;;) {
    esker::broadcast(rt, values);
    esker::all_reduce(rt, values, esker::Reduction::kMax);
    values = esker::sort(rt, std::move(values));
  }
}

/// The last PE is not in the barrier.
void one_stays_away(esker::Runtime& rt) {
  say(rt, "runs");
  if (rt.pe() == rt.n_pes() - 1) sleep_for_ever();
  rt.barrier_all();
}

/// Stands for work of the program's own: it takes until the driver has seen enough.
void compute_until_told() {
  while (!std::filesystem::exists("enough")) std::this_thread::sleep_for(std::chrono::milliseconds{10});
}

/// The last PE comes late.
void computes_outside(esker::Runtime& rt) {
  say(rt, "runs");
  if (rt.pe() == rt.n_pes() - 1) compute_until_told();
  rt.barrier_all();
  say(rt, "has ended");
}

void long_kernel(esker::Runtime& rt) {
  say(rt, "runs");
  if (rt.pe() == rt.n_pes() - 1)
    rt.launch(
        1, [](esker::WorkItem) { compute_until_told(); }, "patience");
  rt.barrier_all();
  say(rt, "has ended");
}

void send_token(esker::Runtime& rt, esker::Handler<std::uint64_t, Token> handler, Counters counters) {
  if (rt.pe() == 0) {
    rt.launch(1, [=](esker::WorkItem item) { esker::shmem_am(item, handler, &counters[0], {7}, 1); });
  }
  rt.barrier_all();
}

void handler_throws(esker::Runtime& rt) {
  const auto counters = rt.heap().allocate<std::uint64_t>(1);
  const auto handler = rt.register_handler<std::uint64_t, Token>(
      "fragile", [](esker::HandlerContext&, std::uint64_t&, const Token& token) {
        throw std::runtime_error(fmt::format("cannot take {}", token.value));
      });
  send_token(rt, handler, counters);
}

esker::Handler<std::uint64_t, Token> register_endless(esker::Runtime& rt) {
  return rt.register_handler<std::uint64_t, Token>(
      "endless", [](esker::HandlerContext&, std::uint64_t&, const Token&) {
        for (;;) std::this_thread::yield();  // a loop without end, kinder to the peers' cores
      });
}

void handler_never_returns(esker::Runtime& rt) {
  const auto counters = rt.heap().allocate<std::uint64_t>(1);
  send_token(rt, register_endless(rt), counters);
}

/// Nobody on the handler's PE is in a call that could tell.
void handler_never_returns_outside(esker::Runtime& rt) {
  const auto counters = rt.heap().allocate<std::uint64_t>(1);
  const auto handler = register_endless(rt);
  if (rt.pe() == 1) sleep_for_ever();
  send_token(rt, handler, counters);
}

void handlers_differ(esker::Runtime& rt) {
  rt.register_handler<std::uint64_t, Token>(rt.pe() == 0 ? "one" : "other",
                                            [](esker::HandlerContext&, std::uint64_t&, const Token&) {});
}

void heap_full(esker::Runtime& rt) {
  rt.heap().allocate<std::uint64_t>(kCounters);
  rt.heap().allocate<std::uint64_t>(rt.heap().limit_bytes() / sizeof(std::uint64_t));
}

/// After a refused allocation the job goes on.
void heap_full_survived(esker::Runtime& rt) {
  try {
    heap_full(rt);
  } catch (const esker::Error& error) {
    if (error.kind() != esker::Error::Kind::kOutOfMemory) throw;
  }
  const auto counters = rt.heap().allocate<std::uint64_t>(1);
  rt.launch(10, [=](esker::WorkItem item) { esker::shmem_inc(item, &counters[0], 0); });
  rt.barrier_all();
  if (rt.pe() == 0 && counters[0] != 10 * rt.n_pes()) throw std::runtime_error("updates are missing");
  say(rt, "has gone on");
}

void bad_pe(esker::Runtime& rt) {
  const auto counters = rt.heap().allocate<std::uint64_t>(kCounters);
  rt.launch(1000, [=](esker::WorkItem item) {
    const bool wrong = item.pe() == 0 && item.global_id() == 700;
    esker::shmem_inc(item, &counters[item.global_id()], wrong ? 99 : 0);
  });
  rt.barrier_all();
}

void bad_address(esker::Runtime& rt) {
  const auto counters = rt.heap().allocate<std::uint64_t>(kCounters);
  rt.launch(1000, [=](esker::WorkItem item) {
    const bool wrong = item.pe() == 0 && item.global_id() == 700;
    esker::shmem_put(item, &counters[wrong ? (std::uint64_t{1} << 40) : item.global_id()], 1, 0);
  });
  rt.barrier_all();
}

void exception_at_home(esker::Runtime& rt) {
  rt.barrier_all();
  if (rt.pe() == 1) throw std::runtime_error("the program's own fault");
  rt.barrier_all();
}

void early_return(esker::Runtime& rt) {
  if (rt.pe() != 1) rt.barrier_all();
}

void early_exit(esker::Runtime& rt) {
  if (rt.pe() == 1) std::exit(0);
  rt.barrier_all();
}

void different_sizes(esker::Runtime& rt) { rt.heap().allocate<std::uint64_t>(100 + rt.pe()); }

void different_calls(esker::Runtime& rt) {
  std::uint64_t one[1] = {1};
  if (rt.pe() == 1)
    rt.all_reduce(std::span<std::uint64_t>(one), esker::Reduction::kSum);
  else
    rt.barrier_all();
}

/// More than any machine has, by a heap that may grow so far.
void heap_beyond_memory(esker::Runtime& rt) { rt.heap().allocate<std::uint64_t>(std::uint64_t{1} << 46); }

const std::map<std::string, std::function<void(esker::Runtime&)>> kCases = {
    {"long_run", long_run},
    {"move_for_long", move_for_long},
    {"one_stays_away", one_stays_away},
    {"computes_outside", computes_outside},
    {"long_kernel", long_kernel},
    {"handler_throws", handler_throws},
    {"handler_never_returns", handler_never_returns},
    {"handler_never_returns_outside", handler_never_returns_outside},
    {"handlers_differ", handlers_differ},
    {"heap_full", heap_full},
    {"heap_full_survived", heap_full_survived},
    {"bad_pe", bad_pe},
    {"bad_address", bad_address},
    {"exception", exception_at_home},
    {"early_return", early_return},
    {"early_exit", early_exit},
    {"different_sizes", different_sizes},
    {"different_calls", different_calls},
    {"heap_beyond_memory", heap_beyond_memory},
    {"nothing", [](esker::Runtime&) {}},
};

/// Over the program's own MPI, and a communicator with the ranks the other way round.
void run_reversed(const std::string& name, int argc, char** argv) {
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  esker::Runtime rt(reversed, esker::config_from_arguments(argc, argv));
  kCases.at(name)(rt);
}

void run(const std::string& name, int argc, char** argv) {
  if (std::getenv("FAULTS_REVERSED") != nullptr) return run_reversed(name, argc, argv);
  esker::Runtime rt(argc, argv);
  kCases.at(name)(rt);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !kCases.contains(argv[1])) return 2;
  const std::string name = argv[1];
  // FAULTS_OWN_MPI: the program's MPI, for one thread.
  if (std::getenv("FAULTS_OWN_MPI") != nullptr) {
    MPI_Init(&argc, &argv);
    run(name, argc, argv);
    MPI_Finalize();
    return 0;
  }
  // FAULTS_CATCH is what a careful program does; without it an exception reaches std::terminate.
  if (std::getenv("FAULTS_CATCH") == nullptr) {
    run(name, argc, argv);
    return 0;
  }
  try {
    run(name, argc, argv);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("program: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
  return 0;
}
