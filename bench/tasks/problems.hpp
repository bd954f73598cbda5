// The problems that all sides solve: those of the applications. fib and queens have a task a call, and no
// cut-off but where one is named.
#pragma once

#include <cstdint>
#include <string>

#include <esker/tasks.hpp>

#include "../../apps/fib/fib_task.hpp"
#include "../../apps/queens/queens_task.hpp"

namespace esker::bench {

using fibonacci::Fib;
using fibonacci::FibLeaves;
using Queens = queens::Board;
using QueensBase = queens::BoardOf<8>;

/// kQueensBase: a task goes through the last rows by itself. kSort has n words and kStrassen matrices of n
/// rows, all by tasks that a whole wave runs.
enum class Kind { kFib, kFibLeaves, kQueens, kQueensBase, kSort, kStrassen };

/// One of them, of some size, and what is known of it.
struct Problem {
  Kind kind;
  std::uint32_t n;
  std::uint32_t cutoff = 0;  // of kStrassen: rows of blocks that are not divided; 0: as the program does

  /// The first task.
  Fib fib() const { return {static_cast<int>(n)}; }
  FibLeaves fib_leaves() const { return {static_cast<int>(n)}; }
  Queens queens() const { return Queens::empty(n); }
  QueensBase queens_base() const { return QueensBase::empty(n); }
};

/// Most that Problem::n may be.
inline constexpr std::uint32_t kMostFib = 60, kMostQueens = 18;

/// The result, by code that shares nothing with the tasks: a recurrence, and published counts (OEIS A000170).
/// Of a sort 1: the words are in order, and those that were given; of a product 1: it is one, up to rounding.
std::uint64_t expected(const Problem& problem);
/// "fib(40)".
std::string name_of(const Problem& problem);

}  // namespace esker::bench
