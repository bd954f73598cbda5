// Checks a set, sorts it by direction and kind of memory, and puts each part on the stream by the fastest
// path.
#include <esker/transfer/copy/copy_batch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <esker/error.hpp>
#include <esker/transfer/copy/copy_kernel.hpp>
#include <esker/transfer/copy/staging.hpp>

namespace esker::transfer {

namespace {

/// Sizes by powers of two: the set is cut between two of them, and what is larger goes by the copy engines.
constexpr std::uint32_t kClasses = 64;
std::uint32_t class_of(std::size_t bytes) { return static_cast<std::uint32_t>(std::bit_width(bytes) - 1); }

struct Part {
  CopyPath path;
  CopyTime time;
};
/// Copies of at least 2^cut bytes by `large`, others by the kernel.
struct Cut {
  std::uint32_t cut = 0;
  std::size_t n_large = 0;
  Part large{CopyPath::kSeparate, {}}, small{CopyPath::kKernel, {}};
  CopyTime time() const {
    CopyTime both = large.time;
    return both += small.time;
  }
};

struct Sizes {
  std::array<std::uint32_t, kClasses> copies{};
  std::array<std::uint64_t, kClasses> bytes{};
  std::uint64_t classes = 0;  // a bit for each that has copies

  explicit Sizes(std::span<const Copy> set) {
    for (const Copy& copy : set) {
      const std::uint32_t c = class_of(copy.bytes);
      ++copies[c];
      bytes[c] += copy.bytes;
      classes |= std::uint64_t{1} << c;
    }
  }
};

/// Times of a set by one path: a startup, and what the copies of each class add.
class Times {
 public:
  Times(const CopyProfile& profile, Direction direction, CopyPath path, const Sizes& sizes)
      : startup_{profile.time(direction, path, 0, static_cast<double>(CopyProfile::bytes_at(0)))} {
    for (std::uint64_t left = sizes.classes; left != 0; left &= left - 1) {
      const auto c = static_cast<std::uint32_t>(std::countr_zero(left));
      const auto n = static_cast<double>(sizes.copies[c]);
      adds_[c] = profile.time(direction, path, n, static_cast<double>(sizes.bytes[c]) / n);
      adds_[c] -= startup_;
      all_ += adds_[c];
    }
  }
  /// Of the classes whose times add up to this; 0: there are none.
  CopyTime with(CopyTime adds, bool any) const { return any ? adds += startup_ : CopyTime{}; }
  const CopyTime& of(std::uint32_t c) const { return adds_[c]; }
  const CopyTime& all() const { return all_; }

 private:
  CopyTime startup_, all_;
  std::array<CopyTime, kClasses> adds_;  // of classes that have copies
};

/// On a core that takes `slowness` times as long for a call as the profile has.
Cut best_cut(const CopyProfile& profile, double slowness, Direction direction, std::span<const Copy> copies) {
  const Sizes sizes(copies);
  const Times kernel(profile, direction, CopyPath::kKernel, sizes);
  std::optional<Cut> best;
  for (const CopyPath path : {CopyPath::kSeparate, CopyPath::kBatchCall}) {
    if (path == CopyPath::kBatchCall && copies.size() == 1) break;  // none, as below
    const Times engines(profile, direction, path, sizes);
    std::size_t n_large = copies.size();
    CopyTime large = engines.all(), small;
    for (std::uint64_t left = sizes.classes;; left &= left - 1) {
      const auto c = static_cast<std::uint32_t>(std::countr_zero(left));  // 64: none is left
      Cut cut{c, n_large};
      cut.large = {path, engines.with(large, n_large != 0)};
      cut.small.time = kernel.with(small, n_large != copies.size());
      // One copy is no batch: whatever the profile has by chance, that call does more for the same.
      const bool is_none = path == CopyPath::kBatchCall && n_large == 1;
      if (!is_none && (!best.has_value() || cut.time().us_at(slowness) < best->time().us_at(slowness)))
        best = cut;
      if (left == 0) break;
      n_large -= sizes.copies[c];
      large -= engines.of(c);
      small += kernel.of(c);
    }
  }
  return *best;
}

/// Places of a set's addresses: those of one allocation are asked for once.
class Places {
 public:
  explicit Places(const Device& device) : device_{device} {}
  const MemoryRange& of(const void* at) {
    for (const MemoryRange& range : known_) {
      if (range.holds(at)) return range;
    }
    MemoryRange& range = known_[next_++ % kKept];
    range = device_.range_of(at);
    return range;
  }

 private:
  static constexpr std::uint32_t kKept = 4;
  const Device& device_;
  std::array<MemoryRange, kKept> known_{};
  std::uint32_t next_ = 0;
};

using Clock = std::chrono::steady_clock;
double microseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::micro>(Clock::now() - began).count();
}

bool is_host(MemoryPlace place) { return place == MemoryPlace::kPageable || place == MemoryPlace::kPinned; }

}  // namespace

struct Copier::Impl {
  struct Set {
    std::vector<Copy> reachable;  // lanes reach both sides
    std::vector<Copy> pageable;   // the host's side is
  };
  /// A set in its directions. What is between two places of the host goes with what goes to the host, by the
  /// engines.
  struct Sorted {
    std::array<Set, kDirections> sets;
    std::vector<Copy> on_host;

    void clear() {
      for (Set& set : sets) {
        set.reachable.clear();
        set.pageable.clear();
      }
      on_host.clear();
    }
  };

  Impl(const Device& on, CopyProfile by) : device{on}, profile{std::move(by)}, staging{on} {}

  const Sorted& sort(std::span<const Copy> copies) {
    check_copies(copies);
    sorted.clear();
    Places places(device);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Copy& copy = copies[i];
      if (copy.bytes == 0) continue;
      const MemoryPlace to = place_of(places, copy.to, copy.bytes, i);
      const MemoryPlace from = place_of(places, copy.from, copy.bytes, i);
      if (device.backend() == Backend::kCpu || (is_host(to) && is_host(from))) {
        sorted.on_host.push_back(copy);
        continue;
      }
      const Direction direction = is_host(from) ? Direction::kToDevice
                                  : is_host(to) ? Direction::kToHost
                                                : Direction::kWithin;
      Set& set = sorted.sets[static_cast<std::size_t>(direction)];
      const bool is_pageable = to == MemoryPlace::kPageable || from == MemoryPlace::kPageable;
      append(is_pageable ? set.pageable : set.reachable, copy);
    }
    return sorted;
  }
  /// Of all bytes of one side of copy `i`, which may be in several allocations.
  MemoryPlace place_of(Places& places, const void* at, std::size_t bytes, std::size_t i) const {
    const auto* next = static_cast<const std::byte*>(at);
    const std::byte* const end = next + bytes;
    const MemoryPlace place = places.of(at).place;
    while (true) {
      const MemoryRange range = places.of(next);
      if (range.place == MemoryPlace::kDevice && range.device != device.properties().index) {
        throw Error(Error::Kind::kTransfer,
                    fmt::format("copy_batch on {}: copy {} has {} in the memory of device {}, which takes a "
                                "peer copy: Device::copy_async()",
                                device.name(), i, static_cast<const void*>(next), range.device));
      }
      if (range.place != place) {
        throw Error(Error::Kind::kTransfer,
                    fmt::format("copy_batch on {}: copy {} of {} bytes at {} goes beyond the memory that it "
                                "begins in, by {} bytes",
                                device.name(), i, bytes, at, end - next));
      }
      if (range.bytes == 0 || range.begin + range.bytes >= end) return place;
      next = range.begin + range.bytes;
    }
  }
  static void append(std::vector<Copy>& set, const Copy& copy) {
    if (!set.empty()) {
      Copy& last = set.back();
      if (static_cast<std::byte*>(last.to) + last.bytes == copy.to &&
          static_cast<const std::byte*>(last.from) + last.bytes == copy.from) {
        last.bytes += copy.bytes;
        return;
      }
    }
    set.push_back(copy);
  }

  void put(CopyPath path, std::span<const Copy> copies, const Stream& stream) {
    if (copies.empty()) return;
    switch (path) {
      case CopyPath::kSeparate:
        for (const Copy& copy : copies) device.copy_async(copy.to, copy.from, copy.bytes, stream);
        return;
      case CopyPath::kBatchCall: {
        tos.clear();
        froms.clear();
        sizes.clear();
        for (const Copy& copy : copies) {
          tos.push_back(copy.to);
          froms.push_back(copy.from);
          sizes.push_back(copy.bytes);
        }
        device.copy_all_async(tos.data(), froms.data(), sizes.data(), copies.size(), stream);
        return;
      }
      case CopyPath::kKernel:
        detail::copy_by_kernel(device, copies, stream);
        return;
      case CopyPath::kGraph: {
        const DeviceGraph graph =
            device.graph(stream, [&](const Stream& into) { put(CopyPath::kSeparate, copies, into); });
        graph.launch(stream);
        stream.synchronize();  // the graph outlives it
        return;
      }
    }
  }
  void put_fastest(Direction direction, std::span<const Copy> copies, const Stream& stream) {
    if (copies.empty()) return;
    const Cut cut = best_cut(profile, slowness, direction, copies);
    const auto began = Clock::now();
    put_parts(cut, copies, stream);
    const double took = microseconds_since(began);
    constexpr double kMost = 2;  // beyond it a call has waited for something else, such as a full queue
    if (const double measured = cut.time().host_us; measured > 0)
      slowness = std::clamp(took / measured, 1.0, kMost);
  }
  void put_parts(const Cut& cut, std::span<const Copy> copies, const Stream& stream) {
    if (cut.n_large == copies.size()) return put(cut.large.path, copies, stream);
    if (cut.n_large == 0) return put(cut.small.path, copies, stream);
    partitioned.assign(copies.begin(), copies.end());
    std::partition(partitioned.begin(), partitioned.end(),
                   [least = cut.cut](const Copy& copy) { return class_of(copy.bytes) >= least; });
    put(cut.large.path, std::span<const Copy>(partitioned).first(cut.n_large), stream);
    put(cut.small.path, std::span<const Copy>(partitioned).subspan(cut.n_large), stream);
  }
  /// `put_set(direction, copies)`: of memory that lanes reach.
  template <class PutSet>
  void carry_out(std::span<const Copy> copies, const Stream& stream, const PutSet& put_set) {
    const std::lock_guard lock(mutex);
    (void)sort(copies);
    put(CopyPath::kSeparate, sorted.on_host, stream);
    for (std::uint32_t d = 0; d < kDirections; ++d) {
      const auto direction = static_cast<Direction>(d);
      const Set& set = sorted.sets[d];
      put_set(direction, std::span<const Copy>(set.reachable));
      if (set.pageable.empty()) continue;
      staging.stage(set.pageable, direction == Direction::kToHost, stream,
                    [&](std::span<const Copy> staged) { put_set(direction, staged); });
    }
  }

  const Device device;
  const CopyProfile profile;
  std::mutex mutex;     // guards the rest, which is reused: a small set takes microseconds
  double slowness = 1;  // what the last calls took over what the profile has for them
  detail::CopyStaging staging;
  Sorted sorted;
  std::vector<Copy> partitioned;
  std::vector<void*> tos;
  std::vector<const void*> froms;
  std::vector<std::size_t> sizes;
};

Copier::Copier(const Device& device) : Copier{device, CopyProfile::of_machine(device)} {}
Copier::Copier(const Device& device, CopyProfile profile)
    : impl_{std::make_unique<Impl>(device, std::move(profile))} {}
Copier::~Copier() = default;
const CopyProfile& Copier::profile() const { return impl_->profile; }

void Copier::copy(std::span<const Copy> copies, const Stream& stream) {
  impl_->carry_out(copies, stream, [&](Direction direction, std::span<const Copy> set) {
    impl_->put_fastest(direction, set, stream);
  });
}
double Copier::copy_by(CopyPath path, std::span<const Copy> copies, const Stream& stream) {
  double us = 0;
  impl_->carry_out(copies, stream, [&](Direction, std::span<const Copy> set) {
    const auto began = Clock::now();
    impl_->put(path, set, stream);
    us += microseconds_since(began);
  });
  return us;
}

std::vector<CopyChoice> Copier::choose(std::span<const Copy> copies) {
  std::vector<CopyChoice> choices;
  const std::lock_guard lock(impl_->mutex);
  const Impl::Sorted& sorted = impl_->sort(copies);
  for (std::uint32_t d = 0; d < kDirections; ++d) {
    const auto direction = static_cast<Direction>(d);
    std::vector<Copy> set = sorted.sets[d].reachable;
    set.insert(set.end(), sorted.sets[d].pageable.begin(), sorted.sets[d].pageable.end());
    if (set.empty()) continue;
    const Cut cut = best_cut(impl_->profile, impl_->slowness, direction, set);
    CopyChoice large{direction, cut.large.path, 0, 0, cut.large.time.us_at(impl_->slowness)};
    CopyChoice small{direction, cut.small.path, 0, 0, cut.small.time.us_at(impl_->slowness)};
    for (const Copy& copy : set) {
      CopyChoice& choice = class_of(copy.bytes) >= cut.cut ? large : small;
      ++choice.copies;
      choice.bytes += copy.bytes;
    }
    for (const CopyChoice& choice : {large, small}) {
      if (choice.copies != 0) choices.push_back(choice);
    }
  }
  return choices;
}

void copy_batch(const Device& device, std::span<const Copy> copies, const Stream& stream) {
  // Never destroyed: at the end of the process the device's runtime may be gone first.
  static std::mutex& mutex = *new std::mutex;
  static auto& copiers = *new std::map<const void*, std::unique_ptr<Copier>>;
  Copier* copier = nullptr;
  {
    const std::lock_guard lock(mutex);
    std::unique_ptr<Copier>& kept = copiers[device.identity()];
    if (kept == nullptr) kept = std::make_unique<Copier>(device);
    copier = kept.get();
  }
  copier->copy(copies, stream);
}

}  // namespace esker::transfer
