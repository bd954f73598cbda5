// What handlers on the host have sent, on its way to the submit queue.
#include <esker/net/host_handlers.hpp>

#include <utility>

namespace esker {

HostHandlers::HostHandlers(std::uint32_t helpers, const ApplierSettings& settings,
                           const HandlerTable& handlers, std::byte* heap_base, BufferSink& sink,
                           ApplyPool::OnError on_error)
    : sink_{sink}, inline_{settings, handlers, heap_base, sink}, helpers_{helpers,  settings,
                                                                          handlers, heap_base,
                                                                          sink,     std::move(on_error)} {}

void HostHandlers::send_on(const PackageView& package) {
  inline_.worker.send(package);
  sent_on_.fetch_add(package.count, std::memory_order_relaxed);
  if (is_request(Command::from_word(package.command).operation))
    asked_on_.fetch_add(package.count, std::memory_order_relaxed);
}

void HostHandlers::send_replies(std::uint32_t pe, const PackageView& replies) {
  inline_.worker.send_to_one(pe, replies);
  sent_on_.fetch_add(replies.count, std::memory_order_relaxed);
}

void HostHandlers::send_replies(Buffer* buffer) {
  sent_on_.fetch_add(buffer->messages, std::memory_order_relaxed);
  sink_.submit(buffer);
}

bool HostHandlers::close_for(std::uint32_t pe) {
  if (outboxes_empty()) return false;
  helpers_.flush_once();
  return inline_.worker.close_outbox([pe](std::uint32_t to) { return to == pe; });
}

bool HostHandlers::request_flush() {
  if (outboxes_empty()) return false;
  flush_requested_.store(true, std::memory_order_release);
  return true;
}

void HostHandlers::begin(const NetworkRequest& call) {
  in_call_ = true;
  in_quiet_ = call.kind == NetworkRequest::Kind::kQuiet;
  helpers_.set_flushing(true);
}

void HostHandlers::flush() {
  if (!in_quiet_) return;
  inline_.worker.close_outbox();
  emptied_ = 0;
}

bool HostHandlers::flushed() {
  if (!in_quiet_) return true;
  while (emptied_ < helpers_.helpers() && helpers_.outbox_empty(emptied_)) ++emptied_;
  return emptied_ == helpers_.helpers();
}

void HostHandlers::end(bool /*all_applied*/) {
  in_call_ = false;
  helpers_.set_flushing(false);
}

std::string HostHandlers::was_in_handler() const {
  const HandlerTable::Entry* const entry = inline_.worker.applier().was_running();
  return entry != nullptr ? entry->name : helpers_.was_in_handler();
}

}  // namespace esker
