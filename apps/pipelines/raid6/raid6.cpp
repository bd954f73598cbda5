// pipe-raid6: P and Q of RAID-6 over stripes, a stripe a frame (XeFlow, section 6.3).
//
// Verified by losing two data blocks of each stripe and rebuilding them from the others, P and Q. Which two
// are lost changes from stripe to stripe.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <esker/device.hpp>

#include "../../harness/application.hpp"
#include "../../inputs/random.hpp"
#include "../encoding.hpp"
#include "parity.hpp"
#include "rebuild.hpp"

namespace {

using raid6::Words;

/// On all of the host's cores.
bool is_right(std::span<const Words> data, std::span<const Words> parity, std::uint32_t blocks,
              std::uint64_t stripes) {
  const raid6::Rebuild rebuild;
  const std::size_t data_words = data.size() / stripes, block_words = data_words / blocks;
  const std::size_t n_threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::size_t> wrong(n_threads, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < n_threads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t s = stripes * t / n_threads; s < stripes * (t + 1) / n_threads; ++s) {
          auto x = static_cast<std::uint32_t>(s % blocks);
          auto y = static_cast<std::uint32_t>((x + 1 + s / blocks % (blocks - 1)) % blocks);
          if (x > y) std::swap(x, y);
          const auto* const p = reinterpret_cast<const std::uint8_t*>(&parity[s * 2 * block_words]);
          wrong[t] +=
              rebuild.wrong_bytes(reinterpret_cast<const std::uint8_t*>(&data[s * data_words]), p,
                                  p + block_words * sizeof(Words), blocks, block_words * sizeof(Words), x, y);
        }
      });
    }
  }
  return std::all_of(wrong.begin(), wrong.end(), [](std::size_t n) { return n == 0; });
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  o.frames = 512;
  std::uint64_t bytes = 0, blocks = 8;
  bool in_place = false;
  esker::CommandLine line("esker-pipe-raid6", "Computes the parity blocks of RAID-6, a stripe a frame.");
  o.add_to(line);
  line.add("bytes", &bytes, "of data; 0: as --size says")
      .add("blocks", &blocks, "data blocks of a stripe")
      .add("in-place", &in_place, "frames stay in arrays of pinned memory: no stage of the host copies them");
  const esker::Device device = o.parse(line, argc, argv);
  if (bytes == 0) bytes = o.by_size(4 << 20, 256 << 20, std::uint64_t{1} << 30);
  if (blocks < 2 || blocks > 255) harness::usage("--blocks is 2 to 255");
  if (o.frame_bytes % (blocks * sizeof(Words)) != 0)
    harness::usage("--frame-bytes is a multiple of 16 times --blocks");
  const std::uint64_t stripes = bytes / o.frame_bytes;
  if (stripes == 0) harness::usage("--bytes is at least --frame-bytes");

  const auto data_words = static_cast<std::uint32_t>(o.frame_bytes / sizeof(Words));
  const auto n_blocks = static_cast<std::uint32_t>(blocks);
  const std::uint32_t block_words = data_words / n_blocks;
  pipe_apps::Encoding<Words, Words> encoding(device, o, stripes, data_words, 2 * block_words);
  const inputs::RandomStream random = inputs::Random(o.seed).stream(0);
  for (std::size_t i = 0; i < encoding.input().size(); ++i) {
    const std::uint64_t both[2] = {random[2 * i], random[2 * i + 1]};
    std::memcpy(&encoding.input()[i], both, sizeof both);
  }

  const pipe_apps::Team team{o.group_lanes, std::max(1u, block_words / o.group_lanes)};
  const auto measured = pipe_apps::measure(
      o,
      [&] {
        std::memset(encoding.output().data(), 0, encoding.output().size_bytes());
        return encoding.run(raid6::Encode{n_blocks}, team, 1, in_place);
      },
      [&] { return is_right(encoding.input(), encoding.output(), n_blocks, stripes); });
  const auto work = static_cast<double>(encoding.input().size_bytes());
  return pipe_apps::finish(o, device, "pipe-raid6", measured, {work, "bytes", work},
                           {{"in_place", in_place}, {"blocks", blocks}, {"pipeline", encoding.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-raid6", argc, argv, run); }
