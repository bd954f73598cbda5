// Messages, and their way to all PEs.
#include "failure.hpp"

#include <fmt/format.h>
#include <esker/config.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

namespace harness {
namespace {

thread_local const char* what_is_done = "starting";
thread_local const char* what_helps = "smaller sizes, or more PEs";
const char* program = nullptr;

Ending out_of_memory() {
  return {fmt::format("out of memory while {}; what helps: {}", what_is_done, what_helps), 1,
          esker::Error::Kind::kOutOfMemory};
}

}  // namespace

void usage(const std::string& message) { throw esker::UsageError(message); }

void require_within(const char* option, std::uint64_t value, std::uint64_t least, unsigned log_most) {
  if (value < least || value > std::uint64_t{1} << log_most)
    usage(fmt::format("--{} {}: it is {} to 2^{}", option, value, least, log_most));
}

void doing(const char* what, const char* remedy) {
  what_is_done = what;
  what_helps = remedy;
}

Ending ending_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const esker::UsageError& error) {
    return {error.what(), 2, error.kind()};
  } catch (const esker::Error& error) {
    return {error.what(), 1, error.kind()};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // a vector of more than all addresses
    return out_of_memory();
  } catch (const std::exception& error) {
    return {error.what(), 1, esker::Error::Kind::kConfiguration};
  }
}

void name_program(const char* name) { program = name; }

void tell(const std::string& message) {
  if (program != nullptr) std::fputs(fmt::format("{}: {}\n", program, message).c_str(), stderr);
}

void detail::end_alike(esker::Runtime& rt, const std::exception_ptr& thrown) {
  const std::uint64_t nobody = rt.n_pes();
  std::array<std::uint64_t, 1> first{thrown ? rt.pe() : nobody};
  rt.all_reduce(std::span<std::uint64_t>(first), esker::Reduction::kMin);
  if (first[0] == nobody) return;

  Ending ending{"", 0, esker::Error::Kind::kConfiguration};
  if (first[0] == rt.pe()) {
    ending = ending_of(thrown);
    tell(ending.message);  // before others can end: a launcher may then end this PE
  }
  // The maximum over PEs of what only that one has.
  std::array<std::uint64_t, 3> head{ending.message.size(), static_cast<std::uint64_t>(ending.status),
                                    static_cast<std::uint64_t>(ending.kind)};
  rt.all_reduce(std::span<std::uint64_t>(head), esker::Reduction::kMax);
  std::vector<std::uint64_t> text(head[0] / sizeof(std::uint64_t) + 1);
  std::memcpy(text.data(), ending.message.data(), ending.message.size());
  rt.all_reduce(std::span(text), esker::Reduction::kMax);
  throw Agreed({{reinterpret_cast<const char*>(text.data()), head[0]},
                static_cast<int>(head[1]),
                static_cast<esker::Error::Kind>(head[2])});
}

void require_memory(esker::Runtime& rt, double bytes, const std::string& what, const std::string& remedy) {
  const std::uint64_t limit = rt.heap().limit_bytes();
  const auto gib = [](double size) { return size / (1 << 30); };
  agree(rt, [&] {
    if (bytes <= static_cast<double>(limit)) return;
    throw esker::Error(
        esker::Error::Kind::kOutOfMemory,
        fmt::format(
            "{} take {:.4g} GiB at least on each of {} PEs, whose symmetric heap is limited to {:.4g}; "
            "what helps: {}, more PEs, or a higher --heap-bytes (ESKER_HEAP_BYTES)",
            what, gib(bytes), rt.n_pes(), gib(static_cast<double>(limit)), remedy));
  });
}

}  // namespace harness
