// A query and a target that contains parts of it, changed here and there.
#pragma once

#include <cstdint>
#include <vector>

#include "../../inputs/random.hpp"
#include "scoring.hpp"

namespace gene {

struct Sequences {
  std::vector<Base> query, target;
};

/// Random bases. About every `apart` of the target a part of the query begins, in which each 16th base is
/// another one, and each 64th is left out or doubled.
inline Sequences make_sequences(std::uint32_t query_length, std::uint32_t target_length, std::uint32_t apart,
                                std::uint64_t seed) {
  const inputs::Random random(seed);
  const inputs::RandomStream of_query = random.stream(0), of_target = random.stream(1),
                             of_parts = random.stream(2);
  Sequences s;
  for (std::uint32_t i = 0; i < query_length; ++i) s.query.push_back(of_query[i] & 3);
  for (std::uint32_t i = 0; i < target_length; ++i) s.target.push_back(of_target[i] & 3);
  std::uint64_t draw = 0;
  for (std::uint64_t begin = 0; begin < target_length; begin += apart) {
    std::uint64_t at = begin + inputs::scaled(of_parts[draw++], apart);
    std::uint64_t from = inputs::scaled(of_parts[draw++], query_length);
    const std::uint64_t length = 64 + inputs::scaled(of_parts[draw++], 448);
    for (std::uint64_t k = 0; k < length && at < target_length && from < query_length; ++k) {
      const std::uint64_t word = of_parts[draw++];
      if (word % 64 == 0) {
        ++(word & 64 ? at : from);
        continue;
      }
      s.target[at++] = static_cast<Base>((s.query[from++] + (word % 16 == 1 ? 1 + word / 16 % 3 : 0)) & 3);
    }
  }
  return s;
}

}  // namespace gene
