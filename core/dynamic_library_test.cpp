#include "core/dynamic_library.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// Folders with libraries that answer with different numbers: "loader/libstrata_tiny.so" (1), which
/// this program's run path names, and "libstrata_other.so" (2).
const fs::path kLibraries = STRATA_TINY_LIBRARIES;

class DynamicLibraryTest : public testing::Test {
 protected:
  /// Makes a folder that holds library 2 under `name`.
  [[nodiscard]] std::string folder_with(const std::string& folder, const std::string& name) const {
    const fs::path path = directory_ / folder;
    fs::create_directories(path);
    fs::copy_file(kLibraries / "libstrata_other.so", path / name);
    return path.string();
  }

  TestDirectory directory_;
};

int number_of(const DynamicLibrary& library) {
  int (*number)() = nullptr;
  SymbolReader reader(library);
  reader.read("strata_tiny_number", number);
  reader.require_all("");
  return number();
}

int number_of(const LibrarySearch& search) { return number_of(DynamicLibrary::open(search)); }

std::string failure(const LibrarySearch& search) {
  return message_of<HostError>([&] { DynamicLibrary::open(search); });
}

TEST_F(DynamicLibraryTest, FoldersBeforeTheLoaderWin) {
  const std::string folder = folder_with("first", "libstrata_tiny.so");
  const DynamicLibrary library = DynamicLibrary::open(
      {.names = {"libstrata_tiny.so"}, .folders_before_loader = {directory_ / "none", folder}});
  EXPECT_EQ(number_of(library), 2);
  EXPECT_EQ(library.path(), fs::canonical(folder) / "libstrata_tiny.so");
}

TEST_F(DynamicLibraryTest, TheLoaderIsAskedBeforeTheLastFolders) {
  const std::string folder = folder_with("last", "libstrata_tiny.so");
  EXPECT_EQ(number_of({.names = {"libstrata_tiny.so"}, .folders_after_loader = {folder}}), 1);
}

TEST_F(DynamicLibraryTest, TheLastFoldersHoldWhatTheLoaderDoesNotKnow) {
  const std::string folder = folder_with("last", "libstrata_unknown.so.3");
  EXPECT_EQ(number_of({.names = {"libstrata_unknown.so.4", "libstrata_unknown.so.3"},
                       .folders_after_loader = {directory_ / "none", folder}}),
            2);
}

TEST_F(DynamicLibraryTest, NamesTheFileBehindASymbolicLink) {
  const std::string folder = folder_with("first", "libstrata_linked.so.1.2");
  fs::create_symlink("libstrata_linked.so.1.2", fs::path(folder) / "libstrata_linked.so.1");
  EXPECT_EQ(
      DynamicLibrary::open({.names = {"libstrata_linked.so.1"}, .folders_before_loader = {folder}})
          .path(),
      fs::canonical(folder) / "libstrata_linked.so.1.2");
}

TEST_F(DynamicLibraryTest, PassesOverWhatDoesNotLoad) {
  directory_.file("libstrata_tiny.so", "no library");
  EXPECT_EQ(
      number_of({.names = {"libstrata_tiny.so"}, .folders_before_loader = {directory_.path()}}), 1);
}

TEST_F(DynamicLibraryTest, SaysWhereItLookedAndWhatToDo) {
  EXPECT_EQ(failure({.names = {"libstrata_absent.so.2", "libstrata_absent.so.1"},
                     .folders_before_loader = {"/first"},
                     .folders_after_loader = {"/last"},
                     .advice = "install it"}),
            "cannot open libstrata_absent.so.2 or libstrata_absent.so.1; looked in /first, the "
            "loader's own places (LD_LIBRARY_PATH, ld.so.conf), /last; install it");
}

TEST_F(DynamicLibraryTest, SaysWhyTheLoaderRefusedAFile) {
  const std::string file = directory_.file("libstrata_broken.so", "no library");
  const std::string message =
      failure({.names = {"libstrata_broken.so"}, .folders_after_loader = {directory_.path()}});
  EXPECT_NE(message.find("found but refused: " + file + ": "), std::string::npos) << message;
}

TEST_F(DynamicLibraryTest, PassesOverWhatTheSearchRefuses) {
  const std::string folder = folder_with("last", "libstrata_tiny.so");
  LibrarySearch search{.names = {"libstrata_tiny.so"}, .folders_after_loader = {folder}};
  const std::string first = DynamicLibrary::open(search).path();
  search.refuse = [&](const std::string& path) { return path == first ? "too old" : ""; };
  EXPECT_EQ(number_of(search), 2);
  search.refuse = [](const std::string&) { return "too old"; };
  const std::string message = failure(search);
  EXPECT_NE(message.find("found but refused: " + first + ": too old; "), std::string::npos)
      << message;
}

TEST_F(DynamicLibraryTest, NamesAllMissingSymbols) {
  const DynamicLibrary library = DynamicLibrary::open({.names = {"libstrata_tiny.so"}});
  void (*a)() = nullptr;
  void (*b)() = nullptr;
  int (*number)() = nullptr;
  SymbolReader reader(library);
  reader.read("strata_absent_a", a);
  reader.read("strata_tiny_number", number);
  reader.read("strata_absent_b", b);
  EXPECT_EQ(message_of<HostError>([&] { reader.require_all("it is too old"); }),
            library.path() + " lacks strata_absent_a, strata_absent_b; it is too old");
}

}  // namespace
}  // namespace strata
