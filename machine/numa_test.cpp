// Tests with NUMA nodes that are folders of the test.
#include "machine/numa.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "core/testing/test_directory.h"

namespace strata::machine {
namespace {

using Cores = std::vector<int>;

Cores range(int first, int last) {
  Cores cores;
  for (int core = first; core <= last; ++core) cores.push_back(core);
  return cores;
}

/// Two nodes of four cores with two threads each, and a third node without cores.
class TwoNodes : public testing::Test {
 protected:
  TwoNodes() {
    node("node1", "4-7,12-15\n");
    node("node0", "0-3,8-11\n");
    node("node2", "\n");
    node("nodes", "0-100\n");
  }
  void node(const std::string& name, const std::string& cores) const {
    std::filesystem::create_directories(directory_ / name);
    (void)directory_.file(name + "/cpulist", cores);
  }
  [[nodiscard]] std::vector<NumaNode> nodes(const Cores& allowed) const {
    return find_numa_nodes(allowed, directory_.path());
  }
  TestDirectory directory_;
};

/// Returns the numbers of the nodes where a rank is.
Cores place(const std::vector<NumaNode>& nodes, int rank, int ranks,
            std::optional<DevicePlace> device = {}) {
  Cores numbers;
  for (const NumaNode& node : place_rank(nodes, rank, ranks, device).nodes)
    numbers.push_back(node.number);
  return numbers;
}

TEST(CoreList, IsReadAndWritten) {
  for (const char* text : {"", "0", "0-3", "0-3,8-11", "1,3,5-6,900"})
    EXPECT_EQ(format_core_list(parse_core_list(text)), text);
  EXPECT_EQ(parse_core_list("0-1,4"), (Cores{0, 1, 4}));
  EXPECT_EQ(parse_core_list("2,x"), (Cores{2}));
  std::string long_list = "0-1023";
  while (long_list.size() < 1'000'000) long_list += ",0-1023";
  EXPECT_LE(parse_core_list(long_list).size(), 4096U);
  for (const char* text : {"x", "-", "1-", "-1", "0-99999999", "0-1\n"})
    EXPECT_EQ(parse_core_list(text), Cores{}) << text;
}

TEST_F(TwoNodes, HaveTheCoresThatAreAllowed) {
  const auto all = nodes(range(0, 15));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].number, 0);
  EXPECT_EQ(format_core_list(all[0].cores), "0-3,8-11");
  EXPECT_EQ(format_core_list(all[1].cores), "4-7,12-15");
  const auto some = nodes({5, 6});
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].number, 1);
  EXPECT_EQ(some[0].cores, (Cores{5, 6}));
  EXPECT_TRUE(find_numa_nodes(range(0, 15), directory_ / "nowhere").empty());
}

TEST_F(TwoNodes, RanksStayWhereTheirShareOfTheCoresIs) {
  const auto two = nodes(range(0, 15));
  EXPECT_EQ(place(two, 0, 2), Cores{0});
  EXPECT_EQ(place(two, 1, 2), Cores{1});
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(place(two, rank, 8), Cores{rank / 4});
  for (int rank = 0; rank < 64; ++rank) EXPECT_EQ(place(two, rank, 64), Cores{rank / 32});
  EXPECT_EQ(place(two, 0, 1), (Cores{0, 1}));
  EXPECT_EQ(place(two, 0, 3), Cores{0});
  EXPECT_EQ(place(two, 1, 3), (Cores{0, 1}));
  EXPECT_EQ(place(two, 2, 3), Cores{1});
}

TEST_F(TwoNodes, RanksStayNearTheirDevice) {
  const auto two = nodes(range(0, 15));
  EXPECT_EQ(place(two, 0, 2, DevicePlace{1, 1}), Cores{1});
  EXPECT_EQ(place(two, 3, 4, DevicePlace{0, 2}), Cores{0});
  EXPECT_EQ(place(two, 0, 2, DevicePlace{1, 2}), (Cores{0, 1}));  // the node has too few cores
  EXPECT_EQ(place(two, 0, 1, DevicePlace{1, 1}), (Cores{0, 1}));
  EXPECT_EQ(place(two, 0, 2, DevicePlace{7, 1}), (Cores{0, 1}));  // there is no node 7
}

TEST_F(TwoNodes, OneNodeIsNoMatter) {
  EXPECT_TRUE(place_rank(nodes({0, 1}), 0, 2, DevicePlace{}).nodes.empty());
  EXPECT_EQ(describe({}, 1), "");
}

TEST_F(TwoNodes, AreDescribed) {
  const auto two = nodes(range(0, 15));
  EXPECT_EQ(describe(place_rank(two, 1, 2, {}), 2), "node 1 of 2: cores 4-7,12-15");
  EXPECT_EQ(describe(place_rank(two, 0, 1, {}), 2),
            "memory by turns on 2 of 2 nodes: no node has room for a rank's cores alone");
}

TEST(NodeOfDevice, IsReadFromItsAddress) {
  const TestDirectory devices;
  for (const auto& [address, node] : {std::pair{"0000:3b:00.0", "1\n"}, {"0000:3c:00.0", "-1\n"}}) {
    std::filesystem::create_directories(devices / address);
    (void)devices.file(std::string(address) + "/numa_node", node);
  }
  EXPECT_EQ(node_of_device("0000:3b:00.0", devices.path()), 1);
  EXPECT_EQ(node_of_device("0000:3c:00.0", devices.path()), std::nullopt);
  EXPECT_EQ(node_of_device("0000:3d:00.0", devices.path()), std::nullopt);
  EXPECT_EQ(node_of_device("", devices.path()), std::nullopt);
}

/// Runs in a thread of its own, since the binding stays.
TEST(NearMemory, BindsThreadsToTheNode) {
  std::thread([] {
    const Cores allowed = allowed_cores();
    ASSERT_FALSE(allowed.empty());
    const NearMemory near(RankPlace{{NumaNode{0, {allowed.back()}}}});
    EXPECT_EQ(allowed_cores(), Cores{allowed.back()});
    Cores started;
    std::thread([&] { started = allowed_cores(); }).join();
    EXPECT_EQ(started, Cores{allowed.back()});
  }).join();
  std::thread([] {
    const Cores allowed = allowed_cores();
    const NearMemory near(RankPlace{});
    EXPECT_EQ(allowed_cores(), allowed);
  }).join();
}

}  // namespace
}  // namespace strata::machine
