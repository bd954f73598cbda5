// Jumping ahead in HPCC's stream.
#include "stream.hpp"

namespace gups {

std::uint64_t hpcc_start(std::uint64_t n) {
  constexpr std::uint64_t kPeriod = 1317624576693539401;  // of the stream
  n %= kPeriod;
  // Multiplication by x^(2^i) is linear over GF(2): square[i] is x^(2^i) itself, and a product of two
  // elements is a sum of shifted ones.
  const auto multiply = [](std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    for (; b != 0; b >>= 1) {
      if ((b & 1) != 0) product ^= a;
      a = hpcc_next(a);
    }
    return product;
  };
  std::uint64_t result = 1;
  std::uint64_t power = 2;  // x
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) result = multiply(result, power);
    power = multiply(power, power);
  }
  return result;
}

}  // namespace gups
