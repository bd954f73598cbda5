// Schedules as programs in CUDA C++.
#include <esker/transfer/plan/emit.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <esker/error.hpp>

namespace esker::transfer {

namespace {

constexpr const char* kBegin =
    R"(// A program of {kernels} kernels and {operands} operands: {transfers} transfers in {startups} copies.
// Made by Esker's plans. Its kernels are synthetic: each word of a result mixes that word of all inputs.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using Word = std::uint32_t;

static void check(cudaError_t error, const char* call) {{
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
  std::exit(1);
}}

__host__ __device__ inline Word mixed(Word sum, Word word) {{ return (((sum << 5) + sum) ^ word) + 0x9e3779b9u; }}

)";

constexpr const char* kEnd = R"(
int main() {{
  check(cudaMallocHost(&host, {host_bytes}), "cudaMallocHost");
  check(cudaMalloc(&device, {device_bytes}), "cudaMalloc");
  fill();
  run();
  const bool right = is_right();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) run();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f us a run, %s\n", time.count() / 100, right ? "verified" : "WRONG");
  check(cudaFree(device), "cudaFree");
  check(cudaFreeHost(host), "cudaFreeHost");
  return right ? 0 : 1;
}}
)";

/// A name in a comment of either kind: no end of it, no new line.
std::string in_comment(std::string name) {
  for (char& c : name) {
    if (c == '*' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '_';
  }
  return name;
}

std::string listed(const std::string& separator, std::uint32_t count, const char* each) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : separator) + fmt::format(fmt::runtime(each), i);
  return text;
}

std::uint64_t words_of_operand(const OperandGraph& graph, std::uint32_t operand) {
  return graph.operand(operand).bytes / 4;
}
/// Elements that a kernel goes over: its largest result's.
std::uint64_t words_of(const OperandGraph& graph, std::uint32_t k) {
  std::uint64_t words = 0;
  for (const std::uint32_t operand : graph.writes(k))
    words = std::max(words, words_of_operand(graph, operand));
  return words;
}

/// Kernel k's work on element i, and how the device and the host go over its elements.
std::string functions_of(const OperandGraph& graph, std::uint32_t k) {
  const auto reads = static_cast<std::uint32_t>(graph.reads(k).size());
  const auto writes = static_cast<std::uint32_t>(graph.writes(k).size());
  std::string parameters = listed(", ", reads, "const Word* in{}");
  if (reads > 0 && writes > 0) parameters += ", ";
  parameters += listed(", ", writes, "Word* out{}");
  std::string arguments = listed(", ", reads, "in{}");
  if (reads > 0 && writes > 0) arguments += ", ";
  arguments += listed(", ", writes, "out{}");
  std::string body = fmt::format("  Word sum = {};\n", k);
  for (std::uint32_t r = 0; r < reads; ++r) {
    const std::uint64_t size = words_of_operand(graph, graph.reads(k)[r]);
    body += fmt::format("  sum = mixed(sum, in{}[i{}]);\n", r,
                        size < words_of(graph, k) ? fmt::format(" % {}", size) : std::string());
  }
  for (std::uint32_t w = 0; w < writes; ++w) {
    const std::uint64_t size = words_of_operand(graph, graph.writes(k)[w]);
    body += fmt::format("  {}out{}[i] = mixed(sum, {});\n",
                        size < words_of(graph, k) ? fmt::format("if (i < {}) ", size) : std::string(), w, w);
  }
  const std::string comma = arguments.empty() ? "" : ", ";
  std::string text = fmt::format("// {}\n__host__ __device__ inline void work{}(long i{}{}) {{\n{}}}\n",
                                 in_comment(graph.kernel_name(k)), k, comma, parameters, body);
  if (graph.place(k) != 0) {
    text += fmt::format(
        "__global__ void on_device{0}(long n{1}{2}) {{\n  const long i = blockIdx.x * (long)blockDim.x + "
        "threadIdx.x;\n  if (i < n) work{0}(i{1}{3});\n}}\n",
        k, comma, parameters, arguments);
  }
  return text +
         fmt::format(
             "static void on_host{0}(long n{1}{2}) {{\n  for (long i = 0; i < n; ++i) work{0}(i{1}{3});"
             "\n}}\n\n",
             k, comma, parameters, arguments);
}

/// The call of kernel k, its operands as `word_at` names them.
template <class WordAt>
std::string call_of(const OperandGraph& graph, std::uint32_t k, std::uint64_t words, const WordAt& word_at) {
  std::string arguments = fmt::format("{}", words);
  for (const std::uint32_t operand : graph.reads(k)) arguments += ", " + word_at(operand);
  for (const std::uint32_t operand : graph.writes(k)) arguments += ", " + word_at(operand);
  return arguments;
}

}  // namespace

std::string emit_cuda(const OperandGraph& graph, const Schedule& schedule, const Layout& layout) {
  bool at_addresses = false;
  for (std::uint32_t i = 0; i < graph.operands(); ++i) at_addresses |= graph.operand(i).host_address != 0;
  if (graph.places() > 2 || graph.has_versions() || at_addresses) {
    throw Error(
        Error::Kind::kTransfer,
        fmt::format("emit_cuda: a graph of {} devices{}{}: it emits single assignment on one device",
                    graph.places() - 1, graph.has_versions() ? ", which changes operands in place" : "",
                    at_addresses ? ", with operands at addresses" : ""));
  }
  const bool has_device = graph.places() == 2;
  std::string text = fmt::format(
      fmt::runtime(kBegin), fmt::arg("kernels", graph.kernels()), fmt::arg("operands", graph.operands()),
      fmt::arg("transfers", schedule.transfers), fmt::arg("startups", schedule.startups.size()));
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) text += functions_of(graph, k);
  text += "static char *host = nullptr, *device = nullptr;  // one allocation a side\n\n";
  const auto on_host = [&](std::uint32_t i) {
    return fmt::format("(Word*)(host + {}) /* {} */", layout.offsets[0][i], in_comment(name_of(graph, i)));
  };
  const auto on_device = [&](std::uint32_t i) {
    return fmt::format("(Word*)(device + {}) /* {} */", layout.offsets[1][i], in_comment(name_of(graph, i)));
  };

  text += "static void run() {\n";
  std::size_t next = 0;
  bool is_pending = false;  // what a function of the host has to wait for
  const auto copies = [&](std::uint32_t time, bool is_upload) {
    for (; next < schedule.startups.size(); ++next) {
      const Startup& startup = schedule.startups[next];
      if (startup.time != time || startup.is_upload() != is_upload) return;
      std::string names;
      for (std::uint32_t i = 0; i < startup.count; ++i)
        names += fmt::format(" {}", in_comment(name_of(graph, schedule.order[startup.first + i])));
      const std::string at_host = fmt::format("host + {}", layout.begin_of(schedule, startup, 0));
      const std::string at_device = fmt::format("device + {}", layout.begin_of(schedule, startup, 1));
      text += fmt::format("  // {}:{}\n  check(cudaMemcpyAsync({}, {}, {}, {}), \"cudaMemcpyAsync\");\n",
                          is_upload ? "up" : "down", names, is_upload ? at_device : at_host,
                          is_upload ? at_host : at_device, layout.bytes_of(graph, schedule, startup),
                          is_upload ? "cudaMemcpyHostToDevice" : "cudaMemcpyDeviceToHost");
      is_pending = true;
    }
  };
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    copies(k, true);
    const std::uint64_t words = words_of(graph, k);
    if (graph.place(k) == 0) {
      if (is_pending) text += "  check(cudaDeviceSynchronize(), \"cudaDeviceSynchronize\");\n";
      is_pending = false;
      text += fmt::format("  on_host{}({});\n", k, call_of(graph, k, words, on_host));
    } else if (words > 0) {
      text += fmt::format("  on_device{}<<<{}, 256>>>({});\n", k, (words + 255) / 256,
                          call_of(graph, k, words, on_device));
    }
    copies(k, false);
  }
  text += "  check(cudaDeviceSynchronize(), \"cudaDeviceSynchronize\");\n}\n\n";

  text += "// The same on the host, each operand by itself.\nstatic bool is_right() {\n";
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    const std::uint64_t words = graph.operand(i).bytes / 4;
    text += graph.operand(i).on_entry
                ? fmt::format("  std::vector<Word> v{}({}, {} + {});\n", i, on_host(i), on_host(i), words)
                : fmt::format("  std::vector<Word> v{}({});\n", i, words);
  }
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    text += fmt::format("  on_host{}({});\n", k, call_of(graph, k, words_of(graph, k), [](std::uint32_t i) {
                          return fmt::format("v{}.data()", i);
                        }));
  }
  text +=
      "  bool right = true;\n  const auto compare = [&](const std::vector<Word>& expected, const Word* "
      "words) {\n"
      "    for (std::size_t i = 0; i < expected.size(); ++i) right = right && words[i] == expected[i];\n  "
      "};\n";
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.operand(i).on_exit) text += fmt::format("  compare(v{}, {});\n", i, on_host(i));
  }
  text += "  return right;\n}\n\nstatic void fill() {\n";
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (!graph.operand(i).on_entry) continue;
    text += fmt::format("  for (long i = 0; i < {}; ++i) ({})[i] = mixed({}, (Word)i);\n",
                        graph.operand(i).bytes / 4, on_host(i), i + 1);
  }
  text += "}\n";
  return text + fmt::format(fmt::runtime(kEnd), fmt::arg("host_bytes", layout.bytes[0]),
                            fmt::arg("device_bytes", has_device ? layout.bytes[1] : 1));
}

}  // namespace esker::transfer
