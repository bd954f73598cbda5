// sort: 32-bit words in order (thesis, 4.5.1, by another method: see sort_task.hpp).
//
// Verified by what it must be: each word is at least the one before it, and the words are those that were
// given, by their number and by the sum and the exclusive or of a hash of each.
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "sorter.hpp"

namespace {

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t n = 0;
  std::string keys = "uniform";
  esker::CommandLine line("esker-sort", "Sorts 32-bit words, by tasks that a whole wave runs.");
  o.add_to(line);
  line.add("n", &n, "words; 0: as --size says")
      .add("keys", &keys, "what they are", {"uniform", "equal", "sorted", "reversed", "skewed"});
  const esker::Device device = o.parse(line, argc, argv);
  if (n > 1u << 31) harness::usage("--n is at most 2^31");
  if (n == 0) n = o.size == "small" ? 1'000'000 : o.size == "medium" ? 16'000'000 : 100'000'000;
  const auto count = static_cast<std::uint32_t>(n);
  const auto words = sorting::make_words(count, keys, o.seed);
  const sorting::Contents contents = sorting::contents_of(words);

  sorting::Sorter sorter(device, count, o.task_options());
  std::vector<std::uint32_t> sorted(n);
  const auto measured = task_apps::measure(
      o,
      [&] {
        device.copy(sorter.words(), words.data(), n * sizeof(std::uint32_t));
        sorter.run();
        if (!o.verify) return true;
        device.copy(sorted.data(), sorter.words(), n * sizeof(std::uint32_t));
        return sorting::is_sorted(sorted, contents);
      },
      [&]() -> const auto& { return sorter.report(); });
  return task_apps::finish(o, device, "sort", measured, static_cast<double>(n), "words",
                           {{"n", n}, {"keys", keys}, {"device_bytes", sorter.device_bytes()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-sort", argc, argv, run); }
