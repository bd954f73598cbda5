// Collective calls on data: PEs agree on what they mean, then move it in rounds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/exchange.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/element_type.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/lane_executor.hpp>

namespace esker {

/// Contract. The user's thread; collective. As <esker/collectives.hpp> says; addresses are of host or device
///           memory. `as` is the call that reports name, where one is made of others.
/// Protocol. A gather of what each PE means comes first. Where all mean the same the values, if they are few,
///           have come along; else they follow in exchanges of bounded size. Else the PEs gather in words
///           what each means, and all throw.
class DataCollectives {
 public:
  using ElementType = detail::ElementType;
  using Combiner = detail::Combiner;
  using Destination = detail::Destination;

  DataCollectives(const JobShape& job, Collectives& collectives, LaneExecutor& executor)
      : job_{job}, collectives_{collectives}, executor_{executor} {}

  void sync_all() { agree({Collective::kSync}); }
  void broadcast(const ElementType& type, void* values, std::uint64_t n, std::uint32_t root);
  /// To the root, or to every PE.
  void gather(Collective as, const ElementType& type, const void* mine, std::uint64_t n, void* all,
              std::uint64_t all_n, std::optional<std::uint32_t> root);
  void scatter(const ElementType& type, const void* all, std::uint64_t all_n, void* mine, std::uint64_t n,
               std::uint32_t root);
  /// To the root, or to every PE.
  void reduce(Collective as, const ElementType& type, const Combiner& operation, void* values,
              std::uint64_t n, std::optional<std::uint32_t> root);
  /// Exclusive.
  void scan(Collective as, const ElementType& type, const Combiner& operation, void* values, std::uint64_t n,
            const void* initial);
  std::vector<std::uint64_t> all_to_all(Collective as, const ElementType& type, const void* values,
                                        std::uint64_t n, std::span<const std::uint64_t> counts,
                                        const Destination& into);

  /// What PEs must mean alike. `problem`: what is wrong with this PE's own, "" if nothing is.
  struct Meaning {
    Collective call;
    ElementType type{0, {}};
    std::optional<std::uint64_t> n = {};  // none: it may differ
    Combiner operation = {};
    std::optional<std::uint32_t> root = {};
    std::string problem = {};
    Error::Kind kind = Error::Kind::kContract;  // of the problem
  };
  /// Few bytes of each PE come along.
  static constexpr std::size_t kFewBytes = 32;
  using Few = std::array<std::byte, kFewBytes>;
  /// Everybody's few bytes, by PE. Error: of the kind that a PE's problem has, or {kContract} if PEs mean
  /// other things; on every PE.
  std::vector<Few> agree(const Meaning& mine, const Few& few = {});

  /// Local: from host or device memory, and to it.
  void take(void* to, const void* from, std::size_t bytes) const;
  void give(void* to, const void* from, std::size_t bytes) const;

  const JobShape& job() const { return job_; }
  CurrentCall& call() { return collectives_.call(); }
  /// What `part` throws on this PE, where others wait for it, they throw too.
  template <class Part>
  void together(Collective call, Part part) {
    try {
      part();
    } catch (...) {
      collectives_.fail(current_error(to_string(call)));
      throw;
    }
  }

 private:
  /// Agrees, and gathers everybody's values, PE 0's first, if they are few; else nothing.
  std::optional<std::vector<std::byte>> gather_few(const Meaning& mine, const void* values,
                                                   std::size_t bytes);
  /// What becomes of the slices that PEs have combined.
  enum class Back : std::uint8_t { kToRoot, kToAll, kToEach };
  /// PEs combine `n` elements in rounds, in each round one slice a PE. `combine(exchange, slice_bytes, n)`
  /// finds every PE's slice in `receive`, n elements of it, and leaves in `send` what goes back. Then
  /// `finish(values, first, n)` gets what has come back for this PE, from element `first` on.
  template <class Combine, class Finish>
  void in_slices(Collective as, const ElementType& type, const void* values, std::uint64_t n, Back back,
                 std::uint32_t root, Combine combine, Finish finish);
  /// `initial`, combined with the values of the PEs before.
  void give_scanned(const ElementType& type, const Combiner& operation, void* to, const std::byte* before,
                    std::uint64_t n, const void* initial) const;

  void check_root(Meaning* mine) const;
  [[noreturn]] void throw_differences(const Meaning& mine);
  /// The next exchange, with room for so many bytes.
  Exchange& prepare(Exchange::Kind kind, std::uint32_t root, std::size_t block_bytes, std::size_t send_bytes,
                    std::size_t receive_bytes);
  void exchange(Collective as) { collectives_.exchange(as, exchange_); }
  void release_staging();
  /// Of each PE's part in a round.
  std::size_t block_bytes() const;

  const JobShape job_;
  Collectives& collectives_;
  LaneExecutor& executor_;
  std::shared_ptr<Exchange> exchange_;  // its memory is kept between calls while it is small
};

}  // namespace esker
