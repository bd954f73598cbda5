// The detector's stages. Bands of the picture go to the device, which makes the pyramid by recursion; LBP
// codes are the host's, over regions of the levels (HiWayLib's face detection: the fourth stage, of 3 x 3
// pixels); the device looks for faces among the codes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include <esker/lane.hpp>
#include <esker/pipeline.hpp>

#include "detector.hpp"
#include "picture.hpp"

namespace faces {

namespace pipeline = esker::pipeline;
using pipeline::Frame;
using pipeline::Topic;
using Pixel = std::uint8_t;

/// A level of the pyramid, as stages see it.
struct Level {
  Extent size;
  pipeline::RegionSourceView<Pixel> scaled;  // on the device: its pixels, as they are made
  pipeline::RegionTableView<Pixel> pixels;   // where codes are computed; item by item, where tasks are made
  pipeline::RegionSourceView<Pixel> coded;   // on the host, item by item: its codes, as they are made
  pipeline::RegionTableView<Pixel> codes;    // on the device: as they arrive
};
/// A frame's tag: a level, and a region or a row of it.
ESKER_HD inline std::uint64_t tag_of(std::uint32_t level, std::uint32_t what) {
  return std::uint64_t{level} << 32 | what;
}

/// Sends the picture, some rows at a time.
struct Read {
  const Picture* picture;
  Topic<Pixel> to;
  std::uint32_t band_rows;
  std::uint32_t* next_row;

  bool operator()(auto& stage) const {
    const std::uint32_t rows = std::min(band_rows, picture->height - *next_row);
    if (rows == 0) return false;
    auto frame = stage.open(to);
    if (frame.data == nullptr) return false;
    frame.count = rows * picture->width * 3;
    std::memcpy(frame.data, &picture->pixels[std::size_t{*next_row} * picture->width * 3], frame.count);
    frame.tag = tag_of(0, *next_row);
    stage.publish(to, frame);
    *next_row += rows;
    return true;
  }
};

struct Grey {
  Topic<Pixel> to;
  ESKER_HD void operator()(auto& stage, const Frame<const Pixel>& in) const {
    auto out = stage.open(to);
    if (out.data == nullptr) return;
    out.count = in.count / 3;
    for (std::uint32_t i = stage.lane(); i < out.count; i += stage.lanes())
      out[i] = grey_of(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
    out.tag = in.tag;
    stage.publish(to, out);
  }
};

/// Puts rows of a level into its regions, of which those that are complete are sent on, and scales them for
/// the next level: its own input.
template <class SendRegion>
struct Scale {
  const Level* levels;
  std::uint32_t n_levels;
  Topic<Pixel> rows;
  SendRegion send;
  std::uint32_t round;

  ESKER_HD void operator()(auto& stage, const Frame<const Pixel>& in) const {
    const auto number = static_cast<std::uint32_t>(in.tag >> 32), first = static_cast<std::uint32_t>(in.tag);
    const Level& level = levels[number];
    const std::uint32_t n_rows = in.count / level.size.x;
    scale(stage, in, number, first, n_rows);
    const RegionGrid& grid = level.scaled.grid;
    for (std::uint32_t y = first; y < first + n_rows;) {
      const std::uint32_t in_region = grid.region.y - y % grid.region.y;
      const std::uint32_t left = first + n_rows - y, n = left < in_region ? left : in_region;
      for (std::uint32_t x = 0; x < level.size.x; x += grid.region.x)
        put(stage, in.data + std::uint64_t{y - first} * level.size.x, number, {x, y, 0}, n);
      y += n;
    }
  }

 private:
  ESKER_HD void scale(auto& stage, const Frame<const Pixel>& in, std::uint32_t number, std::uint32_t first,
                      std::uint32_t n_rows) const {
    if (number + 1 == n_levels) return;
    const std::uint32_t begin = Pyramid::first_from(first), end = Pyramid::first_from(first + n_rows);
    if (begin == end) return;
    auto out = stage.open(rows);
    if (out.data == nullptr) return;
    const std::uint32_t width = levels[number + 1].size.x, from_width = levels[number].size.x;
    const Box box{{0, begin, 0}, {width, end - begin, 1}};
    box.for_each(stage.lane(), stage.lanes(), [&](const Cell& c) {
      out[(c.y - begin) * width + c.x] = in[(Pyramid::up(c.y) - first) * from_width + Pyramid::up(c.x)];
    });
    out.count = box.count();
    out.tag = tag_of(number + 1, begin);
    stage.publish(rows, out);
  }
  /// `n_rows` rows of one region; `from` is a row of the level.
  ESKER_HD void put(auto& stage, const Pixel* from, std::uint32_t number, const Cell& first,
                    std::uint32_t n_rows) const {
    const Level& level = levels[number];
    const auto& scaled = level.scaled;
    const std::uint32_t region = scaled.grid.region_of(first);
    // There is a buffer for each region; another team may be taking it now.
    auto* const to = reinterpret_cast<Pixel*>(stage.of_leader([&] {
      Pixel* buffer = nullptr;
      while ((buffer = scaled.try_open(region, round)) == nullptr && !stage.stop_requested())
        esker::Lane::yield();
      return reinterpret_cast<std::uint64_t>(buffer);
    }));
    if (to == nullptr) return;
    const Box box{first, {scaled.grid.cells_of(region).size.x, n_rows, 1}};
    box.for_each(stage.lane(), stage.lanes(), [&](const Cell& c) {
      to[scaled.grid.offset_of(c)] = from[std::uint64_t{c.y - first.y} * level.size.x + c.x];
    });
    if (stage.of_leader([&] { return scaled.mark_ready(region, box.count()) ? 1u : 0u; }) == 0) return;
    send(stage, level, number, region, round);
    stage.sync();
    if (stage.lane() == 0) scaled.release(region);
  }
};

/// By regions: each pixel crosses once.
struct SendWhole {
  Topic<Pixel> to;
  ESKER_HD void operator()(auto& stage, const Level& level, std::uint32_t number, std::uint32_t region,
                           std::uint32_t) const {
    auto out = stage.open(to);
    if (out.data == nullptr) return;
    const Pixel* const pixels = level.scaled.data(region);
    out.count = level.scaled.grid.region_cells();
    for (std::uint32_t i = stage.lane(); i < out.count; i += stage.lanes()) out[i] = pixels[i];
    out.tag = tag_of(number, region);
    stage.publish(to, out);
  }
};
/// A pixel and those around it, in the order of rows.
struct PixelTask {
  std::uint16_t x, y;
  std::uint8_t level;
  Pixel pixels[9];
};
/// Item by item: each pixel crosses nine times.
struct SendItems {
  Topic<PixelTask> to;
  ESKER_HD void operator()(auto& stage, const Level& level, std::uint32_t number, std::uint32_t region,
                           std::uint32_t round) const {
    level.pixels.receive(
        stage, region, level.scaled.data(region),
        [&](std::uint32_t, const auto& reader) {
          reader.cells().for_each(stage.lane(), stage.lanes(), [&](const Cell& c) {
            PixelTask task{static_cast<std::uint16_t>(c.x),
                           static_cast<std::uint16_t>(c.y),
                           static_cast<std::uint8_t>(number),
                           {}};
            for (std::int32_t i = 0; i < 9; ++i)
              task.pixels[i] =
                  reader.at_or(std::int64_t{c.x} + i % 3 - 1, std::int64_t{c.y} + i / 3 - 1, 0, Pixel{0});
            stage.emit(to, task);
          });
        },
        round);
  }
};

/// LBP codes of regions, on the host.
struct CodeRegions {
  const Level* levels;
  Topic<Pixel> to;
  std::uint32_t round;

  void operator()(auto& stage, const Frame<const Pixel>& in) const {
    const auto number = static_cast<std::uint32_t>(in.tag >> 32);
    const auto& table = levels[number].pixels;
    table.receive(
        stage, static_cast<std::uint32_t>(in.tag), in.data,
        [&](std::uint32_t target, const auto& reader) {
          auto out = stage.open(to);
          if (out.data == nullptr) return;
          reader.cells().for_each(0, 1, [&](const Cell& c) {
            out[reader.offset_of(c)] = code_of(reader.at(c.x, c.y), [&](std::int32_t dx, std::int32_t dy) {
              return reader.at_or(std::int64_t{c.x} + dx, std::int64_t{c.y} + dy, 0, Pixel{0});
            });
          });
          out.count = table.grid.region_cells();
          out.tag = tag_of(number, target);
          stage.publish(to, out);
        },
        round);
  }
};
/// LBP codes of pixels that come with those around them.
struct CodeItems {
  const Level* levels;
  Topic<Pixel> to;
  std::uint32_t round;

  void operator()(auto& stage, const PixelTask& task) const {
    const auto& coded = levels[task.level].coded;
    const std::uint8_t code = code_of(
        task.pixels[4], [&](std::int32_t dx, std::int32_t dy) { return task.pixels[4 + 3 * dy + dx]; });
    using Set = pipeline::RegionSourceView<Pixel>::Set;
    Set how;
    while ((how = coded.try_set({task.x, task.y, 0}, code, round)) == Set::kNotNow) {
      if (stage.stop_requested()) return;
    }
    if (how != Set::kCompletes) return;
    const std::uint32_t region = coded.grid.region_of({task.x, task.y, 0});
    auto out = stage.open(to);
    if (out.data == nullptr) return;
    out.count = coded.grid.region_cells();
    std::memcpy(out.data, coded.data(region), out.count);
    coded.release(region);
    out.tag = tag_of(task.level, region);
    stage.publish(to, out);
  }
};

/// Windows whose codes have arrived: their first pixels are in the target.
struct Match {
  const Level* levels;
  const Face* face;
  Topic<Hit> to;
  std::uint32_t round;

  ESKER_HD void operator()(auto& stage, const Frame<const Pixel>& in) const {
    const auto number = static_cast<std::uint32_t>(in.tag >> 32);
    const Level& level = levels[number];
    level.codes.receive(
        stage, static_cast<std::uint32_t>(in.tag), in.data,
        [&](std::uint32_t, const auto& reader) {
          reader.cells().for_each(stage.lane(), stage.lanes(), [&](const Cell& c) {
            if (c.x + kSide > level.size.x || c.y + kSide > level.size.y) return;
            const std::uint32_t score =
                face->match([&](std::uint32_t x, std::uint32_t y) { return reader.at(c.x + x, c.y + y); });
            if (score != 0) stage.emit(to, {number, c.x, c.y, score});
          });
        },
        round);
  }
};

}  // namespace faces
