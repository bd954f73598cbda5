// Map: keys and their values, each where its key's hash says, worked on by handlers there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/containers/bucket.hpp>
#include <esker/containers/file.hpp>
#include <esker/containers/hash.hpp>
#include <esker/containers/map_operations.hpp>
#include <esker/containers/or_free.hpp>
#include <esker/containers/overflow.hpp>
#include <esker/runtime.hpp>

namespace esker::containers {

/// Values of which the library makes sets: a key is there, or not; and how often it was inserted.
struct Present {
  std::uint32_t is_there;
  ESKER_HD bool exists() const { return is_there != 0; }
};
struct Count {
  std::uint64_t count;
  ESKER_HD bool exists() const { return count != 0; }
};

/// A distributed map. Trivially copyable: kernels and handlers take it by value.
///
/// Contract. Key and Value are trivially copyable; a key is compared by its bytes. Operations are registered,
///           each a handler, and then called by lanes, handlers and the program: `insert(item, key, value)`.
///           A call returns at once, is carried out exactly once, alone on its key, and is complete when
///           quiet() on its PE or barrier_all() has returned. Two operations on one key are carried out in
///           any order. Registration and all that is said to be collective come from every PE, in the same
///           order. There is no erase: a search ends at the first free slot.
/// Memory.   Buckets of 4096 bytes; keys and values fill about half of them where a slot is up to 32 bytes,
///           less where slots are large. Slots never move, and the map does not grow.
/// Errors.   A key that finds its bucket full is lost, and counted: size(), check(), save() and
///           for_each_local() then throw an Error{kOutOfMemory} that says how many entries allocate() must be
///           told.
///
/// `Value` may have a member exists(), false for all zeros: a slot is then no larger than key and value. From
/// then on it is true: no value that is assigned, and no visitor, makes it false.
/// `Placement` says where keys belong: HashPlacement, or the program's own (containers/hash.hpp).
template <class Key, class Value, class Placement = HashPlacement<Key>>
class Map {
 public:
  using KeyType = Key;
  using ValueType = Value;
  using Stored = typename Placement::Stored;
  using Slot = containers::Slot<Stored, Value>;
  static constexpr std::uint32_t kSlots = kBucketSlots<Slot>;
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>,
                "keys and values of a map are trivially copyable: other PEs get their bytes");
  static_assert(sizeof(Slot) <= kBucketBytes / 8, "a bucket of 4096 bytes has 8 slots or more");
  static_assert(alignof(Slot) <= 16);

  Map() = default;
  /// Collective. Room for `entries` keys of all PEs together. `name` is a literal, for reports. Errors as of
  /// SymmetricHeap::allocate().
  static Map allocate(Runtime& rt, const char* name, std::uint64_t entries, Placement placement = {}) {
    const std::uint64_t least = (Placement::kLeastBuckets + rt.n_pes() - 1) / rt.n_pes();
    Map map;
    map.name_ = name;
    map.made_for_ = entries;
    map.buckets_ = std::min(kMostBuckets, std::max(least, buckets_for(entries, rt.n_pes(), kSlots)));
    placement.spread(rt.n_pes(), map.buckets_);
    map.placement_ = placement;
    map.memory_ = rt.heap().allocate<std::byte>(kHeadBytes + (map.buckets_ + 1) * kBucketBytes);
    std::byte* const heap = rt.heap().base();
    const auto offset = static_cast<std::uint64_t>(map.memory_.data() - heap) + kHeadBytes;
    map.first_ = heap + (offset + kBucketBytes - 1) / kBucketBytes * kBucketBytes;
    return map;
  }
  /// Collective. Requires that no operation is under way (barrier_all).
  void free(Runtime& rt) { rt.heap().free(std::exchange(memory_, {})); }

  /// Collective; each is one of the 1024 handlers. `insert(item, key, value)`: keeps what is there already.
  template <class Pass = esker::detail::Pass>
  MapOperation<Map, Value> register_insert(Runtime& rt) const {
    return registered<Value, Pass>(rt, "insert", detail::Insert<Map, Keyed<Stored, Value>, false>{*this});
  }
  /// `assign(item, key, value)`: the value replaces what is there, or is inserted.
  template <class Pass = esker::detail::Pass>
  MapOperation<Map, Value> register_assign(Runtime& rt) const {
    return registered<Value, Pass>(rt, "assign", detail::Insert<Map, Keyed<Stored, Value>, true>{*this});
  }
  /// `visit(item, key, arguments)`: calls `function` on the value where it stands; nothing, if the key is not
  /// there. The function takes (HandlerContext&, const Key&, Value&, const Arguments&), of which it may leave
  /// out context and key; without Arguments there are none. It may send; the rules are those of handlers
  /// (docs/guide/handlers.md).
  template <class Arguments = NoArguments, class Function, class Pass = esker::detail::Pass>
  MapOperation<Map, Arguments> register_visit(Runtime& rt, const std::string& name, Function function) const {
    return visiting<false, Arguments, Function, Pass>(rt, name, std::move(function));
  }
  /// The same, but where the key is not there it is inserted with a value of zeros, and visited then.
  template <class Arguments = NoArguments, class Function, class Pass = esker::detail::Pass>
  MapOperation<Map, Arguments> register_visit_or_insert(Runtime& rt, const std::string& name,
                                                        Function function) const {
    return visiting<true, Arguments, Function, Pass>(rt, name, std::move(function));
  }
  /// `find(item, &found, key)`: a Found<Value> in this PE's heap has the value once quiet() or barrier_all()
  /// has returned.
  template <class Pass = esker::detail::Pass>
  MapFind<Map, Found<Value>*> register_find(Runtime& rt) const {
    using Find = MapFind<Map, Found<Value>*>;
    return Find(*this,
                rt.register_handler<Slot, typename Find::Message>(handler_name("find"), detail::Find<Map>{}));
  }
  /// `find(item, then(handler, target, arguments), key)`: calls the handler here when the value has come; the
  /// first member of its Arguments is `value`, a Found<Value>, which is filled in.
  template <class Target, class Arguments, class Pass = esker::detail::Pass>
  MapFind<Map, Then<Target, Arguments>> register_find(Runtime& rt) const {
    static_assert(ReplyFor<Then<Target, Arguments>, Found<Value>>,
                  "the first member of a continuation's arguments is `value`, a Found<Value>");
    using Find = MapFind<Map, Then<Target, Arguments>>;
    using Function = detail::FindThen<Map, Target, Arguments>;
    return Find(*this, rt.register_handler<Slot, typename Find::Message>(handler_name("find"), Function{}));
  }

  /// Local. Calls visit(key, value) for each entry of this PE's, wherever the heap stands: copies, in no
  /// order. Operations are complete (barrier_all).
  template <class Visit>
  void for_each_local(Runtime& rt, Visit visit) const {
    if (read_lost(rt)[0] > 0) throw_overflow(extrapolated(rt));
    scan(rt, visit);
  }
  /// Local. A kernel with a lane for each slot of this PE's: calls function(item, key, value), a WorkItem, a
  /// const Key& and a Value&, where there is an entry. No operation is under way meanwhile. As
  /// Runtime::launch() it may return before the kernel has ended.
  template <class Function, class Pass = esker::detail::Pass>
  void launch_local(Runtime& rt, const Function& function, const char* name) const {
    rt.launch(slots(), EachEntry<Function>{*this, function}, name);
  }
  /// Local. Entries of this PE's; collective: of all PEs. Operations are complete (barrier_all).
  template <class Pass = esker::detail::Pass>
  std::uint64_t local_size(Runtime& rt) const {
    const SymmetricArray<std::uint64_t> count(head() + LostKeys::kWords, 1);
    const std::uint64_t zero[1] = {0};
    rt.heap().write(count, 0, std::span<const std::uint64_t>(zero));
    rt.launch(buckets_, CountEntries{*this}, "Map::size");
    rt.quiet();
    return rt.heap().read(count)[0];
  }
  template <class Pass = esker::detail::Pass>
  std::uint64_t size(Runtime& rt) const {
    check(rt);
    return sum(rt, local_size(rt));
  }
  /// Collective. Whether keys were lost since allocate() or clear(), and how large the map must be.
  /// Operations are complete (barrier_all).
  template <class Pass = esker::detail::Pass>
  Overflow overflow(Runtime& rt) const {
    std::vector<std::uint64_t> lost = read_lost(rt);
    Overflow all{sum(rt, lost[0]), 0, made_for_, 0};
    if (all.operations == 0) return all;
    rt.all_reduce(std::span(lost).subspan(1), Reduction::kMax);
    all.held = sum(rt, local_size(rt));
    all.needed = entries_needed(all, LostKeys::distinct(std::span(lost).subspan(1)));
    return all;
  }
  /// Collective. Error{kOutOfMemory} on every PE if keys were lost.
  template <class Pass = esker::detail::Pass>
  void check(Runtime& rt) const {
    if (const Overflow all = overflow(rt); all.operations > 0) throw_overflow(all);
  }
  /// Collective. Takes all entries out. Operations are complete (barrier_all).
  template <class Pass = esker::detail::Pass>
  void clear(Runtime& rt) const {
    const std::vector<std::uint64_t> zeros(LostKeys::kWords);
    rt.heap().write(SymmetricArray<std::uint64_t>(head(), zeros.size()), 0,
                    std::span<const std::uint64_t>(zeros));
    rt.launch(words_of_buckets().size(), ClearWords{words_of_buckets()}, "Map::clear");
    rt.barrier_all();
  }

  /// Collective. Writes all entries to one file, which any number of PEs load. Operations are complete
  /// (barrier_all). Errors: Error{kConfiguration}, alike on every PE, where it cannot be written.
  template <class Pass = esker::detail::Pass>
  void save(Runtime& rt, const std::string& file) const {
    check(rt);
    FileWriter writer(rt, kSave, file, contents(), local_size(rt));
    std::vector<std::byte> records;
    records.reserve(kChunk * kRecordBytes);
    for_each_local(rt, [&](const Key& key, const Value& value) {
      const std::size_t at = records.size();
      records.resize(at + kRecordBytes);
      std::memcpy(records.data() + at, &key, sizeof key);
      if constexpr (kFileValueBytes > 0) std::memcpy(records.data() + at + sizeof key, &value, sizeof value);
      if (records.size() < kChunk * kRecordBytes) return;
      writer.write(records);
      records.clear();
    });
    writer.write(records);
    writer.close();
  }
  /// Collective. A new map of a file's entries, with room for as many as it has, or for `entries`, which is
  /// more. Registers a handler. Errors: Error{kConfiguration}, alike on every PE, for a file that cannot be
  /// read, is damaged or holds something else.
  template <class Pass = esker::detail::Pass>
  static Map load(Runtime& rt, const char* name, const std::string& file, std::uint64_t entries = 0,
                  Placement placement = {}) {
    FileReader reader(rt, kLoad, file, contents());
    Map map = allocate(rt, name, std::max(entries, reader.records()), placement);
    or_free(rt, map, [&] {
      const auto assign = map.register_assign(rt);
      const auto chunk = rt.heap().allocate<std::byte>(reader.chunk() * kRecordBytes);
      std::vector<std::byte> records(chunk.size());
      while (const std::uint64_t count = reader.read(records)) {
        rt.heap().write(chunk, 0, std::span<const std::byte>(records).first(count * kRecordBytes));
        rt.launch(count, AssignRecords{assign, chunk}, "Map::load");
        rt.quiet();
      }
      rt.barrier_all();
      rt.heap().free(chunk);
      reader.close();
      map.check(rt);
    });
    return map;
  }

  /// For kernels and messages of the program's own: where a key belongs, ...
  struct Home {
    std::uint32_t pe;
    Slot* home;
    Stored stored;
  };
  ESKER_HD Home place(const Key& key) const {
    const KeyPlace<Stored> at = placement_.place(key);
    Slot* const bucket = reinterpret_cast<Slot*>(first_ + at.bucket * kBucketBytes);
    return {at.pe, bucket + ((at.home * kSlots) >> 16), at.stored};
  }
  ESKER_HD const Placement& placement() const { return placement_; }
  /// ... this PE's slots, of which those that exist() are entries, ...
  ESKER_HD std::uint64_t slots() const { return buckets_ * kSlots; }
  ESKER_HD Slot& slot(std::uint64_t i) const {
    return reinterpret_cast<Slot*>(first_ + i / kSlots * kBucketBytes)[i % kSlots];
  }
  /// ... and the key of an entry of PE `pe`, this one.
  ESKER_HD Key key_of(std::uint32_t pe, const Slot& slot) const {
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&slot) - first_);
    return placement_.key(pe, offset / kBucketBytes, slot.stored);
  }
  /// By handlers: the bucket of `home` is full.
  ESKER_HD void lose(std::uint32_t pe, const Slot& home, const Stored& stored) const {
    const auto bucket = reinterpret_cast<std::uintptr_t>(&home) / kBucketBytes;
    LostKeys{head()}.add(mix(hash_of(stored) ^ mix(bucket) ^ mix(~std::uint64_t{pe})));
  }

 private:
  // As the program knows it, for messages.
  static constexpr bool kIsSet = std::is_same_v<Value, Present>,
                        kIsCountingSet = std::is_same_v<Value, Count>;
  static constexpr const char* kContainer = kIsSet ? "set" : kIsCountingSet ? "counting set" : "map";
  static constexpr const char* kSave = kIsSet           ? "Set::save"
                                       : kIsCountingSet ? "CountingSet::save"
                                                        : "Map::save";
  static constexpr const char* kLoad = kIsSet           ? "Set::load"
                                       : kIsCountingSet ? "CountingSet::load"
                                                        : "Map::load";
  static constexpr std::uint64_t kHeadBytes = (LostKeys::kWords + 1) * sizeof(std::uint64_t);
  // Which no heap has: their bytes, and the head's, can still be said.
  static constexpr std::uint64_t kMostBuckets = ~std::uint64_t{0} / kBucketBytes / 2;
  static constexpr std::uint32_t kFileValueBytes = std::is_same_v<Value, Present> ? 0 : sizeof(Value);
  static constexpr std::uint64_t kRecordBytes = sizeof(Key) + kFileValueBytes;
  static constexpr std::uint64_t kChunk = file_chunk(kRecordBytes);

  static constexpr FileContents contents() {
    if constexpr (std::is_same_v<Value, Present>) return {FileKind::kSet, FileType::of<Key>(), {}};
    if constexpr (std::is_same_v<Value, Count>)
      return {FileKind::kCountingSet, FileType::of<Key>(), FileType::of<std::uint64_t>()};
    return {FileKind::kMap, FileType::of<Key>(), FileType::of<Value>()};
  }

  // The library's own kernels. nvcc takes no private type for one.
 public:
  template <class Function>
  struct EachEntry {
    Map map;
    Function function;
    ESKER_HD void operator()(WorkItem item) const {
      Slot& slot = map.slot(item.global_id());
      if (!slot.exists()) return;
      const Key key = map.key_of(item.pe(), slot);
      function(item, key, slot.value);
    }
  };
  /// A lane a bucket.
  struct CountEntries {
    Map map;
    ESKER_HD void operator()(Lane lane) const {
      std::uint64_t count = 0;
      for (std::uint64_t i = 0; i < kSlots; ++i)
        count += map.slot(lane.global_id() * kSlots + i).exists() ? 1 : 0;
      auto& all = reinterpret_cast<DeviceAtomic<std::uint64_t>&>(map.head()[LostKeys::kWords]);
      if (count > 0) (void)all.fetch_add_relaxed(count);
    }
  };
  struct ClearWords {
    SymmetricArray<std::uint64_t> words;
    ESKER_HD void operator()(Lane lane) const { words[lane.global_id()] = 0; }
  };
  /// A lane a record.
  struct AssignRecords {
    MapOperation<Map, Value> assign;
    SymmetricArray<std::byte> records;
    ESKER_HD void operator()(WorkItem item) const {
      const std::byte* const record = &records[item.global_id() * kRecordBytes];
      Key key;
      __builtin_memcpy(&key, record, sizeof key);
      Value value;
      if constexpr (kFileValueBytes > 0) {
        __builtin_memcpy(&value, record + sizeof key, sizeof value);
      } else {
        value.is_there = 1;
      }
      assign(item, key, value);
    }
  };

 private:
  ESKER_HD std::uint64_t* head() const { return reinterpret_cast<std::uint64_t*>(memory_.data()); }
  SymmetricArray<std::uint64_t> words_of_buckets() const {
    return {reinterpret_cast<std::uint64_t*>(first_), buckets_ * kBucketBytes / 8};
  }
  std::string handler_name(const std::string& operation) const {
    return std::string(name_) + "." + operation;
  }
  template <class Arguments, class Pass, class Function>
  MapOperation<Map, Arguments> registered(Runtime& rt, const std::string& name, Function function) const {
    using Operation = MapOperation<Map, Arguments>;
    return Operation(*this, rt.register_handler<Slot, typename Operation::Message>(handler_name(name),
                                                                                   std::move(function)));
  }
  template <bool kInserts, class Arguments, class Function, class Pass>
  MapOperation<Map, Arguments> visiting(Runtime& rt, const std::string& name, Function function) const {
    if constexpr (std::is_same_v<Arguments, NoArguments>) {
      static_assert(detail::kVisits<Function, Key, Value>,
                    "a visitor takes ([HandlerContext&,] [const Key&,] Value&)");
    } else {
      static_assert(detail::kVisits<Function, Key, Value, Arguments>,
                    "a visitor takes ([HandlerContext&,] [const Key&,] Value&, const Arguments&)");
    }
    using Message = typename MapOperation<Map, Arguments>::Message;
    return registered<Arguments, Pass>(
        rt, name, detail::Visit<Map, Message, Function, kInserts>{*this, std::move(function)});
  }

  template <class Visit>
  void scan(Runtime& rt, Visit visit) const {
    constexpr std::uint64_t kWords = kBucketBytes / 8;
    constexpr std::uint64_t kBuckets = 256;  // at a time
    std::vector<std::uint64_t> words(std::min(kBuckets, buckets_) * kWords);
    for (std::uint64_t first = 0; first < buckets_; first += kBuckets) {
      const std::uint64_t count = std::min(kBuckets, buckets_ - first);
      rt.heap().read(words_of_buckets(), first * kWords, std::span(words).first(count * kWords));
      for (std::uint64_t b = 0; b < count; ++b) {
        const auto* slot = reinterpret_cast<const Slot*>(words.data() + b * kWords);
        for (std::uint32_t i = 0; i < kSlots; ++i, ++slot) {
          if (slot->exists()) visit(placement_.key(rt.pe(), first + b, slot->stored), slot->value);
        }
      }
    }
  }
  std::vector<std::uint64_t> read_lost(Runtime& rt) const {
    return rt.heap().read(SymmetricArray<std::uint64_t>(head(), LostKeys::kWords));
  }
  static std::uint64_t sum(Runtime& rt, std::uint64_t mine) {
    std::uint64_t value[1] = {mine};
    rt.all_reduce(value, Reduction::kSum);
    return value[0];
  }
  /// Of all PEs, from what this one has.
  Overflow extrapolated(Runtime& rt) const {
    const std::vector<std::uint64_t> lost = read_lost(rt);
    Overflow all{lost[0] * rt.n_pes(), 0, made_for_, 0};
    scan(rt, [&](const Key&, const Value&) { all.held += rt.n_pes(); });
    all.needed = entries_needed(all, rt.n_pes() * LostKeys::distinct(std::span(lost).subspan(1)));
    return all;
  }
  [[noreturn]] void throw_overflow(const Overflow& overflow) const {
    throw Error(Error::Kind::kOutOfMemory, message_of(kContainer, name_, overflow));
  }

  std::byte* first_ = nullptr;  // bucket, at an ownership block's start
  std::uint64_t buckets_ = 0;
  Placement placement_{};
  SymmetricArray<std::byte> memory_;
  const char* name_ = "";
  std::uint64_t made_for_ = 0;
};

}  // namespace esker::containers
