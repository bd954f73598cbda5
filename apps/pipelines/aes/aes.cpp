// pipe-aes: encrypts frames with AES-128 in the electronic code book mode (XeFlow, section 6.3).
//
// Verified by decrypting all of the output, byte by byte as FIPS-197 prints it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <esker/device.hpp>

#include "../../harness/application.hpp"
#include "../../inputs/random.hpp"
#include "../encoding.hpp"
#include "cipher.hpp"
#include "decipher.hpp"

namespace {

using aes::Block;

/// All blocks decrypt to what they were, on all of the host's cores.
bool is_right(std::span<const Block> plain, std::span<const Block> encrypted, const aes::Key& key) {
  const aes::Decipher decipher(key);
  const std::size_t n_threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::size_t> wrong(n_threads, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < n_threads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = plain.size() * t / n_threads; i < plain.size() * (t + 1) / n_threads; ++i) {
          std::uint8_t state[sizeof(Block)];
          std::memcpy(state, &encrypted[i], sizeof state);
          decipher(state);
          wrong[t] += std::memcmp(state, &plain[i], sizeof state) != 0 ? 1 : 0;
        }
      });
    }
  }
  return std::all_of(wrong.begin(), wrong.end(), [](std::size_t n) { return n == 0; });
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  o.frames = 512;
  std::uint64_t bytes = 0;
  bool in_place = false;
  esker::CommandLine line("esker-pipe-aes", "Encrypts frames with AES-128.");
  o.add_to(line);
  line.add("bytes", &bytes, "to encrypt; 0: as --size says")
      .add("in-place", &in_place, "frames stay in arrays of pinned memory: no stage of the host copies them");
  const esker::Device device = o.parse(line, argc, argv);
  if (bytes == 0) bytes = o.by_size(4 << 20, 256 << 20, std::uint64_t{1} << 30);
  if (o.frame_bytes % sizeof(Block) != 0) harness::usage("--frame-bytes is a multiple of 16");
  const std::uint64_t frames = bytes / o.frame_bytes;
  if (frames == 0) harness::usage("--bytes is at least --frame-bytes");

  const auto blocks = static_cast<std::uint32_t>(o.frame_bytes / sizeof(Block));
  pipe_apps::Encoding<Block, Block> encoding(device, o, frames, blocks, blocks);
  const inputs::RandomStream key_words = inputs::Random(o.seed).stream(0),
                             words = inputs::Random(o.seed).stream(1);
  aes::Key key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(key_words[i]);
  for (std::size_t i = 0; i < encoding.input().size(); ++i) {
    const std::uint64_t both[2] = {words[2 * i], words[2 * i + 1]};
    std::memcpy(&encoding.input()[i], both, sizeof both);
  }
  const auto tables = device.memory<aes::Tables>(1, {"tables of AES"});
  const aes::Tables of_key = aes::tables_of(key);
  device.copy(tables.data(), &of_key, sizeof of_key);

  const pipe_apps::Team team{o.group_lanes, std::max(1u, blocks / o.group_lanes)};
  const std::uint32_t parts = std::clamp(blocks / 1024, 1u, 16u);  // of a frame, a team each
  const auto measured = pipe_apps::measure(
      o,
      [&] {
        std::memset(encoding.output().data(), 0, encoding.output().size_bytes());
        return encoding.run(aes::Encrypt{tables.data()}, team, parts, in_place);
      },
      [&] { return is_right(encoding.input(), encoding.output(), key); });
  const auto work = static_cast<double>(encoding.input().size_bytes());
  return pipe_apps::finish(o, device, "pipe-aes", measured, {work, "bytes", work},
                           {{"in_place", in_place}, {"pipeline", encoding.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-aes", argc, argv, run); }
