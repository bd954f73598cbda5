// Graphs: work for a stream that is put together once and launched many times.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <esker/device/device_backend.hpp>
#include <esker/device/stream.hpp>

namespace esker {

/// What a function has put on a stream (Device::graph()).
///
/// Contract. Move-only; empty when default-constructed or moved from. It keeps the host functions of its
///           calls, and outlives what it has launched. Memory that its work uses is the caller's to keep.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  DeviceGraph(std::shared_ptr<detail::DeviceBackend> backend, const Stream& stream,
              std::function<void(const Stream&)> put)
      : backend_{std::move(backend)} {
    handle_ = backend_->capture(stream.native(), [&] { put(stream); });
    if (handle_ == nullptr) put_ = std::move(put);
  }
  ~DeviceGraph() {
    if (handle_ != nullptr) backend_->destroy_graph(handle_);
  }
  DeviceGraph(DeviceGraph&& other) noexcept
      : backend_{std::move(other.backend_)},
        handle_{std::exchange(other.handle_, nullptr)},
        put_{std::move(other.put_)} {}
  DeviceGraph& operator=(DeviceGraph&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(handle_, other.handle_);
    std::swap(put_, other.put_);
    return *this;
  }

  bool empty() const { return handle_ == nullptr && !put_; }
  /// Puts all of it on a stream of its device. Not empty.
  void launch(const Stream& stream) const {
    if (handle_ != nullptr) {
      backend_->launch_graph(handle_, stream.native());
    } else {
      put_(stream);
    }
  }

 private:
  std::shared_ptr<detail::DeviceBackend> backend_;
  void* handle_ = nullptr;
  std::function<void(const Stream&)> put_;  // where there are no graphs
};

}  // namespace esker
