// The command line of a program, and the runtime's options taken out of one.
#include <esker/config.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace esker {
namespace {

struct Program {
  std::uint64_t updates = 1000;
  double fraction = 0.5;
  bool verify = false;
  std::string size = "small";
  std::string json;
  CommandLine line{"esker-gups", "Random increments."};

  Program() {
    line.add("updates", &updates, "increments of a PE")
        .add("remote_fraction", &fraction, "share that goes to other PEs")
        .add("verify", &verify, "check the result")
        .add("size", &size, "generated input", {"small", "medium", "paper"})
        .add("json", &json, "where the result goes");
  }
};

std::string usage_error_of(const std::vector<std::string>& arguments) {
  Program program;
  try {
    program.line.parse_arguments(arguments);
  } catch (const UsageError& e) {
    return e.what();
  }
  ADD_FAILURE() << "no UsageError";
  return "";
}

void expect_contains(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << '"' << message << "\" lacks \"" << part << '"';
  }
}

/// argv as main gets it.
struct Arguments {
  explicit Arguments(std::vector<std::string> given) : strings{std::move(given)} {
    for (std::string& s : strings) pointers.push_back(s.data());
    pointers.push_back(nullptr);
  }
  std::vector<std::string> left(int argc) const { return {pointers.begin(), pointers.begin() + argc}; }
  int argc() const { return static_cast<int>(strings.size()); }

  std::vector<std::string> strings;
  std::vector<char*> pointers;
};

TEST(CommandLine, TakesTheProgramsOptionsAndTheRuntimes) {
  Program program;
  const Config config = program.line.parse_arguments(
      {"--updates", "2^20", "--remote-fraction=0.25", "--size", "paper", "--json", "-", "--package-slots",
       "256", "--verify", "--huge-pages", "off", "--node_buffer_bytes=32KiB"});
  EXPECT_EQ(program.updates, 1u << 20);
  EXPECT_EQ(program.fraction, 0.25);
  EXPECT_TRUE(program.verify);
  EXPECT_EQ(program.size, "paper");
  EXPECT_EQ(program.json, "-");
  EXPECT_EQ(config.package_slots, 256u);
  EXPECT_FALSE(config.huge_pages);
  EXPECT_EQ(config.node_buffer_bytes, 32u * 1024);
  EXPECT_FALSE(program.line.wants_help());
}

TEST(CommandLine, LeavesDefaultsWhereNothingIsGiven) {
  Program program;
  const Config config = program.line.parse_arguments({});
  EXPECT_EQ(program.updates, 1000u);
  EXPECT_EQ(program.size, "small");
  EXPECT_FALSE(program.verify);
  EXPECT_EQ(config.package_slots, 128u);
}

TEST(CommandLine, ASwitchMayStandAlone) {
  const struct {
    std::vector<std::string> arguments;
    bool verify;
  } cases[] = {{{"--verify"}, true},
               {{"--verify", "--updates", "5"}, true},
               {{"--verify=off"}, false},
               {{"--verify", "off"}, false},
               {{"--verify", "--verify=0"}, false}};
  for (const auto& c : cases) {
    Program program;
    program.verify = !c.verify;
    program.line.parse_arguments(c.arguments);
    EXPECT_EQ(program.verify, c.verify) << testing::PrintToString(c.arguments);
  }
}

TEST(CommandLine, TheLastOneWins) {
  Program program;
  const Config config = program.line.parse_arguments(
      {"--updates", "1", "--aggregators=2", "--updates=3", "--aggregators", "4"});
  EXPECT_EQ(program.updates, 3u);
  EXPECT_EQ(config.aggregators, 4u);
}

TEST(CommandLine, ErrorsSayWhatWhyAndWhatIsLegal) {
  expect_contains(usage_error_of({"--updats", "5"}), {"--updats", "did you mean --updates?"});
  expect_contains(usage_error_of({"--package-byte=5"}), {"--package-byte", "did you mean --package-bytes?"});
  expect_contains(usage_error_of({"--upd", "5"}), {"no option --upd", "--updates"});
  expect_contains(usage_error_of({"--updates", "many"}),
                  {"--updates", "\"many\"", "does not start with a number"});
  expect_contains(usage_error_of({"--updates", "-5"}), {"--updates", "\"-5\" is negative"});
  expect_contains(usage_error_of({"--remote-fraction", "half"}),
                  {"--remote-fraction", "\"half\"", "not a number"});
  expect_contains(usage_error_of({"--size", "larg"}), {"--size", "\"larg\"", "small, medium, paper"});
  expect_contains(usage_error_of({"--size", "papr"}), {"did you mean paper?"});
  expect_contains(usage_error_of({"--verify=maybe"}), {"--verify", "\"maybe\"", "true"});
  expect_contains(usage_error_of({"--updates"}), {"--updates", "lacks a value"});
  expect_contains(usage_error_of({"--trace="}), {"--trace= lacks a value; --trace '' gives an empty one"});
  expect_contains(usage_error_of({"--verify", "stray"}), {"--verify", "\"stray\"", "true"});
  expect_contains(usage_error_of({"stray"}), {"\"stray\" belongs to no option"});
  expect_contains(usage_error_of({"---"}), {"no option ---"});
}

TEST(CommandLine, ABadSettingIsAConfigurationError) {
  Program program;
  try {
    program.line.parse_arguments({"--wave-lanes", "65"});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kConfiguration);
    expect_contains(e.what(),
                    {"wave_lanes", "command line (--wave-lanes)", "\"65\" is too large", "1 to 64"});
  }
}

TEST(CommandLine, HelpShowsEveryOptionAndSettingWithDefaults) {
  Program program;
  program.line.parse_arguments({"--help"});
  EXPECT_TRUE(program.line.wants_help());
  const std::string help = program.line.help();
  expect_contains(help, {"esker-gups: Random increments.", "--updates", "1000", "--remote-fraction",
                         "--verify", "small, medium, paper", "--config FILE"});
  for (const ConfigRow& row : describe(Config{})) {
    std::string option = "--" + row.name;
    for (char& c : option) c = c == '_' ? '-' : c;
    expect_contains(help, {option, row.help, row.legal, "default: " + row.value});
  }
}

TEST(CommandLine, HelpIsThereEvenWhereTheEnvironmentIsWrong) {
  Program program;
  ASSERT_EQ(setenv("ESKER_WAVE_LANES", "65", 1), 0);
  EXPECT_NO_THROW(program.line.parse_arguments({"--help"}));
  EXPECT_THROW(program.line.parse_arguments({}), Error);
  unsetenv("ESKER_WAVE_LANES");
}

TEST(CommandLine, ConfigNamesAFileThatArgumentsOverride) {
  const auto path = std::filesystem::temp_directory_path() / ("esker-line-" + std::to_string(getpid()));
  std::ofstream(path) << "aggregators = 2\nwave-lanes = 8\n";
  Program program;
  const Config config = program.line.parse_arguments({"--aggregators", "3", "--config", path.string()});
  std::filesystem::remove(path);
  EXPECT_EQ(config.aggregators, 3u);
  EXPECT_EQ(config.wave_lanes, 8u);
}

class CommandLineDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) unsetenv(name);
  }
};

TEST_F(CommandLineDeathTest, AnErrorExitsWithTwoAndNamesTheProgram) {
  Arguments arguments({"esker-gups", "--updats=5"});
  const auto parse = [&] { Program().line.parse(arguments.argc(), arguments.pointers.data()); };
  EXPECT_EXIT(parse(), testing::ExitedWithCode(2), "esker-gups: command line: .*did you mean --updates");
  Arguments setting({"esker-gups", "--wave-lanes=65"});
  const auto parse_setting = [&] { Program().line.parse(setting.argc(), setting.pointers.data()); };
  EXPECT_EXIT(parse_setting(), testing::ExitedWithCode(2), "esker-gups: wave_lanes from command line");
}

TEST_F(CommandLineDeathTest, HelpExitsWithZero) {
  Arguments arguments({"esker-gups", "--help"});
  const auto parse = [&] { Program().line.parse(arguments.argc(), arguments.pointers.data()); };
  EXPECT_EXIT(parse(), testing::ExitedWithCode(0), "");
}

TEST_F(CommandLineDeathTest, AnOptionThatIsThereAlreadyIsMisuse) {
  std::uint64_t value = 0;
  CommandLine line("program", "");
  line.add("remote_fraction", &value, "");
  EXPECT_DEATH(line.add("remote-fraction", &value, ""), "program already has an option --remote-fraction");
  EXPECT_DEATH(line.add("aggregators", &value, ""), "already has an option --aggregators");
  EXPECT_DEATH(line.add("help", &value, ""), "already has an option --help");
}

TEST(ConfigFromArguments, TakesItsOwnAndLeavesTheRestInOrder) {
  Arguments arguments({"program", "input.txt", "--aggregators", "3", "--size", "paper", "--wave-lanes=8",
                       "-v", "--package_slots", "64", "--", "--aggregators", "9"});
  int argc = arguments.argc();
  const Config config = config_from_arguments(argc, arguments.pointers.data());
  EXPECT_EQ(config.aggregators, 3u);
  EXPECT_EQ(config.wave_lanes, 8u);
  EXPECT_EQ(config.package_slots, 64u);
  EXPECT_EQ(arguments.left(argc), (std::vector<std::string>{"program", "input.txt", "--size", "paper", "-v",
                                                            "--", "--aggregators", "9"}));
  EXPECT_EQ(arguments.pointers[static_cast<std::size_t>(argc)], nullptr);
}

TEST(ConfigFromArguments, WithNothingOfItsOwnChangesNothing) {
  Arguments arguments({"program", "a", "--help"});
  int argc = arguments.argc();
  config_from_arguments(argc, arguments.pointers.data());
  EXPECT_EQ(arguments.left(argc), arguments.strings);

  int none = 0;
  char* empty[] = {nullptr};
  EXPECT_NO_THROW(config_from_arguments(none, empty));
  EXPECT_EQ(none, 0);
}

TEST(ConfigFromArguments, WarnsOfWhatIsNearlyAnOptionAndLeavesIt) {
  Arguments arguments({"program", "--node-bufer-bytes", "64KiB", "--package_slot=4", "--start", "--help",
                       "--threads=2", "--package", "--", "--agregators"});
  int argc = arguments.argc();
  const Config config = config_from_arguments(argc, arguments.pointers.data());
  EXPECT_EQ(arguments.left(argc), arguments.strings);
  ASSERT_EQ(config.warnings.size(), 2u);
  expect_contains(config.warnings[0], {"--node-bufer-bytes", "did you mean --node-buffer-bytes"});
  expect_contains(config.warnings[1], {"--package_slot", "did you mean --package-slots"});
}

TEST(ConfigFromArguments, ErrorsNameTheOption) {
  for (const auto& given : {std::vector<std::string>{"program", "--aggregators"},
                            std::vector<std::string>{"program", "--aggregators", "x"},
                            std::vector<std::string>{"program", "--aggregators="}}) {
    Arguments arguments(given);
    int argc = arguments.argc();
    try {
      config_from_arguments(argc, arguments.pointers.data());
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      expect_contains(e.what(), {"--aggregators", "command line"});
    }
  }
}

}  // namespace
}  // namespace esker
