// Containers on the symmetric heap, for lanes, handlers and the host program.
//
//   containers::Array<T, Block or Cyclic>    elements by a global index: put, add, get, fetch_add, ...
//   containers::Map<Key, Value>              insert, assign, visit, visit_or_insert, find
//   containers::Set<Key>                     insert
//   containers::CountingSet<Key>             insert, which counts
//   containers::Bag<T>                       insert, on any PE
//
// Each is allocated by all PEs together, and its handle is trivially copyable: kernels take it by value.
// Operations take the sender first, a lane, a handler's context or the Runtime, and return at once; quiet()
// or barrier_all() completes them, or a continuation. Each container iterates over a PE's part, knows its
// size over all PEs, and goes to and from a file, which any number of PEs may load. One that is full says how
// large it must be. docs/guide/containers.md has examples of each.
#pragma once

#include <esker/containers/array.hpp>
#include <esker/containers/bag.hpp>
#include <esker/containers/distribution.hpp>
#include <esker/containers/map.hpp>
#include <esker/containers/set.hpp>
