// libFuzzer target: any bytes that arrive as a frame are refused, or applied inside the heap.
//
// Applied twice, by one applier and by two that share the heap by ownership blocks: both heaps must be the
// same. Whatever else happens, a sanitizer's finding included, is a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>

#include <esker/aggregator/node_buffers.hpp>
#include <esker/aggregator/wire.hpp>
#include <esker/device/error.hpp>
#include <esker/net/apply.hpp>

#include "receiver.hpp"

namespace esker {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// A heap of exactly so many bytes, so that AddressSanitizer guards its ends. Two ownership blocks and a
/// part.
constexpr std::size_t kHeapBytes = 2 * kOwnershipBytes + 520;

/// Handlers' messages are checked like the ones that come.
class CheckingSink final : public BufferSink {
 public:
  explicit CheckingSink(const HandlerTable& handlers) : handlers_{handlers} {}
  void submit(Buffer* buffer) override {
    const std::span<const std::byte> frame{buffer->bytes.get(), buffer->used};
    require(wire::find_defect(frame, {kFuzzPes, buffer->destination, &handlers_}).empty());
    recycle(buffer);
  }

 private:
  const HandlerTable& handlers_;
};

struct Outcome {
  std::unique_ptr<std::byte[]> heap;
  std::uint64_t applied = 0;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  bool failed = false;
};

Outcome apply(const HandlerTable& handlers, const wire::FrameHeader& header, const std::byte* frame,
              std::uint32_t slices) {
  Outcome outcome{std::make_unique<std::byte[]>(kHeapBytes)};
  CheckingSink sink(handlers);
  BufferPool pool(256, kFuzzPes);
  NodeBuffers outbox(kFuzzReceiver, kFuzzPes, pool, OnExhausted::kGrow, sink);
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    HostCall call{{outcome.heap.get(), kHeapBytes}, kFuzzReceiver, kFuzzPes, &outbox};
    Applier applier(handlers, slice, slices);
    try {
      applier.apply(header, frame, call);
    } catch (const Error&) {
      outcome.failed = true;
    }
    outcome.applied += applier.applied();
    outcome.sent += applier.sent_by_handlers();
    outcome.answered += applier.answered();
    require(applier.asked() <= applier.sent_by_handlers());
  }
  outbox.close();
  return outcome;
}

void receive(std::span<const std::byte> frame) {
  static const FuzzHandlers handlers;
  const HandlerTable& table = handlers.table();
  if (!wire::find_defect(frame, {kFuzzPes, kFuzzReceiver, &table}).empty()) return;
  wire::FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.kind != wire::Kind::kMessages) return;

  wire::RunReader reader(frame.data());
  wire::Run run;
  std::uint64_t messages = 0;
  bool depends_on_slices = false;
  while (reader.next(run)) {
    // One applier stores the results of its own PE's requests at once; two send them. A signal's word may be
    // another slice's.
    depends_on_slices |= (is_request(run.command.operation) && header.source == kFuzzReceiver) ||
                         has_signal(run.command.operation);
    require(reinterpret_cast<const std::byte*>(run.row(run.words)) <= frame.data() + frame.size());
    messages += run.count;
  }
  require(messages == header.messages);

  const Outcome one = apply(table, header, frame.data(), 1);
  const Outcome two = apply(table, header, frame.data(), 2);
  require(one.failed == two.failed);
  if (one.failed) return;  // how far each came differs
  require(one.applied == messages && two.applied == messages);
  require(one.sent + one.answered == two.sent + two.answered);
  if (depends_on_slices) return;
  require(std::memcmp(one.heap.get(), two.heap.get(), kHeapBytes) == 0);
}

}  // namespace
}  // namespace esker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Exactly as long as the input and aligned like a frame.
  const std::unique_ptr<std::byte[]> frame{new std::byte[size]};
  if (size > 0) std::memcpy(frame.get(), data, size);
  esker::receive({frame.get(), size});
  return 0;
}
