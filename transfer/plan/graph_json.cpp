// Operand graphs as JSON.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/error.hpp>
#include <esker/transfer/json_text.hpp>
#include <esker/transfer/plan/operand_graph.hpp>

namespace esker::transfer {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Error::Kind::kTransfer, "read_operand_graph: " + why);
}

/// nlohmann's get() would take -1, 7.9 and 1e30 for a number.
std::uint64_t whole_number(const nlohmann::json& entry, const char* key, const std::string& whose) {
  const nlohmann::json& value = entry.at(key);
  if (!value.is_number_unsigned())
    refuse(fmt::format("{} of {} is {}, not a whole number", key, whose, value.dump()));
  return value.get<std::uint64_t>();
}

struct NamedKernel {
  std::string name;
  std::uint32_t place;
  std::vector<std::uint32_t> reads, writes;
};

/// The kernels that wait for each other: each waits for the next one, the last for the first.
std::string cycle_in(const std::vector<NamedKernel>& kernels,
                     const std::vector<std::vector<std::size_t>>& waits_for,
                     const std::vector<bool>& is_placed) {
  std::size_t at = 0;
  while (is_placed[at]) ++at;
  std::vector<std::size_t> path;
  std::vector<std::size_t> seen_at(kernels.size(), kernels.size());
  while (seen_at[at] == kernels.size()) {
    seen_at[at] = path.size();
    path.push_back(at);
    for (const std::size_t next : waits_for[at]) {
      if (!is_placed[next]) {
        at = next;
        break;
      }
    }
  }
  std::string text;
  for (std::size_t i = seen_at[at]; i < path.size(); ++i) text += kernels[path[i]].name + " waits for ";
  return text + kernels[at].name;
}

/// The first order, by the position in the text, in which every kernel stands after those it waits for.
std::vector<std::size_t> order_of(const std::vector<NamedKernel>& kernels,
                                  const std::vector<std::vector<std::size_t>>& waits_for) {
  std::vector<std::size_t> order;
  std::vector<bool> is_placed(kernels.size(), false);
  while (order.size() < kernels.size()) {
    std::size_t next = 0;
    const auto is_ready = [&](std::size_t k) {
      for (const std::size_t other : waits_for[k]) {
        if (!is_placed[other]) return false;
      }
      return !is_placed[k];
    };
    while (next < kernels.size() && !is_ready(next)) ++next;
    if (next == kernels.size())
      refuse("the kernels have a cycle: " + cycle_in(kernels, waits_for, is_placed));
    is_placed[next] = true;
    order.push_back(next);
  }
  return order;
}

}  // namespace

OperandGraph read_operand_graph(const std::string& text) try {
  const nlohmann::json object = nlohmann::json::parse(text);
  OperandGraph graph;
  std::map<std::string, std::uint32_t> numbers;
  for (const auto& entry : object.at("operands")) {
    const auto name = entry.at("name").get<std::string>();
    if (numbers.count(name) != 0) refuse("two operands have the name " + name);
    if (entry.contains("version_of")) {
      const auto before = numbers.find(entry.at("version_of").get<std::string>());
      if (before == numbers.end())
        refuse(fmt::format("{} is a version of an operand that does not stand before it", name));
      numbers[name] = graph.add_version(before->second, name);
      graph.set_on_exit(numbers[name], entry.value("on_exit", false));
    } else {
      numbers[name] =
          graph.add_operand({name, whole_number(entry, "bytes", name), entry.value("on_entry", false),
                             entry.value("on_exit", false),
                             entry.contains("host_address") ? whole_number(entry, "host_address", name) : 0});
    }
  }
  std::vector<NamedKernel> kernels;
  std::map<std::uint32_t, std::size_t> writers;
  for (const auto& entry : object.at("kernels")) {
    NamedKernel kernel{entry.value("name", fmt::format("kernel{}", kernels.size())), 0, {}, {}};
    kernel.place = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(whole_number(entry, "place", kernel.name), ~std::uint32_t{0}));
    const auto numbers_of = [&](const char* key, std::vector<std::uint32_t>& all) {
      for (const auto& name : entry.at(key)) {
        const auto found = numbers.find(name.get<std::string>());
        if (found == numbers.end())
          refuse(
              fmt::format("kernel {} {} the unknown operand {}", kernel.name, key, name.get<std::string>()));
        all.push_back(found->second);
      }
    };
    numbers_of("reads", kernel.reads);
    numbers_of("writes", kernel.writes);
    for (const std::uint32_t operand : kernel.writes) writers.emplace(operand, kernels.size());
    kernels.push_back(std::move(kernel));
  }
  std::vector<std::vector<std::size_t>> waits_for(kernels.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const std::uint32_t operand : kernels[k].reads) {
      if (const auto writer = writers.find(operand); writer != writers.end() && writer->second != k)
        waits_for[k].push_back(writer->second);
      // Who changes it in place waits for those that read what it was.
      const std::uint32_t next = graph.next_version(operand);
      if (const auto writer = writers.find(next);
          next != operand && writer != writers.end() && writer->second != k)
        waits_for[writer->second].push_back(k);
    }
  }
  for (const std::size_t k : order_of(kernels, waits_for))
    graph.add_kernel(kernels[k].name, kernels[k].place, kernels[k].reads, kernels[k].writes);
  return graph;
} catch (const nlohmann::json::exception& error) {
  refuse(error.what());
}

std::string to_json(const OperandGraph& graph) {
  nlohmann::json object = {{"operands", nlohmann::json::array()}, {"kernels", nlohmann::json::array()}};
  // Names may be missing, or the same twice: then with a number, as often as that is a name, too.
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    std::string name = graph.operand(i).name.empty() ? fmt::format("v{}", i) : graph.operand(i).name;
    while (!taken.insert(name).second) name += fmt::format("#{}", i);
    names.push_back(std::move(name));
  }
  const auto name_of = [&](std::uint32_t operand) -> const std::string& { return names[operand]; };
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    const Operand& operand = graph.operand(i);
    object["operands"].push_back({{"name", name_of(i)},
                                  {"bytes", operand.bytes},
                                  {"on_entry", operand.on_entry},
                                  {"on_exit", operand.on_exit}});
    if (operand.host_address != 0) object["operands"].back()["host_address"] = operand.host_address;
    if (graph.previous_version(i) != i)
      object["operands"].back()["version_of"] = name_of(graph.previous_version(i));
  }
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    nlohmann::json reads = nlohmann::json::array(), writes = nlohmann::json::array();
    for (const std::uint32_t operand : graph.reads(k)) reads.push_back(name_of(operand));
    for (const std::uint32_t operand : graph.writes(k)) writes.push_back(name_of(operand));
    object["kernels"].push_back(
        {{"name", graph.kernel_name(k)}, {"place", graph.place(k)}, {"reads", reads}, {"writes", writes}});
  }
  return detail::json_text(object);
}

}  // namespace esker::transfer
