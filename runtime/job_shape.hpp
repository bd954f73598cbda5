// Which PE this is, and of how many.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace esker {

struct JobShape {
  std::uint32_t pe;
  std::uint32_t n_pes;
  std::uint32_t destinations;                                       // n_pes; more in the one-node projection
  std::uint32_t pes_on_host;                                        // this one included
  std::shared_ptr<const std::vector<std::string>> names = nullptr;  // by PE; null: no world ranks to name
  // By PE, of this host's; 0: another host's, or a thread of this process. Null: all of them are that.
  std::shared_ptr<const std::vector<std::int64_t>> processes = nullptr;

  /// For messages: "PE 3", or "PE 3 (world rank 5)" where that differs.
  std::string name(std::uint32_t of_pe) const {
    return names == nullptr ? fmt::format("PE {}", of_pe) : (*names)[of_pe];
  }
  std::string name() const { return name(pe); }
  std::int64_t process(std::uint32_t of_pe) const { return processes == nullptr ? 0 : (*processes)[of_pe]; }
};

}  // namespace esker
