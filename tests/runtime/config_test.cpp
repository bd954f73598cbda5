// Settings: sources and their precedence, errors, and the forms they are printed in.
#include <esker/config.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <esker/device/error.hpp>

namespace esker {
namespace {

/// A configuration file that lasts as long as the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content)
      : path_{std::filesystem::temp_directory_path() /
              ("esker-config-" + std::to_string(getpid()) + "-" + std::to_string(counter_++))} {
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  static inline int counter_ = 0;
  std::filesystem::path path_;
};

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kConfiguration);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::string error_of_load(const ConfigSources& sources) {
  return error_of([&] { load_config(sources); });
}

/// Every one of `parts` is in `message`.
void expect_contains(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << '"' << message << "\" lacks \"" << part << '"';
  }
}

ConfigRow row(const Config& config, const std::string& name) {
  for (const ConfigRow& r : describe(config)) {
    if (r.name == name) return r;
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

std::string variable(const std::string& name) {
  std::string result = "ESKER_" + name;
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return result;
}

// One line a setting: a legal value in another form than the printed one, the printed one, and an
// illegal one. A setting that is not here fails EverySettingHasACase.
struct Case {
  std::string name, given, printed, illegal;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"device", "cpu", "cpu", "gpu"},
      {"transport", "loopback", "loopback", "tcp"},
      {"heap", "host", "host", "hbm"},
      {"peer_memory", "off", "off", "maybe"},
      {"direct_messages", "2^4", "16", "-1"},
      {"heap_bytes", "2^30", "1GiB", "-1"},
      {"package_bytes", "4096", "4KiB", "1000"},
      {"package_slots", "2^8", "256", "100"},
      {"device_package_slots", "2^8", "256", "100"},
      {"aggregate", "off", "false", "maybe"},
      {"aggregators", "64", "64", "0"},
      {"device_aggregators", "64", "64", "0"},
      {"apply_helpers", "2", "2", "65"},
      {"node_buffer_bytes", "0.5MiB", "512KiB", "32MiB"},
      {"buffers_per_destination", "4", "4", "1"},
      {"aggregation_timeout", "1000us", "1ms", "125"},
      {"aggregation_max_age", "0.25s", "250ms", "0us"},
      {"pending_messages", "1e6", "1000000", "1e30"},
      {"project_pes", "8", "8", "65537"},
      {"cpu_threads", "3", "3", "3.5"},
      {"group_lanes", "512", "512", "2048"},
      {"wave_lanes", "64", "64", "65"},
      {"group_execution", "threads", "threads", "thread"},
      {"huge_pages", "off", "false", "maybe"},
      {"hang_seconds", "0", "0", "60s"},
      {"hang_file", "out/hang", "out/hang", ""},
      {"trace", "out/trace.json", "out/trace.json", "out/"},
      {"startup", "quiet", "quiet", "silent"},
  };
  return all;
}

TEST(Config, EverySettingHasACase) {
  std::vector<std::string> in_table, in_cases;
  for (const ConfigRow& r : describe(Config{})) in_table.push_back(r.name);
  for (const Case& c : cases()) in_cases.push_back(c.name);
  EXPECT_EQ(in_table, in_cases);
}

TEST(Config, DefaultsAreThoseOfTheThesisAndAreLegal) {
  const Config config = load_config({});
  EXPECT_EQ(config.node_buffer_bytes, 0u);  // chosen where lanes run
  EXPECT_EQ(config.aggregation_timeout, std::chrono::microseconds{125});
  EXPECT_EQ(config.buffers_per_destination, 3u);
  EXPECT_EQ(config.package_bytes * config.package_slots, 1024u * 1024);  // its 1 MB queue
  EXPECT_EQ(config.aggregators, 1u);
  EXPECT_NO_THROW(validate(config));
  for (const ConfigRow& r : describe(config)) EXPECT_EQ(r.origin, "default") << r.name;
}

TEST(Config, EverySourceSetsEverySettingAndIsItsOrigin) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const TemporaryFile file("# a comment\n\n  " + c.name + " = " + c.given + "  # why\n");
    const Config from_file = load_config({file.path(), {}, {}});
    EXPECT_EQ(row(from_file, c.name).value, c.printed);
    EXPECT_EQ(row(from_file, c.name).origin, file.path() + ":3");

    const Config from_environment = load_config({"", {{variable(c.name), c.given}}, {}});
    EXPECT_EQ(row(from_environment, c.name).value, c.printed);
    EXPECT_EQ(row(from_environment, c.name).origin, variable(c.name));

    const Config from_arguments = load_config({"", {}, {{c.name, c.given}}});
    EXPECT_EQ(row(from_arguments, c.name).value, c.printed);
    EXPECT_EQ(row(from_arguments, c.name).origin.find("command line (--"), 0u);

    // Nothing else was touched.
    for (const ConfigRow& r : describe(from_arguments)) {
      if (r.name != c.name) {
        EXPECT_EQ(r.value, row(Config{}, r.name).value) << r.name;
      }
    }
  }
}

TEST(Config, AnIllegalValueIsAnErrorNamingSettingSourceValueAndRange) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const std::string legal = row(Config{}, c.name).legal;
    const std::string quoted = '"' + c.illegal + '"';
    const TemporaryFile file("\n" + c.name + " = " + c.illegal + "\n");
    expect_contains(error_of_load({file.path(), {}, {}}), {c.name, file.path() + ":2", quoted, legal});
    expect_contains(error_of_load({"", {{variable(c.name), c.illegal}}, {}}),
                    {c.name, variable(c.name), quoted, legal});
    expect_contains(error_of_load({"", {}, {{c.name, c.illegal}}}), {c.name, "command line", quoted, legal});
  }
}

TEST(Config, RangesIncludeTheirEnds) {
  const struct {
    const char *name, *value;
    bool legal;
  } ends[] = {{"package_bytes", "1024", true},
              {"package_bytes", "896", false},
              {"package_bytes", "1MiB", true},
              {"package_bytes", "1048704", false},
              {"package_bytes", "1088", false},
              {"node_buffer_bytes", "0", true},
              {"node_buffer_bytes", "64", false},
              {"node_buffer_bytes", "1088", true},
              {"node_buffer_bytes", "1100", false},
              {"node_buffer_bytes", "16MiB", true},
              {"node_buffer_bytes", "960", false},
              {"package_slots", "1", true},
              {"package_slots", "0", false},
              {"package_slots", "2^20", true},
              {"package_slots", "2^21", false},
              {"aggregators", "65", false},
              {"apply_helpers", "0", true},
              {"group_lanes", "1024", true},
              {"group_lanes", "0", false},
              {"wave_lanes", "1", true},
              {"wave_lanes", "0", false},
              {"aggregation_timeout", "0", true},
              {"aggregation_timeout", "60s", true},
              {"aggregation_timeout", "60000001us", false},
              {"aggregation_max_age", "1us", true},
              {"heap_bytes", "18446744073709551615", true},
              {"package_slots", "4294967424", false}};  // 2^32 + 128 must not be cut to 128
  for (const auto& end : ends) {
    SCOPED_TRACE(std::string(end.name) + " = " + end.value);
    const auto load = [&] { load_config({"", {}, {{end.name, end.value}}}); };
    if (end.legal) {
      EXPECT_NO_THROW(load());
    } else {
      EXPECT_THROW(load(), Error);
    }
  }
}

TEST(Config, StrongerSourcesWin) {
  const TemporaryFile file("aggregators = 2\ngroup_lanes = 128\nwave_lanes = 16\n");
  const Config config = load_config({file.path(),
                                     {{"ESKER_AGGREGATORS", "3"}, {"ESKER_GROUP_LANES", "64"}},
                                     {{"aggregators", "4"}, {"aggregators", "5"}}});
  EXPECT_EQ(config.aggregators, 5u);
  EXPECT_EQ(config.group_lanes, 64u);
  EXPECT_EQ(config.wave_lanes, 16u);
  EXPECT_EQ(config.cpu_threads, 0u);
  EXPECT_EQ(row(config, "aggregators").origin, "command line (--aggregators)");
  EXPECT_EQ(row(config, "group_lanes").origin, "ESKER_GROUP_LANES");
  EXPECT_EQ(row(config, "wave_lanes").origin, file.path() + ":3");
  EXPECT_EQ(row(config, "cpu_threads").origin, "default");
}

TEST(Config, TheNamedFileWinsOverTheVariable) {
  const TemporaryFile named("aggregators = 2\n"), in_variable("aggregators = 3\n");
  EXPECT_EQ(load_config({"", {{"ESKER_CONFIG", in_variable.path()}}, {}}).aggregators, 3u);
  EXPECT_EQ(load_config({named.path(), {{"ESKER_CONFIG", in_variable.path()}}, {}}).aggregators, 2u);
}

TEST(ConfigFile, ThatIsNoFileOrHasNoEndIsRefusedWithTheReason) {
  const TemporaryFile fifo("");
  std::filesystem::remove(fifo.path());
  ASSERT_EQ(mkfifo(fifo.path().c_str(), 0600), 0);
  const TemporaryFile large(std::string((1 << 20) + 1, '#'));
  const std::map<std::string, std::string> reasons = {
      {"/dev/zero", "a device"},
      {"/dev/full", "a device"},
      {"/", "a folder"},
      {fifo.path(), "a pipe"},
      {large.path(), "1048577 bytes are more than the 1048576"},
      {"/nonexistent", "No such file"}};
  for (const auto& [path, reason] : reasons) {
    expect_contains(error_of_load({"", {{"ESKER_CONFIG", path}}, {}}), {path, reason});
  }
}

TEST(Config, ReadsTheProcessEnvironment) {
  ASSERT_EQ(setenv("ESKER_AGGREGATORS", "7", 1), 0);
  const Config config = Config::from_environment();
  unsetenv("ESKER_AGGREGATORS");
  EXPECT_EQ(config.aggregators, 7u);
  EXPECT_EQ(row(config, "aggregators").origin, "ESKER_AGGREGATORS");
}

TEST(ConfigFile, AMissingOneIsAnErrorWithTheCause) {
  expect_contains(error_of_load({"/nowhere/esker.conf", {}, {}}), {"/nowhere/esker.conf", "No such file"});
}

TEST(ConfigFile, AnUnknownNameIsAnErrorWithItsLineAndNearMatches) {
  const TemporaryFile file("aggregators = 2\npackage_byte = 4096\n");
  expect_contains(error_of_load({file.path(), {}, {}}),
                  {file.path() + ":2", "no setting package_byte", "did you mean package_bytes"});
}

TEST(ConfigFile, ALineThatIsNoAssignmentIsAnErrorWithItsLine) {
  for (const std::string line : {"aggregators", "[net]", "  [net] # section", "aggregators: 3"}) {
    SCOPED_TRACE(line);
    const TemporaryFile file("wave_lanes = 8\n" + line + "\n");
    expect_contains(error_of_load({file.path(), {}, {}}), {file.path() + ":2", "name = value", line});
  }
}

TEST(ConfigEnvironment, AnUnknownVariableIsAWarningWithNearMatches) {
  const Config config =
      load_config({"", {{"ESKER_AGREGATORS", "3"}, {"ESKER_QQQQ", "1"}, {"PATH", "x"}}, {}});
  ASSERT_EQ(config.warnings.size(), 2u);
  expect_contains(config.warnings[0], {"ESKER_AGREGATORS is ignored", "did you mean ESKER_AGGREGATORS?"});
  expect_contains(config.warnings[1], {"ESKER_QQQQ is ignored"});
  EXPECT_EQ(config.warnings[1].find("did you mean"), std::string::npos);
  EXPECT_EQ(config.aggregators, 1u);
}

TEST(ConfigEnvironment, KnownVariablesGiveNoWarning) {
  std::map<std::string, std::string> environment;
  for (const Case& c : cases()) environment[variable(c.name)] = c.given;
  const TemporaryFile file("");
  environment["ESKER_CONFIG"] = file.path();
  environment["ESKER_MACHINE_FILE"] = "machine.json";
  EXPECT_TRUE(load_config({"", environment, {}}).warnings.empty());
}

TEST(Config, AnEmptyTraceTurnsTracingOff) {
  const Config config = load_config({"", {{"ESKER_TRACE", "trace.json"}}, {{"trace", ""}}});
  EXPECT_EQ(config.trace, "");
  EXPECT_NO_THROW(validate(config));
}

TEST(Config, ABackEndThatIsNotBuiltIsAnErrorThatSaysSo) {
  for (const std::string device : {"cuda", "hip"}) {
    SCOPED_TRACE(device);
    const ConfigSources sources{"", {}, {{"device", device}}};
    if (build_info().has_device(device)) {
      EXPECT_NO_THROW(load_config(sources));
    } else {
      expect_contains(error_of_load(sources), {"device", device, "is not built", "cpu"});
    }
  }
  for (const std::string transport : {"mpi", "ucx"}) {
    SCOPED_TRACE(transport);
    const ConfigSources sources{"", {}, {{"transport", transport}}};
    if (build_info().has_transport(transport)) {
      EXPECT_NO_THROW(load_config(sources));
    } else {
      expect_contains(error_of_load(sources), {"transport", transport, "is not built", "loopback"});
    }
  }
}

TEST(Config, VariablesThatUcxReadsAreNoSettings) {
  const Config config = load_config({"", {{"ESKER_UCX_TLS", "tcp"}, {"ESKER_UCXTLS", "tcp"}}, {}});
  ASSERT_EQ(config.warnings.size(), 1u);
  expect_contains(config.warnings[0], {"ESKER_UCXTLS is ignored"});
}

TEST(Config, WhatTheProgramSetsIsSeenAndChecked) {
  Config config = load_config({"", {{"ESKER_WAVE_LANES", "8"}}, {}});
  config.wave_lanes = 16;
  config.aggregators = 2;
  EXPECT_EQ(row(config, "wave_lanes").origin, "program");
  EXPECT_EQ(row(config, "aggregators").origin, "program");
  EXPECT_NO_THROW(validate(config));

  config.package_bytes = 1000;
  expect_contains(error_of([&] { validate(config); }),
                  {"package_bytes", "program", "\"1000\"", "a multiple of 128"});
  config.package_bytes = 8192;
  config.group_execution = static_cast<GroupExecution>(9);
  expect_contains(error_of([&] { validate(config); }), {"group_execution", "fibers, threads"});
  config.group_execution = GroupExecution::kFibers;
  config.aggregation_timeout = std::chrono::microseconds{-1};
  expect_contains(error_of([&] { validate(config); }), {"aggregation_timeout", "\"-1us\" is negative"});
}

TEST(Config, WhatIsPrintedCanBeReadBack) {
  ConfigSources first;
  for (const Case& c : cases()) first.arguments.emplace_back(c.name, c.given);
  const Config config = load_config(first);

  ConfigSources second;
  for (const ConfigRow& r : describe(config)) second.arguments.emplace_back(r.name, r.value);
  EXPECT_EQ(to_json(load_config(second)), to_json(config));

  std::string lines;
  const auto json = nlohmann::json::parse(to_json(config));
  for (const auto& [name, value] : json.items()) {
    lines += name + " = " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
  }
  const TemporaryFile file(lines);
  EXPECT_EQ(to_json(load_config({file.path(), {}, {}})), to_json(config));
}

TEST(Config, JsonHasNumbersForSizesAndCounts) {
  const auto json = nlohmann::json::parse(to_json(Config{}));
  EXPECT_EQ(json.size(), cases().size());
  EXPECT_EQ(json["package_bytes"], 8192);
  EXPECT_EQ(json["aggregation_timeout"], "125us");
  EXPECT_EQ(json["huge_pages"], true);
  EXPECT_EQ(json["device"], "auto");
}

TEST(Config, JsonTakesPathsThatAreNoUtf8) {
  Config config;
  config.trace = "caf\xe9.json";
  EXPECT_EQ(nlohmann::json::parse(to_json(config))["trace"], "caf\xef\xbf\xbd.json");
}

TEST(Config, EveryRowHasHelpAndALegalRange) {
  for (const ConfigRow& r : describe(Config{})) {
    EXPECT_FALSE(r.help.empty()) << r.name;
    EXPECT_FALSE(r.legal.empty()) << r.name;
  }
}

}  // namespace
}  // namespace esker
