#include "machine/numa.h"

#include <fmt/core.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace strata::machine {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNodes = 1024;  // the most that Linux can be built for

std::string first_line(const fs::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

/// Parses all of `text` as a number.
std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

/// Sets the memory policy of the calling thread.
bool set_policy(int mode, const std::vector<NumaNode>& nodes) {
  constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, kMostNodes / kWordBits> mask{};
  for (const NumaNode& node : nodes)
    if (node.number < kMostNodes)
      mask[static_cast<std::size_t>(node.number / kWordBits)] |= 1ul << node.number % kWordBits;
  return ::syscall(SYS_set_mempolicy, mode, nodes.empty() ? nullptr : mask.data(),
                   nodes.empty() ? 0 : kMostNodes) == 0;
}

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
    const std::size_t dash = range.find('-');
    const auto first = number_of(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= CPU_SETSIZE) break;
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
    if (cores.size() > CPU_SETSIZE) break;  // some come again
  }
  return cores;
}

std::string format_core_list(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cores[i]);
    if (last > i) text += "-" + std::to_string(cores[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::vector<NumaNode> find_numa_nodes(const std::vector<int>& allowed, const std::string& folder) {
  std::vector<NumaNode> nodes;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with("node")) continue;
    const std::optional<int> number = number_of(std::string_view(name).substr(4));
    if (!number) continue;
    NumaNode node{*number, {}};
    std::ranges::set_intersection(parse_core_list(first_line(it->path() / "cpulist")), allowed,
                                  std::back_inserter(node.cores));
    if (!node.cores.empty()) nodes.push_back(std::move(node));
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

std::optional<int> node_of_device(const std::string& pci_address, const std::string& folder) {
  if (pci_address.empty()) return {};
  const std::optional<int> node =
      number_of(first_line(fs::path(folder) / pci_address / "numa_node"));
  return node && *node >= 0 ? node : std::nullopt;
}

RankPlace place_rank(const std::vector<NumaNode>& nodes, int local_rank, int local_world,
                     std::optional<DevicePlace> device) {
  if (nodes.size() < 2) return {};
  std::size_t cores = 0;
  for (const NumaNode& node : nodes) cores += node.cores.size();
  const auto ranks = static_cast<std::size_t>(std::max(1, local_world));
  const std::size_t first = static_cast<std::size_t>(local_rank) * cores / ranks;
  const std::size_t last = static_cast<std::size_t>(local_rank + 1) * cores / ranks;
  std::size_t begin = 0;
  for (const NumaNode& node : nodes) {
    const std::size_t end = begin + node.cores.size();
    const bool fits =
        device ? node.number == device->node &&
                     cores / ranks * static_cast<std::size_t>(device->ranks) <= end - begin
               : begin <= first && std::max(last, first + 1) <= end;
    if (fits) return {{node}};
    begin = end;
  }
  return {nodes};
}

std::string describe(const RankPlace& place, std::size_t nodes) {
  if (place.nodes.empty()) return "";
  const std::string of = fmt::format(" of {}", nodes);
  if (place.nodes.size() > 1)
    return fmt::format("memory by turns on {}{} nodes: no node has room for a rank's cores alone",
                       place.nodes.size(), of);
  const NumaNode& node = place.nodes.front();
  return fmt::format("node {}{}: cores {}", node.number, of, format_core_list(node.cores));
}

NearMemory::NearMemory(const RankPlace& place) {
  if (place.nodes.size() > 1) {
    interleaved_ = set_policy(MPOL_INTERLEAVE, place.nodes);
  } else if (!place.nodes.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : place.nodes.front().cores) CPU_SET(core, &set);
    // The kernel's own policy then allocates the nearest memory.
    (void)::sched_setaffinity(0, sizeof set, &set);
  }
}

NearMemory::~NearMemory() {
  if (interleaved_) set_policy(MPOL_DEFAULT, {});
}

}  // namespace strata::machine
