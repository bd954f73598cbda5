// Open packages of a host thread: when they change and when they leave.
#include <cstring>
#include <utility>

#include <esker/aggregator/trace.hpp>
#include <esker/device/error.hpp>
#include <esker/runtime/outbox.hpp>
#include <esker/runtime/peer_heaps.hpp>

namespace esker {

void PackageSink::publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                          std::uint32_t count) {
  if (context_->most_columns != 0) context_->services->unclaim_pending(context_->most_columns - count);
  context_->services->will_publish(Command::from_word(command), count);
  const PublishSpan span(context_->tracer, ticket, command, count);
  queue().publish(ticket, command, words, count);
  next_ = ticket + 1;
  context_->services->has_published();
}

void PackageSink::publish_nothing() noexcept {
  constexpr Command kAny{Operation::kInc, Operand::kUint64, 0};
  try {
    while (next_ != end_) {
      while (!was_empty(next_)) pause(*lane_);
      publish(next_, kAny.word(), 1, 0);
    }
  } catch (const Error&) {  // the runtime has failed: nobody waits for the package
  }
}

std::uint32_t PackageSink::serve_gets(std::uint32_t command, std::uint64_t* rows, std::uint32_t columns,
                                      std::uint32_t count) {
  if (context_->peer_heaps == nullptr || count == 0) return count;
  return context_->peer_heaps->serve_gets(Command::from_word(command), rows, columns, count);
}

Outbox::Cursor Outbox::switch_to(Cursor open, std::uint32_t command, std::uint32_t words) {
  if (open.next != nullptr)
    packages_[current_].count = open.columns - static_cast<std::uint32_t>(open.end - open.next);
  std::uint32_t found = kOpenCommands;
  for (std::uint32_t i = 0; i < kOpenCommands; ++i) {
    if (packages_[i].command == command) found = i;
  }
  if (found == kOpenCommands) {
    found = next_victim_;
    next_victim_ = (next_victim_ + 1) % kOpenCommands;
    publish(packages_[found]);
    const std::uint32_t columns = sink_.columns(words);
    Package fresh;
    fresh.command = command;
    fresh.width = static_cast<std::uint16_t>(words);
    fresh.columns = columns;
    fresh.payload = std::vector<std::uint64_t>(std::size_t{columns} * words);
    packages_[found] = std::move(fresh);
  }
  current_ = found;
  Package& package = packages_[found];
  std::uint64_t* const first = package.payload.data();
  return {first + package.count, first + package.columns, package.columns, command, combines(package)};
}

bool Outbox::combines(const Package& package) {
  return package.plain_left == 0 && may_combine(Command::from_word(package.command).operation);
}

Outbox::Cursor Outbox::publish(Cursor open) {
  Package& package = packages_[current_];
  package.count = open.columns - static_cast<std::uint32_t>(open.end - open.next);
  publish(package);
  open.next = package.payload.data();
  open.combines = combines(package);
  return open;
}

void Outbox::publish(Package& package) {
  package.count = sink_.serve_gets(package.command, package.payload.data(), package.columns, package.count);
  if (package.count == 0) return;
  const std::uint64_t ticket = sink_.reserve(1);
  sink_.wait_empty(ticket);
  for (std::uint32_t r = 0; r < package.width; ++r) {
    std::memcpy(sink_.row(ticket, package.width, r), package.payload.data() + package.at(r, 0),
                package.count * sizeof(std::uint64_t));
  }
  sink_.publish(ticket, package.command, package.width, package.count);
  if (package.combined > 0) sink_.has_combined(package.combined, package.combined_remote);
  if (package.plain_left > 0)
    --package.plain_left;
  else if (package.combined < package.count / 4)
    package.plain_left = kPlainPackages;
  package.combined = package.combined_remote = 0;
  package.count = 0;
}

void Outbox::publish_all() {
  if (open_.next != nullptr) open_ = publish(open_);
  for (Package& package : packages_) publish(package);
}

}  // namespace esker
