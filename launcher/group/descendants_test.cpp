#include "launcher/group/descendants.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

/// Makes folders like those of /proc.
class Descendants : public testing::Test {
 protected:
  void process(int pid, const std::string& stat) const {
    std::filesystem::create_directories(processes_ / std::to_string(pid));
    (void)processes_.file(std::to_string(pid) + "/stat", stat);
  }
  TestDirectory processes_;
  const std::string self_ = std::to_string(::getpid());
};

TEST_F(Descendants, ChildrenWhateverTheirNames) {
  process(11, "11 (train) S " + self_ + " 11 11 0");
  process(12, "12 (a) S 1 (b) Z " + self_ + " 12 12 0");
  process(13, "13 (other) S 1 13 13 0");
  EXPECT_EQ(children(processes_.path()), (std::set<pid_t>{11, 12}));
}

/// The file of an ended process can be opened but not read; so can a folder.
TEST_F(Descendants, AProcessMayGoWhileItIsLookedAt) {
  process(11, "11 (train) S " + self_ + " 11 11 0");
  std::filesystem::create_directories(processes_ / "12/stat");
  process(13, "");
  EXPECT_EQ(children(processes_.path()), std::set<pid_t>{11});
}

}  // namespace
}  // namespace strata::launcher
