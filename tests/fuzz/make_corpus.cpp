// Writes the fuzzer's seeds into a folder: good frames of each kind and command, and damaged ones.
//
// usage: make_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../aggregator/frames.hpp"
#include "receiver.hpp"

namespace esker {
namespace {

using wire::Kind;
using Frame = std::vector<std::byte>;

std::filesystem::path folder;

void write(const std::string& name, const Frame& frame) {
  std::ofstream file(folder / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  if (!file.flush()) {
    std::fprintf(stderr, "make_corpus: cannot write %s\n", (folder / name).c_str());
    std::exit(1);
  }
}

FrameBuilder messages() { return FrameBuilder(Kind::kMessages, 2, kFuzzReceiver); }

std::vector<std::vector<std::uint64_t>> rows(std::uint32_t words, std::uint64_t value) {
  std::vector<std::vector<std::uint64_t>> all{{0x40, 0x1000, 0x40}};
  for (std::uint32_t r = 1; r < words; ++r) all.push_back({value, value + 2, value + 4});
  return all;
}

void write_commands() {
  for (std::uint32_t operation = 1; operation <= 8; ++operation) {
    for (std::uint32_t operand = 1; operand <= 11; ++operand) {
      const Command command = Command::from_word(operation | operand << 8);
      const std::uint32_t words = message_words(command);
      if (words == 0) continue;
      write("command_" + std::to_string(operation) + "_" + std::to_string(operand),
            messages().run(command, rows(words, 0x4000000000000002)).bytes());
    }
  }
  for (const std::uint16_t handler : {kAddAndForward, kFillOrThrow, kTouchByte}) {
    const std::uint32_t words = handler == kAddAndForward ? 2 : handler == kFillOrThrow ? 9 : 1;
    write("handler_" + std::to_string(handler),
          messages().run(active_message(handler), rows(words, 6)).bytes());
  }
  write("handler_throws", messages().run(active_message(kFillOrThrow), rows(9, 7)).bytes());
}

/// The same, of values that are good addresses, as a word of a request has to be.
std::vector<std::vector<std::uint64_t>> places(std::uint32_t words) {
  std::vector<std::vector<std::uint64_t>> all{{0x40, 0x1000, 0x40}};
  for (std::uint32_t r = 1; r < words; ++r) all.push_back({0x60, 0x1070, 0x80});
  return all;
}

/// Requests as they mostly travel.
std::vector<std::vector<std::uint64_t>> packed(Command command, std::vector<std::vector<std::uint64_t>> all) {
  for (std::size_t i = 0; i < all[0].size(); ++i)
    all[0][i] = packed_addresses(all[0][i], all.back()[i], operand_shift(command.operand));
  all.pop_back();
  return all;
}

/// Requests, replies and puts with signals: without a handler, and for those whose arguments can hold the
/// value; to others, and to oneself, which the reply does not leave.
void write_requests() {
  for (std::uint32_t operation = 10; operation <= 20; ++operation) {
    for (std::uint32_t operand = 1; operand <= 11; ++operand) {
      const Command command = Command::from_word(operation | operand << 8);
      const std::uint32_t words = message_words(command);
      if (words == 0) continue;
      const std::string name = "command_" + std::to_string(operation) + "_" + std::to_string(operand);
      write(name, messages().run(command, places(words)).bytes());
      if (operation >= 18) continue;
      write(name + "_packed", messages().run(command, packed(command, places(words))).bytes());
      write(name + "_own",
            FrameBuilder(Kind::kMessages, kFuzzReceiver, kFuzzReceiver).run(command, places(words)).bytes());
      const std::uint32_t carried = carried_words(command.operand, 4);
      write(name + "_handler",
            messages().run({command.operation, command.operand, kFetchOn}, places(words + carried)).bytes());
    }
  }
  write("reply_handler", messages().run({Operation::kReply, Operand::kNone, kFetchOn}, rows(4, 6)).bytes());
  const Command get8 = built_in(Operation::kGet, Operand::kBytes8);
  const Command get8_handler{Operation::kGet, Operand::kBytes8, kFetchOn};
  for (const std::uint64_t result :
       {2 * 4096 + 512ull, 2 * 4096 + 520ull, 1ull << 48, 1ull << 63, ~7ull, 4ull}) {
    char name[32];
    std::snprintf(name, sizeof name, "result_%llx", static_cast<unsigned long long>(result));
    write(name, messages().run(get8, {{8}, {result}}).bytes());
    write(std::string(name) + "_handler", messages().run(get8_handler, {{8}, {result}, {1}, {2}}).bytes());
  }
}

void write_limits() {
  const Command put4 = built_in(Operation::kPut, Operand::kBytes4);
  const Command put8 = built_in(Operation::kPut, Operand::kBytes8);
  const Command inc32 = built_in(Operation::kInc, Operand::kInt32);
  const Command inc64 = built_in(Operation::kInc, Operand::kInt64);
  write("figure_a_2", messages().run(put4, {{0x1000, 0x408}, {5, 42}}).run(inc32, {{0x2000}}).bytes());
  write("wraps_int32", messages().run(put4, {{8}, {0x7fffffff}}).run(inc32, {{8}}).bytes());
  write("wraps_int64", messages().run(put8, {{8}, {~0ull >> 1}}).run(inc64, {{8}}).bytes());
  write("heap_end", messages().run(put8, {{2 * 4096 + 512}, {1}}).bytes());
  write("beyond_heap_end", messages().run(put8, {{2 * 4096 + 520}, {1}}).bytes());
  write("largest_address", messages().run(put8, {{~0ull - 7}, {1}}).bytes());
  write("misaligned", messages().run(put8, {{4}, {1}}).bytes());
  write("target_beyond_heap_end",
        messages()
            .run(active_message(kFillOrThrow), {{2 * 4096 + 512}, {0}, {}, {}, {}, {}, {}, {}, {}})
            .bytes());
}

void write_kinds() {
  write("no_runs", messages().bytes());
  write("empty_run", messages().run(built_in(Operation::kInc, Operand::kUint64), {{}}).bytes());
  for (const Kind kind : {Kind::kQuietRequest, Kind::kQuietReply, Kind::kHangReport, Kind::kStatusRequest}) {
    write("kind_" + std::to_string(static_cast<int>(kind)),
          FrameBuilder(kind, 2, kFuzzReceiver).value(9).bytes());
  }
  write("kind_4", FrameBuilder(Kind::kFailure, 2, kFuzzReceiver).value(3).text("out of cheese").bytes());
  write("kind_10", FrameBuilder(Kind::kStatusReply, 2, kFuzzReceiver).value(121).text("waits").bytes());
  write("kind_11", FrameBuilder(Kind::kLetter, 2, kFuzzReceiver).value(1).text("bytes").bytes());
}

void write_damaged() {
  const Frame good = messages()
                         .run(built_in(Operation::kPut, Operand::kBytes16), {{16, 32}, {1, 2}, {3, 4}})
                         .run(built_in(Operation::kInc, Operand::kUint64), {{8, 16, 24}})
                         .bytes();
  write("several_runs", good);
  write("damaged_header_only", Frame(good.begin(), good.begin() + 64));
  write("damaged_torn", Frame(good.begin(), good.end() - 12));
  // Byte offsets of magic, version, kind, source, destination, bytes, messages, runs, text, reserved; then
  // of the first run's command, words, count, reserved.
  for (const std::size_t at : {0u, 4u, 6u, 8u, 12u, 24u, 28u, 32u, 36u, 48u, 64u, 68u, 72u, 76u}) {
    Frame frame = good;
    overwrite(frame, at, std::uint8_t{0xee});
    write("damaged_at_" + std::to_string(at), frame);
  }
}

}  // namespace
}  // namespace esker

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  esker::folder = argv[1];
  std::filesystem::create_directories(esker::folder);
  esker::write_commands();
  esker::write_requests();
  esker::write_limits();
  esker::write_kinds();
  esker::write_damaged();
}
