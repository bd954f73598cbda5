// The parts of pipe-face-detection: which bands need which, the stages by one lane in any order, the groups.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "../../../apps/pipelines/baselines.hpp"
#include "../../../apps/pipelines/face-detection/picture.hpp"
#include "../../../apps/pipelines/face-detection/serial.hpp"
#include "../../../apps/pipelines/face-detection/stages.hpp"
#include "../../../apps/pipelines/face-detection/training.hpp"
#include "../../../apps/pipelines/face-detection/workspace.hpp"

namespace {

using faces::Band;
using faces::Box;
using faces::Cascade;
using faces::Picture;
using faces::Pyramid;
using faces::Rows;
using faces::Step;
using faces::Window;
using pipe_apps::Frame;

std::vector<Box> sorted(std::vector<Box> boxes) {
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::tie(a.y, a.x, a.side) < std::tie(b.y, b.x, b.side);
  });
  return boxes;
}

TEST(FacePyramid, ABandIsHandedOnByThoseThatItNeeds) {
  for (const std::uint32_t height : {40u, 41u, 42u, 43u, 61u, 180u}) {
    for (const std::uint32_t band_rows : {1u, 2u, 3u, 7u, 20u, 500u}) {
      const Pyramid p = Pyramid::of(60, height, band_rows);
      for (const Step step : {Step::kScale, Step::kCode, Step::kScan}) {
        for (std::uint32_t l = step == Step::kScale ? 1 : 0; l < p.n_levels; ++l) {
          const std::uint32_t from = step == Step::kScale ? l - 1 : l;
          const std::uint32_t n = p.bands_of({0, p.height_of(step, l)}).count();
          std::vector<std::uint32_t> lacks;
          for (std::uint32_t band = 0; band < n; ++band) lacks.push_back(p.needs_of(step, l, band));
          const Rows inputs = p.bands_of({0, p.levels[from].height});
          for (std::uint32_t input = 0; input < inputs.end; ++input) {
            const Rows rows = p.rows_of(Step::kCode, from, input);
            const Rows readers = p.bands_of(p.outputs_of(step, l, rows));
            ASSERT_LE(readers.end, n);
            for (std::uint32_t band = 0; band < n; ++band) {
              const Rows needs = p.inputs_of(step, l, p.rows_of(step, l, band));
              ASSERT_LE(needs.end, p.levels[from].height);
              const bool is_needed = needs.first < rows.end && rows.first < needs.end;
              ASSERT_EQ(band >= readers.first && band < readers.end, is_needed)
                  << "step " << static_cast<int>(step) << " level " << l << " band " << band << " of "
                  << input;
              lacks[band] -= is_needed ? 1 : 0;
            }
          }
          for (const std::uint32_t missing : lacks) ASSERT_EQ(missing, 0u);
        }
      }
    }
  }
}

TEST(FacePyramid, ScalesAndCodesPixels) {
  // A row of 5 pixels to 4: 4 and 1, 3 and 2, 2 and 3, 1 and 4 fifths; rows are alike.
  std::vector<std::uint8_t> above;
  for (int y = 0; y < 5; ++y) above.insert(above.end(), {0, 100, 50, 200, 10});
  const std::uint8_t expected[4] = {20, 80, 140, 48};
  for (std::uint32_t y = 0; y < 4; ++y) {
    for (std::uint32_t x = 0; x < 4; ++x) EXPECT_EQ(faces::scaled_pixel(above.data(), 5, x, y), expected[x]);
  }
  const std::uint8_t pixels[9] = {5, 4, 6,  // a bit for those of at least 5, clockwise from the upper left
                                  9, 5, 1, 5, 0, 7};
  EXPECT_EQ(faces::code_of(pixels, 3, 1, 1), 0b11010101);
}

/// One lane that does what is handed on, in any order.
struct AnyOrder {
  struct Task {
    std::uint32_t topic;
    Band band;
    Window window;
  };
  std::vector<Task> tasks;
  std::vector<Window> found;

  std::uint32_t lane() const { return 0; }
  std::uint32_t lanes() const { return 1; }
  void sync() const {}
  void emit(std::uint32_t topic, const Band& band) { tasks.push_back({topic, band, {}}); }
  void emit(std::uint32_t topic, const Window& window) {
    if (topic == kFound) {
      found.push_back(window);
    } else {
      tasks.push_back({topic, {}, window});
    }
  }
  static constexpr std::uint32_t kFound = 6;
};

TEST(FaceStages, FindWhatTheSerialDetectorFindsInAnyOrder) {
  using Out = faces::Outputs<std::uint32_t, std::uint32_t>;
  const Out out{0, 1, 2, {3, 4, 5, AnyOrder::kFound}};
  const Cascade cascade = faces::trained_cascade(20);
  const faces::Scene scene{75, 62, 3, 5};
  const auto device = esker::Device::open("cpu");
  for (const std::uint32_t band_rows : {1u, 5u, 13u, 62u}) {
    const Pyramid pyramid = Pyramid::of(scene.width, scene.height, band_rows);
    faces::WorkspaceMemory memory(device, pyramid, cascade, 2);
    const faces::Workspace work = memory.view();
    std::mt19937 random(band_rows);
    // Three pictures in one slot, one after the other: each leaves it as it was.
    for (std::uint32_t number = 0; number < 3; ++number) {
      const Picture picture = faces::make_picture(scene, number);
      const std::uint32_t slot = 1;
      AnyOrder stage;
      const std::uint32_t n_bands = pyramid.bands_of({0, scene.height}).count();
      std::uint32_t stored = 0;
      std::vector<std::uint32_t> order(n_bands);
      for (std::uint32_t i = 0; i < n_bands; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      while (stored < n_bands || !stage.tasks.empty()) {
        ASSERT_TRUE(stage.found.empty() || stage.found.back().level != Window::kDone);
        if (stored < n_bands && (stage.tasks.empty() || random() % 4 == 0)) {
          const std::uint32_t band = order[stored++];
          const Rows rows = pyramid.rows_of(Step::kCode, 0, band);
          std::vector<std::uint64_t> words(rows.count() * scene.width / 8 + 1);
          std::memcpy(words.data(), &picture.pixels[std::size_t{rows.first} * scene.width],
                      rows.count() * scene.width);
          const auto* const bytes = reinterpret_cast<const std::uint8_t*>(words.data());
          const std::uint32_t n = rows.count() * scene.width;
          faces::Store<Out>{work, out}(
              stage, Frame<const std::uint8_t>{bytes, n, n, 0, faces::Store<Out>::tag_of(slot, band)});
          continue;
        }
        std::swap(stage.tasks[random() % stage.tasks.size()], stage.tasks.back());
        const AnyOrder::Task task = stage.tasks.back();
        stage.tasks.pop_back();
        const Frame<const Band> frame{&task.band, 1, 1};
        if (task.topic == out.scale) {
          faces::Scale<Out>{work, out}(stage, frame);
        } else if (task.topic == out.code) {
          faces::Code<Out>{work, out}(stage, frame);
        } else if (task.topic == out.scan) {
          faces::Scan<Out>{work, out}(stage, frame);
        } else {
          faces::Classify<Out>{work, out, task.topic - out.passed[0] + 1}(stage, task.window);
        }
      }
      ASSERT_FALSE(stage.found.empty());
      EXPECT_EQ(stage.found.back().level, Window::kDone);
      EXPECT_EQ(stage.found.back().slot, slot);
      stage.found.pop_back();
      std::vector<Box> boxes;
      for (const Window& w : stage.found) boxes.push_back(faces::box_of(w.level, w.x, w.y));
      const faces::Detections expected = faces::serial_detections(cascade, picture);
      EXPECT_FALSE(expected.windows.empty());
      EXPECT_EQ(sorted(boxes), sorted(expected.windows));
      EXPECT_EQ(faces::grouped(boxes), expected.faces);
    }
  }
}

TEST(FaceGroups, AreChainsOfBoxesThatAreAlike) {
  // Side 20: boxes 5 apart share 300 of 500, those 10 apart 200 of 600. The first three are one chain, though
  // its ends are not alike; the last two are too few.
  const std::vector<Box> boxes{{0, 0, 20}, {5, 0, 20}, {10, 0, 20}, {100, 0, 20}, {101, 0, 20}};
  EXPECT_FALSE(faces::are_alike(boxes[0], boxes[2]));
  const std::vector<faces::Face> expected{{{5, 0, 20}, 3}};
  EXPECT_EQ(faces::grouped(boxes), expected);
  EXPECT_EQ(faces::detail::serial_groups(boxes), expected);
}

TEST(FaceGroups, DoNotDependOnTheOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<Box> boxes;
    for (int i = 0; i < 60; ++i) {
      const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
      boxes.push_back({below(60), below(60), 20 + below(10)});
    }
    const auto expected = faces::detail::serial_groups(boxes);
    EXPECT_FALSE(expected.empty());
    std::shuffle(boxes.begin(), boxes.end(), random);
    EXPECT_EQ(faces::grouped(boxes), expected);
  }
}

TEST(FaceDetection, FindsThePlantedFacesOfManyPictures) {
  const Cascade cascade = faces::trained_cascade();
  std::uint64_t planted = 0, found = 0, others = 0;
  faces::Detections sum;
  for (std::uint32_t number = 0; number < 20; ++number) {
    const Picture picture = faces::make_picture({160, 90, 3, 99}, number);
    const faces::Detections detections = faces::serial_detections(cascade, picture);
    planted += picture.planted.size();
    for (const Box& box : picture.planted) found += faces::is_found(box, detections.faces) ? 1 : 0;
    for (const faces::Face& face : detections.faces) {
      const auto is_it = [&](const Box& box) { return faces::is_found(box, {face}); };
      others += std::none_of(picture.planted.begin(), picture.planted.end(), is_it) ? 1 : 0;
    }
    for (std::size_t i = 0; i <= Cascade::kStages; ++i) sum.passed[i] += detections.passed[i];
  }
  EXPECT_GE(planted, 40u);
  EXPECT_EQ(found, planted);
  EXPECT_LE(others, 4u);
  // Most windows are rejected early.
  EXPECT_LT(sum.passed[1] * 10, sum.passed[0]);
  EXPECT_LT(sum.passed[2] * 2, sum.passed[1]);
}

}  // namespace
