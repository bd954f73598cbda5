// uts: Unbalanced Tree Search. Counts the nodes of a tree that is known only by walking it: a child's SHA-1
// digest, and with it the number of its own children, follows from its parent's. A task is a row of siblings:
// it visits the first and leaves the rest to another task, so rows of 2000 take no more than rows of two.
//
// Under mpirun all PEs count one tree together. Verified against the published numbers of nodes and leaves,
// and the published depth.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <esker/distributed_tasks.hpp>
#include <esker/lane.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "tree.hpp"

namespace {

using uts::Digest;

/// What a node's number of children depends on.
struct Law {
  bool is_geometric;
  std::uint32_t height, children;
  std::uint32_t n_thresholds;
  const std::uint32_t* thresholds;

  ESKER_HD std::uint32_t children_of(const Digest& node, std::uint32_t depth) const {
    const std::uint32_t number = uts::number_of(node);
    if (!is_geometric) return number < thresholds[0] ? children : 0;
    if (depth >= height) return 0;
    std::uint32_t count = 0;
    while (count < n_thresholds && number >= thresholds[count]) ++count;
    return count;
  }
};

/// What each PE has of its own, in its device's memory.
struct Local {
  Law law;
  esker::DeviceAtomic<std::uint32_t> deepest;
};

// Nodes and leaves in one sum.
constexpr std::uint64_t kLeaf = std::uint64_t{1} << 32;

/// Children `first` to `last` - 1 of a node, at this depth.
struct Siblings {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  Digest parent;
  std::uint32_t first, last, depth;

  ESKER_HD void operator()(auto& task) const {
    if (last - first > 1) {
      // Half of them each, so that what is given away is large.
      const std::uint32_t middle = first + (last - first + 1) / 2;
      if (middle - first > 1) {
        task.spawn(Siblings{parent, first, middle, depth}, Siblings{parent, middle, last, depth});
        return;
      }
      task.spawn(Siblings{parent, middle, last, depth});
    }
    const Digest node = uts::child_of(parent, first);
    auto& local = task.template local<Local>();
    const std::uint32_t children = local.law.children_of(node, depth);
    std::uint32_t seen = local.deepest.load_relaxed();
    while (seen < depth && !local.deepest.compare_exchange_relaxed(seen, depth)) {
    }
    task.add(children == 0 ? 1 + kLeaf : 1);
    if (children != 0) task.spawn(Siblings{node, 0, children, depth + 1});
  }
};

struct Counted {
  std::uint64_t nodes, leaves;
  std::uint32_t depth;
  bool operator==(const Counted&) const = default;
};

/// One thread, one stack: what the tasks are compared with.
Counted count_serially(const uts::Tree& tree, const Law& law, std::uint32_t root_children) {
  Counted counted{1, 0, 0};
  std::vector<std::pair<Digest, std::uint32_t>> stack;
  const auto push = [&](const Digest& node, std::uint32_t children, std::uint32_t depth) {
    for (std::uint32_t child = 0; child < children; ++child)
      stack.emplace_back(uts::child_of(node, child), depth);
  };
  push(uts::root_of(tree), root_children, 1);
  while (!stack.empty()) {
    const auto [node, depth] = stack.back();
    stack.pop_back();
    ++counted.nodes;
    counted.depth = std::max(counted.depth, depth);
    const std::uint32_t children = law.children_of(node, depth);
    counted.leaves += children == 0 ? 1 : 0;
    push(node, children, depth + 1);
  }
  return counted;
}

int run(int argc, char** argv) {
  task_apps::Options o;
  o.memory_bytes = std::uint64_t{256} << 20;
  std::string name;
  bool serial = false;
  std::vector<std::string> names;
  for (const uts::Tree& tree : uts::kTrees) names.emplace_back(tree.name);
  esker::CommandLine line("esker-uts", "Unbalanced Tree Search: counts the nodes of a random tree.");
  o.add_to(line);
  names.emplace_back("");
  line.add("tree", &name, "a published tree; without: T1, or T1L for --size medium, T3L for paper", names)
      .add("serial", &serial,
           "count with one thread and a stack too, and put how long that takes into --json");
  const auto place = o.open(line, argc, argv);
  const esker::Device& device = place.device;
  if (name.empty()) name = o.size == "small" ? "T1" : o.size == "medium" ? "T1L" : "T3L";
  const uts::Tree& tree = *std::find_if(std::begin(uts::kTrees), std::end(uts::kTrees),
                                        [&](const auto& t) { return name == t.name; });

  const std::vector<std::uint32_t> thresholds = uts::thresholds(tree);
  Law law{tree.is_geometric, tree.height, tree.children, static_cast<std::uint32_t>(thresholds.size()),
          thresholds.data()};
  const Digest root = uts::root_of(tree);
  const std::uint32_t root_children =
      tree.is_geometric ? law.children_of(root, 0) : static_cast<std::uint32_t>(tree.root_factor);
  double serial_seconds = 0;
  bool serial_is_right = true;
  const Counted published{tree.nodes, tree.leaves, tree.depth};
  if (serial) {
    const harness::Stopwatch watch;
    serial_is_right = count_serially(tree, law, root_children) == published;
    serial_seconds = watch.seconds();
  }

  const auto numbers = device.memory<std::uint32_t>(thresholds.size());
  const auto local = device.memory<Local>(1);
  law.thresholds = numbers.data();
  device.copy(numbers.data(), thresholds.data(), numbers.size_bytes());
  device.copy(&local.data()->law, &law, sizeof law);

  esker::tasks::Options options = o.task_options();
  options.local = local.data();
  task_apps::Tasks<Siblings> tasks(place, options);
  Counted counted{};
  const auto measured = task_apps::measure(
      o,
      [&] {
        const std::uint32_t none = 0;
        device.copy(&local.data()->deepest, &none, sizeof none);
        tasks.run(Siblings{root, 0, root_children, 1});
        const std::uint64_t sum = tasks.total().sum;
        std::uint32_t deepest = 0;
        device.copy(&deepest, &local.data()->deepest, sizeof deepest);
        std::uint64_t depth = deepest;
        if (place.runtime != nullptr) place.runtime->all_reduce(std::span(&depth, 1), esker::Reduction::kMax);
        counted = {(sum & (kLeaf - 1)) + 1, sum / kLeaf, static_cast<std::uint32_t>(depth)};
        return serial_is_right && counted == published;
      },
      [&]() -> const auto& { return tasks.total(); });
  nlohmann::json more = {
      {"tree", name}, {"nodes", counted.nodes}, {"leaves", counted.leaves}, {"depth", counted.depth}};
  more.update(task_apps::balance(place, "nodes", tasks.report().sum & (kLeaf - 1)));
  if (serial) more["serial_seconds"] = serial_seconds;
  return task_apps::finish(o, device, "uts", measured, static_cast<double>(counted.nodes), "nodes", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-uts", argc, argv, run); }
