// Machines whose memory is near to some cores and far from others: which rank stays where.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::machine {

/// Cores that have memory of their own.
struct NumaNode {
  int number = 0;
  std::vector<int> cores;  ///< those that this process may use, ascending
  bool operator==(const NumaNode&) const = default;
};

/// Reads Linux's lists: "0-3,8". What is no such list ends it.
std::vector<int> parse_core_list(std::string_view text);
/// Writes such a list.
std::string format_core_list(const std::vector<int>& cores);

/// Cores that this process may use, ascending.
std::vector<int> allowed_cores();

/// Nodes with cores among `allowed`, by number, as `folder` lists them; empty where it does not.
std::vector<NumaNode> find_numa_nodes(const std::vector<int>& allowed = allowed_cores(),
                                      const std::string& folder = "/sys/devices/system/node");

/// The node that a device is plugged into, by its PCI address; empty: unknown.
std::optional<int> node_of_device(const std::string& pci_address,
                                  const std::string& folder = "/sys/bus/pci/devices");

/// Where a rank of a machine with several nodes stays.
struct RankPlace {
  std::vector<NumaNode> nodes;  ///< one: its threads stay there; several: its threads are on all
};

/// The node of a rank's device, and how many ranks of the machine have theirs there.
struct DevicePlace {
  int node = 0;
  int ranks = 1;
};

/// Ranks share the cores evenly, in the order of nodes; a rank stays on one node where its share
/// lies on one, or near its device where the shares of all that have theirs there fit. No nodes on
/// a machine that has one alone.
RankPlace place_rank(const std::vector<NumaNode>& nodes, int local_rank, int local_world,
                     std::optional<DevicePlace> device);

/// "node 1 of 2: cores 16-31"; empty: there is nothing to tell.
std::string describe(const RankPlace& place, std::size_t nodes);

/// While it lives, memory that the calling thread touches first lies where the rank's threads are:
/// on several nodes by turns. Threads that are started from then on stay on a rank's one node,
/// for good. What the system refuses is left as it is: memory is farther then, nothing else.
class NearMemory {
 public:
  explicit NearMemory(const RankPlace& place);
  ~NearMemory();
  NearMemory(const NearMemory&) = delete;
  NearMemory& operator=(const NearMemory&) = delete;

 private:
  bool interleaved_ = false;
};

}  // namespace strata::machine
