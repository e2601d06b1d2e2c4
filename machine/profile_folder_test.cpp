// Tests which profiles are found, what is said of those of others, and which files are removed.
#include "machine/profile_folder.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::machine {
namespace {

namespace fs = std::filesystem;

Profile profile_of(const std::string& of) {
  return {of, OperationTimes({{7, "linear", Resource::device, DType::f32, 1000, 900}}), {7}};
}

class ProfileFolderTest : public testing::Test {
 protected:
  /// Makes a file of an age, and returns its path.
  [[nodiscard]] std::string aged(const std::string& name, int days) const {
    const std::string path = directory_ / name;
    std::ofstream(path) << "{}";  // not synced: there are many
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::days(days));
    return path;
  }
  [[nodiscard]] std::string note(const std::string& of) const { return folder_.find(of).note; }
  static void expect_says(const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }

  TestDirectory directory_;
  ProfileFolder folder_{directory_.path()};
};

TEST_F(ProfileFolderTest, WhatIsKeptIsFound) {
  EXPECT_FALSE(folder_.find("a, build 1").profile);
  EXPECT_EQ(note("a, build 1"), "");
  folder_.keep(profile_of("a, build 1"));
  EXPECT_EQ(folder_.find("a, build 1").profile, profile_of("a, build 1"));
  EXPECT_EQ(note("a, build 1"), "");
}

TEST_F(ProfileFolderTest, WithoutAFolderNothingIsKept) {
  const ProfileFolder none("");
  none.keep(profile_of("a, build 1"));
  EXPECT_FALSE(none.find("a, build 1").profile);
  EXPECT_EQ(none.find("a, build 1").note, "");
}

TEST_F(ProfileFolderTest, TimesOfAnotherBuildOrOtherThreadsAreNamed) {
  folder_.keep(profile_of("cpu, 4 threads, build 1"));
  EXPECT_EQ(note("cpu, 2 threads, build 1"),
            "times of instructions measured with '4 threads' are not used; a run of minutes, or "
            "--calibrate again, measures anew");
  EXPECT_EQ(note("cpu, 4 threads, TF32, build 1"),
            "times of instructions measured without 'TF32' are not used; a run of minutes, or "
            "--calibrate again, measures anew");
  // The build is what is named, whatever was written last.
  folder_.keep(profile_of("cpu, 2 threads, build 1"));
  folder_.keep(profile_of("cpu, 8 threads, build 1"));
  EXPECT_EQ(note("cpu, 2 threads, build 2"),
            "times of instructions measured by another build of this program are not used; a run "
            "of minutes, or --calibrate again, measures anew");
}

TEST_F(ProfileFolderTest, ANoteFitsIntoALine) {
  constexpr std::size_t kLine = 160 - std::string_view("note: ").size();
  const std::string ranks = "16 of 64 ranks on this host by shm";
  folder_.keep(profile_of("Processor(R) of a long name CPU @ 2.00GHz, 4 threads, " + ranks));
  const std::string text = note("cpu, 2 threads, 1 of 1 ranks on this host by single");
  expect_says(text, "with 'Processor(R) of a long name CPU @ 2.00GHz' are not used");
  EXPECT_LE(text.size(), kLine) << text;
  expect_says(note("Processor(R) of a long name CPU @ 2.00GHz, 2 threads, 1 of 1 ranks"),
              "with '4 threads, " + ranks + "' are not used");
  folder_.keep(profile_of(std::string(200, 'x')));
  std::filesystem::remove(
      folder_.file_of("Processor(R) of a long name CPU @ 2.00GHz, 4 threads, " + ranks));
  EXPECT_LE(note("cpu").size(), kLine);
  EXPECT_EQ(note(std::string(200, 'y')),
            "times of instructions measured with other settings are not used; a run of minutes, or "
            "--calibrate again, measures anew");
}

TEST_F(ProfileFolderTest, AnEarlierVersionIsNamedWhereNothingElseIs) {
  write_file_atomically(directory_ / "0123456789abcdef.json", R"({"version": 3, "of": "a"})");
  expect_says(note("a, build 1"), "measured by an earlier version of this program are not used");
  expect_says(note("a, build 1"), "measures anew");
  folder_.keep(profile_of("a, build 1"));
  EXPECT_EQ(note("a, build 1"), "") << "it was measured";
  expect_says(note("a, build 2"), "by another build");
}

TEST_F(ProfileFolderTest, ABrokenFileIsNamedAndReplaced) {
  const std::string file = folder_.file_of("a, build 1");
  for (const std::string& broken : {std::string("{"), to_json(profile_of("b, build 1"))}) {
    write_file_atomically(file, broken);
    EXPECT_FALSE(folder_.find("a, build 1").profile);
    expect_says(note("a, build 1"), file);
    expect_says(note("a, build 1"), "measures anew");
    folder_.keep(profile_of("a, build 1"));
    EXPECT_TRUE(folder_.find("a, build 1").profile);
  }
  write_file_atomically(file, "{");
  EXPECT_EQ(note("b, build 1"), "") << "a broken file of others is nobody's business";
}

TEST_F(ProfileFolderTest, FilesOfOursThatAreOlderThanAYearGo) {
  const std::string young = aged("0123456789abcdef.json", 360);
  const std::string old = aged("0123456789abcde0.json", 370);
  const std::string left = aged("0123456789abcde1.json.tmp-77", 370);
  const std::string notes = aged("notes.json", 370), other = aged("0123456789abcde2.jsonl", 370),
                    longer = aged("0123456789abcde345.json", 370);
  fs::create_directory(directory_ / "0123456789abcde4.json");
  folder_.keep(profile_of("a, build 1"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(left));
  for (const std::string& stays :
       {young, notes, other, longer, directory_ / "0123456789abcde4.json"})
    EXPECT_TRUE(fs::exists(stays)) << stays;
}

TEST_F(ProfileFolderTest, TheNewestHundredStay) {
  for (int i = 0; i < 105; ++i) (void)aged(fmt::format("{:016x}.json", i), i + 1);
  folder_.keep(profile_of("a, build 1"));
  EXPECT_TRUE(folder_.find("a, build 1").profile);
  EXPECT_TRUE(fs::exists(directory_ / fmt::format("{:016x}.json", 98)));
  EXPECT_FALSE(fs::exists(directory_ / fmt::format("{:016x}.json", 99)));
  EXPECT_FALSE(fs::exists(directory_ / fmt::format("{:016x}.json", 104)));
}

TEST_F(ProfileFolderTest, AFolderThatCannotBeMadeIsAnError) {
  const std::string file = directory_.file("file", "");
  EXPECT_THROW(ProfileFolder(file + "/profiles").keep(profile_of("a, build 1")), IoError);
}

}  // namespace
}  // namespace strata::machine
