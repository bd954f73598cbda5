// Arrays in the memories that a device works with.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/device/device_backend.hpp>

namespace esker {

/// How to allocate, and what for.
struct Allocation {
  std::string what = "an array";  // names it in an error
  bool zeroed = true;
};

namespace detail {

/// Memory of one kind that it owns.
///
/// Contract. Move-only; empty when default-constructed or moved from. Freed with it, so nothing may still use
///           it then. data() of device memory is for kernels and copies; host code reads pinned and managed
///           memory through span().
template <class T, MemoryKind Kind>
class Array {
  static_assert(std::is_trivially_copyable_v<T> || std::is_trivially_destructible_v<T>,
                "it is made of zeros and freed without destructors");
  static_assert(alignof(T) <= kLineBytes, "an array begins at a multiple of 128 bytes");

 public:
  Array() = default;
  Array(std::shared_ptr<DeviceBackend> backend, std::size_t size, const Allocation& allocation)
      : backend_{std::move(backend)},
        data_{static_cast<T*>(backend_->allocate(Kind, bytes_of(size), allocation.zeroed, allocation.what))},
        size_{size} {}
  ~Array() {
    if (data_ != nullptr) backend_->release(Kind, data_);
  }
  Array(Array&& other) noexcept
      : backend_{std::move(other.backend_)},
        data_{std::exchange(other.data_, nullptr)},
        size_{std::exchange(other.size_, 0)} {}
  Array& operator=(Array&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  std::span<T> span() const requires(Kind != MemoryKind::kDevice) { return {data_, size_}; }
  T& operator[](std::size_t i) const requires(Kind != MemoryKind::kDevice) { return data_[i]; }

  /// It stays allocated to the end of the process.
  void keep() {
    data_ = nullptr;
    size_ = 0;
  }

 private:
  /// What would overflow is more than any device has.
  static std::size_t bytes_of(std::size_t size) {
    return size > ~std::size_t{0} / sizeof(T) ? ~std::size_t{0} : size * sizeof(T);
  }

  std::shared_ptr<DeviceBackend> backend_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace detail

template <class T>
using DeviceArray = detail::Array<T, detail::MemoryKind::kDevice>;
template <class T>
using PinnedArray = detail::Array<T, detail::MemoryKind::kPinned>;
template <class T>
using ManagedArray = detail::Array<T, detail::MemoryKind::kManaged>;

}  // namespace esker
