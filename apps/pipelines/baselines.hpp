// What pipelines are compared with: frames that are copied to the device, worked on by a kernel that is
// launched for them, and copied back; or that lie in managed memory.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>
#include <esker/pipeline.hpp>

#include "application.hpp"
#include "launch_graph.hpp"

namespace pipe_apps {

using esker::pipeline::Frame;

/// What a function that works on frames asks its stage for, where it is alone: on the host, and in tests.
struct OneLaneStage {
  ESKER_HD std::uint32_t lane() const { return 0; }
  ESKER_HD std::uint32_t lanes() const { return 1; }
  ESKER_HD void sync() const {}
};

/// The lanes that a launch on a GPU gives each frame: one group for a function that calls sync(). On the CPU
/// a frame has one lane a group, and no more lanes than there are host threads.
struct Team {
  std::uint32_t group_lanes = 256;
  std::uint32_t groups = 1;
};

/// The frames of a run, and both of its ends on the host.
template <class In, class Out>
struct FrameRun {
  std::uint64_t frames = 0;
  std::uint32_t in_items = 0, out_items = 0;  // of a frame, at most; without out_items nothing is copied back
  Team team;
  std::uint64_t launch_frames = 0;  // that a launch works on; 0: one, of Scheme::kChunks an eighth of all
  // Each frame's data stays where read() points `in.data` and `out.data`, in pinned memory of the caller.
  bool in_place = false;
  // Gives frame in.number, in the order of the frames: fills in.data, sets in.tag, and in.count where the
  // frame is not full.
  std::function<void(Frame<In>& in, Frame<Out>& out)> read;
  // Takes a result: its count and its tag are what the device function has set, or its input's. In the order
  // of the frames, on one thread at a time. May be empty.
  std::function<void(const Frame<const Out>& out)> write;
};

namespace detail {

struct FrameNote {
  std::uint32_t count;
  std::uint64_t number, tag;
};

/// Some of the group's lanes, or lanes of several groups.
struct LaunchedStage {
  std::uint32_t lane_, lanes_;
  ESKER_HD std::uint32_t lane() const { return lane_; }
  ESKER_HD std::uint32_t lanes() const { return lanes_; }
};
struct LaunchedLane : LaunchedStage {
  ESKER_HD void sync() const {}
};
struct LaunchedGroup : LaunchedStage {
  esker::GroupLane* group_lane;
  ESKER_HD void sync() const { group_lane->group().sync(); }
};

/// What a kernel does with its frames.
template <class In, class Out, class F>
struct FrameWork {
  F f;
  const In* in;
  Out* out;
  std::uint32_t in_items, out_items, groups;
  FrameNote note;          // of the only frame
  const FrameNote* notes;  // of several; else null
  FrameNote* results;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, std::uint64_t frame) const {
    const FrameNote its = notes == nullptr ? note : notes[frame];
    const Frame<const In> from{in + frame * in_items, its.count, in_items, its.number, its.tag};
    Frame<Out> to{out + frame * out_items, its.count, out_items, its.number, its.tag};
    f(stage, from, to);
    if (stage.lane() == 0) results[frame] = {to.count, to.number, to.tag};
  }
};
/// A frame to a few groups.
template <class Work>
struct GroupKernel {
  Work work;
  ESKER_HD void operator()(esker::GroupLane& lane) const {
    const auto part = static_cast<std::uint32_t>(lane.group_id() % work.groups);
    LaunchedGroup stage{{part * lane.group_lanes() + lane.lane(), work.groups * lane.group_lanes()}, &lane};
    work(stage, lane.group_id() / work.groups);
  }
};
/// A frame to a few lanes that never wait for each other.
template <class Work>
struct LaneKernel {
  Work work;
  ESKER_HD void operator()(esker::Lane lane) const {
    LaunchedLane stage{{static_cast<std::uint32_t>(lane.global_id() % work.groups), work.groups}};
    work(stage, lane.global_id() / work.groups);
  }
};

/// What one launch works on, from the copy to the device until its results have been written.
template <class In, class Out>
struct Batch {
  esker::Stream stream;
  esker::DeviceArray<In> device_in;
  esker::DeviceArray<Out> device_out;
  esker::PinnedArray<In> host_in;
  esker::PinnedArray<Out> host_out;
  esker::ManagedArray<In> managed_in;
  esker::ManagedArray<Out> managed_out;
  esker::PinnedArray<FrameNote> notes, results;
  std::vector<Frame<In>> in;
  std::vector<Frame<Out>> out;  // of the frames that are under way
};

/// Copies the frames `at`, each `items` long, from or to consecutive memory. Frames that are consecutive,
/// too, take one copy.
template <class T, class Copy>
void copy_runs(const std::vector<Frame<T>>& at, std::uint32_t items, const Copy& copy) {
  for (std::size_t first = 0; first < at.size();) {
    std::size_t last = first + 1;
    while (last < at.size() && at[last].data == at[first].data + (last - first) * items) ++last;
    copy(at[first].data, first * items, (last - first) * items * sizeof(T));
    first = last;
  }
}

}  // namespace detail

namespace detail {

/// A run by one of the schemes: its memory and streams, made once, and what is under way.
template <class In, class Out, class F>
class BaselineRun {
 public:
  BaselineRun(const esker::Device& device, const Options& options, const FrameRun<In, Out>& run, const F& f)
      : device_{device}, scheme_{options.scheme}, run_{run}, f_{f} {
    if (run.launch_frames != 0) {
      batch_frames_ = run.launch_frames;
    } else if (scheme_ == Scheme::kChunks) {
      batch_frames_ = (run.frames + 7) / 8;
    }
    batch_frames_ = std::max<std::uint64_t>(1, std::min(batch_frames_, run.frames));
    // Of chunks, the results of one are written while the device works on the next (Hetero-Mark). Of graphs
    // there are two, each with as many branches as --streams says.
    const std::uint64_t n_batches = scheme_ == Scheme::kStreams  ? options.streams
                                    : scheme_ == Scheme::kGraph  ? 2 * options.streams
                                    : scheme_ == Scheme::kChunks ? 2
                                                                 : 1;
    for (std::uint64_t i = 0; i < n_batches; ++i) batches_.push_back(make_batch());
    groups_ = run.team.groups;
    if (is_cpu()) groups_ = std::min(groups_, device.properties().processors);
    if (scheme_ == Scheme::kGraph) make_graphs();
  }

  /// Returns its seconds.
  double operator()() {
    const auto begin = std::chrono::steady_clock::now();
    std::jthread writer;
    std::uint64_t turn = 0;
    const std::uint64_t by_graphs = scheme_ == Scheme::kGraph ? run_graphs() : 0;
    for (std::uint64_t first = by_graphs; first < run_.frames; first += batch_frames_, ++turn) {
      FrameBatch& batch = batches_[turn % batches_.size()];
      if (scheme_ == Scheme::kStreams) {
        finish(batch);
        start(batch, first);
        continue;
      }
      start(batch, first);
      batch.stream.synchronize();
      if (scheme_ == Scheme::kChunks) {
        if (writer.joinable()) writer.join();  // one at a time, in order
        writer = std::jthread([this, &batch] { write(batch); });
      } else {
        write(batch);
      }
    }
    if (writer.joinable()) writer.join();
    for (std::uint64_t i = 0; i < batches_.size(); ++i) finish(batches_[(turn + i) % batches_.size()]);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  using FrameBatch = Batch<In, Out>;
  using Work = FrameWork<In, Out, F>;

  bool is_managed() const { return scheme_ == Scheme::kManaged; }
  bool is_cpu() const { return device_.backend() == esker::Backend::kCpu; }

  FrameBatch make_batch() const {
    const std::uint64_t in = batch_frames_ * run_.in_items, out = batch_frames_ * run_.out_items;
    FrameBatch batch{device_.stream(), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    if (is_managed()) {
      batch.managed_in = device_.managed<In>(in, {"frames to work on"});
      batch.managed_out = device_.managed<Out>(out, {"frames of results"});
    } else {
      batch.device_in = device_.memory<In>(in, {"frames to work on"});
      batch.device_out = device_.memory<Out>(out, {"frames of results"});
      if (!run_.in_place) batch.host_in = device_.pinned<In>(in, {"frames to work on"});
      if (!run_.in_place) batch.host_out = device_.pinned<Out>(out, {"frames of results"});
    }
    batch.notes = device_.pinned<FrameNote>(batch_frames_);
    batch.results = device_.pinned<FrameNote>(batch_frames_);
    return batch;
  }

  /// Reads the frames and puts all that the device does with them into the batch's stream.
  void start(FrameBatch& batch, std::uint64_t first) const {
    const std::uint64_t n = std::min(batch_frames_, run_.frames - first);
    read(batch, first, n);
    In* const in = is_managed() ? batch.managed_in.data() : batch.device_in.data();
    Out* const out = is_managed() ? batch.managed_out.data() : batch.device_out.data();
    copy_runs(batch.in, run_.in_items, [&](const In* from, std::uint64_t at, std::uint64_t bytes) {
      if (!is_managed()) {
        device_.copy_async(in + at, from, bytes, batch.stream);
      } else if (run_.in_place) {
        std::memcpy(in + at, from, bytes);
      }
    });
    launch(batch, in, out, n, n == 1 ? nullptr : batch.notes.data(), batch.stream);
    if (is_managed() || run_.out_items == 0) return;
    copy_runs(batch.out, run_.out_items, [&](Out* to, std::uint64_t at, std::uint64_t bytes) {
      device_.copy_async(to, out + at, bytes, batch.stream);
    });
  }

  /// `notes`: of the frames; null: of the only one, as it is now.
  void launch(const FrameBatch& batch, const In* in, Out* out, std::uint64_t n, const FrameNote* notes,
              const esker::Stream& stream) const {
    const Work work{
        f_, in, out, run_.in_items, run_.out_items, groups_, batch.notes[0], notes, batch.results.data()};
    if (is_cpu()) {
      device_.launch(esker::LaunchShape{n * groups_, 1}, LaneKernel<Work>{work}, stream);
    } else {
      const esker::LaunchShape shape{n * groups_ * run_.team.group_lanes, run_.team.group_lanes};
      device_.launch(shape, GroupKernel<Work>{work}, stream);
    }
  }

#if defined(ESKER_PIPE_GRAPHS)
  void make_graphs() {
    if (run_.in_place && batch_frames_ != 1)
      harness::usage("--scheme graph copies frames that stay in place one at a time");
    for (std::size_t g = 0; g < 2; ++g) {
      std::vector<GraphBranch> branches;
      for (std::size_t i = 0; i < batches_.size() / 2; ++i) {
        FrameBatch* const batch = &batches_[g * batches_.size() / 2 + i];
        const auto start = [this, batch](const esker::Stream& stream) {
          launch(*batch, batch->device_in.data(), batch->device_out.data(), batch_frames_,
                 batch->notes.data(), stream);
        };
        if (run_.in_place) read(*batch, 0, 1);  // for a place: each launch has its own
        branches.push_back({batch->device_in.data(),
                            run_.in_place ? batch->in[0].data : batch->host_in.data(),
                            batch->device_in.size_bytes(), start,
                            run_.in_place ? batch->out[0].data : batch->host_out.data(),
                            batch->device_out.data(), batch->device_out.size_bytes()});
        batch->out.clear();
      }
      graphs_.emplace_back(batches_[0].stream, branches);
    }
  }
  /// Returns how many frames it has done: of what is left no graph can be made.
  std::uint64_t run_graphs() {
    const std::uint64_t branches = batches_.size() / 2, frames = branches * batch_frames_;
    std::uint64_t first = 0;
    for (; first + frames <= run_.frames; first += frames) {
      const std::size_t g = first / frames % 2;
      finish_graph(g);
      for (std::size_t b = 0; b < branches; ++b) {
        FrameBatch& batch = batches_[g * branches + b];
        read(batch, first + b * batch_frames_, batch_frames_);
        if (run_.in_place) graphs_[g].set_host(b, batch.in[0].data, batch.out[0].data);
      }
      graphs_[g].launch(batches_[g * branches].stream);
    }
    for (std::size_t i = 0; i < 2; ++i) finish_graph((first / frames + i) % 2);
    return first;
  }
  void finish_graph(std::size_t g) {
    const std::size_t branches = batches_.size() / 2;
    batches_[g * branches].stream.synchronize();
    for (std::size_t b = 0; b < branches; ++b) {
      if (!batches_[g * branches + b].out.empty()) write(batches_[g * branches + b]);
    }
  }
  std::vector<LaunchGraph> graphs_;
#else
  void make_graphs() {}
  std::uint64_t run_graphs() { return 0; }
#endif

  void read(FrameBatch& batch, std::uint64_t first, std::uint64_t n) const {
    batch.in.clear();
    batch.out.clear();
    In* const in = run_.in_place ? nullptr : is_managed() ? batch.managed_in.data() : batch.host_in.data();
    Out* const out = run_.in_place  ? nullptr
                     : is_managed() ? batch.managed_out.data()
                                    : batch.host_out.data();
    for (std::uint64_t i = 0; i < n; ++i) {
      Frame<In> from{in == nullptr ? in : in + i * run_.in_items, run_.in_items, run_.in_items, first + i, 0};
      Frame<Out> to{out == nullptr ? out : out + i * run_.out_items, 0, run_.out_items, first + i, 0};
      run_.read(from, to);
      batch.notes[i] = {from.count, first + i, from.tag};
      batch.in.push_back(from);
      batch.out.push_back(to);
    }
  }

  /// The device is done with it.
  void write(FrameBatch& batch) const {
    if (is_managed() && run_.in_place && run_.out_items != 0) {
      copy_runs(batch.out, run_.out_items, [&](Out* to, std::uint64_t at, std::uint64_t bytes) {
        std::memcpy(to, batch.managed_out.data() + at, bytes);
      });
    }
    for (std::size_t i = 0; i < batch.out.size() && run_.write; ++i) {
      const FrameNote& note = batch.results[i];
      run_.write(Frame<const Out>{batch.out[i].data, note.count, run_.out_items, note.number, note.tag});
    }
    batch.out.clear();
  }
  void finish(FrameBatch& batch) const {
    if (batch.out.empty()) return;
    batch.stream.synchronize();
    write(batch);
  }

  const esker::Device& device_;
  Scheme scheme_;
  const FrameRun<In, Out>& run_;
  const F& f_;
  std::uint64_t batch_frames_ = 1;
  std::uint32_t groups_ = 1;
  std::vector<FrameBatch> batches_;
};

}  // namespace detail

/// Those that run_baseline() knows on every device.
inline const std::vector<Scheme> kBaselines = {Scheme::kCopyKernelCopy, Scheme::kStreams, Scheme::kChunks,
                                               Scheme::kManaged};

/// The schemes that run_baseline() knows on this device.
inline std::vector<Scheme> baselines_on(const esker::Device& device) {
  std::vector<Scheme> schemes = kBaselines;
#if defined(ESKER_PIPE_GRAPHS)
  if (device.backend() == esker::Backend::kCuda) schemes.push_back(Scheme::kGraph);
#endif
  (void)device;
  return schemes;
}

/// Runs `f`, a function of a pipeline's map stage, on all frames by options.scheme. `f` is an ESKER_HD
/// functor f(stage, const Frame<const In>&, Frame<Out>&) that asks its stage for lane(), lanes() and sync()
/// alone. Returns the seconds from the first read() to the last write(): memory and streams are made before.
///
/// Errors. UsageError for Scheme::kEsker, and for Scheme::kGraph but on CUDA.
template <class In, class Out, class F>
double run_baseline(const esker::Device& device, const Options& options, const FrameRun<In, Out>& run,
                    const F& f) {
  options.require_scheme(baselines_on(device));
  return detail::BaselineRun<In, Out, F>(device, options, run, f)();
}

}  // namespace pipe_apps
