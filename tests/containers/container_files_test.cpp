// Files of containers: another number of PEs loads them, and what is wrong with one is said by every PE.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "containers.hpp"

namespace esker::testing {
namespace {

using containers::Array;
using containers::Bag;
using containers::CountingSet;
using containers::Map;
using containers::Set;

constexpr std::uint64_t kKeys = 500;

void save_map(std::uint32_t n_pes, const std::string& file) {
  run_pes(n_pes, [&](Runtime& rt) {
    const auto map = Map<std::uint64_t, double>::allocate(rt, "map", kKeys);
    const auto insert = map.register_insert(rt);
    rt.launch(kKeys, [=](WorkItem item) {
      insert(item, item.global_id(), 0.5 * static_cast<double>(item.global_id()));
    });
    rt.barrier_all();
    map.save(rt, file);
  });
}

std::string read_all(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_all(const std::string& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// What both PEs of a job say that does `body`.
template <class Body>
std::string error_of(Body body) {
  Pes pes(2);
  const auto failed = pes.run_and_catch(body);
  if (!failed[0] || !failed[1]) return "no error";
  EXPECT_EQ(failed[0]->kind, Error::Kind::kConfiguration);
  EXPECT_EQ(failed[0]->message, failed[1]->message);
  return failed[0]->message;
}
template <class Container>
std::string load_error(const std::string& file) {
  return error_of([&](Runtime& rt) {
    if constexpr (requires { Container::load(rt, file); }) {
      Container::load(rt, file);
    } else {
      Container::load(rt, "loaded", file);
    }
  });
}
void expect_has(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks\n" << part;
}

TEST(ContainerFiles, AnotherNumberOfPesLoadsThem) {
  const TemporaryFile file("pes");
  for (const std::uint32_t from : {1u, 3u}) {
    save_map(from, file.name());
    for (const std::uint32_t to : {1u, 2u, 4u, 8u}) {
      run_pes(to, [&](Runtime& rt) {
        const auto map = Map<std::uint64_t, double>::load(rt, "map", file.name(), 2 * kKeys);
        EXPECT_EQ(map.size(rt), kKeys);
        map.for_each_local(
            rt, [](std::uint64_t key, double value) { EXPECT_EQ(value, 0.5 * static_cast<double>(key)); });
        rt.barrier_all();
      });
    }
  }
}

TEST(ContainerFiles, MayBeEmpty) {
  const TemporaryFile file("empty");
  run_pes(3, [&](Runtime& rt) {
    Set<std::uint32_t>::allocate(rt, "nothing", 10).save(rt, file.name());
    EXPECT_EQ(Set<std::uint32_t>::load(rt, "nothing", file.name()).size(rt), 0u);
    Array<double>::allocate(rt, 0).save(rt, file.name());
    EXPECT_EQ(Array<double>::load(rt, file.name()).size(), 0u);
    Bag<char>::allocate(rt, "none", 0).save(rt, file.name());
    EXPECT_EQ(Bag<char>::load(rt, "none", file.name()).size(rt), 0u);
  });
}

TEST(ContainerFiles, OfBoolsComeBack) {
  const TemporaryFile file("bools");
  run_pes(3, [&](Runtime& rt) {
    const auto array = Array<bool>::allocate(rt, 10);
    array.fill(rt, [](std::uint64_t i) { return i % 3 == 0; });
    array.save(rt, file.name());
    std::uint64_t seen = 0;
    Array<bool>::load(rt, file.name()).for_each_local(rt, [&](std::uint64_t i, bool value) {
      EXPECT_EQ(value, i % 3 == 0) << i;
      ++seen;
    });
    EXPECT_EQ(sum_over_pes(rt, seen), 10u);
    const auto bag = Bag<bool>::allocate(rt, "bag", 10);
    bag.insert(rt, true, 0);
    rt.barrier_all();
    bag.save(rt, file.name());
    std::uint64_t all = 0;
    Bag<bool>::load(rt, "again", file.name()).for_each_local(rt, [&](bool value) { all += value ? 1 : 0; });
    EXPECT_EQ(sum_over_pes(rt, all), 3u);
  });
}

TEST(ContainerFiles, OfAnotherTypeAreRefused) {
  const TemporaryFile file("types");
  save_map(2, file.name());
  const std::string holds =
      "holds a map with keys that are unsigned integers of 8 bytes and values that are floating-point "
      "numbers "
      "of 8 bytes; expected is a ";
  expect_has(load_error<Map<std::uint64_t, std::uint64_t>>(file.name()),
             "Map::load: " + file.name() + " " + holds +
                 "map with keys that are unsigned integers of 8 bytes and values that are unsigned integers "
                 "of 8 bytes");
  expect_has(load_error<Map<std::int64_t, double>>(file.name()), holds + "map with keys that are signed");
  expect_has(load_error<Map<std::uint64_t, float>>(file.name()), "floating-point numbers of 4 bytes");
  expect_has(load_error<Set<std::uint64_t>>(file.name()), holds + "set with keys");
  expect_has(load_error<CountingSet<std::uint64_t>>(file.name()), holds + "counting set with keys");
  expect_has(load_error<Array<double>>(file.name()), holds + "array of floating-point numbers of 8 bytes");
  expect_has(load_error<Bag<double>>(file.name()), holds + "bag of floating-point numbers of 8 bytes");
}

TEST(ContainerFiles, DamagedOnesAreRefused) {
  const TemporaryFile file("damaged");
  save_map(2, file.name());
  const std::string whole = read_all(file.name());
  ASSERT_EQ(whole.size(), 64 + kKeys * 16);
  const auto error_with = [&](const std::string& bytes) {
    write_all(file.name(), bytes);
    return load_error<Map<std::uint64_t, double>>(file.name());
  };
  const auto flipped = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    return bytes;
  };
  expect_has(error_with(flipped(3)), "is no file of a container, or one whose writing has not ended");
  expect_has(error_with(flipped(9)), "other byte order");
  expect_has(error_with(flipped(12)), "has version 5 of the format; this is version 1");
  expect_has(error_with(flipped(40)), "its header's checksum is wrong");
  expect_has(error_with(flipped(64)), "the checksum of its records is wrong");
  expect_has(error_with(flipped(whole.size() - 1)), "the checksum of its records is wrong");
  expect_has(error_with(whole.substr(0, whole.size() - 1)), "has 8063 bytes; 500 records take 8064");
  expect_has(error_with(whole + "x"), "has 8065 bytes; 500 records take 8064");
  expect_has(error_with(whole.substr(0, 63)), "has 63 bytes; a container's header alone has 64");
  expect_has(error_with(std::string(64, '\0')), "writing has not ended");
  std::string exchanged =
      whole.substr(0, 64) + whole.substr(80, 16) + whole.substr(64, 16) + whole.substr(96);
  expect_has(error_with(exchanged), "the checksum of its records is wrong");
  write_all(file.name(), whole);
  run_pes(2, [&](Runtime& rt) {
    EXPECT_EQ((Map<std::uint64_t, double>::load(rt, "map", file.name()).size(rt)), kKeys);
  });
}

/// Of the process, in which the PEs are threads: while one counts, the others wait.
std::size_t open_files(Runtime& rt) {
  std::size_t n = 0;
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    rt.barrier_all();
    if (pe != rt.pe()) continue;
    const std::filesystem::directory_iterator all("/proc/self/fd");
    n = static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  rt.barrier_all();
  return n;
}

// A program may go on without the file.
TEST(ContainerFiles, RefusedOnesLeaveNothingBehind) {
  const TemporaryFile damaged("damaged");
  const TemporaryFile other("other");
  save_map(2, damaged.name());
  std::string bytes = read_all(damaged.name());
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  write_all(damaged.name(), bytes);
  run_pes(2, [&](Runtime& rt) { Bag<double>::allocate(rt, "bag", 1).save(rt, other.name()); });
  run_pes(2, [&](Runtime& rt) {
    const std::uint64_t before = rt.heap().allocated_bytes();
    const std::size_t files = open_files(rt);
    for (const std::string& name : {damaged.name(), other.name(), std::string("/dev/null")})
      EXPECT_THROW((Map<std::uint64_t, double>::load(rt, "map", name)), Error);
    EXPECT_EQ(rt.heap().allocated_bytes(), before);
    EXPECT_EQ(open_files(rt), files);
  });
}

TEST(Containers, ThatCannotBeMadeLeaveNothingBehind) {
  run_pes(2, [](Runtime& rt) {
    const std::uint64_t before = rt.heap().allocated_bytes();
    const char* const name = rt.pe() == 0 ? "a" : "b";  // handlers that PEs register must have one name
    EXPECT_THROW(Bag<double>::allocate(rt, "bag", ~std::uint64_t{0}), Error);
    EXPECT_THROW(Bag<double>::allocate(rt, name, 1), Error);
    EXPECT_THROW(Set<std::uint64_t>::allocate(rt, name, 1), Error);
    EXPECT_THROW(CountingSet<std::uint64_t>::allocate(rt, name, 1), Error);
    EXPECT_EQ(rt.heap().allocated_bytes(), before);
  });
}

TEST(ContainerFiles, StayUntilTheNextIsWhole) {
  const TemporaryFile file("kept");
  save_map(2, file.name());
  const std::string before = read_all(file.name());
  ASSERT_FALSE(before.empty());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit sizes{};
  getrlimit(RLIMIT_FSIZE, &sizes);
  const rlimit few{1000, sizes.rlim_max};
  setrlimit(RLIMIT_FSIZE, &few);
  const std::string why =
      error_of([&](Runtime& rt) { Array<double>::allocate(rt, 10'000).save(rt, file.name()); });
  setrlimit(RLIMIT_FSIZE, &sizes);
  expect_has(why, "kept cannot be written: File too large");
  EXPECT_EQ(read_all(file.name()), before);
  EXPECT_FALSE(std::filesystem::exists(file.name() + ".new"));
  // By another name, which stays one.
  const std::string link = file.name() + ".link";
  std::filesystem::create_symlink(file.name(), link);
  run_pes(2, [&](Runtime& rt) { Array<double>::allocate(rt, 10).save(rt, link); });
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_NE(read_all(file.name()), before);
  std::filesystem::remove(link);
}

TEST(ContainerFiles, ThatCannotBeReadOrWrittenAreNamed) {
  expect_has(load_error<Set<std::uint64_t>>("/no/such/file"),
             "Set::load: /no/such/file cannot be opened: No such");
  expect_has(load_error<Set<std::uint64_t>>("/dev/null"), "/dev/null is not a regular file");
  const auto saves_to = [](const std::string& file) {
    return error_of([=](Runtime& rt) { Array<double>::allocate(rt, 10).save(rt, file); });
  };
  expect_has(saves_to("/no/such/folder/x"), "Array::save: /no/such/folder/x cannot be written: No such file");
  expect_has(saves_to("/dev/full"), "Array::save: /dev/full cannot be written: No space left");
  const TemporaryFile pipe("pipe");
  ASSERT_EQ(::mkfifo(pipe.name().c_str(), 0600), 0);
  expect_has(saves_to(pipe.name()), "pipe cannot be written: No such device");
}

}  // namespace
}  // namespace esker::testing
