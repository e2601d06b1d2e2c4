#include "core/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/testing/failing_file_system.h"
#include "core/testing/fsync_counter.h"
#include "core/testing/recording_file_system.h"
#include "core/testing/test_directory.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_of(const std::string& path) { return read_whole_file(path, 1 << 26); }

class FileSystemTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  static std::string message(const std::function<void()>& action) {
    return message_of<IoError>(action);
  }

  TestDirectory directory_;
  PosixFileSystem files_;
};

TEST_F(FileSystemTest, FilesAndDirectoriesAreSharedAsTheUmaskSays) {
  const mode_t before = ::umask(0);
  for (const mode_t mask : {0022U, 0002U, 0077U}) {
    ::umask(mask);
    const std::string folder = path("d" + std::to_string(mask));
    files_.make_directory(folder);
    const auto file = files_.create(folder + "/a", Caching::cached);
    struct stat status {};
    EXPECT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0777U & ~mask);
    EXPECT_EQ(::stat(file->path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0666U & ~mask);
  }
  ::umask(before);
}

TEST_F(FileSystemTest, SyncsReachTheSystem) {
  files_.make_directory(path("d"));
  tests::forget_fsyncs();
  const auto a = files_.create(path("d/a"), Caching::direct);
  const auto b = files_.create(path("d/b"), Caching::cached);
  a->write(0, bytes("a"));
  a->sync();
  EXPECT_EQ(tests::fsyncs_of(path("d/a")), 1);
  EXPECT_EQ(tests::fsyncs_of(path("d/b")), 0);
  files_.open_for_writing(path("d/b"), Caching::cached)->sync();
  EXPECT_EQ(tests::fsyncs_of(path("d/b")), 1);
  EXPECT_EQ(tests::fsyncs_of(path("d")), 0);
  files_.sync_directory(path("d"));
  EXPECT_EQ(tests::fsyncs_of(path("d")), 1);
  write_new_file(files_, path("d/c"), "c");
  EXPECT_EQ(tests::fsyncs_of(path("d/c")), 1);
}

TEST_F(FileSystemTest, FreeSpaceIsThatOfTheDirectorysDisk) {
  const auto free = files_.free_bytes(directory_.path());
  ASSERT_TRUE(free);
  EXPECT_NEAR(static_cast<double>(*free),
              static_cast<double>(fs::space(directory_.path()).available), 64 << 20);
  EXPECT_NE(message([&] { (void)files_.free_bytes(path("none")); }).find("No such file"),
            std::string::npos);
}

TEST_F(FileSystemTest, WhatExistsIsNotCreatedAndLinksAreNotFollowed) {
  directory_.file("a", "precious");
  EXPECT_EQ(message([&] { files_.create(path("a"), Caching::direct); }),
            path("a") + ": cannot create: File exists");
  fs::create_symlink(path("a"), path("link"));
  EXPECT_NE(message([&] {
              files_.open_for_writing(path("link"), Caching::cached);
            }).find("symbolic links"),
            std::string::npos);
  EXPECT_NE(message([&] { files_.create(path("link"), Caching::cached); }).find("File exists"),
            std::string::npos);
  EXPECT_NE(message([&] { files_.make_directory(path("a")); }).find("File exists"),
            std::string::npos);
  EXPECT_NE(message([&] {
              files_.open_for_reading(path("."), Caching::cached);
            }).find("not a regular file"),
            std::string::npos);
  EXPECT_EQ(text_of(path("a")), "precious");
}

class Transfers : public FileSystemTest, public testing::WithParamInterface<Caching> {};
std::string name_of_caching(const testing::TestParamInfo<Caching>& caching) {
  return caching.param == Caching::direct ? "direct" : "cached";
}
INSTANTIATE_TEST_SUITE_P(Caching, Transfers, testing::Values(Caching::cached, Caching::direct),
                         name_of_caching);

// Writes aligned blocks and a ragged tail from several threads, and reads them back.
TEST_P(Transfers, WriteAndReadBack) {
  constexpr std::int64_t kBlock = 2 * kDirectAlignmentBytes;
  constexpr std::int64_t kSize = 5 * kBlock + 4096 + 777;
  const std::unique_ptr<std::byte, void (*)(void*)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kDirectAlignmentBytes, 6 * kBlock)), std::free);
  for (std::int64_t i = 0; i < kSize; ++i)
    memory.get()[i] = static_cast<std::byte>(static_cast<std::uint64_t>(i) * 2654435761U >> 13);
  const std::span<const std::byte> all(memory.get(), kSize);
  const auto file = files_.create(path("a"), GetParam());
  file->reserve(kSize);
  std::vector<std::thread> threads;
  for (std::int64_t begin = 0; begin < kSize; begin += kBlock)
    threads.emplace_back([&, begin] {
      const auto count = static_cast<std::size_t>(std::min(kBlock, kSize - begin));
      file->write(begin, all.subspan(static_cast<std::size_t>(begin), count));
    });
  for (std::thread& thread : threads) thread.join();
  file->sync();
  EXPECT_EQ(file->size_bytes(), kSize);
  const std::string content = text_of(path("a"));
  EXPECT_TRUE(std::ranges::equal(bytes(content), all));

  const auto reader = files_.open_for_reading(path("a"), GetParam());
  std::vector<std::byte> part(9000);  // neither offset nor size is aligned
  reader->read(4095, part);
  EXPECT_TRUE(std::ranges::equal(part, all.subspan(4095, 9000)));
  EXPECT_EQ(message([&] { reader->read(kSize - 10, part); }),
            path("a") + " at byte " + std::to_string(kSize) +
                ": read of 9000 bytes failed: the file ends after 10 bytes of them");
}

TEST_F(FileSystemTest, NamesAreListedAndRemoved) {
  files_.make_directory(path("d"));
  files_.make_directory(path("d/sub"));
  write_new_file(files_, path("d/sub/x"), "1");
  write_new_file(files_, path("d/a"), "2");
  fs::create_symlink(path("d/a"), path("d/link"));
  files_.sync_directory(path("d"));
  fs::create_directory_symlink(path("d"), path("link"));
  files_.sync_directory(path("link"));
  EXPECT_THROW((void)files_.open_for_reading(path("d/link"), Caching::cached), IoError) << "a file";
  const auto entries = files_.list(path("d"));
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].kind, DirectoryEntry::Kind::file);
  EXPECT_EQ(entries[1].kind, DirectoryEntry::Kind::other);
  EXPECT_EQ(entries[2].kind, DirectoryEntry::Kind::directory);
  write_new_file(files_, path("outside"), "3");
  fs::create_directory_symlink(directory_.path(), path("d/up"));
  files_.rename(path("d"), path("e"));
  remove_tree(files_, path("e"));
  EXPECT_FALSE(fs::exists(path("e")));
  EXPECT_EQ(text_of(path("outside")), "3");
  EXPECT_NE(message([&] { files_.list(path("e")); }).find("cannot list"), std::string::npos);
}

TEST(ParentDirectory, OfAnyPath) {
  EXPECT_EQ(parent_directory("a/b"), "a");
  EXPECT_EQ(parent_directory("a//b/"), "a");
  EXPECT_EQ(parent_directory("/a"), "/");
  EXPECT_EQ(parent_directory("/"), "/");
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory(""), ".");
}

TEST_F(FileSystemTest, AFaultStrikesTheOperationItNames) {
  FailingFileSystem failing(
      files_,
      {.operation = FileOperation::write, .nth = 2, .error_number = ENOSPC, .partial = true});
  const auto file = failing.create(path("a"), Caching::cached);
  file->write(0, bytes("abcd"));
  EXPECT_EQ(message([&] { file->write(4, bytes("efgh")); }),
            path("a") + " at byte 4: write of 4 bytes failed: No space left on device");
  file->write(8, bytes("i"));
  EXPECT_EQ(failing.fired(), 1);
  EXPECT_EQ(text_of(path("a")), std::string("abcdef\0\0i", 9));
  FailingFileSystem lasting(
      files_, {.operation = FileOperation::rename, .nth = 1, .error_number = EIO, .lasting = true});
  EXPECT_THROW(lasting.rename(path("a"), path("b")), IoError);
  EXPECT_THROW(lasting.rename(path("a"), path("b")), IoError);
  EXPECT_EQ(lasting.fired(), 2);
}

/// The contents that file `name` has in all images; "-" stands for a missing file.
std::set<std::string> contents(const RecordingFileSystem& record, const std::string& name,
                               const CrashOptions& options = {}) {
  std::set<std::string> found;
  record.crash_images(options, [&](const CrashImage& image) {
    const auto it = image.tree.find(name);
    found.insert(it == image.tree.end() ? "-" : it->second.text);
    return true;
  });
  return found;
}

TEST_F(FileSystemTest, WithoutSyncAnythingMayBeLeft) {
  RecordingFileSystem record(files_, directory_.path());
  const auto file = record.create(path("a"), Caching::cached);
  file->reserve(4);
  file->write(0, bytes("wxyz"));
  const std::string zeros(4, '\0');
  EXPECT_EQ(contents(record, "a", {.random_images = 0}),
            (std::set<std::string>{"-", "", std::string("wx\0\0", 4), zeros, "wxyz"}));
}

TEST_F(FileSystemTest, AfterBothSyncsAllIsThere) {
  directory_.file("old", "1");
  RecordingFileSystem record(files_, directory_.path());
  const auto file = record.create(path("a"), Caching::cached);
  file->write(0, bytes("wxyz"));
  file->sync();
  record.rename(path("a"), path("b"));
  record.sync_directory(directory_.path());
  record.mark("done");
  int images = 0;
  record.crash_images({}, [&](const CrashImage& image) {
    EXPECT_EQ(image.tree.at("old").text, "1");
    if (image.marks.empty()) return true;
    ++images;
    EXPECT_EQ(image.tree.size(), 2U);
    EXPECT_EQ(image.tree.at("b").text, "wxyz");
    return true;
  });
  EXPECT_EQ(images, 1);
  ASSERT_EQ(record.syncs(), 2);
  EXPECT_EQ(record.sync_name(0), "fsync of a");
  // Both syncs are needed: ignoring either gives an image without the content.
  for (const int ignored : {0, 1}) {
    bool wrong = false;
    record.crash_images({.ignored_sync = ignored}, [&](const CrashImage& image) {
      const auto found = image.tree.find("b");
      wrong = !image.marks.empty() && (found == image.tree.end() || found->second.text != "wxyz");
      return !wrong;
    });
    EXPECT_TRUE(wrong) << record.sync_name(ignored);
  }
}

TEST_F(FileSystemTest, ASyncCoversItsOwnOpenFileOnly) {
  RecordingFileSystem record(files_, directory_.path());
  const auto first = record.create(path("a"), Caching::cached);
  record.sync_directory(directory_.path());
  const auto second = record.open_for_writing(path("a"), Caching::cached);
  first->write(0, bytes("1"));
  second->write(1, bytes("2"));
  second->sync();
  record.mark("done");
  std::set<std::string> found;
  record.crash_images({}, [&](const CrashImage& image) {
    if (!image.marks.empty()) found.insert(image.tree.at("a").text);
    return true;
  });
  EXPECT_EQ(found, (std::set<std::string>{std::string("\0002", 2), "12"}));
}

TEST_F(FileSystemTest, RemovalsMayComeBack) {
  files_.make_directory(path("d"));
  write_new_file(files_, path("d/a"), "1");
  RecordingFileSystem record(files_, directory_.path());
  remove_tree(record, path("d"));
  EXPECT_EQ(contents(record, "d/a"), (std::set<std::string>{"-", "1"}));
  record.sync_directory(directory_.path());
  record.mark("done");
  record.crash_images({}, [&](const CrashImage& image) {
    EXPECT_TRUE(image.marks.empty() || image.tree.empty());
    return true;
  });
}

// A link that replaces another one has the right target if it was synced under its first name.
TEST_F(FileSystemTest, LinksMayLoseWhatTheySay) {
  for (const bool synced : {false, true}) {
    const std::string name = synced ? "synced" : "not";
    files_.make_directory(path(name));
    RecordingFileSystem record(files_, path(name));
    record.make_link("old", path(name + "/link"));
    record.sync_directory(path(name));
    record.mark("there");
    record.make_link("new", path(name + "/fresh"));
    if (synced) record.sync_directory(path(name));
    record.rename(path(name + "/fresh"), path(name + "/link"));
    std::set<std::pair<std::string, bool>> found;
    record.crash_images({}, [&](const CrashImage& image) {
      const TreeEntry link = image.marks.empty() ? TreeEntry{} : image.tree.at("link");
      if (!image.marks.empty()) found.insert({link.text, link.kind == TreeEntry::Kind::link});
      return true;
    });
    std::set<std::pair<std::string, bool>> expected{{"old", true}, {"new", true}};
    if (!synced) expected.insert({"", false});
    EXPECT_EQ(found, expected);
  }
  EXPECT_EQ(fs::read_symlink(path("synced/link")), "new");
  EXPECT_NE(message([&] { files_.make_link("a", path("synced/link")); }).find("File exists"),
            std::string::npos);
}

TEST_F(FileSystemTest, TreesAreWrittenOverOneAnother) {
  const TreeEntry directory{"", TreeEntry::Kind::directory};
  const FileTree first{{"a", {"1"}}, {"d", directory}, {"d/x", {"2"}}, {"e", {"3"}}};
  const FileTree second{{"a", directory}, {"d", directory}, {"d/y", {"2"}}, {"e", {"4"}}};
  write_tree(directory_.path(), first);
  write_tree(directory_.path(), second, first);
  const RecordingFileSystem record(files_, directory_.path());
  record.crash_images({}, [&](const CrashImage& image) {
    EXPECT_EQ(image.tree, second);
    return true;
  });
}

}  // namespace
}  // namespace strata
