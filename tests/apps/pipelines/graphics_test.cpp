// The functions of pipe-gene-alignment, pipe-evolution, pipe-rasterisation and pipe-reyes, by a stage of one
// lane, against answers that are known or found in another way.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../../../apps/pipelines/baselines.hpp"
#include "../../../apps/pipelines/evolution/device_stages.hpp"
#include "../../../apps/pipelines/evolution/islands.hpp"
#include "../../../apps/pipelines/gene-alignment/score_chunk.hpp"
#include "../../../apps/pipelines/gene-alignment/sequences.hpp"
#include "../../../apps/pipelines/gene-alignment/serial.hpp"
#include "../../../apps/pipelines/rasterisation/rasterise.hpp"
#include "../../../apps/pipelines/rasterisation/serial.hpp"
#include "../../../apps/pipelines/reyes/device_stages.hpp"
#include "../../../apps/pipelines/reyes/serial.hpp"

namespace {

using pipe_apps::Frame;
using pipe_apps::OneLaneStage;

std::vector<gene::Base> bases_of(const std::string& letters) {
  std::vector<gene::Base> bases;
  for (const char c : letters) bases.push_back(static_cast<gene::Base>(std::string("ACGT").find(c)));
  return bases;
}

TEST(GeneAlignment, TracesBackAnAlignmentWithAGap) {
  const auto query = bases_of("ACGTACGTAC"), target = bases_of("TTTTACGTGACGTACTTTT");
  const auto hits = gene::serial_hits(query, target, static_cast<std::uint32_t>(target.size()));
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].score(), 10 * gene::kMatch - gene::kGap);
  const gene::Alignment found = gene::trace_back(query, target, hits[0]);
  EXPECT_EQ(found.steps, "====T======");
  EXPECT_EQ(found.query_begin, 0u);
  EXPECT_EQ(found.target_begin, 4u);
  EXPECT_TRUE(gene::is_right(found, query, target, hits[0]));
  gene::Alignment wrong = found;
  wrong.steps[0] = 'X';
  EXPECT_FALSE(gene::is_right(wrong, query, target, hits[0]));
}

TEST(GeneAlignment, ScoresChunksAsTheWholeMatrix) {
  for (const std::uint32_t query_length : {1u, 3u, 64u, 101u}) {
    for (const std::uint32_t columns : {1u, 37u, 128u, 700u}) {
      const gene::Chunks chunks{700, query_length, columns};
      const auto s = gene::make_sequences(query_length, 700, 150, 7);
      const auto expected = gene::serial_hits(s.query, s.target, columns);
      std::vector<std::uint32_t> scratch(gene::ScoreChunk::scratch_words(chunks.most()) + 3);
      const gene::ScoreChunk score{chunks, s.query.data(), scratch.data(), 1, chunks.most()};
      for (std::uint64_t c = 0; c < chunks.count(); ++c) {
        std::vector<gene::Bases> in((chunks.most() + 15) / 16);
        const std::uint32_t n = chunks.end(c) - chunks.first(c);
        std::memcpy(in.data(), &s.target[chunks.first(c)], n);
        gene::Hit hit;
        Frame<gene::Hit> out{&hit, 0, 1};
        OneLaneStage stage;
        score(stage, Frame<const gene::Bases>{in.data(), (n + 15) / 16, (n + 15) / 16, c, c}, out);
        EXPECT_EQ(hit.word, expected[c].word)
            << "query of " << query_length << ", chunk " << c << " of " << columns;
      }
    }
  }
}

TEST(Evolution, CostsAreThoseOfRosenbrocksFunction) {
  std::vector<evolution::Creature> creatures(2);
  std::fill(std::begin(creatures[0].genes), std::end(creatures[0].genes), evolution::kOne);
  for (std::uint32_t g = 0; g < evolution::kGenes; ++g)
    creatures[1].genes[g] = static_cast<std::int32_t>(g * 7919 % 4097) - 2048;
  double expected = 0;
  for (std::uint32_t g = 0; g + 1 < evolution::kGenes; ++g) {
    const double x = creatures[1].genes[g] / 1024.0, y = creatures[1].genes[g + 1] / 1024.0;
    expected += 100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x);
  }
  std::vector<evolution::Cost> scratch(2 * evolution::Evaluate::kParts), costs(2);
  Frame<evolution::Cost> out{costs.data(), 2, 2};
  OneLaneStage stage;
  evolution::Evaluate{scratch.data(), 1, 2}(stage, Frame<const evolution::Creature>{creatures.data(), 2, 2},
                                            out);
  EXPECT_EQ(costs[0], 0);  // its minimum
  EXPECT_NEAR(static_cast<double>(costs[1]) / 0x1p40, expected, 1e-6 * expected);
}

TEST(Evolution, MutatesButTheElite) {
  const evolution::Plan plan{1, 200, 1, 200};
  std::vector<evolution::Creature> children(200), mutants(200);
  Frame<evolution::Creature> out{mutants.data(), 200, 200};
  OneLaneStage stage;
  const evolution::Mutate mutate{plan, {inputs::Random(1)}};
  mutate(stage,
         Frame<const evolution::Creature>{children.data(), 200, 200, 0, evolution::Place{0, 1, 0}.tag()},
         out);
  std::uint32_t changed = 0;
  for (std::uint32_t c = 0; c < 200; ++c) {
    for (const std::int32_t gene : mutants[c].genes) {
      if (c < plan.elite()) {
        EXPECT_EQ(gene, 0);
      }
      changed += gene != 0 ? 1 : 0;
    }
  }
  EXPECT_NEAR(changed, 200 * 256 / 64, 150);
}

TEST(Evolution, KeepsIslandsSideBySide) {
  evolution::Pace pace(2);
  for (std::uint32_t g = 0; g < evolution::Pace::kAhead; ++g) EXPECT_EQ(pace.add(0).size(), 1u);
  EXPECT_TRUE(pace.add(0).empty());  // the other one is too far behind
  EXPECT_EQ(pace.add(1).size(), 2u);
}

TEST(Rasterisation, GivesPixelsOfSharedEdgesToOneTriangle) {
  // A square of 8 x 8 pixels whose diagonal goes through the centres.
  const raster::Corner a{0, 0, 0.5}, b{128, 0, 0.5}, c{128, 128, 0.5}, d{0, 128, 0.5};
  const raster::Triangle both[] = {raster::set_up(a, b, c, 1), raster::set_up(a, c, d, 2)};
  for (std::int32_t y = -1; y <= 8; ++y) {
    for (std::int32_t x = -1; x <= 8; ++x) {
      const bool is_inside = x >= 0 && x < 8 && y >= 0 && y < 8;
      EXPECT_EQ((both[0].covers(x, y) ? 1 : 0) + (both[1].covers(x, y) ? 1 : 0), is_inside ? 1 : 0);
    }
  }
  EXPECT_EQ(both[0].depth.at(3, 5), std::int64_t{1} << 37);
}

TEST(Rasterisation, TilesMakeTheSerialPicture) {
  const raster::Scene scene{71, 45, 5, 3};
  for (const std::uint32_t side : {7u, 16u, 100u}) {
    const raster::Tiles tiles{scene.width, scene.height, side};
    std::vector<raster::Triangle> near(raster::most_triangles(scene, tiles));
    const raster::Rasterise rasterise{tiles, near.data(), 1, static_cast<std::uint32_t>(near.size())};
    const auto expected = raster::serial_picture(scene, 2);
    EXPECT_NE(*std::max_element(expected.begin(), expected.end()), raster::kBackground);
    const auto bins = raster::binned(tiles, raster::primitives_of(scene, 2));
    for (std::uint32_t tile = 0; tile < tiles.of_picture(); ++tile) {
      std::vector<std::uint32_t> pixels(side * side);
      const auto n = static_cast<std::uint32_t>(bins[tile].size());
      Frame<std::uint32_t> out{pixels.data(), 0, side * side};
      OneLaneStage stage;
      rasterise(stage, Frame<const raster::Triangle>{bins[tile].data(), n, n, 0, tile}, out);
      const auto box = tiles.box(tile);
      ASSERT_EQ(out.count, box.width * box.height);
      for (std::uint32_t i = 0; i < out.count; ++i) {
        EXPECT_EQ(pixels[i], expected[(box.top + i / box.width) * scene.width + box.left + i % box.width]);
      }
    }
  }
}

TEST(Reyes, HalvesAreTheSameSurface) {
  const reyes::Table table{1, {100, 100, 100}};
  for (const reyes::Patch& patch : reyes::pot(table, 0)) {
    for (const bool along_u : {true, false}) {
      reyes::Patch first, second;
      reyes::halve(patch, along_u, first, second);
      for (const float t : {0.0f, 0.3f, 1.0f}) {
        for (const float s : {0.0f, 0.7f, 1.0f}) {
          const auto at = [&](const reyes::Patch& p, float along, float across) {
            return along_u ? reyes::point_at(p, along, across) : reyes::point_at(p, across, along);
          };
          for (const auto& [whole, half] : {std::pair{at(patch, t / 2, s), at(first, t, s)},
                                            std::pair{at(patch, 0.5f + t / 2, s), at(second, t, s)}}) {
            EXPECT_NEAR(whole.x, half.x, 1e-4f);
            EXPECT_NEAR(whole.y, half.y, 1e-4f);
            EXPECT_NEAR(whole.z, half.z, 1e-4f);
          }
        }
      }
    }
  }
}

/// Collects what a stage emits.
struct Collector : OneLaneStage {
  void emit(std::vector<reyes::Patch>* to, const reyes::Patch& patch) const { to->push_back(patch); }
};
TEST(Reyes, FillsAFlatPatchInAnyOrder) {
  // 40 x 40 pixels at distance 2.
  const reyes::Screen screen{64, 64, 64};
  reyes::Patch flat{{}, 0x808080, 0};
  for (std::uint32_t i = 0; i < 16; ++i) {
    flat.points[i] = {(static_cast<float>(i % 4) / 3 - 0.5f) * 1.25f,
                      (static_cast<float>(i / 4) / 3 - 0.5f) * 1.25f, 2};
  }
  std::vector<reyes::Patch> halves{flat}, small;
  const reyes::Split<std::vector<reyes::Patch>*, std::vector<reyes::Patch>*> split{screen, &halves, &small};
  Collector stage;
  while (!halves.empty()) {
    const reyes::Patch patch = halves.back();
    halves.pop_back();
    split(stage, patch);
  }
  EXPECT_EQ(small.size(), 16u);
  std::vector<reyes::Sample> forwards, serial(64 * 64, reyes::kNothing);
  for (const bool backwards : {false, true}) {
    std::vector<reyes::Pixel> pixels(64 * 64);
    for (auto& pixel : pixels) pixel.store_relaxed(reyes::kNothing);
    reyes::Draw{screen, pixels.data()}(stage, Frame<const reyes::Patch>{small.data(), 16, 16});
    std::reverse(small.begin(), small.end());
    std::vector<reyes::Sample> samples;
    for (auto& pixel : pixels) samples.push_back(pixel.load_relaxed());
    if (backwards) {
      EXPECT_EQ(samples, forwards);
    }
    forwards = samples;
  }
  reyes::serial_draw(flat, screen, serial);
  EXPECT_EQ(serial, forwards);
  for (std::size_t i = 0; i < serial.size(); ++i) {
    const bool is_inside = i % 64 >= 12 && i % 64 < 52 && i / 64 >= 12 && i / 64 < 52;
    EXPECT_EQ(serial[i] != reyes::kNothing, is_inside) << i % 64 << ", " << i / 64;
    if (is_inside) {
      EXPECT_EQ(serial[i] >> 32, 2u << 20);
    }
  }
}

}  // namespace
