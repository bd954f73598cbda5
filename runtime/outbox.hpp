// Open packages of a host thread whose lanes run one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <esker/aggregator/command.hpp>
#include <esker/aggregator/update.hpp>
#include <esker/device/hash.hpp>
#include <esker/device/packing.hpp>
#include <esker/runtime/package_sink.hpp>

#if defined(ESKER_ON_CPU)

namespace esker {

/// The CPU's plain loop: one host thread's open packages. Lanes that run one after the other are the
/// degenerate case of auto-grouping, so no counter is shared and a message costs a store and an add.
///
/// Contract. One thread. Lanes append through a Filling (a Packer, device/packing.hpp). A package takes a
///           queue slot only when it is full or close() comes, so no slot is held by a lane that computes
///           (docs/design/package-queue.md).
class ESKER_API Outbox {
 public:
  explicit Outbox(const detail::KernelContext& context) : sink_{context} {}

  class Filling;

 private:
  /// Where the open package is being filled: word r of the next message goes to next[r * columns].
  struct Cursor {
    std::uint64_t* next = nullptr;
    std::uint64_t* end = nullptr;  // == next: full, or nothing is open
    std::uint32_t columns = 0;
    std::uint32_t command = 0;
    bool combines = false;
  };
  // Commands that a kernel alternates between stay open side by side.
  static constexpr std::uint32_t kOpenCommands = 4;
  struct Package : OpenPackage {
    Package() : OpenPackage{} {}
    std::uint32_t count = 0;
    std::vector<std::uint64_t> payload;
    std::uint64_t combined = 0;  // calls that share a column with an earlier one
    std::uint64_t combined_remote = 0;
    std::uint32_t plain_left = 0;  // packages in which such calls are not looked for
  };
  // Where few calls can be combined, so many packages of 16 are filled without looking for them.
  static constexpr std::uint32_t kPlainPackages = 15;
  // A package takes so many calls for each of its columns, and then fills: calls that all find their word
  // would keep it here as long as the kernel runs.
  static constexpr std::uint32_t kCallsAColumn = 1024;

  // By value, in and out: the loop's copy has no address.
  Cursor switch_to(Cursor open, std::uint32_t command, std::uint32_t words);
  Cursor publish(Cursor open);
  void publish(Package& package);
  void publish_all();
  static bool combines(const Package& package);

  /// Adds the message to one in the open package that updates the same word, if it finds one.
  bool combine(const Cursor& open, Command command, const std::uint64_t (&words)[2]) {
    std::uint64_t* const row = open.end - open.columns;
    const auto count = static_cast<std::uint32_t>(open.next - row);
    std::uint32_t& column = column_of_[hash64<kColumnBits>(words[0])];
    Package& package = packages_[current_];
    if (column >= count || row[column] != words[0] ||
        package.combined >= std::uint64_t{kCallsAColumn} * open.columns) {
      column = count;  // where it will stand
      return false;
    }
    std::uint64_t& value = row[std::size_t{column} + open.columns];
    value = combined(command, value, words[1]);
    ++package.combined;
    package.combined_remote += words[0] >> kOffsetBits != sink_.pe() ? 1 : 0;
    return true;
  }

  Cursor open_;                // while no Filling is alive
  std::uint32_t current_ = 0;  // the package that it stands in
  std::uint32_t next_victim_ = 0;
  std::array<Package, kOpenCommands> packages_;
  // Where the last message with this hash of an address went; a guess, since packages and commands change.
  static constexpr int kColumnBits = 8;
  std::array<std::uint32_t, std::size_t{1} << kColumnBits> column_of_{};
  PackageSink sink_;
};

/// The outbox while a loop of lanes runs: the loop's own copy of the open package, which the compiler
/// keeps in registers. What lanes have sent is in the outbox again when it ends, by an exception too.
class Outbox::Filling {
 public:
  explicit Filling(Outbox& outbox) : outbox_{&outbox}, open_{outbox.open_} {}
  ~Filling() { outbox_->open_ = open_; }
  using Package = Outbox::Package;
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  template <std::uint32_t Words>
  void append(std::uint32_t command, const std::uint64_t (&words)[Words]) {
    if (command != open_.command) [[unlikely]]
      open_ = outbox_->switch_to(open_, command, Words);
    if constexpr (Words == 2) {
      if (open_.combines && outbox_->combine(open_, Command::from_word(command), words)) return;
    }
    for (std::uint32_t r = 0; r < Words; ++r) open_.next[std::size_t{r} * open_.columns] = words[r];
    if (++open_.next == open_.end) [[unlikely]]
      open_ = outbox_->publish(open_);
  }
  /// Publishes every open package.
  void close() {
    outbox_->open_ = open_;
    outbox_->publish_all();
    open_ = outbox_->open_;
  }

 private:
  Outbox* outbox_;
  Cursor open_;
};
static_assert(Packer<Outbox::Filling, std::uint32_t, const std::uint64_t (&)[2]>);

}  // namespace esker

#endif
