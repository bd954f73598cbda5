// Streams, in which work is done in order, and events, which mark a place in one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include <esker/device/device_backend.hpp>

namespace esker {

/// A marked place in a stream.
///
/// State    Not recorded, which counts as done; then pending, then done. Recorded again it is pending again.
/// Contract Move-only. Its streams are of the same device. Streams that were given a wait for it still wait
///          when it has been destroyed.
class Event {
 public:
  explicit Event(std::shared_ptr<detail::DeviceBackend> backend)
      : backend_{std::move(backend)}, handle_{backend_->make_event()} {}
  ~Event() {
    if (handle_ != nullptr) backend_->destroy_event(handle_);
  }
  Event(Event&& other) noexcept
      : backend_{std::move(other.backend_)}, handle_{std::exchange(other.handle_, nullptr)} {}
  Event& operator=(Event&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  bool is_done() const { return backend_->is_done(handle_); }
  void synchronize() const { backend_->synchronize_event(handle_); }
  /// Time from `earlier` to this event. Both have been recorded, and are done.
  std::chrono::nanoseconds elapsed_since(const Event& earlier) const {
    return backend_->between(earlier.handle_, handle_);
  }
  void* handle() const { return handle_; }

 private:
  std::shared_ptr<detail::DeviceBackend> backend_;
  void* handle_;
};

/// Kernels and copies that run one after the other, beside those of other streams.
///
/// Contract. Move-only. On the CPU each call does its work before it returns. Destroyed while its work is
///           under way, it lets that work end.
class Stream {
 public:
  Stream(std::shared_ptr<detail::DeviceBackend> backend, StreamPriority priority)
      : backend_{std::move(backend)}, handle_{backend_->make_stream(priority)} {}
  ~Stream() {
    if (backend_ != nullptr) backend_->destroy_stream(handle_);
  }
  Stream(Stream&& other) noexcept
      : backend_{std::move(other.backend_)}, handle_{std::exchange(other.handle_, nullptr)} {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  /// Waits for all that has been put into it. Throws Error{kDevice} if something of it has failed.
  void synchronize() const { backend_->synchronize(handle_); }
  /// Nothing of it is under way.
  bool is_idle() const { return backend_->is_idle(handle_); }
  void record(const Event& event) const { backend_->record(event.handle(), handle_); }
  /// What is put into it from now on runs after what the event marks.
  void wait(const Event& event) const { backend_->wait_for(handle_, event.handle()); }
  /// Runs `function` on a thread of the host once all before it is done; what is put into the stream after it
  /// waits for it. It throws nothing, puts nothing on a stream and waits for none. On the CPU it has run when
  /// the call returns.
  void call(std::function<void()> function) const { backend_->call(handle_, std::move(function)); }
  /// A cudaStream_t or hipStream_t; null on the CPU.
  void* native() const { return handle_; }

 private:
  std::shared_ptr<detail::DeviceBackend> backend_;
  void* handle_;
};

}  // namespace esker
