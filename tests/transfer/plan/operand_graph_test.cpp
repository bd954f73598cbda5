// Operand graphs: what is refused, and by what name; JSON there and back.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <esker/error.hpp>
#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/paper_graphs.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>

#include "../refusal.hpp"

namespace esker::transfer {
namespace {

using List = std::vector<std::uint32_t>;

void expect_refusal(const std::function<void()>& call, const std::vector<std::string>& parts) {
  const std::string message = refusal(call);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

/// a is there on entry, b and c are not.
OperandGraph three() {
  OperandGraph graph;
  for (const char* name : {"a", "b", "c"}) graph.add_operand({name, 64, name[0] == 'a', false});
  return graph;
}

TEST(OperandGraph, NamesTheTwoWritersOfAnOperand) {
  OperandGraph graph = three();
  graph.add_kernel("first", 1, List{0}, List{1});
  expect_refusal([&] { graph.add_kernel("second", 0, List{0}, List{1}); },
                 {"second", "first", "(b)", "one writer"});
  EXPECT_EQ(graph.kernels(), 1u);
}

TEST(OperandGraph, NamesWhatIsReadBeforeItIsWritten) {
  OperandGraph graph = three();
  expect_refusal([&] { graph.add_kernel("early", 1, List{2}, List{1}); }, {"early", "(c)", "on entry"});
}

TEST(OperandGraph, NamesAnUnknownOperand) {
  OperandGraph graph = three();
  expect_refusal([&] { graph.add_kernel("k", 1, List{7}, List{1}); }, {"reads operand 7", "3 operands"});
  expect_refusal([&] { graph.add_kernel("k", 1, List{0}, List{9}); }, {"writes operand 9", "3 operands"});
}

TEST(OperandGraph, NamesADeviceThatCannotBe) {
  OperandGraph graph = three();
  expect_refusal([&] { graph.add_kernel("far", 70000, List{0}, List{1}); },
                 {"far", "device 70000", "1 to 255"});
}

TEST(OperandGraph, RefusesAWriteOfWhatIsThereOnEntryOrReadByTheSameKernel) {
  OperandGraph graph = three();
  expect_refusal([&] { graph.add_kernel("k", 1, List{}, List{0}); }, {"(a)", "on entry", "version"});
  graph.add_kernel("k", 1, List{0}, List{1});
  expect_refusal([&] { graph.add_kernel("l", 1, List{1}, List{1}); }, {"reads and writes", "(b)"});
  expect_refusal([&] { graph.add_kernel("m", 1, List{0}, List{2, 2}); }, {"twice", "(c)"});
}

TEST(OperandGraph, ReadsNoVersionThatHasBeenOverwritten) {
  OperandGraph graph = three();
  const std::uint32_t next = graph.add_version(0);
  EXPECT_EQ(graph.storage(next), 0u);
  expect_refusal([&] { graph.add_kernel("blind", 1, List{}, List{next}); },
                 {"blind", "a'", "version before it"});
  graph.add_kernel("update", 1, List{0}, List{next});
  expect_refusal([&] { graph.add_kernel("late", 1, List{0}, List{1}); }, {"late", "(a)", "update"});
  expect_refusal([&] { graph.add_version(0); }, {"(a)", "written again"});
}

TEST(OperandGraph, JsonComesBackAsItWas) {
  OperandGraph graph = figure2_graph(4096);
  const std::string text = to_json(graph);
  EXPECT_EQ(to_json(read_operand_graph(text)), text);
  OperandGraph in_place = three();
  in_place.add_kernel("update", 1, List{0}, List{in_place.add_version(0)});
  in_place.want_results();
  const std::string versions = to_json(in_place);
  EXPECT_EQ(to_json(read_operand_graph(versions)), versions);
}

TEST(OperandGraph, JsonIsPutInAnOrderThatWorks) {
  const OperandGraph graph = read_operand_graph(R"({
    "operands": [{"name": "a", "bytes": 4, "on_entry": true}, {"name": "b", "bytes": 4}, {"name": "c", "bytes": 4}],
    "kernels": [{"name": "last", "place": 0, "reads": ["b"], "writes": ["c"]},
                {"name": "first", "place": 1, "reads": ["a"], "writes": ["b"]}]})");
  EXPECT_EQ(graph.kernel_name(0), "first");
  EXPECT_EQ(graph.kernel_name(1), "last");
}

TEST(OperandGraph, JsonPutsWhoChangesAnOperandBehindItsReaders) {
  const OperandGraph graph = read_operand_graph(R"({
    "operands": [{"name": "a", "bytes": 4, "on_entry": true}, {"name": "a2", "version_of": "a"},
                 {"name": "z", "bytes": 4}],
    "kernels": [{"name": "R", "place": 0, "reads": ["a", "z"], "writes": []},
                {"name": "U", "place": 1, "reads": ["a"], "writes": ["a2"]},
                {"name": "Z", "place": 0, "reads": [], "writes": ["z"]}]})");
  EXPECT_EQ(graph.kernel_name(0) + graph.kernel_name(1) + graph.kernel_name(2), "ZRU");
}

TEST(OperandGraph, JsonHasANameForEachOperand) {
  OperandGraph graph;
  for (const char* name : {"v1", "", "v1", "\xff"}) graph.add_operand({name, 4, true, false});
  graph.add_kernel("\xff", 1, List{0, 1, 2, 3}, List{});
  const OperandGraph read = read_operand_graph(to_json(graph));
  EXPECT_EQ(read.operands(), 4u);
  EXPECT_EQ(read.reads(0).size(), 4u);
}

TEST(OperandGraph, JsonWithACycleNamesItsKernels) {
  expect_refusal(
      [] {
        read_operand_graph(R"({
          "operands": [{"name": "a", "bytes": 4}, {"name": "b", "bytes": 4}, {"name": "c", "bytes": 4}],
          "kernels": [{"name": "plain", "place": 0, "reads": [], "writes": ["c"]},
                      {"name": "hen", "place": 0, "reads": ["b"], "writes": ["a"]},
                      {"name": "egg", "place": 1, "reads": ["a"], "writes": ["b"]}]})");
      },
      {"cycle", "hen waits for egg waits for hen"});
}

TEST(OperandGraph, JsonNamesWhatItDoesNotKnow) {
  expect_refusal([] { read_operand_graph("{]"); }, {"read_operand_graph", "parse"});
  expect_refusal(
      [] { read_operand_graph(R"({"operands": [{"name": "a", "bytes": 4}, {"name": "a", "bytes": 4}]})"); },
      {"two operands", "a"});
  expect_refusal(
      [] {
        read_operand_graph(R"({"operands": [],
          "kernels": [{"name": "k", "place": 0, "reads": ["ghost"], "writes": []}]})");
      },
      {"k reads", "ghost"});
}

TEST(Schedules, OneOfAnotherGraphIsRefused) {
  const OperandGraph graph = figure2_graph(64);
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Schedule right = schedule_exact(graph, transfers);
  check_schedule(graph, transfers, right);
  Schedule wrong = right;
  std::swap(wrong.order[0], wrong.order[3]);
  expect_refusal([&] { check_schedule(graph, transfers, wrong); }, {"check_schedule"});
  wrong = right;
  wrong.startups.back().time = 3;
  expect_refusal([&] { check_schedule(graph, transfers, wrong); }, {"cannot go", "time 3"});
  wrong = right;
  wrong.startups.pop_back();
  expect_refusal([&] { check_schedule(graph, transfers, wrong); }, {"moved 0 times"});
  wrong = right;
  wrong.order[1] = wrong.order[0];
  expect_refusal([&] { check_schedule(graph, transfers, wrong); }, {"twice"});
}

}  // namespace
}  // namespace esker::transfer
