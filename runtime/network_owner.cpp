// The network thread's life.
#include <esker/runtime/network_owner.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <esker/device/error.hpp>

namespace esker {
namespace {
constexpr std::chrono::microseconds kLongestNap{1000}, kFirstNapBesideAnother{200};
constexpr std::chrono::milliseconds kHousekeepingEvery{100};
constexpr std::uint32_t kStepsBetweenClocks = 64;
constexpr std::chrono::seconds kLastWords{1};
}  // namespace

NetworkOwner::NetworkOwner(bool own_thread, Connect connect, std::string name)
    : own_thread_{own_thread}, connect_{std::move(connect)}, name_{std::move(name)} {
  if (!own_thread_) {
    transport_ = connect_();
    return;
  }
  thread_ = std::jthread([this] { thread_main(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return connected_ || error_; });
  if (error_) std::rethrow_exception(error_);
}

NetworkOwner::~NetworkOwner() {
  if (!own_thread_) {
    if (!stopped_) leave();  // never run: what is to be constructed after it has failed
    return;
  }
  const std::lock_guard lock(mutex_);
  stopping_.store(true);
  may_run_ = true;
  changed_.notify_all();
}

template <class Then>
bool NetworkOwner::try_step(bool* moved, Then then) {
  if (is_inside_.load(std::memory_order_relaxed) || is_inside_.exchange(true, std::memory_order_acquire))
    return false;
  struct Leave {
    std::atomic<bool>& is_inside;
    ~Leave() { is_inside.store(false, std::memory_order_release); }  // [step]
  } const leave{is_inside_};
  *moved = step();
  then();
  return true;
}

void NetworkOwner::thread_main() {
  set_thread_name(name_);
  try {
    transport_ = connect_();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
    return;
  }
  {
    std::unique_lock lock(mutex_);
    connected_ = true;
    set_thread_name(name_of(*transport_, transport_->pe()));
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_run_; });
  }
  if (network_ == nullptr) return leave();
  network_->enter_thread();
  Backoff backoff{kLongestNap, network_->yields()};
  std::chrono::microseconds nap_beside = kFirstNapBesideAnother;
  while (!stopping_.load(std::memory_order_acquire)) {
    bool moved = false;
    std::chrono::microseconds nap{};
    const auto find_nap = [&] { nap = network_->longest_nap(); };
    if (is_driven_.load(std::memory_order_relaxed) || !try_step(&moved, find_nap)) {
      check_owner_();
      // The other thread may have gone to sleep while this one was inside a step.
      network_->bell().steps.ring();
      network_->bell().beside.wait(nap_beside, [this] {
        return stopping_.load(std::memory_order_acquire) || !is_driven_.load(std::memory_order_relaxed);
      });
      nap_beside = std::min(2 * nap_beside, kLongestNap);
      continue;
    }
    nap_beside = kFirstNapBesideAnother;
    if (moved) {
      backoff.reset();
    } else {
      bool moved_late = false;
      const auto look = [&] {
        moved_late = step_once_more();
        return moved_late || stopping_.load(std::memory_order_acquire);
      };
      backoff.wait(network_->bell().steps, look, nap);
      if (moved_late) backoff.reset();
    }
  }
  try {
    close(orderly_);
  } catch (...) {
    error_ = std::current_exception();  // for stop()
  }
}

void NetworkOwner::run(Network& network, Housekeeping housekeeping, Housekeeping check_owner) {
  const std::lock_guard lock(mutex_);
  network_ = &network;
  housekeeping_ = std::move(housekeeping);
  check_owner_ = std::move(check_owner);
  is_lent_ = own_thread_ && transport_->is_for_any_thread() && network.may_be_lent();
  may_run_ = true;
  changed_.notify_all();
}

bool NetworkOwner::step() {
  steps_.fetch_add(1, std::memory_order_relaxed);
  const bool moved = network_->progress();
  if (!moved || steps_until_clock_-- == 0) {
    steps_until_clock_ = kStepsBetweenClocks;
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_housekeeping_) {
      next_housekeeping_ = now + kHousekeepingEvery;
      try {
        housekeeping_();
      } catch (...) {
        network_->fail(current_error("network thread"));
      }
    }
  }
  return moved;
}

bool NetworkOwner::try_step_for_owner() {
  bool moved = false;
  return try_step(&moved, [] {}) && moved;
}

void NetworkOwner::leave() const noexcept {
  try {
    transport_->close(false);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "esker: %s: closing the network: %s\n",
                 name_of(*transport_, transport_->pe()).c_str(), error.what());
  }
}

void NetworkOwner::close(bool orderly) {
  if (!orderly) {
    const auto until = std::chrono::steady_clock::now() + kLastWords;
    // At least once: a failure that another thread found has not been told yet.
    do {
      if (!network_->progress()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    } while (std::chrono::steady_clock::now() < until && !network_->nothing_under_way());
  }
  Shipping::keep_bytes_of(transport_->close(orderly));
}

void NetworkOwner::stop(bool orderly) {
  if (stopped_) return;
  stopped_ = true;
  orderly_ = orderly;
  stopping_.store(true, std::memory_order_release);
  if (!own_thread_) {
    close(orderly);
    return;
  }
  network_->bell().ring();
  thread_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace esker
