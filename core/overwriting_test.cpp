#include "core/overwriting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Overwriting : public ::testing::Test {
 protected:
  Overwriting() { home_.file("text", "a text"); }

  [[nodiscard]] std::string at(const std::string& name) const { return home_ / name; }

  static std::string refusal(const std::vector<NamedFile>& written,
                             const std::vector<NamedFile>& read) {
    return message_of<InvalidArgument>([&] { refuse_overwriting(written, read); });
  }

  TestDirectory home_;
};

TEST_F(Overwriting, FindsAFileByAnyNameAndLink) {
  fs::create_directory(at("folder"));
  fs::create_symlink(at("text"), at("folder/link"));
  fs::create_hard_link(at("text"), at("folder/hard"));
  for (const char* name : {"text", "folder/../text", "folder/link", "folder/hard"}) {
    const std::string said = refusal({{"--trace", at(name)}}, {{"--data", at("text")}});
    EXPECT_EQ(said, "--trace " + at(name) + " is the file of --data " + at("text") +
                        ", which would be overwritten; name another");
  }
  EXPECT_EQ(refusal({{"--trace", at("new")}}, {{"--data", at("text")}}), "no error");
}

TEST_F(Overwriting, ComparesNewFilesByName) {
  EXPECT_THAT(refusal({{"--metrics", at("new")}, {"--trace", at("./new")}}, {}),
              HasSubstr("--trace " + at("./new") + " is the file of --metrics "));
  EXPECT_EQ(refusal({{"--metrics", at("new")}, {"--trace", at("newer")}}, {}), "no error");
}

TEST_F(Overwriting, SaysOfAFileThatIsMovedWhereItGoes) {
  EXPECT_EQ(refusal({{"--metrics", at("text"), at("m")}}, {{"--data", at("text")}}),
            "an earlier file of --metrics " + at("m") + " is moved to " + at("text") +
                ", which is the file of --data " + at("text") +
                " and would be overwritten; name another");
}

TEST_F(Overwriting, LeavesOutWhatIsNotGivenAndWhatIsNoFile) {
  EXPECT_EQ(refusal({{"--metrics", ""}, {"--trace", ""}}, {{"--data", ""}}), "no error");
  EXPECT_EQ(refusal({{"--metrics", "/dev/null"}, {"--trace", "/dev/null"}}, {}), "no error");
}

}  // namespace
}  // namespace strata
