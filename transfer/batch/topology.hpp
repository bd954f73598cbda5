// The paths of data between memories and devices: a directed graph whose links have a bandwidth.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>

namespace esker::transfer {

/// What a link carries. A bandwidth that nobody knows is infinite: it limits nothing.
struct LinkRate {
  double bytes_per_s = std::numeric_limits<double>::infinity();
  /// While the opposite direction carries data too. 0: as alone.
  double both_bytes_per_s = 0;
  /// Of a device's own link: what a copy takes beside its bytes, and a further one right behind it.
  double startup_s = 0;
  double further_s = 0;

  double both() const { return both_bytes_per_s > 0 ? both_bytes_per_s : bytes_per_s; }
};

/// The weighted graph of a machine (Verner et al., section 3.2): memories, processors, hubs, switches and
/// devices, joined by links of two directions with a bandwidth each. What several routes have in common, a
/// root, is a link of its own.
///
/// The paper's weights say nothing of both directions at once, and were off by up to 26 % there
/// (section 4.4). Here a direction may have a second weight, for while the other one is in use.
///
/// Contract Nodes and pairs of links are added, never taken away; names are unique. Links 2k and 2k + 1 are
///          the directions of a pair.
/// Errors   Error{kTransfer}: a name that is not there, with those that are; no route; a bandwidth
///          below 1 byte/s, a time that is negative or not finite.
class ESKER_API Topology {
 public:
  enum class Kind : std::uint8_t { kMemory, kProcessor, kHub, kSwitch, kDevice };
  /// The engines that copy to and from a device.
  enum class Engines : std::uint8_t {
    kCaller,      // none: whoever calls copies, and runs kernels, one at a time (the CPU)
    kOne,         // one for both directions
    kADirection,  // one each
  };
  struct Node {
    std::string name;
    Kind kind;
    Engines engines;  // of a device
  };
  struct Link {
    std::uint32_t from, to;  // nodes
    LinkRate rate;
  };
  using Route = std::vector<std::uint32_t>;  // links, in order

  explicit Topology(std::string name) : name_{std::move(name)} {}

  std::uint32_t add(const std::string& name, Kind kind, Engines engines = Engines::kADirection);
  /// Returns the link from a to b; the other direction is the next one.
  std::uint32_t connect(std::uint32_t a, std::uint32_t b, const LinkRate& there, const LinkRate& back);
  void set_rate(std::uint32_t link, const LinkRate& rate);

  /// Of the machine, or of the system that is modelled.
  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Link>& links() const { return links_; }
  std::uint32_t find(const std::string& name) const;
  /// Nodes of devices, in the order in which they were added.
  const std::vector<std::uint32_t>& devices() const { return devices_; }
  /// Of device `index`. Error{kTransfer}: there are fewer.
  std::uint32_t device(std::uint32_t index) const;
  /// The first memory: what "host memory" means where none is named.
  std::uint32_t host() const;
  static std::uint32_t opposite(std::uint32_t link) { return link ^ 1u; }
  /// It leads to a device or from one, and nobody knows its bandwidth.
  bool is_unknown(std::uint32_t link) const;
  /// "CPU0 -> IOH0".
  std::string link_name(std::uint32_t link) const;

  /// The fewest links from one node to another; of several, those that were added first. No route leads
  /// through a memory or a device. Between devices it leads through switches alone.
  Route route(std::uint32_t from, std::uint32_t to) const;
  /// Devices whose data meets in no switch: a copy between them is staged in host memory.
  bool is_staged(std::uint32_t from, std::uint32_t to) const;

  /// The inverse of from_json(): {name, nodes: [{name, kind, engines}], links: [{from, to, there, back}]}.
  std::string to_json() const;
  /// Errors. Error{kTransfer}: `where` and what is wrong there.
  static Topology from_json(const std::string& text, const std::string& where);

  /// For Graphviz. Links are labelled with GB/s each way.
  std::string to_dot() const;
  /// Draws to_dot() by the program dot. Error{kTransfer}: it is not installed, or cannot write the file.
  void draw_svg(const std::string& file) const;

 private:
  bool find_route(std::uint32_t from, std::uint32_t to, Route* route) const;

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<std::uint32_t>> leaving_;  // links, by node
  std::vector<std::uint32_t> devices_;
};

/// "memory", "processor", "hub", "switch", "device".
ESKER_API const char* to_string(Topology::Kind kind) noexcept;
/// "caller", "one", "a direction".
ESKER_API const char* to_string(Topology::Engines engines) noexcept;

}  // namespace esker::transfer
