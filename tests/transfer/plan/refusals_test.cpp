// What graphs, solvers, layouts and the emitter refuse: by kind, with the numbers and the names.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <esker/error.hpp>
#include <esker/transfer/plan/affinity.hpp>
#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/bounded.hpp>
#include <esker/transfer/plan/emit.hpp>
#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/paper_graphs.hpp>
#include <esker/transfer/plan/picture.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer {
namespace {

using List = std::vector<std::uint32_t>;

/// Device 1 changes a in place, and the host reads it.
OperandGraph in_place() {
  OperandGraph graph;
  const std::uint32_t a = graph.add_operand({"a", 64, true, false}), changed = graph.add_version(a);
  graph.add_kernel("change", 1, List{a}, List{changed});
  graph.want_results();
  return graph;
}
/// Two devices read a.
OperandGraph on_two_devices() {
  OperandGraph graph;
  const std::uint32_t a = graph.add_operand({"a", 64, true, false});
  for (const std::uint32_t device : {1u, 2u}) graph.add_kernel("use", device, List{a}, List{});
  return graph;
}
/// A device reads a and b, which the host has 1000 bytes apart.
OperandGraph at_addresses() {
  OperandGraph graph;
  const std::uint32_t a = graph.add_operand({"a", 64, true, false, 4096}),
                      b = graph.add_operand({"b", 64, true, false, 5096});
  graph.add_kernel("use", 1, List{a, b}, List{});
  return graph;
}
/// A schedule that moves a and b together.
Schedule together() {
  Schedule schedule;
  schedule.order = {0, 1};
  schedule.startups = {{0, 1, 0, 0, 2}};
  schedule.transfers = 2;
  return schedule;
}
void emit(const OperandGraph& graph) { (void)emit_cuda(graph, {}, {}); }

struct Refusal {
  const char* what;
  std::function<void()> call;
  std::vector<std::string> parts;
  Error::Kind kind = Error::Kind::kTransfer;
};
std::vector<Refusal> refusals() {
  const auto exact = [](const OperandGraph& graph) { (void)schedule_exact(graph, transfers_of(graph)); };
  const auto affinity = [](const OperandGraph& graph) {
    (void)schedule_by_affinity(graph, transfers_of(graph));
  };
  const auto bounded = [](const OperandGraph& graph) { (void)schedule_bounded(graph, 4096); };
  return {
      {"exact: in place", [=] { exact(in_place()); }, {"schedule_exact", "operand 0", "more than once"}},
      {"exact: devices", [=] { exact(on_two_devices()); }, {"operand 0", "more than once"}},
      {"exact: addresses", [=] { exact(at_addresses()); }, {"operand 0", "has an address"}},
      {"affinity: in place", [=] { affinity(in_place()); }, {"schedule_by_affinity", "more than once"}},
      {"affinity: addresses", [=] { affinity(at_addresses()); }, {"schedule_by_affinity", "an address"}},
      {"bounded: in place", [=] { bounded(in_place()); }, {"schedule_bounded", "1 devices", "in place"}},
      {"bounded: devices", [=] { bounded(on_two_devices()); }, {"schedule_bounded", "2 devices"}},
      {"bounded: no layout",
       [] {
         (void)schedule_bounded(random_graph({5, 4, 1, 2, 1, 1, 0.7}, 61, 1024), 3072);
       },
       {"no layout in 3072 bytes", "one takes 4096"},
       Error::Kind::kOutOfMemory},
      {"emit: in place", [] { emit(in_place()); }, {"emit_cuda", "in place"}},
      {"emit: devices", [] { emit(on_two_devices()); }, {"emit_cuda", "2 devices"}},
      {"emit: addresses", [] { emit(at_addresses()); }, {"emit_cuda", "at addresses"}},
      {"lay_out: no neighbours",
       [] { (void)lay_out(at_addresses(), together()); },
       {"lay_out", "a at 0x1000", "b at 0x13e8", "no neighbours"}},
      {"lay_out: overlap",
       [] {
         OperandGraph graph;
         graph.add_operand({"a", 64, true, false, 4096});
         graph.add_operand({"b", 64, true, false, 4096 + 60});
         graph.add_kernel("use", 1, List{0, 1}, List{});
         (void)lay_out(graph, schedule_unfused(graph, transfers_of(graph)));
       },
       {"lay_out", "a of 64 bytes at 0x1000", "b at 0x103c", "overlap"}},
      {"add_operand: too large",
       [] {
         OperandGraph().add_operand({"a", ~std::uint64_t{0}});
       },
       {"add_operand", "(a)", "18446744073709551615 bytes"}},
      {"set_on_exit: none", [] { OperandGraph().set_on_exit(7, true); }, {"set_on_exit(7)", "0 operands"}},
      {"check_schedule: beyond a word",
       [] {
         OperandGraph graph;
         graph.add_operand({"a", 64, false, false});
         Schedule schedule;
         schedule.order = {0};
         schedule.startups = {{0, 1, 0, ~0u, 1}};
         check_schedule(graph, {}, schedule);
       },
       {"places 4294967295 to 4294967296"}},
      {"json: a negative size",
       [] { (void)read_operand_graph(R"({"operands": [{"name": "a", "bytes": -1}], "kernels": []})"); },
       {"bytes of a is -1"}},
      {"json: a size with a fraction",
       [] { (void)read_operand_graph(R"({"operands": [{"name": "a", "bytes": 7.9}], "kernels": []})"); },
       {"bytes of a is 7.9"}},
      {"json: a place beyond a word",
       [] {
         (void)read_operand_graph(
             R"({"operands": [], "kernels": [{"name": "k", "place": 4294967297, "reads": [], "writes": []}]})");
       },
       {"(k)", "is on device 4294967295"}},
      {"random_graph: reads",
       [] {
         (void)random_graph({8, 4, 3, 2, 1, 1}, 1, 64);
       },
       {"3 to 2 reads"}},
      {"random_graph: writes",
       [] {
         (void)random_graph({8, 4, 1, 2, 2, 1}, 1, 64);
       },
       {"2 to 1 writes"}},
      {"random_graph: entry",
       [] {
         (void)random_graph({8, 0, 1, 2, 1, 1}, 1, 64);
       },
       {"0 operands on entry"}},
      {"set_on_exit: has a version",
       [] {
         OperandGraph graph = in_place();
         graph.set_on_exit(0, true);
       },
       {"(a)", "not there on exit", "(a')"}},
      {"add_version: on exit",
       [] {
         OperandGraph graph;
         graph.set_on_exit(graph.add_operand({"a", 64, true, false}), true);
         graph.add_version(0);
       },
       {"add_version", "(a)", "on exit"}},
      {"add_version: declared on exit",
       [] {
         OperandGraph graph;
         graph.add_version(graph.add_operand({"a", 64, true, true}));
       },
       {"add_version", "(a)", "on exit"}},
      {"add_version: none", [] { OperandGraph().add_version(3); }, {"add_version(3)", "0 operands"}},
      {"json: on exit and overwritten",
       [] {
         (void)read_operand_graph(R"({"operands": [
           {"name": "a", "bytes": 4, "on_entry": true, "on_exit": true}, {"name": "b", "version_of": "a"}],
           "kernels": []})");
       },
       {"(a)", "on exit"}},
      {"json: a version on exit and overwritten",
       [] {
         (void)read_operand_graph(R"({"operands": [{"name": "a", "bytes": 4, "on_entry": true},
           {"name": "b", "version_of": "a", "on_exit": true}, {"name": "c", "version_of": "b"}],
           "kernels": []})");
       },
       {"(b)", "on exit"}},
  };
}

TEST(Refusals, SayWhatIsWrong) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.what);
    try {
      refusal.call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), refusal.kind);
      for (const std::string& part : refusal.parts)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << ": " << error.what();
    }
  }
}

TEST(Names, AreTextInPicturesAndPrograms) {
  OperandGraph graph;
  graph.add_operand({"a*/\n\"b\"", 64, true, false});
  graph.add_operand({"c", 64, false, true});
  graph.add_kernel("scan \"fast\"\nint x;", 1, List{0}, List{1});
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Schedule schedule = schedule_exact(graph, transfers);
  EXPECT_NE(to_dot(graph, schedule).find("label=\"scan \\\"fast\\\""), std::string::npos);
  const std::string program = emit_cuda(graph, schedule, lay_out(graph, schedule));
  EXPECT_NE(program.find("// scan \"fast\"_int x;"), std::string::npos) << program;
  EXPECT_EQ(program.find("*/\n"), std::string::npos);
}

TEST(Refusals, AnOperandWhoseVersionWasRefusedIsUnchanged) {
  OperandGraph graph;
  graph.add_operand({"a", 64, true, true});
  EXPECT_THROW(graph.add_version(0), Error);
  EXPECT_EQ(graph.operands(), 1u);
  EXPECT_FALSE(graph.has_versions());
  graph.set_on_exit(0, false);
  EXPECT_EQ(graph.add_version(0), 1u);
}

}  // namespace
}  // namespace esker::transfer
