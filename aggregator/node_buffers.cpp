// Repacks messages by destination.
#include <esker/aggregator/append.hpp>
#include <esker/aggregator/node_buffers.hpp>

#include <algorithm>
#include <cstring>

namespace esker {
namespace {

/// Whether both addresses of each of its requests fit half a word.
bool fits_packed(const PackageView& package) {
  const Command command = Command::from_word(package.command);
  if (!is_packed(command, package.words - 1)) return false;
  const std::uint64_t* const targets = package.rows;
  const std::uint64_t* const replies_to = targets + std::size_t{package.words - 1} * package.stride;
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < package.count; ++i) bits |= (targets[i] & kOffsetMask) | replies_to[i];
  const std::uint32_t shift = operand_shift(command.operand);
  return (bits >> shift << shift) == bits && bits >> shift >> kPackedBits == 0;
}

}  // namespace

NodeBuffers::NodeBuffers(std::uint32_t source, std::uint32_t n_pes, BufferPool& pool,
                         OnExhausted on_exhausted, BufferSink& sink, Tracer* tracer)
    : source_{source},
      pool_{pool},
      on_exhausted_{on_exhausted},
      sink_{sink},
      tracer_{tracer},
      cursor_(n_pes),
      open_(n_pes) {}

NodeBuffers::~NodeBuffers() {
  for (Package& open : open_) {
    if (open.buffer != nullptr && open.buffer->home == nullptr) delete open.buffer;
  }
}

std::uint32_t NodeBuffers::append(const PackageView& package, std::uint32_t first) {
  const bool packs = fits_packed(package);
  const std::uint32_t words = package.words - (packs ? 1 : 0);
  if (package.command != command_ || words != words_) switch_command(package.command, words);
  if (package.life != nullptr && first == 0 && package.count > 0) [[unlikely]]
    follow(package);
  if (packs)
    return words == 1 ? append_messages<false, true>(package, first)
                      : append_messages<true, true>(package, first);
  return words == 1 ? append_messages<false, false>(package, first)
                    : append_messages<true, false>(package, first);
}

template <bool kHasValues, bool kPacks>
std::uint32_t NodeBuffers::append_messages(const PackageView& package, std::uint32_t first) {
  const std::uint64_t* const words = package.rows;
  const std::uint64_t* const replies_to = words + std::size_t{package.words - 1} * package.stride;
  const std::uint32_t shift = operand_shift(Command::from_word(package.command).operand);
  const auto address = [&](std::uint32_t i) {
    const std::uint64_t offset = words[i] & kOffsetMask;
    if constexpr (kPacks) return packed_addresses(offset, replies_to[i], shift);
    return offset;
  };
  const auto append_values = [&](std::uint64_t* at, std::uint64_t pe, std::uint32_t i) {
    const std::size_t columns = open_[pe].columns;
    for (std::uint32_t r = 1; r < words_; ++r) at[r * columns] = words[std::size_t{r} * package.stride + i];
  };
  Cursor* const cursors = cursor_.data();
  std::uint32_t i = first;
  while (i < package.count) {
    // Two at a time, both cursors read before either is written: a load of what may just have been stored
    // costs more than all the rest, and this halves their number.
    for (; i + 1 < package.count; i += 2) {
      const std::uint64_t pe0 = words[i] >> kOffsetBits;
      const std::uint64_t pe1 = words[i + 1] >> kOffsetBits;
      Cursor& cursor0 = cursors[pe0];
      Cursor& cursor1 = cursors[pe1];
      std::uint64_t* const at0 = cursor0.next;
      std::uint64_t* const at1 = cursor1.next + (pe0 == pe1 ? 1 : 0);
      if (at0 >= cursor0.end || at1 >= cursor1.end) [[unlikely]]
        break;
      *at0 = address(i);
      *at1 = address(i + 1);
      if constexpr (kHasValues) {
        append_values(at0, pe0, i);
        append_values(at1, pe1, i + 1);
      }
      cursor0.next = at0 + 1;
      cursor1.next = at1 + 1;
    }
    if (i == package.count) break;
    const auto pe = static_cast<std::uint32_t>(words[i] >> kOffsetBits);
    if (cursors[pe].next == cursors[pe].end && !open_run(pe)) return i;
    std::uint64_t* const at = cursors[pe].next++;
    *at = address(i);
    if constexpr (kHasValues) append_values(at, pe, i);
    ++i;
  }
  return package.count;
}

std::uint32_t NodeBuffers::append_to_one(std::uint32_t pe, const PackageView& package, std::uint32_t first) {
  if (package.command != command_ || package.words != words_) switch_command(package.command, package.words);
  Cursor& cursor = cursor_[pe];
  while (first < package.count) {
    if (cursor.next == cursor.end && !open_run(pe)) return first;
    const std::uint32_t left = package.count - first,
                        room = static_cast<std::uint32_t>(cursor.end - cursor.next);
    const std::uint32_t n = left < room ? left : room;
    std::uint64_t* const at = cursor.next;
    for (std::uint32_t i = 0; i < n; ++i) at[i] = package.rows[first + i] & kOffsetMask;
    for (std::uint32_t r = 1; r < words_; ++r) {
      std::memcpy(at + std::size_t{r} * open_[pe].columns,
                  package.rows + std::size_t{r} * package.stride + first, n * sizeof(std::uint64_t));
    }
    cursor.next += n;
    first += n;
  }
  return first;
}

/// Tags the buffer that the package's first message is about to go into.
void NodeBuffers::follow(const PackageView& package) {
  const auto pe = static_cast<std::uint32_t>(package.rows[0] >> kOffsetBits);
  // No space in the whole pool: append() finds that too, and the package comes again.
  if (cursor_[pe].next == cursor_[pe].end && !open_run(pe)) return;
  BufferJourney& journey = open_[pe].buffer->journey;
  if (journey.life.published_ns == 0) journey.life = *package.life;
}

bool NodeBuffers::open_run(std::uint32_t pe) {
  Package& open = open_[pe];
  finish_run(pe);
  const Command command = Command::from_word(command_);
  const std::uint32_t message_bytes = 8 * words_;
  const std::uint32_t reply_bytes = is_request(command.operation) ? 8 * reply_words(command, words_) : 0;
  const auto columns = [&]() -> std::uint32_t {
    constexpr std::uint32_t kHeader = sizeof(wire::RunHeader);
    const auto fit = [&](std::uint32_t used, std::uint32_t bytes) {
      const std::uint32_t left = open.buffer->capacity - used;
      return left < kHeader ? 0 : (left - kHeader) / bytes;
    };
    const std::uint32_t most = fit(open.used, message_bytes);
    return reply_bytes == 0 ? most : std::min(most, fit(open.replies, reply_bytes));
  };
  if (open.buffer != nullptr && columns() == 0) close_buffer(pe, "full");
  if (open.buffer == nullptr) {
    open.buffer = pool_.try_acquire();
    if (open.buffer == nullptr) {
      if (on_exhausted_ == OnExhausted::kPushBack) return false;
      open.buffer = new Buffer(pool_.buffer_bytes(), nullptr);
      grown_bytes_ += pool_.buffer_bytes();
    }
    open.used = open.replies = sizeof(wire::FrameHeader);
    open.messages = 0;
    open.runs = 0;
    open.opened = Clock::now();
    open.buffer->journey.life = {};
    open.seen_next = nullptr;
    ++open_buffers_;
  }
  open.command = command_;
  open.width = static_cast<std::uint16_t>(words_);
  open.bin = static_cast<std::uint16_t>(pe);
  open.columns = columns();
  open.first =
      reinterpret_cast<std::uint64_t*>(open.buffer->bytes.get() + open.used + sizeof(wire::RunHeader));
  cursor_[pe] = {open.first, open.first + open.columns};
  return true;
}

void NodeBuffers::finish_run(std::uint32_t pe) {
  Package& open = open_[pe];
  if (open.first == nullptr) return;
  const auto count = static_cast<std::size_t>(cursor_[pe].next - open.first);
  if (count > 0) {
    if (count < open.columns) {
      for (std::uint32_t r = 1; r < open.width; ++r) {
        std::memmove(open.first + r * count, open.first + open.at(r, 0), count * sizeof(std::uint64_t));
      }
    }
    const wire::RunHeader header{open.command, open.width, static_cast<std::uint32_t>(count), 0};
    std::memcpy(open.buffer->bytes.get() + open.used, &header, sizeof header);
    open.used += static_cast<std::uint32_t>(sizeof header + count * open.width * sizeof(std::uint64_t));
    const Command command = Command::from_word(open.command);
    if (is_request(command.operation)) {
      open.replies += static_cast<std::uint32_t>(sizeof header + count * reply_words(command, open.width) *
                                                                     sizeof(std::uint64_t));
    }
    open.messages += static_cast<std::uint32_t>(count);
    ++open.runs;
  }
  open.first = nullptr;
  cursor_[pe] = {};
}

void NodeBuffers::close_buffer(std::uint32_t pe, const char* why) {
  Package& open = open_[pe];
  TraceSpan span(tracer_, TraceWhat::kClose, why);
  finish_run(pe);
  wire::FrameHeader header = wire::make_header(wire::Kind::kMessages, source_, pe);
  header.bytes = open.used;
  header.messages = open.messages;
  header.runs = open.runs;
  Buffer* const buffer = open.buffer;
  std::memcpy(buffer->bytes.get(), &header, sizeof header);
  buffer->used = open.used;
  buffer->messages = open.messages;
  buffer->destination = pe;
  buffer->journey.opened_ns = std::chrono::nanoseconds(open.opened.time_since_epoch()).count();
  buffer->journey.closed_ns = span.is_on() ? span.begin_ns() : steady_ns();
  if (span.is_on()) {
    buffer->journey.closed_on = tracer_->track();
    span.set_values({pe, buffer->messages, buffer->used, 0});
  }
  open.buffer = nullptr;
  --open_buffers_;
  sink_.submit(buffer);
}

void NodeBuffers::switch_command(std::uint32_t command, std::uint32_t words) {
  for (std::uint32_t pe = 0; pe < open_.size(); ++pe) finish_run(pe);
  command_ = command;
  words_ = words;
}

bool NodeBuffers::close_stale(IdleClock idle, std::chrono::nanoseconds timeout,
                              std::chrono::nanoseconds max_age) {
  if (open_buffers_ == 0) return false;
  bool closed = false;
  const bool other_clock = idle.is_process_time != seen_on_process_time_;
  seen_on_process_time_ = idle.is_process_time;
  const auto now = Clock::now();
  for (std::uint32_t pe = 0; pe < open_.size(); ++pe) {
    Package& open = open_[pe];
    if (open.buffer == nullptr) continue;
    // A run that was finished by a change of command has no cursor: the buffer's end tells it apart.
    const std::uint64_t* const next =
        open.first != nullptr ? cursor_[pe].next
                              : reinterpret_cast<const std::uint64_t*>(open.buffer->bytes.get() + open.used);
    if (next != open.seen_next || other_clock) {
      open.seen_next = next;
      open.seen_at = idle.now;
    }
    const bool timed_out = idle.now - open.seen_at >= timeout;
    if (timed_out || now - open.opened >= max_age) {
      close_buffer(pe, timed_out ? "time-out" : "age");
      closed = true;
    }
  }
  return closed;
}

// Flattened: a handler's message costs one call, not two.
[[gnu::flatten]] void append_message(NodeBuffers& buffers, Command command, std::uint32_t words,
                                     const std::uint64_t* message) {
  (void)buffers.append({command.word(), words, 1, 1, message}, 0);
}

}  // namespace esker
