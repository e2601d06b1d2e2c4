#include "core/control_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "core/testing/test_directory.h"

namespace strata {
namespace {

std::string listed(const std::string& text, std::string_view controller, bool both = false) {
  const TestDirectory directory;
  const std::filesystem::path root = directory.path();
  if (both) std::filesystem::create_directory(root / "unified");
  std::string list;
  for (const ControlGroup& group : control_groups(directory.file("own", text), controller, root))
    list += std::to_string(group.version) + ":" +
            std::filesystem::relative(group.folder, root).string() + " ";
  return list;
}

TEST(ControlGroups, GoUpToTheRoot) {
  EXPECT_EQ(listed("0::/a/b\n", "memory"), "2:a/b 2:a 2:. ");
  EXPECT_EQ(listed("0::/\n", "memory"), "2:. ");
}

TEST(ControlGroups, OfVersion1AreThoseOfTheController) {
  EXPECT_EQ(listed("5:cpu,memory:/a\n6:freezer:/b\n", "memory"), "1:memory/a 1:memory ");
  EXPECT_EQ(listed("6:freezers:/b\n", "freezer"), "");
}

TEST(ControlGroups, OfBothVersionsSideBySide) {
  EXPECT_EQ(listed("6:freezer:/b\n0::/a\n", "freezer", true),
            "1:freezer/b 1:freezer 2:unified/a 2:unified ");
}

TEST(ControlGroups, NoneInBrokenOrMissingFiles) {
  EXPECT_EQ(listed("nonsense\n6:memory\n", "memory"), "");
  EXPECT_TRUE(control_groups("/nowhere/cgroup", "memory").empty());
}

}  // namespace
}  // namespace strata
