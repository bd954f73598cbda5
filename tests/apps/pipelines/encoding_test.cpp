// The functions of pipe-aes and pipe-raid6 and what checks them, by a stage of one lane.
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../../../apps/pipelines/aes/cipher.hpp"
#include "../../../apps/pipelines/aes/decipher.hpp"
#include "../../../apps/pipelines/baselines.hpp"
#include "../../../apps/pipelines/raid6/parity.hpp"
#include "../../../apps/pipelines/raid6/rebuild.hpp"

namespace {

using pipe_apps::Frame;
using pipe_apps::OneLaneStage;

std::array<std::uint8_t, 16> bytes_of(const std::string& hexadecimal) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 16; ++i)
    bytes[i] = static_cast<std::uint8_t>(std::stoul(hexadecimal.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

struct Vector {
  const char *key, *plain, *encrypted;
};
// FIPS-197, appendices B and C.1; NIST SP 800-38A, F.1.1.
constexpr Vector kVectors[] = {
    {"2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
     "3925841d02dc09fbdc118597196a0b32"},
    {"000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
     "69c4e0d86a7b0430d8cdb78070b4c55a"},
    {"2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a",
     "3ad77bb40d7a3660a89ecaf32466ef97"},
    {"2b7e151628aed2a6abf7158809cf4f3c", "ae2d8a571e03ac9c9eb76fac45af8e51",
     "f5d3d58503b9699de785895a96fdbaaf"},
    {"2b7e151628aed2a6abf7158809cf4f3c", "30c81c46a35ce411e5fbc1191a0a52ef",
     "43b1cd7f598ece23881b00e3ed030688"},
    {"2b7e151628aed2a6abf7158809cf4f3c", "f69f2445df4f9b17ad2b417be66c3710",
     "7b0c785e27e8ad3f8223207104725dd4"},
};

TEST(Aes, EncryptsTheStandardsVectors) {
  for (const Vector& v : kVectors) {
    const aes::Tables tables = aes::tables_of(bytes_of(v.key));
    aes::Block plain, encrypted;
    std::memcpy(&plain, bytes_of(v.plain).data(), 16);
    Frame<const aes::Block> in{&plain, 1, 1, 0, 0};
    Frame<aes::Block> out{&encrypted, 0, 1, 0, 0};
    OneLaneStage stage;
    aes::Encrypt{&tables}(stage, in, out);
    EXPECT_EQ(out.count, 1u);
    EXPECT_EQ(std::memcmp(&encrypted, bytes_of(v.encrypted).data(), 16), 0) << v.plain;
  }
}

TEST(Aes, ItsVerifierDecryptsTheStandardsVectors) {
  for (const Vector& v : kVectors) {
    std::array<std::uint8_t, 16> state = bytes_of(v.encrypted);
    aes::Decipher{bytes_of(v.key)}(state.data());
    EXPECT_EQ(state, bytes_of(v.plain)) << v.plain;
  }
}

TEST(Raid6, RebuildsAnyTwoBlocksOfAStripe) {
  const raid6::Rebuild rebuild;
  std::mt19937_64 random(1);
  for (const std::uint32_t blocks : {2u, 3u, 4u, 5u, 8u, 11u, 255u}) {
    constexpr std::uint32_t kWords = 3;  // in a block
    std::vector<raid6::Words> data(blocks * kWords), parity(2 * kWords);
    for (raid6::Words& words : data) {
      for (std::uint32_t& word : words.words) word = static_cast<std::uint32_t>(random());
    }
    Frame<const raid6::Words> in{data.data(), blocks * kWords, blocks * kWords, 0, 0};
    Frame<raid6::Words> out{parity.data(), 0, 2 * kWords, 0, 0};
    OneLaneStage stage;
    raid6::Encode{blocks}(stage, in, out);
    EXPECT_EQ(out.count, 2 * kWords);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(data.data());
    auto* const p = reinterpret_cast<std::uint8_t*>(parity.data());
    std::uint8_t* const q = p + kWords * sizeof(raid6::Words);
    const auto wrong = [&](std::uint32_t x, std::uint32_t y) {
      return rebuild.wrong_bytes(bytes, p, q, blocks, kWords * sizeof(raid6::Words), x, y);
    };
    for (std::uint32_t x = 0; x < blocks; x += 1 + blocks / 16) {
      for (std::uint32_t y = x + 1; y < blocks; y += 1 + blocks / 16)
        ASSERT_EQ(wrong(x, y), 0u) << blocks << " blocks, lost " << x << " and " << y;
    }
    // An error in P or Q is seen.
    p[7] ^= 0x10;
    EXPECT_NE(wrong(0, blocks - 1), 0u);
    p[7] ^= 0x10;
    q[40] ^= 0x01;
    EXPECT_NE(wrong(0, 1), 0u);
  }
}

}  // namespace
