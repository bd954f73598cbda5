// Sorts the keys of all PEs.
#pragma once

#include <cstdint>

#include <esker/runtime/data_collectives.hpp>
#include <esker/runtime/element_type.hpp>

namespace esker {

/// Contract. As esker::sort(): the keys are in the host's memory, `into` owns that memory, and has the
/// result.
void sort_keys(DataCollectives& collectives, const detail::ElementType& type, detail::KeyKind kind,
               void* keys, std::uint64_t n, const detail::Destination& into);

}  // namespace esker
