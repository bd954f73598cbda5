// Failures: every PE ends with the same message, and one that runs out of memory says what it was doing.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/esker.hpp>

namespace harness {

/// Throws esker::UsageError, which ends the program with status 2.
[[noreturn]] void usage(const std::string& message);
/// The same unless `least` <= `value` <= 2^`log_most`. `option` is a name without its dashes.
void require_within(const char* option, std::uint64_t value, std::uint64_t least, unsigned log_most);

/// What this thread does from now on, and what helps if it runs out of memory: "reading the points", "fewer
/// --points". Both are literals.
void doing(const char* what, const char* remedy);

/// How a program ends by what was thrown: what it says, its exit status.
struct Ending {
  std::string message;
  int status;  // 2 after an esker::UsageError, else 1
  esker::Error::Kind kind;
};
Ending ending_of(const std::exception_ptr& thrown);

/// From now on failures are printed behind this name: those of agree() too.
void name_program(const char* name);
/// Prints "NAME: message" where the program has a name.
void tell(const std::string& message);

/// What agree() throws, with one message on all PEs; it has been printed.
class Agreed : public esker::Error {
 public:
  explicit Agreed(const Ending& ending) : Error{ending.kind, ending.message}, status_{ending.status} {}
  int status() const { return status_; }

 private:
  int status_;
};

namespace detail {
/// Collective. Returns where nobody has thrown.
void end_alike(esker::Runtime& rt, const std::exception_ptr& thrown);
}  // namespace detail

/// Collective. Returns what `work` returns; where it throws on some PEs, throws Agreed on all, with what the
/// first of them says. `work` calls nothing collective: a PE that fails alone would leave the others there.
template <class Work>
auto agree(esker::Runtime& rt, const Work& work) {
  using Returned = std::invoke_result_t<const Work&>;
  std::exception_ptr thrown;
  if constexpr (std::is_void_v<Returned>) {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    detail::end_alike(rt, thrown);
  } else {
    std::optional<Returned> result;
    try {
      result.emplace(work());
    } catch (...) {
      thrown = std::current_exception();
    }
    detail::end_alike(rt, thrown);
    return std::move(*result);
  }
}

/// Collective. Throws where `what`, at least so many bytes on each PE, cannot be on the heap: before the work
/// that would find out. `remedy` is as doing() takes it.
void require_memory(esker::Runtime& rt, double bytes, const std::string& what, const std::string& remedy);

}  // namespace harness
