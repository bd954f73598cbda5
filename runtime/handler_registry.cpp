// PEs compare what they register before anybody can send to it.
#include <esker/runtime/handler_registry.hpp>

#include <fmt/format.h>

#include <string>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/device/hash.hpp>

namespace esker {

std::uint16_t HandlerRegistry::add(HandlerTable::Entry entry, const JobShape& job, Collectives& collectives,
                                   LaneExecutor& executor, detail::KernelContext& context) {
  const std::uint32_t next = count_ + 1;
  const std::string name = entry.name;
  const auto blocks = collectives.gather(
      Collective::kRegister,
      {hash_text(name), entry.words, entry.target_bytes, entry.target_alignment, count_, 0});
  for (std::uint32_t pe = 0; pe < job.n_pes; ++pe) {
    const auto& first = blocks[0].values;
    const auto& other = blocks[pe].values;
    if (other == first) continue;
    throw Error(Error::Kind::kHandler,
                fmt::format("register_handler '{}': {} and {} register different handlers as number {}: {} a "
                            "message of {} words for a target of {} bytes here, {} words for {} bytes there",
                            name, job.name(pe), job.name(0), next,
                            other[0] == first[0] ? "same name," : "another name,", other[1], other[2],
                            first[1], first[2]));
  }
  executor.add_handler(next, entry, context);
  entry.device = nullptr;
  const std::uint32_t index = table_.add(std::move(entry));
  if (index > HandlerTable::kMaxHandlers) {
    throw Error(Error::Kind::kHandler, fmt::format("register_handler '{}': there are {} handlers already",
                                                   name, HandlerTable::kMaxHandlers));
  }
  ++count_;
  collectives.gather(Collective::kRegister, {});  // known everywhere before the first message for it
  return static_cast<std::uint16_t>(index);
}

}  // namespace esker
