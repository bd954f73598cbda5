// Open packages of a host thread: when they change and when they leave.
#include <cstring>

#include <esker/runtime/device_context.hpp>

namespace esker {

void Outbox::switch_to(std::uint32_t command, std::uint32_t words) {
  parked_[open_].count = count_;
  std::uint32_t found = kOpenCommands;
  for (std::uint32_t i = 0; i < kOpenCommands; ++i) {
    if (parked_[i].command == command) found = i;
  }
  if (found == kOpenCommands) {
    found = next_victim_;
    next_victim_ = (next_victim_ + 1) % kOpenCommands;
    Parked& victim = parked_[found];
    if (victim.count > 0) {
      open_ = found;
      words_ = victim.words;
      command_ = victim.command;
      columns_ = victim.columns;
      count_ = victim.count;
      payload_ = victim.payload.get();
      flush_open();
    }
    const std::uint32_t columns = sink_.columns(words);
    victim.payload = std::make_unique_for_overwrite<std::uint64_t[]>(std::size_t{columns} * words);
    victim.command = command;
    victim.words = words;
    victim.columns = columns;
    victim.count = 0;
  }
  open_ = found;
  command_ = command;
  words_ = words;
  columns_ = parked_[found].columns;
  count_ = parked_[found].count;
  payload_ = parked_[found].payload.get();
}

void Outbox::flush_open() {
  const std::uint32_t count = count_;
  const std::uint64_t ticket = sink_.reserve(1);
  sink_.wait_empty(ticket);
  for (std::uint32_t r = 0; r < words_; ++r) {
    std::memcpy(sink_.row(ticket, words_, r), payload_ + std::size_t{r} * columns_, count * sizeof(std::uint64_t));
  }
  sink_.publish(ticket, command_, words_, count);
  count_ = 0;
  parked_[open_].count = 0;
}

void Outbox::flush() {
  if (count_ > 0) flush_open();
  for (const Parked& parked : parked_) {
    if (parked.count == 0) continue;
    switch_to(parked.command, parked.words);
    flush_open();
  }
}

}  // namespace esker
