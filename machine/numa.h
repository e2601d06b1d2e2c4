// NUMA: machines whose memory is near to some cores and far from others; which rank stays where.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::machine {

/// A node: cores with a memory of their own.
struct NumaNode {
  int number = 0;
  std::vector<int> cores;  ///< cores that this process may use, ascending
  bool operator==(const NumaNode&) const = default;
};

/// Parses a core list of Linux, such as "0-3,8". Stops at text that is no such list.
std::vector<int> parse_core_list(std::string_view text);
/// Writes such a list.
std::string format_core_list(const std::vector<int>& cores);

/// Returns the cores that this process may use, ascending.
std::vector<int> allowed_cores();

/// Returns the nodes that `folder` lists and that have cores among `allowed`, sorted by number.
std::vector<NumaNode> find_numa_nodes(const std::vector<int>& allowed = allowed_cores(),
                                      const std::string& folder = "/sys/devices/system/node");

/// Returns the node of the device at a PCI address; nothing if it is unknown.
std::optional<int> node_of_device(const std::string& pci_address,
                                  const std::string& folder = "/sys/bus/pci/devices");

/// The nodes where a rank of a machine with several nodes stays.
struct RankPlace {
  std::vector<NumaNode> nodes;  ///< one: its threads stay there; several: its threads may use all
};

/// The node of a rank's device, and how many ranks of the machine have their devices there.
struct DevicePlace {
  int node = 0;
  int ranks = 1;
};

/// Divides the cores evenly among ranks, in the order of nodes. A rank with a device stays on the
/// device's node if the shares of all such ranks fit there; another stays on one node if its share
/// lies on one. Otherwise it is on all nodes. No nodes if the machine has only one.
RankPlace place_rank(const std::vector<NumaNode>& nodes, int local_rank, int local_world,
                     std::optional<DevicePlace> device);

/// Returns "node 1 of 2: cores 16-31", or "" if there is nothing to say.
std::string describe(const RankPlace& place, std::size_t nodes);

/// Places memory that the calling thread touches first, while this object lives, near the rank's
/// threads: on the one node, or interleaved over several. Binds the calling thread and threads
/// started later to the one node for good. A refusal only makes memory slower.
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
