// Graphs from files, read in parts: no process ever holds the whole graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "../file/part.hpp"
#include "edge.hpp"

namespace inputs {

enum class Format {
  kMatrixMarket,  // .mtx, .mm: "coordinate" matrices, real, integer or pattern
  kEdgeList,      // .el: lines of "from to", from 0
  kWeightedList,  // .wel: lines of "from to weight"
  kSerialized,    // .sg, and .wsg with weights: the binary of the GAP benchmark suite
};

/// How the visited edges relate to what the file stores.
enum class Symmetry {
  kGeneral,        // each entry is one edge
  kSymmetric,      // edges come in both directions
  kSkewSymmetric,  // so too, and the second one's weight is the first one's negated
};

/// Whether somebody asks for the weights that a file has.
enum class Weights {
  kUsed,
  kIgnored,  // they are numbers, perhaps infinite or none that a double holds, and each edge's weight is 1
};

/// What a file says before its edges.
struct GraphHeader {
  Format format;
  bool compressed;
  bool weighted;  // false: every weight is 1
  Symmetry symmetry;
  std::optional<std::uint64_t> vertices;  // stated; edge lists state none
  std::optional<std::uint64_t> entries;   // stated: lines or, in a binary file, neighbours
};

/// What a part held. The sum over all parts describes the file.
struct EdgeCount {
  std::uint64_t entries = 0;   // read from the file
  std::uint64_t edges = 0;     // visited: an entry of a symmetric matrix is two, on the diagonal one
  std::uint64_t vertices = 0;  // 1 + the largest id seen; 0 without edges

  /// Adds entries and edges, and takes the larger number of vertices.
  EdgeCount& operator+=(const EdgeCount& other);
};

class EdgeReader;

/// A graph in a file of one of the formats above; the text ones may be compressed: .mtx.gz and so on.
///
/// Matrix Market. Entry "i j w" is the edge i-1 -> j-1. In a symmetric or skew-symmetric file an entry off
/// the diagonal is visited in both directions, one after the other, and one on it once (skew-symmetric files
/// have none there). The format has such files store the lower triangle, but programs write the upper one
/// too: entries of either are taken. A pair that both triangles have is two entries, as one that is there
/// twice in any file. The matrix is square. A banner without a symmetry, as bale writes it, means general.
///
/// Edge lists. Lines that begin with '#' or '%' are comments, as in all text formats here. The number of
/// vertices is the largest EdgeCount::vertices of all parts.
///
/// Serialized, all little-endian, in this order and nothing else: directed (1 byte, 0 or 1), number of
/// neighbours m (8 bytes; an undirected edge counts twice), number of vertices n (8), n + 1 offsets (8 each;
/// the first is 0, the last m, none falls), m neighbours (4 each; .wsg: 4 and a weight of 4, both signed);
/// if directed, offsets and neighbours again, of the incoming edges. Vertex v has the neighbours from
/// offset v up to offset v + 1. The incoming edges are not read: they are the same edges.
///
/// Parts. Text: whole lines, see TextFile; a compressed text is decompressed once for each part. Serialized:
/// consecutive vertices with their edges.
///
/// Errors. esker::Error{kConfiguration} with the file, the line (or the byte, in a binary or where
/// compressed data is damaged) and the reason. Edges visited before stay visited.
class GraphFile {
 public:
  /// Reads the header. Local; each process opens the file itself.
  explicit GraphFile(const std::string& path, Weights weights = Weights::kUsed);
  ~GraphFile();
  GraphFile(GraphFile&&) noexcept;
  GraphFile& operator=(GraphFile&&) noexcept;

  const GraphHeader& header() const;

  /// Shows each edge of a part to `visit`, in the file's order. The parts of one count hold each edge once.
  /// Any number of threads may read at once.
  EdgeCount for_each_edge(Part part, const EdgeVisitor& visit) const;

  /// Throws if `total`, the sum over all parts, is not what the header states, or if an edge list has no
  /// edges at all.
  void check(const EdgeCount& total) const;

 private:
  std::unique_ptr<EdgeReader> reader_;
};

}  // namespace inputs
