#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/replaced_file.h"
#include "core/testing/fsync_counter.h"
#include "core/testing/test_directory.h"

namespace strata {
namespace {

class FileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }

  TestDirectory directory_;
};

std::string message_of(const std::function<void()>& action) {
  return strata::message_of<IoError>(action);
}

TEST_F(FileTest, WritesAndReadsAtOffsets) {
  File file = File::create(path("a"));
  const std::string text = "xyz";
  file.write(4, std::as_bytes(std::span(text)));
  file.sync();
  EXPECT_EQ(file.size_bytes(), 7);
  EXPECT_EQ(read_whole_file(path("a"), 100), std::string("\0\0\0\0xyz", 7));
}

// Fault 16.
TEST_F(FileTest, AShortReadNamesFileOffsetAndSubject) {
  write_file_atomically(path("a"), "0123456789");
  const File file = File::open_for_reading(path("a"));
  std::vector<std::byte> buffer(8);
  EXPECT_EQ(
      message_of([&] { file.read(6, buffer, "tensor 'x'"); }),
      path("a") + " at byte 10: read of tensor 'x' failed: the file ends, 4 more bytes expected");
}

TEST_F(FileTest, ErrorsOfTheSystemAreNamed) {
  EXPECT_EQ(message_of([&] { File::open_for_reading(path("none")); }),
            path("none") + ": cannot open: No such file or directory");
  EXPECT_NE(message_of([&] { File::open_for_reading(directory_.path()); }).find("Is a directory"),
            std::string::npos);
  EXPECT_NE(message_of([&] { File::open_for_reading("/dev/null"); }).find("not a regular file"),
            std::string::npos);
  // A file opened for reading refuses writes.
  File::create(path("a"));
  File file = File::open_for_reading(path("a"));
  const std::string text = "x";
  EXPECT_NE(message_of([&] {
              file.write(3, std::as_bytes(std::span(text)));
            }).find("at byte 3: write failed"),
            std::string::npos);
}

TEST_F(FileTest, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  File full = File::create("/dev/full");
  const std::string text = "x";
  EXPECT_NE(
      message_of([&] { full.write(0, std::as_bytes(std::span(text))); }).find("No space left"),
      std::string::npos);
}

TEST_F(FileTest, WholeFilesAreLimited) {
  write_file_atomically(path("a"), "12345");
  EXPECT_EQ(read_whole_file(path("a"), 5), "12345");
  EXPECT_NE(
      message_of([&] { (void)read_whole_file(path("a"), 4); }).find("more than the limit of 4"),
      std::string::npos);
}

TEST_F(FileTest, AnAtomicWriteSyncsTheFileAndItsDirectory) {
  tests::forget_fsyncs();
  write_file_atomically(path("a"), "1");
  EXPECT_EQ(tests::fsyncs_of(path("a")), 1);
  EXPECT_EQ(tests::fsyncs_of(directory_.path()), 1);
}

TEST_F(FileTest, AnAtomicWriteFollowsLinksAndReplacesNoDevice) {
  namespace fs = std::filesystem;
  write_file_atomically(path("a"), "old");
  fs::create_symlink("a", path("link"));
  write_file_atomically(path("link"), "new");
  EXPECT_EQ(read_whole_file(path("a"), 10), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  fs::create_symlink("/dev/null", path("nothing"));
  write_file_atomically(path("nothing"), "new");
  EXPECT_TRUE(fs::is_symlink(path("nothing")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_symlink("/dev/full", path("full"));
  if (fs::exists("/dev/full")) {
    EXPECT_THROW(write_file_atomically(path("full"), "new"), IoError);
  }
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(path("pipe"), "through");
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(FileTest, WhatIsNotCommittedLeavesTheOldFileAndNothingElse) {
  write_file_atomically(path("a"), "old");
  for (const char* name : {"a", "b"}) {
    ReplacedFile file(path(name));
    file.append("half of ");
    ReplacedFile moved = std::move(file);
    moved.append("it");
    moved.sync();
  }
  EXPECT_EQ(read_whole_file(path("a"), 5), "old");
  ReplacedFile whole(path("a"));
  whole.append("half of ");
  whole.append("it");
  whole.sync();
  whole.commit();
  EXPECT_EQ(read_whole_file(path("a"), 20), "half of it");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_.path()))
    ++files;
  EXPECT_EQ(files, 1);
  EXPECT_NE(message_of([&] { const ReplacedFile lost(path("no/b")); }).find(path("no/b")),
            std::string::npos);
}

TEST_F(FileTest, AnAtomicWriteReplacesAndLeavesNothingElse) {
  write_file_atomically(path("a"), "old");
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(read_whole_file(path("a"), 5), "new");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_.path()))
    ++files;
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace strata
