// Blocks, shuffled blocks and tables.
#include "vertex_partition.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

#include <utility>

#include "../file/part.hpp"

namespace inputs {

struct VertexPartition::Table {
  std::vector<Owner> owner;                // of a vertex
  std::vector<std::uint64_t> local_index;  // of a vertex
  std::vector<std::uint64_t> members;      // vertices by owner
  std::vector<std::uint64_t> first;        // of an owner's in members; one more than there are owners
};

VertexPartition::VertexPartition(Kind kind, std::uint64_t vertices, Owner owners, std::uint64_t seed)
    : kind_{kind}, vertices_{vertices}, owners_{owners}, shuffle_{vertices, seed} {
  if (owners == 0) {
    throw esker::Error(esker::Error::Kind::kConfiguration,
                       fmt::format("partition of {} vertices among 0 owners", vertices));
  }
}

VertexPartition VertexPartition::block(std::uint64_t vertices, Owner owners) {
  return {Kind::kBlock, vertices, owners, 0};
}

VertexPartition VertexPartition::hash(std::uint64_t vertices, Owner owners, std::uint64_t seed) {
  return {Kind::kHash, vertices, owners, seed};
}

VertexPartition VertexPartition::table(std::vector<Owner> owner_of_vertex, Owner owners) {
  VertexPartition partition(Kind::kTable, owner_of_vertex.size(), owners, 0);
  auto table = std::make_shared<Table>();
  table->first.resize(owners + std::size_t{1});
  table->local_index.reserve(owner_of_vertex.size());
  for (std::size_t v = 0; v < owner_of_vertex.size(); ++v) {
    const Owner o = owner_of_vertex[v];
    if (o >= owners) {
      throw esker::Error(esker::Error::Kind::kConfiguration,
                         fmt::format("partition: vertex {} has owner {}, of {}", v, o, owners));
    }
    table->local_index.push_back(table->first[o + std::size_t{1}]++);
  }
  for (std::size_t o = 0; o < owners; ++o) table->first[o + 1] += table->first[o];
  table->members.resize(owner_of_vertex.size());
  for (std::size_t v = 0; v < owner_of_vertex.size(); ++v) {
    table->members[table->first[owner_of_vertex[v]] + table->local_index[v]] = v;
  }
  table->owner = std::move(owner_of_vertex);
  partition.table_ = std::move(table);
  return partition;
}

VertexPartition::Owner VertexPartition::owner(std::uint64_t vertex) const {
  if (kind_ == Kind::kTable) return table_->owner[vertex];
  const std::uint64_t place = kind_ == Kind::kHash ? shuffle_(vertex) : vertex;
  return static_cast<Owner>(part_of(place, vertices_, owners_));
}

std::uint64_t VertexPartition::local_index(std::uint64_t vertex) const {
  if (kind_ == Kind::kTable) return table_->local_index[vertex];
  const std::uint64_t place = kind_ == Kind::kHash ? shuffle_(vertex) : vertex;
  return place - first_of(static_cast<Owner>(part_of(place, vertices_, owners_)));
}

std::uint64_t VertexPartition::count(Owner owner) const {
  if (kind_ == Kind::kTable) return table_->first[owner + std::size_t{1}] - table_->first[owner];
  return range_of(vertices_, {owner, owners_}).size();
}

std::uint64_t VertexPartition::global_id(Owner owner, std::uint64_t index) const {
  if (kind_ == Kind::kTable) return table_->members[table_->first[owner] + index];
  const std::uint64_t place = first_of(owner) + index;
  return kind_ == Kind::kHash ? shuffle_.inverse(place) : place;
}

std::uint64_t VertexPartition::first_of(Owner owner) const {
  return range_of(vertices_, {owner, owners_}).begin;
}

void EdgeCut::add(const VertexPartition& partition, const Edge& edge) {
  ++edges;
  if (partition.owner(edge.from) != partition.owner(edge.to)) ++cut;
}

EdgeCut& EdgeCut::operator+=(const EdgeCut& other) {
  edges += other.edges;
  cut += other.cut;
  return *this;
}

}  // namespace inputs
