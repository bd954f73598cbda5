// Set and CountingSet: keys, and how often each was inserted; on Map.
#pragma once

#include <cstdint>
#include <string>

#include <esker/containers/map.hpp>
#include <esker/containers/or_free.hpp>

namespace esker::containers {

namespace detail {

struct Mark {
  ESKER_HD void operator()(Present& present) const { present.is_there = 1; }
};
struct CountOne {
  ESKER_HD void operator()(Count& count) const { ++count.count; }
};
struct CountMore {
  ESKER_HD void operator()(Count& count, const std::uint64_t& more) const { count.count += more; }
};

/// What Set and CountingSet have of the map on which they are, as it says there.
template <class MapOfKeys>
class OnMap {
 public:
  using MapType = MapOfKeys;

  void free(Runtime& rt) { map_.free(rt); }
  template <class Pass = esker::detail::Pass>
  std::uint64_t size(Runtime& rt) const {
    return map_.size(rt);
  }
  template <class Pass = esker::detail::Pass>
  void check(Runtime& rt) const {
    map_.check(rt);
  }
  template <class Pass = esker::detail::Pass>
  void clear(Runtime& rt) const {
    map_.clear(rt);
  }
  template <class Pass = esker::detail::Pass>
  void save(Runtime& rt, const std::string& file) const {
    map_.save(rt, file);
  }
  const MapType& map() const { return map_; }

 protected:
  OnMap() = default;
  explicit OnMap(const MapType& map) : map_{map} {}

 private:
  MapType map_;
};

}  // namespace detail

/// A distributed set. Contract, memory and errors as of Map, on which it is: map() has what is not here.
template <class Key>
class Set : public detail::OnMap<Map<Key, Present>> {
  using Base = detail::OnMap<Map<Key, Present>>;

 public:
  using typename Base::MapType;

  Set() = default;
  /// Collective. Room for `entries` keys of all PEs together; registers a handler. `name` is a literal.
  template <class Pass = esker::detail::Pass>
  static Set allocate(Runtime& rt, const char* name, std::uint64_t entries) {
    return Set(rt, MapType::allocate(rt, name, entries));
  }
  template <class Pass = esker::detail::Pass>
  static Set load(Runtime& rt, const char* name, const std::string& file, std::uint64_t entries = 0) {
    return Set(rt, MapType::load(rt, name, file, entries));
  }

  /// By lanes, handlers and the Runtime.
  template <class Context>
  ESKER_HD void insert(Context&& context, const Key& key) const {
    insert_(context, key);
  }

  /// Local: visit(key).
  template <class Visit>
  void for_each_local(Runtime& rt, Visit visit) const {
    this->map().for_each_local(rt, [&](const Key& key, const Present&) { visit(key); });
  }

 private:
  template <class Pass = esker::detail::Pass>
  Set(Runtime& rt, const MapType& map) : Base{map} {
    or_free(rt, *this, [&] { insert_ = map.register_visit_or_insert(rt, "insert", detail::Mark{}); });
  }

  MapOperation<MapType, NoArguments> insert_;
};

/// A distributed counting set (multiset): how often each key was inserted. Otherwise as Set.
template <class Key>
class CountingSet : public detail::OnMap<Map<Key, Count>> {
  using Base = detail::OnMap<Map<Key, Count>>;

 public:
  using typename Base::MapType;

  CountingSet() = default;
  /// Collective. Room for `entries` different keys of all PEs together; registers two handlers.
  template <class Pass = esker::detail::Pass>
  static CountingSet allocate(Runtime& rt, const char* name, std::uint64_t entries) {
    return CountingSet(rt, MapType::allocate(rt, name, entries));
  }
  template <class Pass = esker::detail::Pass>
  static CountingSet load(Runtime& rt, const char* name, const std::string& file, std::uint64_t entries = 0) {
    return CountingSet(rt, MapType::load(rt, name, file, entries));
  }

  /// By lanes, handlers and the Runtime: once, which travels as the key alone; or `times`, 1 or more.
  template <class Context>
  ESKER_HD void insert(Context&& context, const Key& key) const {
    one_(context, key);
  }
  template <class Context>
  ESKER_HD void insert(Context&& context, const Key& key, std::uint64_t times) const {
    more_(context, key, times);
  }

  /// Local: visit(key, count).
  template <class Visit>
  void for_each_local(Runtime& rt, Visit visit) const {
    this->map().for_each_local(rt, [&](const Key& key, const Count& count) { visit(key, count.count); });
  }

 private:
  template <class Pass = esker::detail::Pass>
  CountingSet(Runtime& rt, const MapType& map) : Base{map} {
    or_free(rt, *this, [&] {
      one_ = map.register_visit_or_insert(rt, "insert", detail::CountOne{});
      more_ = map.template register_visit_or_insert<std::uint64_t>(rt, "insert more", detail::CountMore{});
    });
  }

  MapOperation<MapType, NoArguments> one_;
  MapOperation<MapType, std::uint64_t> more_;
};

}  // namespace esker::containers
