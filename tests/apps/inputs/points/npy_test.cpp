// Points of NumPy files.
#include <cstring>
#include <limits>

#include <esker/apps/inputs/points/points.hpp>

#include "../in_parts.hpp"

namespace inputs::testing {
namespace {

constexpr const char* kDict = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }";

/// Version `major`.0 with a header padded as NumPy does, and the values as they stand in memory.
template <class Real>
std::string npy(const std::string& dictionary, const std::vector<Real>& values, int major = 1) {
  const std::size_t before = major == 1 ? 10 : 12;
  std::string header = dictionary;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (std::size_t b = 0; b < before - 8; ++b) file += static_cast<char>(header.size() >> (8 * b) & 0xff);
  file += header;
  const std::size_t at = file.size();
  file.resize(at + values.size() * sizeof(Real));
  std::memcpy(file.data() + at, values.data(), values.size() * sizeof(Real));
  return file;
}

const std::vector<double> kSix{1, -2.5, 65536, 0.125, 5, 6};

TEST(Npy, BothVersionsAndTypesAreReadInParts) {
  const std::vector<float> floats(kSix.begin(), kSix.end());
  const WrittenFile doubles_1(npy(kDict, kSix));
  const WrittenFile doubles_2(npy(kDict, kSix, 2));
  const WrittenFile floats_1(npy(R"({"shape": (3,2), "descr": "<f4", "fortran_order": False})", floats));
  for (const std::uint64_t parts : {1u, 2u, 3u, 7u}) {
    for (const WrittenFile* file : {&doubles_1, &doubles_2, &floats_1}) {
      const auto as_double = [&](Part part) { return read_points<double>(file->path(), part).values; };
      const auto as_float = [&](Part part) { return read_npy<float>(file->path(), part).values; };
      EXPECT_EQ(in_parts(as_double, parts), kSix);
      EXPECT_EQ(in_parts(as_float, parts), floats);
    }
  }
  EXPECT_EQ(read_npy<double>(doubles_1.path(), {1, 3}).values, (std::vector<double>{65536, 0.125}));
  EXPECT_EQ(read_npy<double>(doubles_1.path(), {6, 7}).columns, 2u);
}

TEST(Npy, ArraysLongerThanTheBufferAreRead) {
  std::vector<double> values(50'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const WrittenFile file(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10000, 5), }", values));
  const auto read = [&](Part part) { return read_npy<double>(file.path(), part).values; };
  for (const std::uint64_t parts : {1u, 3u, 7u}) EXPECT_EQ(in_parts(read, parts), values);
}

TEST(Npy, WhatIsNotReadIsSaid) {
  const auto with = [](const std::string& type, const std::string& order, const std::string& shape) {
    return npy("{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", kSix);
  };
  const std::string good = npy(kDict, kSix);
  std::string version_3 = good;
  version_3[6] = 3;
  std::string long_header = good;
  long_header[9] = '\x7f';
  const struct {
    std::string contents;
    const char* why;
  } cases[] = {
      {"1,2\n", ": byte 0: not a .npy file"},
      {"\x93NUMPX", ": byte 0: not a .npy file"},
      {good.substr(0, 7), ": byte 7: the file is cut off before its header"},
      {good.substr(0, 9), ": byte 9: the file is cut off before its header"},
      {good.substr(0, 100), ": byte 8: a header of 118 bytes in a file of 100"},
      {long_header, ": byte 8: a header of 32630 bytes in a file of 176"},
      {version_3, ": byte 6: format version 3.0; 1.0 and 2.0 are read"},
      {with("'>f8'", "False", "(3, 2)"), ": byte 128: values of type '>f8'; '<f4' and '<f8' are read"},
      {with("'<i8'", "False", "(3, 2)"), ": byte 128: values of type '<i8'"},
      {with("[('x', '<f8')]", "False", "(3, 2)"), ": byte 20: 'descr' is not the name of one type"},
      {with("'<f8'", "True", "(3, 2)"), ": byte 128: the array is in Fortran order"},
      {with("'<f8'", "0", "(3, 2)"), ": byte 44: 'fortran_order' is neither True nor False"},
      {with("'<f8'", "False", "(6,)"), ": byte 128: 1 dimensions; two are read"},
      {with("'<f8'", "False", "()"), ": byte 128: 0 dimensions; two are read"},
      {with("'<f8'", "False", "(1, 3, 2)"), ": byte 128: 3 dimensions; two are read"},
      {with("'<f8'", "False", "(0, 2)"), ": byte 128: the array is empty"},
      {with("'<f8'", "False", "(3, 0)"), ": byte 128: the array is empty"},
      {with("'<f8'", "False", "(3, -2)"), ": byte 64: the shape has no size of 64 bits here"},
      {with("'<f8'", "False", "(3, 2"), ": byte 67: the shape has no size"},
      {with("'<f8'", "False", "(3, 3)"),
       ": byte 128: 3 x 3 values of 8 bytes are not the 48 bytes that follow"},
      {with("'<f8'", "False", "(4611686018427387904, 6)"), ": byte 128: 4611686018427387904 x 6 values"},
      {with("'<f8'", "False", "(99999999999999999999, 6)"),
       ": byte 61: the shape has no size of 64 bits here"},
      {with("'<f8'", "False", "(3, 2), 'more': 1"), ": byte 76: the header's key 'more' is unknown or twice"},
      {with("'<f8'", "False", "(3, 2), 'shape': (3, 2)"), ": byte 77: the header's key 'shape' is unknown"},
      {npy("{'descr': '<f8', 'shape': (3, 2), }", kSix), ": byte 64: the header lacks"},
      {npy("['descr']", kSix), ": byte 10: the header has no '{' here"},
      {npy(std::string(kDict) + "x", kSix), ": byte 69: something follows the header's dictionary"},
      {npy("{'descr': '<f8", kSix), ": byte 20: the header has no quoted text here"},
      {good.substr(0, good.size() - 1), ": byte 128: 3 x 2 values of 8 bytes are not the 47 bytes"},
      {good + "x", ": byte 128: 3 x 2 values of 8 bytes are not the 49 bytes"},
      {npy<double>(kDict, {1, 2, 3, std::numeric_limits<double>::quiet_NaN(), 5, 6}),
       ": byte 152: the value is not finite"},
      {npy<double>(kDict, {1, 2, 3, 4, 5, std::numeric_limits<double>::infinity()}),
       ": byte 168: the value is not finite"}};
  for (const auto& c : cases) {
    const WrittenFile file(c.contents);
    const auto read = [&](Part part) { return read_npy<double>(file.path(), part).values; };
    for (const std::uint64_t parts : {1u, 2u, 3u, 7u}) expect_reason(first_reason(read, parts), file, c.why);
  }
  const WrittenFile large(npy<double>(kDict, {1, 2, 3, 1e300, 5, 6}));
  expect_reason(reason([&] { read_npy<float>(large.path()); }), large,
                ": byte 152: the value 1e+300 is out of");
}

TEST(Npy, MutatedFilesAreReadOrRefused) {
  const std::string good = npy(kDict, kSix);
  WrittenFile file("-");
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    file.write(mutated(good, seed));
    const auto read = [&](Part part) { return read_points<double>(file.path(), part).values; };
    const bool whole = first_reason(read, 1) == "accepted";
    ASSERT_EQ(first_reason(read, 3) == "accepted", whole) << seed;
    accepted += whole ? 1 : 0;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 2900);
}

}  // namespace
}  // namespace inputs::testing
