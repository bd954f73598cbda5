// GUPS on another library: what a peer implements and the program calls.
#pragma once

#include <cstdint>
#include <functional>

#include <esker/apps/gups/stream.hpp>

namespace esker::bench {

enum class GupsOperation { kInc, kPut, kGet, kFetchAdd, kCompareSwap };

/// The problem of esker-gups, the same on every PE: the same updates of the same places.
struct GupsProblem {
  std::uint64_t seed;
  std::uint32_t pes;
  std::uint32_t pe;
  std::uint64_t words_a_pe;
  std::uint64_t updates_a_pe;
  GupsOperation operation;
  bool is_local;  // every PE updates its own part, without the peer's library: what the memory allows

  constexpr inputs::RandomStream stream_of(std::uint64_t sender) const {
    return gups::stream_of(seed, sender, updates_a_pe);
  }
  constexpr gups::Place place_of(std::uint64_t r) const {
    const gups::Place place = gups::place(r, pes, words_a_pe);
    return {is_local ? pe : place.pe, place.index};
  }
  constexpr std::uint64_t put_value(gups::Place place) const {
    return gups::put_value(seed, place.pe * words_a_pe + place.index);
  }
};

/// Set-up's broadcast from PE 0.
using Broadcast = std::function<void(void* data, std::size_t bytes)>;

/// The peer on this PE. Construction, run() and destruction are collective. Throws std::runtime_error.
class GupsPeer {
 public:
  /// Takes the GPU number local_pe, modulo their number.
  GupsPeer(const GupsProblem& problem, int local_pe, const Broadcast& broadcast);
  ~GupsPeer();
  GupsPeer(const GupsPeer&) = delete;
  GupsPeer& operator=(const GupsPeer&) = delete;

  /// One update a lane; returns when all updates of all PEs are in the tables.
  void run();
  /// Takes back, on this PE's words, what every PE has sent since the words were zero, and zeroes them. Of
  /// gets it compares what has come. Returns the words that were wrong.
  std::uint64_t take_back();

 private:
  GupsProblem problem_;
  unsigned long long* table_ = nullptr;
  unsigned long long* results_ = nullptr;  // of gets and fetches
  unsigned long long* wrong_ = nullptr;
};

/// The peer's name and version, and the GPU's name.
const char* peer_name();
const char* peer_device();

}  // namespace esker::bench
