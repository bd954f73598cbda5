// Open packages of a host thread: when they change and when they leave.
#include <cstring>

#include <esker/aggregator/trace.hpp>
#include <esker/runtime/device_context.hpp>

namespace esker {

void PackageSink::publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                          std::uint32_t count) {
  if (context_->most_columns != 0) context_->services->unclaim_pending(context_->most_columns - count);
  context_->services->will_publish(Command::from_word(command), count);
  const PublishSpan span(context_->tracer, ticket, command, count);
  queue().publish(ticket, command, words, count);
  context_->services->has_published();
}

Outbox::Open Outbox::switch_to(Open open, std::uint32_t command, std::uint32_t words) {
  if (open.next != nullptr)
    staged_[current_].count = open.columns - static_cast<std::uint32_t>(open.end - open.next);
  std::uint32_t found = kOpenCommands;
  for (std::uint32_t i = 0; i < kOpenCommands; ++i) {
    if (staged_[i].command == command) found = i;
  }
  if (found == kOpenCommands) {
    found = next_victim_;
    next_victim_ = (next_victim_ + 1) % kOpenCommands;
    publish(staged_[found]);
    const std::uint32_t columns = sink_.columns(words);
    staged_[found] = {.command = command,
                      .words = words,
                      .columns = columns,
                      .payload = std::vector<std::uint64_t>(std::size_t{columns} * words)};
  }
  current_ = found;
  Staged& staged = staged_[found];
  std::uint64_t* const first = staged.payload.data();
  return {first + staged.count, first + staged.columns, staged.columns, command, combines(staged)};
}

bool Outbox::combines(const Staged& staged) {
  return staged.plain_left == 0 && may_combine(Command::from_word(staged.command).operation);
}

Outbox::Open Outbox::publish(Open open) {
  Staged& staged = staged_[current_];
  staged.count = open.columns - static_cast<std::uint32_t>(open.end - open.next);
  publish(staged);
  open.next = staged.payload.data();
  open.combines = combines(staged);
  return open;
}

void Outbox::publish(Staged& staged) {
  if (staged.count == 0) return;
  const std::uint64_t ticket = sink_.reserve(1);
  sink_.wait_empty(ticket);
  for (std::uint32_t r = 0; r < staged.words; ++r) {
    std::memcpy(sink_.row(ticket, staged.words, r), staged.payload.data() + std::size_t{r} * staged.columns,
                staged.count * sizeof(std::uint64_t));
  }
  sink_.publish(ticket, staged.command, staged.words, staged.count);
  if (staged.combined > 0) sink_.has_combined(staged.combined, staged.combined_remote);
  if (staged.plain_left > 0)
    --staged.plain_left;
  else if (staged.combined < staged.count / 4)
    staged.plain_left = kPlainPackages;
  staged.combined = staged.combined_remote = 0;
  staged.count = 0;
}

void Outbox::flush() {
  if (open_.next != nullptr) open_ = publish(open_);
  for (Staged& staged : staged_) publish(staged);
}

}  // namespace esker
