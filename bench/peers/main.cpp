// bench-peers-nvshmem: the GUPS of esker-gups on NVSHMEM, one process a GPU.
#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <boost/program_options.hpp>

#include <esker/bench/harness/measure.hpp>
#include <esker/bench/harness/report.hpp>
#include <esker/bench/peers/gups_peer.hpp>

namespace esker::bench {
namespace {

struct Options {
  std::string op = "inc";
  unsigned table_log2 = 27;                        // 64-bit words a PE
  std::uint64_t updates = std::uint64_t{1} << 27;  // a PE
  unsigned repeats = 5;
  std::uint64_t seed = 1;
  bool is_local = false;
  std::string json;
};

const std::map<std::string, GupsOperation>& operations() {
  static const std::map<std::string, GupsOperation> all{{"inc", GupsOperation::kInc},
                                                        {"put", GupsOperation::kPut},
                                                        {"get", GupsOperation::kGet},
                                                        {"fetch_add", GupsOperation::kFetchAdd},
                                                        {"compare_swap", GupsOperation::kCompareSwap}};
  return all;
}

/// --help prints and exits with 0; a mistake is printed and exits with 2.
Options parse_options(int argc, char** argv) {
  namespace po = boost::program_options;
  Options o;
  po::options_description all(
      "bench-peers-nvshmem: random updates of a table distributed over the PEs, one operation a lane.\n"
      "One process a GPU, under mpirun.\n\nOptions");
  auto add = all.add_options();
  add("help", "print this");
  add("op", po::value(&o.op)->default_value(o.op), "inc, put, get, fetch_add or compare_swap");
  add("table-log2", po::value(&o.table_log2)->default_value(o.table_log2),
      "the table has 2^this 64-bit words a PE");
  add("updates", po::value(&o.updates)->default_value(o.updates), "updates a PE");
  add("repeats", po::value(&o.repeats)->default_value(o.repeats), "timed runs");
  add("seed", po::value(&o.seed)->default_value(o.seed), "of the stream of updates");
  add("local", "every PE updates its own table, without NVSHMEM");
  add("json", po::value(&o.json), "write one JSON object to this file; -: standard output");
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, all), given);
    po::notify(given);
    if (given.contains("help")) {
      std::cout << all;
      std::exit(0);
    }
    o.is_local = given.contains("local");
    if (!operations().contains(o.op))
      throw std::invalid_argument("--op takes inc, put, get, fetch_add or compare_swap");
    if (o.is_local && operations().at(o.op) >= GupsOperation::kGet)
      throw std::invalid_argument("--local takes --op inc or put");
    if (o.table_log2 > 36) throw std::invalid_argument("--table-log2 takes 0 to 36");
    if (o.updates == 0 || o.updates > (std::uint64_t{1} << 38))
      throw std::invalid_argument("--updates takes 1 to 2^38");
    if (o.repeats == 0) throw std::invalid_argument("--repeats takes 1 or more");
  } catch (const std::exception& error) {
    std::cerr << "bench-peers-nvshmem: " << error.what() << "\n";
    std::exit(2);
  }
  return o;
}

/// MPI for as long as this lives.
class Mpi {
 public:
  Mpi(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &pe);
    MPI_Comm_size(MPI_COMM_WORLD, &pes);
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, pe, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local_pe);
    MPI_Comm_free(&host);
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int pe = 0, pes = 1, local_pe = 0;
};

/// Seconds of one run on the slowest PE.
double seconds_of_run(GupsPeer& peer) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  peer.run();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

int run(const Mpi& mpi, const Options& o) {
  nlohmann::json report = provenance("peers");
  const GupsProblem problem{o.seed,
                            static_cast<std::uint32_t>(mpi.pes),
                            static_cast<std::uint32_t>(mpi.pe),
                            std::uint64_t{1} << o.table_log2,
                            o.updates,
                            operations().at(o.op),
                            o.is_local};
  GupsPeer peer(problem, mpi.local_pe, [](void* data, std::size_t bytes) {
    MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  });

  seconds_of_run(peer);
  std::uint64_t wrong = peer.take_back();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  const bool is_right = wrong == 0;

  std::vector<double> rates, seconds;
  for (unsigned i = 0; i < o.repeats; ++i) {
    seconds.push_back(seconds_of_run(peer));
    rates.push_back(static_cast<double>(o.updates) / seconds.back());
  }
  if (mpi.pe != 0) return is_right ? 0 : 1;

  const Rate rate = summarise(rates);
  const Rate time = summarise(seconds);
  const std::string style = o.is_local ? "local" : peer_name();
  const double work = static_cast<double>(o.updates) * mpi.pes;
  fmt::print(o.json == "-" ? stderr : stdout,
             "commit {}, {} x {}: gups {} ({}), table 2^{} words a PE: {:.3f} G updates/s a GPU "
             "({:.3f} to {:.3f}, {} repeats), {}\n",
             report["commit"].get<std::string>(), mpi.pes, peer_device(), o.op, style, o.table_log2,
             rate.median / 1e9, rate.lowest / 1e9, rate.highest / 1e9, o.repeats,
             is_right ? "verified" : fmt::format("WRONG RESULT in {} words", wrong));
  report["machine"]["device"] = peer_device();
  report.update({{"app", "gups"},
                 {"backend", "cuda"},
                 {"style", style},
                 {"pes", mpi.pes},
                 {"seconds", time.median},
                 {"seconds_least", time.lowest},
                 {"seconds_most", time.highest},
                 {"work", work},
                 {"work_unit", "updates"},
                 {"rate_per_s", work / time.median},
                 {"rate_per_s_a_gpu", rate.median},
                 {"rate_per_s_a_gpu_lowest", rate.lowest},
                 {"rate_per_s_a_gpu_highest", rate.highest},
                 {"verified", is_right},
                 {"verification", "on"},
                 {"op", o.op},
                 {"table_words", problem.words_a_pe * problem.pes},
                 {"seed", o.seed},
                 {"repeats", o.repeats}});
  if (!o.json.empty()) write_json(report, o.json);
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) {
  const esker::bench::Options options = esker::bench::parse_options(argc, argv);
  const esker::bench::Mpi mpi(argc, argv);
  try {
    return run(mpi, options);
  } catch (const std::exception& error) {
    std::cerr << "bench-peers-nvshmem: PE " << mpi.pe << ": " << error.what() << "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);  // the others wait for this PE
  }
  return 1;
}
