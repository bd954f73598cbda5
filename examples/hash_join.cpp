// Hash join: active messages build a distributed hash table, others look up keys and reply.
//
// Each order finds the items with its key: their number and their total cost. Keys occur several times in
// both relations, and some orders find nothing.
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kItems = 1 << 14;    // on each PE
constexpr std::uint64_t kOrders = 1 << 15;   // on each PE
constexpr std::uint64_t kBuckets = 1 << 13;  // on each PE

struct Item {
  std::uint64_t key, cost;
};
struct Bucket {  // its items stand side by side: items[first] .. items[first + count - 1]
  std::uint64_t first, count;
};
struct Question {
  std::uint64_t key, order;  // the number of the order on the PE that asks
};
struct Answer {
  std::uint64_t matches, cost;
};

ESKER_HD std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
// Both relations are functions of PE and position, so that the check can make them again.
ESKER_HD Item item_of(std::uint64_t pe, std::uint64_t i, std::uint64_t n_pes) {
  const std::uint64_t r = mix(pe * kItems + i + 1);
  return {r % (kItems * n_pes / 3), r >> 54};  // each key about three times
}
ESKER_HD std::uint64_t key_of_order(std::uint64_t pe, std::uint64_t i, std::uint64_t n_pes) {
  return mix(~(pe * kOrders + i)) % (kItems * n_pes / 2);  // a third of these keys no item has
}
ESKER_HD std::uint32_t pe_of(std::uint64_t key, std::uint32_t n_pes) {
  return static_cast<std::uint32_t>(mix(key) % n_pes);
}
ESKER_HD std::uint64_t bucket_of(std::uint64_t key) { return (mix(key) >> 32) % kBuckets; }

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  const auto buckets = rt.heap().allocate<Bucket>(kBuckets);
  const auto answers = rt.heap().allocate<Answer>(kOrders);

  // First count each bucket's items, so that each bucket gets exactly the room that it needs.
  rt.launch(kItems, [=] ESKER_LAMBDA(esker::WorkItem lane) {
    const std::uint64_t key = item_of(lane.pe(), lane.global_id(), lane.n_pes()).key;
    shmem_inc(lane, &buckets[bucket_of(key)].count, pe_of(key, lane.n_pes()));
  });
  rt.barrier_all();
  std::vector<Bucket> plan = rt.heap().read(buckets);
  std::uint64_t here = 0;
  for (Bucket& bucket : plan) bucket = {std::exchange(here, here + bucket.count), 0};
  rt.heap().write(buckets, 0, std::span<const Bucket>(plan));
  rt.all_reduce({&here, 1}, esker::Reduction::kMax);  // an allocation has the same size on every PE
  const auto items = rt.heap().allocate<Item>(here);
  // No other call runs for the same bucket, so the handler may use and change the count as it likes.
  const auto insert = rt.register_handler<Bucket, Item>(
      "insert", [=] ESKER_LAMBDA(esker::HandlerContext&, Bucket & bucket, const Item& item) {
        items[bucket.first + bucket.count++] = item;
      });
  // This one replies, with a put to the PE that asked.
  const auto probe = rt.register_handler<Bucket, Question>(
      "probe", [=] ESKER_LAMBDA(esker::HandlerContext & context, Bucket & bucket, const Question& question) {
        Answer answer{0, 0};
        for (std::uint64_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
          if (items[i].key != question.key) continue;
          ++answer.matches;
          answer.cost += items[i].cost;
        }
        shmem_put(context, &answers[question.order], answer, context.source());
      });

  rt.launch(kItems, [=] ESKER_LAMBDA(esker::WorkItem lane) {
    const Item item = item_of(lane.pe(), lane.global_id(), lane.n_pes());
    shmem_am(lane, insert, &buckets[bucket_of(item.key)], item, pe_of(item.key, lane.n_pes()));
  });
  rt.barrier_all();  // the table is complete on every PE
  rt.launch(kOrders, [=] ESKER_LAMBDA(esker::WorkItem lane) {
    const std::uint64_t key = key_of_order(lane.pe(), lane.global_id(), lane.n_pes());
    shmem_am(lane, probe, &buckets[bucket_of(key)], {key, lane.global_id()}, pe_of(key, lane.n_pes()));
  });
  rt.barrier_all();  // the questions, and the answers that handlers have sent

  // The same join by serial code, with one map of all items.
  std::map<std::uint64_t, Answer> by_key;
  for (std::uint64_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t i = 0; i < kItems; ++i) {
      const Item item = item_of(pe, i, rt.n_pes());
      ++by_key[item.key].matches;
      by_key[item.key].cost += item.cost;
    }
  }
  const std::vector<Answer> found = rt.heap().read(answers);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kOrders; ++i) {
    const Answer expected = by_key[key_of_order(rt.pe(), i, rt.n_pes())];  // zeros if no item has the key
    wrong += found[i].matches != expected.matches || found[i].cost != expected.cost ? 1 : 0;
  }
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  if (rt.pe() == 0) {
    std::cout << "hash_join: " << kOrders * rt.n_pes() << " orders joined with " << kItems * rt.n_pes()
              << " items on " << rt.n_pes()
              << " PEs: " << (wrong == 0 ? "every order verified\n" : "WRONG\n");
  }
  return wrong == 0 ? 0 : 1;
}
