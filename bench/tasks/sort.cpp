// Sorting words, beside a library's sort. Words are put in their places before the clock starts, and looked
// at after it has stopped.
#include <memory>
#include <vector>

#include "../../apps/sort/sorter.hpp"
#include "figures.hpp"
#include "sorts.hpp"

namespace esker::bench {
namespace {

/// The words that all sides sort, and where a side's come back to.
class Words {
 public:
  Words(const Device& device, std::uint32_t n)
      : device_{device},
        host_{sorting::make_words(n, "uniform", 1)},
        contents_{sorting::contents_of(host_)},
        given_{device.memory<std::uint32_t>(n, {"words to sort", false})},
        sorted_(n) {
    device.copy(given_.data(), host_.data(), bytes());
  }
  const std::vector<std::uint32_t>& host() const { return host_; }
  void put(std::uint32_t* to) const { device_.copy(to, given_.data(), bytes()); }
  /// 1: they are what they must be.
  std::uint64_t check(const std::uint32_t* from) {
    device_.copy(sorted_.data(), from, bytes());
    return check(sorted_);
  }
  std::uint64_t check(const std::vector<std::uint32_t>& words) const {
    return sorting::is_sorted(words, contents_) ? 1 : 0;
  }

 private:
  std::size_t bytes() const { return host_.size() * sizeof(std::uint32_t); }

  const Device device_;
  const std::vector<std::uint32_t> host_;
  const sorting::Contents contents_;
  DeviceArray<std::uint32_t> given_;
  std::vector<std::uint32_t> sorted_;
};

class SortProgram final : public Program {
 public:
  SortProgram(const Device& device, std::shared_ptr<Words> words, const tasks::Options& options)
      : words_{std::move(words)},
        sorter_{device, static_cast<std::uint32_t>(words_->host().size()), options} {}
  void prepare() override { words_->put(sorter_.words()); }
  std::uint64_t run() override {
    sorter_.run();
    return 0;
  }
  std::uint64_t check(std::uint64_t) override { return words_->check(sorter_.words()); }
  const tasks::Report& report() const override { return sorter_.report(); }

 private:
  const std::shared_ptr<Words> words_;
  sorting::Sorter sorter_;
};

#if defined(ESKER_BENCH_CUB)
Side cub_side(const Device& device, const std::shared_ptr<Words>& words) {
  const auto n = static_cast<std::uint32_t>(words->host().size());
  const auto memory = std::make_shared<DeviceArray<std::uint32_t>>(
      device.memory<std::uint32_t>(2 * std::size_t{n}, {"words to sort", false}));
  const auto sort = sort_by_cub(memory->data(), memory->data() + n, n);
  return {"CUB", [=] {
            words->put(memory->data());
            std::uint32_t* sorted = nullptr;
            Outcome outcome = timed([&] {
              sorted = sort();
              return 0;
            });
            outcome.result = words->check(sorted);
            return outcome;
          }};
}
#endif
#if defined(ESKER_BENCH_TBB)
Side tbb_side_of(const std::shared_ptr<Words>& words) {
  return {"oneTBB", [words] {
            std::vector<std::uint32_t> sorted = words->host();
            Outcome outcome = timed([&] {
              tbb_side::sort(sorted);
              return 0;
            });
            outcome.result = words->check(sorted);
            return outcome;
          }};
}
#endif

}  // namespace

std::unique_ptr<Program> sort_program(const Device& device, const Problem& problem,
                                      const tasks::Options& options) {
  return std::make_unique<SortProgram>(device, std::make_shared<Words>(device, problem.n), options);
}

nlohmann::json take_sort(const Bench& bench) {
  const Problem problem{Kind::kSort, static_cast<std::uint32_t>(bench.sizes.sort)};
  const auto words = std::make_shared<Words>(bench.device, problem.n);
  std::vector<Side> sides = {
      side_of("esker", std::make_shared<SortProgram>(bench.device, words, bench.options()))};
#if defined(ESKER_BENCH_CUB)
  if (bench.is_on_gpu()) sides.push_back(cub_side(bench.device, words));
#endif
#if defined(ESKER_BENCH_TBB)
  tbb_side::use_threads(bench.threads);
  sides.push_back(tbb_side_of(words));
#endif
  nlohmann::json turns =
      take_turns(name_of(problem), expected(problem), problem.n, sides, bench.effort, "words");
  add_ratios(turns);
  return {{"cases", {turns}}};
}

}  // namespace esker::bench
