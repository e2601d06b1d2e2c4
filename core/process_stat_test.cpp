#include "core/process_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "core/testing/test_directory.h"

namespace strata {
namespace {

std::optional<ProcessStat> read(const std::string& text) {
  const TestDirectory folder;
  (void)folder.file("stat", text);
  return read_process_stat(folder.path());
}

TEST(ProcessStat, TellsStateParentAndStart) {
  std::string text = "7 (train) D 3";
  for (int field = 5; field < 22; ++field) text += " " + std::to_string(100 + field);
  const auto stat = read(text + " 1234 23 24\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'D');
  EXPECT_EQ(stat->parent, 3);
  EXPECT_EQ(stat->start, 1234);
}

TEST(ProcessStat, CountsFieldsFromTheLastBracketOfTheName) {
  for (const char* name : {"(a b)", "(a (b) R 9 c)", "())", "(\n) Z 8 (x)"}) {
    const auto stat = read(std::string("7 ") + name + " S 3 4\n");
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->parent, 3) << name;
  }
}

TEST(ProcessStat, LacksWhatIsNotTold) {
  const auto stat = read("8 (short) S 1 1\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_FALSE(stat->start.has_value());
  EXPECT_EQ(read("8 (short) S").value().parent, -1);
  EXPECT_EQ(read("8 (short)").value().state, '?');
  EXPECT_FALSE(read("").has_value());
  EXPECT_FALSE(read("no name").has_value());
}

TEST(ProcessStat, IsNotThereOfAProcessThatIsGone) {
  const TestDirectory folder;
  EXPECT_FALSE(read_process_stat(folder.path()).has_value());
  std::filesystem::create_directory(folder / "stat");  // a file whose reading fails
  EXPECT_FALSE(read_process_stat(folder.path()).has_value());
}

TEST(ProcessStat, IsReadFromTheKernel) {
  const auto stat = read_process_stat("/proc/self");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_GT(stat->start.value_or(0), 0);
}

}  // namespace
}  // namespace strata
