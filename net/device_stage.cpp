// When progress kernels are wanted, and what has ended.
#include <esker/net/device_stage.hpp>

#include <algorithm>

#include <esker/aggregator/trace.hpp>
#include <esker/net/blocks.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kPackagesAStep = 64;
constexpr std::uint32_t kEveryPackage = ~0u;
constexpr std::chrono::microseconds kBetweenEarlyProgress{50};
constexpr std::chrono::microseconds kNapUnderWay{20};  // a GPU rings no bell
constexpr std::int64_t kStarvedLatelyNs = 1'000'000'000;

}  // namespace

DeviceStage::DeviceStage(DeviceEngine& engine, bool applies, HostHandlers& handlers, Control& control)
    : engine_{engine},
      applies_{applies},
      handlers_{handlers},
      control_{control},
      to_send_on_{applies ? engine.progress_queue() : PackageQueue{}},
      replies_{control, wire::Kind::kDirectQuietRequest, wire::Kind::kDirectQuietReply} {
  control.on(wire::Kind::kDrainRequest, [this](const Control::Message& message) {
    drain_requested_ = true;
    called_before_ = std::max(called_before_, message.value);
  });
}

bool DeviceStage::try_submit(ApplyJob& job) {
  if (job.header.kind != wire::Kind::kBlock) return engine_.try_submit(job);
  const wire::BlockHeader block = wire::block_header(job.frame);
  require_inside(job.header, block, job.heap_bytes);
  std::byte* const to = engine_.heap_base() + block.offset;
  const std::byte* const from = job.frame + wire::kBlockBytesAt;
  BlockLayout{block.piece_bytes, block.stride}.for_each_stretch(
      block.first, job.header.bytes - wire::kBlockBytesAt,
      [&](auto offset, auto at, auto length) { engine_.copy(to + offset, from + at, length); });
  engine_.wait_for_copies();
  job.left.store(0, std::memory_order_relaxed);
  return true;
}

bool DeviceStage::step() {
  request_drains();
  const bool wanted = wants_progress();
  const std::uint64_t started = engine_.progress_started();
  bool moved = engine_.step(wanted, handlers_called(), handlers_);
  moved |= send_on(kPackagesAStep);  // after the end of a progress kernel, all that it has published
  if (engine_.progress_started() != started) drain_requested_ = false;
  for (std::uint32_t link = 0; link < engine_.links(); ++link)
    moved |= replies_.answer(engine_.pe_of_link(link), engine_.applied_from(link));
  return moved;
}

void DeviceStage::request_drains() {
  bool needed = engine_.take_drain_request();
  if (needed) starved_ns_.store(steady_ns(), std::memory_order_relaxed);
  if (engine_.has_called_handlers() && !handlers_called()) {
    called_before_ = barriers_ + 1;
    needed = true;
  }
  if (!needed) return;
  drain_requested_ = true;
  for (std::uint32_t link = 0; link < engine_.links(); ++link)
    control_.send(wire::Kind::kDrainRequest, engine_.pe_of_link(link), called_before_);
}

bool DeviceStage::wants_progress() {
  // While kernels run their lanes apply, all but what is for handlers; progress kernels would take their
  // processors.
  bool wanted = drain_requested_ || replies_.is_asked() ||
                (in_call_ && ((ended_ && !rendezvous_) || handlers_called()));
  if (in_call_ && ended_ && rendezvous_) {  // others' kernels still send, and no kernel here applies
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_early_progress_) {
      next_early_progress_ = now + kBetweenEarlyProgress;
      wanted = true;
    }
  }
  return wanted;
}

bool DeviceStage::send_on(std::uint32_t most) {
  std::uint64_t ticket = 0;
  bool moved = false;
  for (std::uint32_t i = 0; i < most && applies_ && to_send_on_.try_peek(ticket); ++i) {
    const auto& header = to_send_on_.header(ticket);
    handlers_.send_on({header.command, header.words, header.count, to_send_on_.columns(header.words),
                       to_send_on_.row(ticket, header.words, 0)});
    to_send_on_.release(ticket);
    moved = true;
  }
  return moved;
}

void DeviceStage::begin(const NetworkRequest& call) {
  in_call_ = true;
  in_quiet_ = call.kind == NetworkRequest::Kind::kQuiet;
  rendezvous_ = !in_quiet_;
  ended_ = false;
  engine_.expect_progress();
}

bool DeviceStage::flushed() {
  if (!ended_) {
    ended_ = !engine_.was_running();
    waits_for_kernels_.store(!ended_, std::memory_order_relaxed);
    if (!ended_) return false;
    progress_ = engine_.progress_started();
    if (rendezvous_) {
      // A progress kernel that begins when all PEs' kernels have ended finds all that they have sent.
      engine_.expect_progress();
      next_early_progress_ = std::chrono::steady_clock::now() + kBetweenEarlyProgress;
    }
  }
  if (rendezvous_) return true;
  if (!engine_.has_completed_since(progress_)) return false;
  if (in_quiet_) send_on(kEveryPackage);
  return true;
}

void DeviceStage::start_over() {
  rendezvous_ = false;
  progress_ = engine_.progress_started();
}

void DeviceStage::ask_peers() {
  target_.clear();
  for (std::uint32_t link = 0; link < engine_.links(); ++link) {
    target_.push_back(engine_.sent_to(link));
    replies_.ask(engine_.pe_of_link(link), target_[link]);
  }
}

bool DeviceStage::have_peers_applied() {
  for (std::uint32_t link = 0; link < target_.size(); ++link) {
    if (!replies_.is_applied(engine_.pe_of_link(link), target_[link])) return false;
  }
  return true;
}

void DeviceStage::heard_may_send() { called_before_ = std::max(called_before_, barriers_ + 1); }

void DeviceStage::end(bool all_applied) {
  in_call_ = false;
  if (!all_applied) return;
  ++barriers_;
  engine_.complete_round();
}

std::chrono::microseconds DeviceStage::longest_nap(bool in_call) const {
  return in_call || engine_.is_under_way() ? kNapUnderWay : std::chrono::microseconds::max();
}

bool DeviceStage::was_working() const {
  return waits_for_kernels_.load(std::memory_order_relaxed) &&
         steady_ns() - starved_ns_.load(std::memory_order_relaxed) > kStarvedLatelyNs;
}

}  // namespace esker
