#include "machine/memory_cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/testing/test_directory.h"

namespace strata::machine {
namespace {

class MemoryCgroupTest : public testing::Test {
 protected:
  /// Makes a group of version 2 below the root, whose path is "".
  void group(const std::string& path, const std::string& limit, const std::string& used,
             const std::string& stat = "") {
    std::filesystem::create_directories(directory_ / path);
    directory_.file(path + "/memory.max", limit + "\n");
    directory_.file(path + "/memory.current", used + "\n");
    directory_.file(path + "/memory.stat", stat);
  }
  [[nodiscard]] std::optional<MemoryCgroup> found(const std::string& own) const {
    return tightest_memory_cgroup(directory_.file("own", own), directory_.path());
  }

  TestDirectory directory_;
};

TEST_F(MemoryCgroupTest, NoLimitNoGroup) {
  EXPECT_FALSE(found("0::/\n"));
  group("a", "max", "5");
  EXPECT_FALSE(found("0::/a\n"));
  EXPECT_FALSE(tightest_memory_cgroup(directory_ / "missing", directory_.path()));
}

TEST_F(MemoryCgroupTest, TheTightestAncestorCounts) {
  group("a", "1000", "100");
  group("a/b", "800", "700");
  group("a/b/c", "max", "600");
  group("a/other", "10", "9");
  const auto limit = found("0::/a/b/c\n");
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limit_bytes, 800);
  EXPECT_EQ(limit->left_bytes, 100);
  EXPECT_EQ(limit->least_limit_bytes, 800);
  group("a", "64000", "63950");
  EXPECT_EQ(found("0::/a/b/c\n")->left_bytes, 50);
  EXPECT_EQ(found("0::/a/b/c\n")->least_limit_bytes, 800) << "that of another group";
}

TEST_F(MemoryCgroupTest, CachedFilesGiveWay) {
  group("a", "1000", "900", "anon 300\ninactive_file 400\nactive_file 200\nshmem 7\n");
  EXPECT_EQ(found("0::/a\n")->left_bytes, 700);
}

TEST_F(MemoryCgroupTest, APathThatIsNotVisibleFallsBackToTheRoot) {
  group(".", "1000", "100");
  EXPECT_EQ(found("0::/docker/0123\n")->left_bytes, 900);
}

TEST_F(MemoryCgroupTest, VersionOne) {
  std::filesystem::create_directories(directory_ / "memory/job");
  directory_.file("memory/memory.limit_in_bytes", "9223372036854771712\n");
  directory_.file("memory/memory.usage_in_bytes", "1\n");
  directory_.file("memory/job/memory.limit_in_bytes", "500\n");
  directory_.file("memory/job/memory.usage_in_bytes", "450\n");
  directory_.file("memory/job/memory.stat", "total_inactive_file 40\ninactive_file 9\n");
  const auto limit = found("9:cpu,cpuacct:/x\n4:hugetlb,memory:/job\n0::/\n");
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limit_bytes, 500);
  EXPECT_EQ(limit->left_bytes, 90);
  EXPECT_FALSE(found("4:memory:/\n"));
}

}  // namespace
}  // namespace strata::machine
