// Channels as the thesis has them (section 4.1, Table 4-1): bounded queues whose elements one function
// processes. The low-level interface, for kernels of the user's own and for the host.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <esker/device/device.hpp>
#include <esker/tasks/index_ring.hpp>

namespace esker::tasks {

/// How lanes share the work of a call.
enum class Sharing {
  kWave,  // lanes of a wave that are converged reserve together (thesis, Figure 4-3)
  kLane,  // each on its own: to compare (Figure 4-15)
};

ESKER_PASS_BEGIN

/// A channel, as lanes and threads use it. Copied by value into kernels.
///
/// State    An element is available -> allocated -> published -> taken -> freed, which is available again.
///          What is freed can be allocated at once, whatever was allocated before it and is still in use: a
///          straggler holds up nobody.
/// Contract Any lanes and threads, any number of each. Element e of another state than a call wants:
///          undefined. No call waits: allocate() and take() fail. Lanes of a wave that try again in a loop,
///          and need what others of it do, should go round it together (GroupLane::wave()): a GPU does not
///          promise to wake a lane that sleeps alone.
/// Ordering [element] what was written to an element before publish() happens before what follows its take();
///          what was read before free() happens before its allocate().
template <class T, Sharing kSharing = Sharing::kWave, Scope S = Scope::kDevice>
class ChannelView {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  ChannelView() = default;
  ESKER_HD ChannelView(detail::IndexRing<S> available, detail::IndexRing<S> published, std::byte* elements,
                       std::uint32_t capacity, std::uint32_t stride)
      : available_{available},
        published_{published},
        elements_{elements},
        capacity_{capacity},
        stride_{stride} {}

  ESKER_HD std::uint32_t capacity() const { return capacity_; }
  ESKER_HD T& operator[](std::uint32_t element) const {
    return *reinterpret_cast<T*>(elements_ + std::uint64_t{element} * stride_);
  }
  /// The same channel, of elements that are as large.
  template <class U>
  ESKER_HD ChannelView<U, kSharing, S> as() const {
    return {available_, published_, elements_, capacity_, stride_};
  }

  /// An element to fill; kNone: all are in use.
  ESKER_ALWAYS_INLINE ESKER_HD std::uint32_t try_allocate() const { return pop(available_); }
  /// Makes it visible to consumers.
  ESKER_ALWAYS_INLINE ESKER_HD void publish(std::uint32_t element) const { push(published_, element); }
  /// An element to process, of those that were published the first; kNone: there is none.
  ESKER_ALWAYS_INLINE ESKER_HD std::uint32_t try_take() const { return pop(published_); }
  /// It has been processed.
  ESKER_ALWAYS_INLINE ESKER_HD void free(std::uint32_t element) const { push(available_, element); }

  // The same of lanes that call together, as a view of them says, and of which the active ones take part.
  // True for lanes that got an element: the first of them.

  template <class View>
  ESKER_HD bool try_allocate(View& together, std::uint32_t& element, bool active) const {
    return available_.try_pop(together, element, active);
  }
  template <class View>
  ESKER_HD void publish(View& together, std::uint32_t element, bool active) const {
    published_.push(together, element, active);
  }
  template <class View>
  ESKER_HD bool try_take(View& together, std::uint32_t& element, bool active) const {
    return published_.try_pop(together, element, active);
  }
  template <class View>
  ESKER_HD void free(View& together, std::uint32_t element, bool active) const {
    available_.push(together, element, active);
  }

  /// Racy: elements that are published, or will be at once, and not taken.
  ESKER_HD std::uint64_t was_published() const { return published_.was_size(); }
  /// For a host that copies was_published() from a device's memory.
  const detail::IndexRing<S>& published() const { return published_; }
  /// Racy: elements that can be allocated, now or at once.
  ESKER_HD std::uint64_t was_available() const { return available_.was_size(); }
  /// Racy: the predicate of the thesis (4.1.1). As many as `lanes`, which fill a SIMD unit, are worth a
  /// dispatch.
  ESKER_HD bool is_worth_a_dispatch(std::uint32_t lanes) const { return was_published() >= lanes; }

 private:
  ESKER_ALWAYS_INLINE ESKER_HD static auto view() {
#if defined(ESKER_ON_GPU)
    if constexpr (kSharing == Sharing::kWave) {
      return GroupLane::coalesced();
    } else {
      return LoneLane{};
    }
#else
    return LoneLane{};
#endif
  }
  ESKER_ALWAYS_INLINE ESKER_HD static std::uint32_t pop(const detail::IndexRing<S>& ring) {
    auto together = view();
    std::uint32_t element = kNone;
    return ring.try_pop(together, element) ? element : kNone;
  }
  ESKER_ALWAYS_INLINE ESKER_HD static void push(const detail::IndexRing<S>& ring, std::uint32_t element) {
    auto together = view();
    ring.push(together, element);
  }

  detail::IndexRing<S> available_, published_;
  std::byte* elements_ = nullptr;
  std::uint32_t capacity_ = 0, stride_ = 0;
};

ESKER_PASS_END

namespace detail {
/// Throws Error{kConfiguration} where a ring of numbers could not hold so many.
ESKER_API void check_capacity(std::uint32_t capacity);
template <class View>
struct MakeAvailable {
  View view;
  ESKER_HD void operator()(Lane lane) const { view.free(static_cast<std::uint32_t>(lane.global_id())); }
};
}  // namespace detail

struct ChannelOptions {
  std::uint32_t capacity = 1 << 15;  // at most 2^31
  bool padded = false;               // no two elements share a cache line: to compare (thesis, 4.6.1)
};

ESKER_PASS_BEGIN

/// The memory of a channel on a device.
///
/// Contract Move-only. view() is for kernels; on the CPU, and of a channel with Scope::kSystem, which is in
///          pinned memory, for host threads too.
/// Errors   Error{kOutOfMemory}. Error{kConfiguration}: the capacity is above 2^31.
template <class T, Sharing kSharing = Sharing::kWave, Scope S = Scope::kDevice>
class Channel {
  static_assert(std::is_trivially_copyable_v<T>, "elements cross processors byte by byte");

 public:
  using View = ChannelView<T, kSharing, S>;

  explicit Channel(const Device& device, const ChannelOptions& options = {})
      : device_{device},
        capacity_{options.capacity == 0 ? 1 : options.capacity},
        stride_{options.padded ? (sizeof(T) + kLineBytes - 1) / kLineBytes * kLineBytes : sizeof(T)},
        memory_{allocate(device)} {
    const std::uint64_t ring = Ring::storage_bytes(std::bit_ceil(capacity_));
    auto* const start = reinterpret_cast<std::byte*>(memory_.data());
    view_ = View(Ring(start, std::bit_ceil(capacity_)), Ring(start + ring, std::bit_ceil(capacity_)),
                 start + 2 * ring, capacity_, static_cast<std::uint32_t>(stride_));
    device_.launch(capacity_, detail::MakeAvailable<View>{view_});
  }

  View view() const { return view_; }
  /// All elements are available again. Nothing uses the channel meanwhile.
  void reset() {
    const std::uint64_t rings = 2 * Ring::storage_bytes(std::bit_ceil(capacity_));
    const Stream stream = device_.stream();
    device_.fill(memory_.data(), 0, rings, stream);
    device_.launch(LaunchShape{capacity_}, detail::MakeAvailable<View>{view_}, stream);
    stream.synchronize();
  }

 private:
  using Ring = detail::IndexRing<S>;
  static constexpr bool kIsPinned = S == Scope::kSystem;
  struct alignas(kLineBytes) Line {
    std::byte bytes[kLineBytes];
  };
  using Memory = std::conditional_t<kIsPinned, PinnedArray<Line>, DeviceArray<Line>>;

  Memory allocate(const Device& device) const {
    detail::check_capacity(capacity_);
    const std::uint64_t bytes = 2 * Ring::storage_bytes(std::bit_ceil(capacity_)) + capacity_ * stride_;
    const std::uint64_t lines = (bytes + sizeof(Line) - 1) / sizeof(Line);
    if constexpr (kIsPinned) {
      return device.pinned<Line>(lines, {"a channel"});
    } else {
      return device.memory<Line>(lines, {"a channel"});
    }
  }

  const Device device_;
  const std::uint32_t capacity_;
  const std::uint64_t stride_;
  Memory memory_;
  View view_;
};

ESKER_PASS_END

}  // namespace esker::tasks
