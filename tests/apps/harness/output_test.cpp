// Files that are written, cannot be, or are not in the end.
#include <esker/apps/harness/output.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../../runtime/pes.hpp"
#include "../inputs/written_file.hpp"

namespace harness::testing {
namespace {

using esker::Runtime;
using esker::testing::Pes;
using inputs::testing::bytes_of;
using inputs::testing::reason;
using inputs::testing::WrittenFile;

TEST(OutputFile, HoldsWhatWasWrittenInPlaceOfWhatItHeld) {
  const WrittenFile old(std::string(100, 'x'));
  std::string expected;
  OutputFile file(old.path());
  for (int i = 0; i < 30'000; ++i) {  // more than a buffer
    file.write(std::to_string(i) + '\n');
    expected += std::to_string(i) + '\n';
  }
  file.close();
  EXPECT_EQ(bytes_of(old.path()), expected);
}

TEST(OutputFile, IsEmptyWhereNothingWasWritten) {
  const WrittenFile old("x");
  OutputFile(old.path()).close();
  EXPECT_EQ(bytes_of(old.path()), "");
}

TEST(OutputFile, LeavesNoTraceWhereTheRunHasFailed) {
  const WrittenFile old("old");
  { const OutputFile file(old.path()); }
  EXPECT_EQ(bytes_of(old.path()), "old");
  const std::string fresh = old.path() + ".new";
  {
    const OutputFile file(fresh);
    EXPECT_FALSE(std::filesystem::exists(fresh));  // a launcher may end the program here
  }
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST(OutputFile, IsRefusedWhereItCannotBeWritten) {
  EXPECT_EQ(reason([] { OutputFile("/no/such/folder/file"); }),
            "/no/such/folder/file: cannot be written: No such file or directory");
  EXPECT_EQ(reason([] { OutputFile("/"); }), "/: cannot be written: Is a directory");
}

TEST(OutputFile, SaysThatTheDiskIsFull) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1} << 20}) {
    OutputFile file("/dev/full");
    file.write(std::string(size, 'x'));
    EXPECT_EQ(reason([&] { file.close(); }), "/dev/full: cannot be written: No space left on device");
  }
}

TEST(WriteInOrder, HasALineOfEachElementWhoeverHasIt) {
  constexpr std::uint64_t kCount = 3'000;  // more than a chunk
  const WrittenFile written("");
  Pes(3, esker::testing::tiny_config()).run([&](Runtime& rt) {
    std::optional<OutputFile> file;
    if (rt.pe() == 0) file.emplace(written.path());
    write_in_order(
        rt, file ? &*file : nullptr, kCount,
        [&](std::uint64_t i) { return i * i % rt.n_pes() == rt.pe() ? i + 5 : 0; },
        [](std::string& text, std::uint64_t i, std::uint64_t word) {
          text += std::to_string(i) + ' ' + std::to_string(word) + '\n';
        });
  });
  std::string expected;
  for (std::uint64_t i = 0; i < kCount; ++i)
    expected += std::to_string(i) + ' ' + std::to_string(i + 5) + '\n';
  EXPECT_EQ(bytes_of(written.path()), expected);
}

TEST(WriteInOrder, EndsAllPesWhereTheDiskIsFull) {
  const auto all = Pes(2, esker::testing::tiny_config()).run_and_catch([](Runtime& rt) {
    std::optional<OutputFile> file;
    if (rt.pe() == 0) file.emplace("/dev/full");
    write_in_order(
        rt, file ? &*file : nullptr, 10, [](std::uint64_t) { return 0; },
        [](std::string& text, std::uint64_t, std::uint64_t) { text += "line\n"; });
  });
  for (const auto& failed : all) {
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->message, "/dev/full: cannot be written: No space left on device");
  }
}

}  // namespace
}  // namespace harness::testing
