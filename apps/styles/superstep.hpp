// One interface for all styles: an application says what its lanes send, --style says how it travels.
#pragma once

#include <cstdint>
#include <optional>

#include <esker/lane.hpp>

#include "../harness/report.hpp"
#include "coprocessor.hpp"
#include "message.hpp"
#include "style.hpp"

namespace styles {

// lines: each
/// Table 3-1b: what a user of the runtime writes. With PerLane, each message is a package.
template <class S, class... Election>
struct SendEach {
  S source;
  ESKER_HD void operator()(esker::WorkItem item) const {
    auto state = source.start(item.global_id());
    for (typename S::Message message{}; source.next(state, message);) message.send(item, Election{}...);
  }
};

// lines: end

// lines: sorted
/// Table 3-1c: all lanes of the group take part until the last has ended (software predication), and the
/// group's messages are sorted by destination.
template <class S>
struct SendSorted {
  S source;
  std::byte* anywhere;  // an address in the heap
  ESKER_HD void operator()(esker::GroupItem& item) const {
    auto& counts = item.group_lane().template scratch<esker::DestinationCounts>();
    auto state = source.start(item.global_id());
    for (bool has = true;;) {
      typename S::Message message{};
      has = has && source.next(state, message);
      const auto handler =
          item.group().reduce(has ? handler_of(message) + std::uint32_t{1} : 0u, esker::Max{});
      if (handler == 0) break;  // nobody has one
      if (!has) {  // nobody's message has an address and a handler that exist too: its lane may publish
        set_handler(message, static_cast<std::uint16_t>(handler - 1));
        message.target = reinterpret_cast<decltype(message.target)>(anywhere);
        message.pe = 0;
      }
      message.send(item, esker::ByDestination{counts, item.n_pes(), message.pe, has});
    }
  }
};

// lines: end

/// Runs an application's supersteps in one style.
///
/// Contract. The Runtime was constructed from a Config that configure() has seen. Calls are collective.
/// Errors. Error{kConfiguration} from the constructor where the style does not go with the job: more than
/// DestinationCounts::kMost PEs, or several without MPI.
class Superstep {
 public:
  Superstep(esker::Runtime& rt, Style style) : rt_{rt}, style_{style} {
    if (style != Style::kGravel && style != Style::kPerLane && rt.n_pes() > esker::DestinationCounts::kMost) {
      throw esker::Error(esker::Error::Kind::kConfiguration,
                         "--style " + name_of(style) + " sorts by destination in scratchpad: at most " +
                             std::to_string(esker::DestinationCounts::kMost) + " PEs");
    }
    if (style == Style::kCoprocessor) coprocessor_.emplace(rt, std::uint64_t{64} << 10);
    if (style == Style::kCoprocessorLarge) coprocessor_.emplace(rt, std::uint64_t{1} << 20);
  }

  Style style() const { return style_; }

  /// Runs `source` on `lanes` lanes of this PE. On return every message of every PE is applied.
  template <Source S>
  void run(std::uint64_t lanes, const S& source, const char* name) {
    switch (style_) {
      case Style::kGravel:
        rt_.launch(lanes, SendEach<S>{source}, name);
        break;
      case Style::kPerLane:
        rt_.launch(lanes, SendEach<S, esker::PerLane>{source}, name);
        break;
      case Style::kCoalesced:
      case Style::kCoalescedAgg:
        rt_.launch(lanes, SendSorted<S>{source, rt_.heap().base()}, name);
        break;
      case Style::kCoprocessor:
      case Style::kCoprocessorLarge:
        return coprocessor_->run(lanes, source, name);
    }
    rt_.barrier_all();
  }

  /// Collective: messages of all PEs together since the beginning. Those of a coprocessor are the
  /// application's own, past the runtime, which applies them here and sends only what handlers answer.
  harness::Traffic traffic() {
    esker::Statistics mine = rt_.statistics();
    if (coprocessor_) {
      mine.messages_local = coprocessor_->messages_local();
      mine.messages_remote += coprocessor_->messages_remote();
      mine.combined_local = mine.combined_remote = 0;
      mine.buffers_sent += coprocessor_->buffers_sent();
      mine.bytes_sent += coprocessor_->bytes_sent();
    }
    return harness::sum_over_pes(rt_, mine);
  }

 private:
  esker::Runtime& rt_;
  Style style_;
  std::optional<Coprocessor> coprocessor_;
};

}  // namespace styles
