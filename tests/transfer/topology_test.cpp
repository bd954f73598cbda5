// Topologies: routes, shares of links, JSON, drawings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include <esker/error.hpp>
#include <esker/transfer.hpp>

#include "refusal.hpp"

namespace {

using namespace esker::transfer;

TEST(Topology, RoutesTakeTheFewestLinks) {
  const Topology t = sandy_bridge_system();
  std::string names;
  for (const std::uint32_t link : t.route(t.host(), t.find("GPU2"))) names += t.link_name(link) + "; ";
  EXPECT_EQ(names, "M0 -> CPU0; CPU0 -> CPU1; CPU1 -> SW1; SW1 -> GPU2; ");
  EXPECT_EQ(t.route(t.find("GPU0"), t.find("GPU1")).size(), 2u);
  EXPECT_FALSE(t.is_staged(t.find("GPU0"), t.find("GPU1")));
  EXPECT_TRUE(t.is_staged(t.find("GPU0"), t.find("GPU2")));
}

TEST(Topology, RefusesByName) {
  Topology t("mine");
  const auto a = t.add("A", Topology::Kind::kMemory), b = t.add("B", Topology::Kind::kDevice);
  EXPECT_EQ(refusal([&] { (void)t.find("C"); }), "topology 'mine': there is no node 'C'; it has: A, B");
  EXPECT_EQ(refusal([&] { t.add("A", Topology::Kind::kHub); }),
            "topology 'mine': two nodes have the name 'A'");
  EXPECT_EQ(refusal([&] { (void)t.route(a, b); }), "topology 'mine': no route leads from A to B");
  EXPECT_EQ(refusal([&] { (void)t.device(1); }), "topology 'mine': device 1 is not there: it has 1");
  EXPECT_NE(refusal([&] { t.connect(a, b, {0}, {1}); }).find("link A -> B: 0 bytes/s"), std::string::npos);
  const double infinite = std::numeric_limits<double>::infinity();
  for (const LinkRate& rate :
       {LinkRate{1e-320}, LinkRate{1e9, 1e-320}, LinkRate{1e9, 0, infinite}, LinkRate{1e9, 0, 0, infinite}})
    EXPECT_NE(refusal([&] { t.connect(a, b, rate, {1e9}); }).find("link A -> B: "), std::string::npos);
}

TEST(Topology, AProfileThatLacksALinkIsRefusedByName) {
  Topology t("mine");
  const auto host = t.add("M0", Topology::Kind::kMemory), device = t.add("GPU0", Topology::Kind::kDevice);
  t.connect(host, device, {}, {});
  EXPECT_NE(refusal([&] {
              (void)calibrated(t, {"mine", {{"M0", "GPU0", {1e9}}}});
            }).find("has no bandwidth of GPU0 -> M0"),
            std::string::npos);
  (void)calibrated(t, {"mine", {{"M0", "GPU0", {1e9}}, {"GPU0", "M0", {1e9}}}});
}

TEST(Topology, JsonComesBackAsItWas) {
  for (const char* name : {"example", "nehalem", "sandy-bridge"}) {
    const std::string json = modelled_system(name).to_json();
    EXPECT_EQ(Topology::from_json(json, "a test").to_json(), json);
  }
  EXPECT_NE(refusal([] { Topology::from_json("{", "file.json"); }).find("topology in file.json: "),
            std::string::npos);
  EXPECT_NE(refusal([] {
              Topology::from_json(R"({"name":"x","nodes":[{"name":"a","kind":"tree"}],"links":[]})", "f");
            }).find("'tree' is none of: memory, processor, hub, switch, device"),
            std::string::npos);
  EXPECT_NE(refusal([] { modelled_system("haswell"); }).find("example, nehalem, sandy-bridge"),
            std::string::npos);
}

TEST(Topology, IsDrawnByGraphviz) {
  const Topology t = example_system();
  EXPECT_NE(t.to_dot().find("\"CPU\" -> \"IOH\" [label=\"8\"]"), std::string::npos);
  const std::string file = testing::TempDir() + "/topology.svg";
  if (std::system("dot -V 2> /dev/null") != 0) GTEST_SKIP() << "no dot";
  t.draw_svg(file);
  std::ifstream in(file);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("GPU3"), std::string::npos);
}

TEST(Topology, WithoutGraphvizItNamesThePackage) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const std::string text = refusal([] { example_system().draw_svg(testing::TempDir() + "/no.svg"); });
  setenv("PATH", path.c_str(), 1);
  EXPECT_NE(text.find("install the package graphviz"), std::string::npos) << text;
  EXPECT_NE(refusal([] { example_system().draw_svg("/nowhere/a.svg"); }).find("cannot be written"),
            std::string::npos);
}

TEST(Topology, LeavesNoFileBesideItsDrawing) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "esker_drawings";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  EXPECT_NE(refusal([&] { example_system().draw_svg(folder / "no.svg"); }), "");
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(Throughput, FlowsShareWhatTheirLinksHave) {
  Topology t("shares");
  const auto m = t.add("M", Topology::Kind::kMemory), h = t.add("H", Topology::Kind::kHub);
  const auto a = t.add("A", Topology::Kind::kDevice), b = t.add("B", Topology::Kind::kDevice);
  t.connect(m, h, {10}, {10});
  t.connect(h, a, {3}, {8, 4});
  t.connect(h, b, {9, 6}, {9, 6});
  const Topology::Route to_a = t.route(m, a), to_b = t.route(m, b), from_b = t.route(b, m);
  const std::vector<Flow> down{{&to_a}, {&to_b}};
  Throughput rates = throughput(t, down);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s[0], 3);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s[1], 7);
  EXPECT_EQ(t.link_name(rates.bottlenecks[0]), "H -> A");
  EXPECT_EQ(t.link_name(rates.bottlenecks[1]), "M -> H");
  const std::vector<Flow> both{{&to_b}, {&from_b}};
  rates = throughput(t, both);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s[0], 6);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s[1], 6);
  // The other direction does half of what it could, so half of the difference is back.
  const std::vector<Flow> limited{{&to_b}, {&from_b, 3}};
  rates = throughput(t, limited);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s[0], 7.5);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s[1], 3);
}

TEST(Throughput, IsMaxMinFair) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Topology t("random");
    const auto m = t.add("M", Topology::Kind::kMemory);
    std::vector<std::uint32_t> inner{m};
    const auto rate = [&] { return LinkRate{static_cast<double>(1 + random() % 20)}; };
    for (int i = 0; i < 3; ++i) {
      const auto hub = t.add("H" + std::to_string(i), Topology::Kind::kHub);
      const std::uint32_t above = inner[random() % inner.size()];
      t.connect(above, hub, rate(), rate());
      inner.push_back(hub);
    }
    std::vector<Topology::Route> routes;
    for (int i = 0; i < 4; ++i) {
      const auto device = t.add("D" + std::to_string(i), Topology::Kind::kDevice);
      t.connect(inner[random() % inner.size()], device, rate(), rate());
      routes.push_back(t.route(m, device));
    }
    std::vector<Flow> flows;
    for (const auto& route : routes) flows.push_back({&route});
    const Throughput found = throughput(t, flows);
    std::vector<double> used(t.links().size(), 0);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const std::uint32_t link : routes[f]) used[link] += found.bytes_per_s[f];
    }
    for (std::size_t link = 0; link < used.size(); ++link)
      EXPECT_LE(used[link], t.links()[link].rate.bytes_per_s * (1 + 1e-9));
    // Each flow crosses a full link on which none has more.
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::uint32_t link = found.bottlenecks[f];
      ASSERT_NE(link, Throughput::kNone);
      EXPECT_NEAR(used[link], t.links()[link].rate.bytes_per_s, 1e-6);
      for (std::size_t g = 0; g < flows.size(); ++g) {
        if (std::count(routes[g].begin(), routes[g].end(), link) == 0) continue;
        EXPECT_LE(found.bytes_per_s[g], found.bytes_per_s[f] * (1 + 1e-9));
      }
    }
  }
}

}  // namespace
