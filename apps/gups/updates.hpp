// What GUPS sends, for each of the calls and for --style.
#pragma once

#include <cstdint>
#include <esker/esker.hpp>
#include <type_traits>

#include "../styles/superstep.hpp"
#include "stream.hpp"

namespace gups {

/// The problem, the same on every PE.
struct Problem {
  std::uint64_t seed;
  std::uint32_t pes;           // destinations; in the projection more than there are PEs
  std::uint64_t words_a_pe;    // of one destination
  std::uint64_t updates_a_pe;  // that one PE sends
  inputs::RandomStream stream_of(std::uint64_t pe) const { return gups::stream_of(seed, pe, updates_a_pe); }
};

/// What --op am sends to the handler.
struct Fold {
  std::uint64_t value;
};

struct FoldIn {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, std::uint64_t& word, const Fold& fold) const {
    word += fold.value;
  }
};

struct Update {
  std::uint64_t k;
  bool is_sent;
};

/// The same for --style, one update a lane: M is the style's message.
template <class M>
struct Updates {
  using Message = M;
  using State = Update;
  Problem problem;
  esker::SymmetricArray<std::uint64_t> table;
  esker::Handler<std::uint64_t, Fold> handler;
  inputs::RandomStream stream;  // of this PE

  ESKER_HD State start(std::uint64_t id) const { return {id, false}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.is_sent) return false;
    state.is_sent = true;
    const std::uint64_t r = stream[state.k];
    const auto [pe, index] = place(r, problem.pes, problem.words_a_pe);
    message.target = &table[index];
    message.pe = pe;
    if constexpr (std::is_same_v<Message, styles::Put<std::uint64_t>>) {
      message.value = put_value(problem.seed, pe * problem.words_a_pe + index);
    } else if constexpr (std::is_same_v<Message, styles::Add<std::uint64_t>>) {
      message.value = r;
    } else if constexpr (std::is_same_v<Message, styles::Call<std::uint64_t, Fold>>) {
      message.handler = handler;
      message.arguments = {r};
    }
    return true;
  }
};

/// Update k of this PE by one of the calls.
struct Send {
  Problem problem;
  esker::SymmetricArray<std::uint64_t> table;
  esker::Handler<std::uint64_t, Fold> handler;
  inputs::RandomStream stream;                     // of this PE
  bool projecting;                                 // the whole table stands on this PE
  esker::SymmetricArray<std::uint64_t> results{};  // of requests, one an update

  template <class Item, class... Election>
  ESKER_HD void inc(Item&& item, std::uint64_t k, Election&&... election) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_inc(item, target, pe, election...);
  }
  template <class Item, class... Election>
  ESKER_HD void add(Item&& item, std::uint64_t k, Election&&... election) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_add(item, target, r, pe, election...);
  }
  template <class Item, class... Election>
  ESKER_HD void exclusive_or(Item&& item, std::uint64_t k, Election&&... election) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_xor(item, target, r, pe, election...);
  }
  template <class Item, class... Election>
  ESKER_HD void put(Item&& item, std::uint64_t k, Election&&... election) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_put(item, target, put_value(problem.seed, entry), pe, election...);
  }
  template <class Item, class... Election>
  ESKER_HD void am(Item&& item, std::uint64_t k, Election&&... election) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_am(item, handler, target, {r}, pe, election...);
  }

  template <class Item>
  ESKER_HD void get(Item&& item, std::uint64_t k) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_get(item, &results[k], target, pe);
  }
  template <class Item>
  ESKER_HD void fetch_add(Item&& item, std::uint64_t k) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_fetch_add(item, &results[k], target, r, pe);
  }
  /// The first of a word's updates takes it.
  template <class Item>
  ESKER_HD void compare_swap(Item&& item, std::uint64_t k) const {
    const auto [pe, target, r, entry] = locate(k);
    esker::shmem_compare_swap(item, &results[k], target, 0, claim_of(r), pe);
  }
  ESKER_HD std::uint64_t entry_of(std::uint64_t k) const { return locate(k).entry; }

 private:
  struct Located {
    std::uint32_t pe;
    std::uint64_t* target;
    std::uint64_t r;
    std::uint64_t entry;
  };
  ESKER_HD Located locate(std::uint64_t k) const {
    const std::uint64_t r = stream[k];
    const auto [pe, index] = place(r, problem.pes, problem.words_a_pe);
    const std::uint64_t entry = pe * problem.words_a_pe + index;
    return {pe, &table[projecting ? entry : index], r, entry};
  }
};

}  // namespace gups
