// Kernels by hand, for these problems and no others.
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <esker/device/group.hpp>

#include "collected.hpp"
#include "sides.hpp"

namespace esker::bench {
namespace {

constexpr std::uint32_t kGroupLanes = 128;

/// The next number of a counter, for each converged lane.
ESKER_ALWAYS_INLINE ESKER_HD std::uint64_t draw(GroupLane& lane, DeviceAtomic<std::uint64_t>& next) {
  const auto together = lane.coalesced();
  const Position mine = together.position_among(true);
  std::uint64_t first = 0;
  if (mine.index == 0) first = next.fetch_add_relaxed(mine.total);
  return together.of_first(true, first) + mine.index;
}

/// What both leave for the host.
struct Found {
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> next;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> sum;
};

/// fib(n) as its leaves. Its calls down to some size are subtrees, which are all alike but for two sizes:
/// `first` of fib(size), `second` of fib(size - 1).
struct FlatFib {
  Found* found;
  std::uint32_t size;
  std::uint64_t first, second;
  ESKER_HD void operator()(GroupLane& lane) const {
    std::uint64_t sum = 0;
    std::uint64_t waiting = 0;  // bit m: fib(m) is on the stack. Each m at most once: a path goes down.
    std::uint32_t m = 0;
    bool has_call = false;
    while (true) {
      if (!has_call) {
        const std::uint64_t subtree = draw(lane, found->next);
        if (subtree >= first + second) break;
        m = subtree < first ? size : size - 1;
        has_call = true;
      }
      // A call a round.
      if (m >= 2) {
        waiting |= std::uint64_t{1} << (m - 2);
        m -= 1;
      } else {
        sum += m;
        has_call = waiting != 0;
        if (has_call) {
          m = lowest(waiting);
          waiting &= waiting - 1;
        }
      }
    }
    (void)found->sum.fetch_add_relaxed(sum);
  }
  ESKER_HD static std::uint32_t lowest(std::uint64_t word) {
#if defined(ESKER_ON_GPU)
    const auto low = static_cast<std::uint32_t>(word);
    return low != 0 ? GroupLane::lowest_bit(low)
                    : 32 + GroupLane::lowest_bit(static_cast<std::uint32_t>(word >> 32));
#else
    return static_cast<std::uint32_t>(__builtin_ctzll(word));
#endif
  }
};

/// The rows that are left of boards whose first rows have their queens. The lanes of a group have a stack
/// each: word w of row r is at [(4 r + w) * kGroupLanes + lane].
struct FlatQueens {
  Found* found;
  const Queens* boards;
  std::uint64_t n_boards;
  std::uint32_t rows;  // that are left
  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if !defined(ESKER_ON_CPU)
    auto* const stack = reinterpret_cast<std::uint32_t*>(GroupLane::lent_scratch()) + lane.lane();
    std::uint64_t sum = 0;
    std::uint32_t row = 0, columns = 0, left = 0, right = 0, free = 0, all = 0;
    while (true) {
      if (free != 0) {
        const std::uint32_t queen = free & (~free + 1);
        free ^= queen;
        if (row + 1 == rows) {
          ++sum;
          continue;
        }
        std::uint32_t* const saved = stack + 4 * row * kGroupLanes;
        saved[0] = columns;
        saved[kGroupLanes] = left;
        saved[2 * kGroupLanes] = right;
        saved[3 * kGroupLanes] = free;
        columns |= queen;
        left = (left | queen) << 1;
        right = (right | queen) >> 1;
        free = all & ~(columns | left | right);
        ++row;
      } else if (row > 0) {
        --row;
        const std::uint32_t* const saved = stack + 4 * row * kGroupLanes;
        columns = saved[0];
        left = saved[kGroupLanes];
        right = saved[2 * kGroupLanes];
        free = saved[3 * kGroupLanes];
      } else {
        const std::uint64_t board = draw(lane, found->next);
        if (board >= n_boards) break;
        const Queens queens = boards[board];
        columns = queens.taken.columns;
        left = queens.taken.left;
        right = queens.taken.right;
        free = queens.free;
        all = queens.all;
      }
    }
    (void)found->sum.fetch_add_relaxed(sum);
#endif
  }
};

/// All boards with queens in `rows` more rows than `board`, and a free place in the next.
void place(const Queens& board, std::uint32_t rows, std::vector<Queens>& boards) {
  if (rows == 0) return boards.push_back(board);
  for (std::uint32_t free = board.free; free != 0; free &= free - 1) {
    const std::uint32_t queen = free & (~free + 1);
    Queens next{board.taken.with(queen), 0, board.all};
    next.free = next.taken.free(next.all);
    if (next.free != 0) place(next, rows - 1, boards);
  }
}

template <class Kernel>
Run run_of(const Device& device, Kernel kernel, std::uint32_t scratch_bytes,
           std::shared_ptr<DeviceArray<Queens>> boards) {
  struct State {
    DeviceArray<Found> found;
    PinnedArray<Found> seen;
    Stream stream;
    std::shared_ptr<DeviceArray<Queens>> boards;
  };
  std::shared_ptr<State> state(
      new State{device.memory<Found>(1), device.pinned<Found>(1), device.stream(), std::move(boards)});
  kernel.found = state->found.data();
  const std::uint64_t groups = device.resident_groups(kernel, kGroupLanes, scratch_bytes);
  return [=] {
    device.fill(state->found.data(), 0, sizeof(Found), state->stream);
    device.launch(LaunchShape{groups * kGroupLanes, kGroupLanes}, kernel, state->stream, scratch_bytes);
    state->stream.synchronize();
    device.copy(state->seen.data(), state->found.data(), sizeof(Found));
    return state->seen[0].sum.load_relaxed();
  };
}

}  // namespace

Run flat(const Device& device, const Problem& problem) {
  if (device.backend() == Backend::kCpu) throw std::invalid_argument("flat() is for GPUs");
  if (problem.kind == Kind::kFib || problem.kind == Kind::kFibLeaves) {
    // Of some hundred calls: many more than lanes, and none that the others wait for.
    const std::uint32_t size = problem.n > 20 ? 12 : problem.n / 2 + 1;
    const std::uint32_t steps = problem.n - size;
    return run_of(device,
                  FlatFib{nullptr, size, expected({Kind::kFib, steps + 1}), expected({Kind::kFib, steps})}, 0,
                  nullptr);
  }
  const std::uint32_t placed = problem.n < 3 ? 0 : problem.n < 12 ? problem.n / 3 : 6;
  std::vector<Queens> found;
  place(problem.queens(), placed, found);
  auto boards = std::make_shared<DeviceArray<Queens>>(device.memory<Queens>(found.size() + 1));
  if (!found.empty()) device.copy(boards->data(), found.data(), found.size() * sizeof(Queens));
  const std::uint32_t rows = problem.n - placed;
  return run_of(device, FlatQueens{nullptr, boards->data(), found.size(), rows}, 16 * rows * kGroupLanes,
                boards);
}

}  // namespace esker::bench
