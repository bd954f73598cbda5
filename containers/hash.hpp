// How keys are hashed and compared, by their bytes; and where a key of a map belongs. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>

namespace esker::containers {

/// A bijection that lets every bit depend on every other one (splitmix64's last steps).
ESKER_HD constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The 128 bits of a product. Its high word, of a random word and n, is a random number below n, and its low
/// word what is still random.
struct Product {
  std::uint64_t high, low;
};
__extension__ using Wide = unsigned __int128;
ESKER_HD constexpr Product multiply(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

/// Of a value's bytes, eight at a time.
ESKER_HD inline std::uint64_t hash_bytes(const void* bytes, std::uint64_t count) {
  std::uint64_t hash = 0x9e3779b97f4a7c15 + count;
  const auto* const at = static_cast<const std::byte*>(bytes);
  for (std::uint64_t i = 0; i < count; i += 8) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, at + i, count - i < 8 ? count - i : 8);
    hash = mix(hash ^ word);
  }
  return hash;
}
template <class T>
ESKER_HD std::uint64_t hash_of(const T& value) {
  return hash_bytes(&value, sizeof value);
}

template <class T>
ESKER_HD bool same_bytes(const T& a, const T& b) {
  if constexpr (sizeof(T) % 8 == 0) {
    std::uint64_t words_of_a[sizeof(T) / 8];
    std::uint64_t words_of_b[sizeof(T) / 8];
    __builtin_memcpy(words_of_a, &a, sizeof a);
    __builtin_memcpy(words_of_b, &b, sizeof b);
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < sizeof(T) / 8; ++i) difference |= words_of_a[i] ^ words_of_b[i];
    return difference == 0;
  } else {
    const auto* const bytes_of_a = reinterpret_cast<const unsigned char*>(&a);
    const auto* const bytes_of_b = reinterpret_cast<const unsigned char*>(&b);
    unsigned difference = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      difference |= static_cast<unsigned>(bytes_of_a[i] ^ bytes_of_b[i]);
    return difference == 0;
  }
}

/// Where a key belongs: its owner, the bucket there, where in the bucket a search begins (2^16 is the whole
/// bucket), and what the bucket stores of it.
template <class Stored>
struct KeyPlace {
  std::uint32_t pe;
  std::uint64_t bucket;
  std::uint32_t home;
  Stored stored;
};

/// A map's usual placement: a key goes where its hash says, and is stored as it is.
///
/// What else a map may be given: a trivially copyable class with the same members, whose `Stored` names a
/// key within its bucket. So a bijection of keys can leave out what the bucket says (apps/mer).
template <class Key>
class HashPlacement {
  static_assert(std::has_unique_object_representations_v<Key>,
                "keys are compared by their bytes: this type has padding, or values of several "
                "representations, such as floating-point numbers");

 public:
  using Stored = Key;
  /// Fewest buckets of all PEs together.
  static constexpr std::uint64_t kLeastBuckets = 1;

  /// Called once, by the map: so many buckets on each PE.
  void spread(std::uint32_t pes, std::uint64_t buckets) {
    pes_ = pes;
    buckets_ = buckets;
  }
  ESKER_HD KeyPlace<Stored> place(const Key& key) const {
    const std::uint64_t hash = hash_of(key);
    const Product on_pe = multiply(hash, pes_);
    const Product in_pe = multiply(on_pe.low, buckets_);
    return {static_cast<std::uint32_t>(on_pe.high), in_pe.high, static_cast<std::uint32_t>(hash & 0xffff),
            key};
  }
  /// The inverse.
  ESKER_HD Key key(std::uint32_t /*pe*/, std::uint64_t /*bucket*/, const Stored& stored) const {
    return stored;
  }

 private:
  std::uint64_t pes_ = 1;
  std::uint64_t buckets_ = 1;
};

}  // namespace esker::containers
