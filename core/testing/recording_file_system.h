// A file system that remembers what was asked of it, and what a power loss may leave of that.
//
// The model is as hostile as POSIX allows: a write is on the disk only when a later fsync through
// the same open file covers it (another open file may be another host's cache), a name only when
// its directory was synced. Until then each operation may be there or not, whatever came before or
// after it; a write may also be there in part, or as zeros. What a link says is written with its
// first name: a later name may be there without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/file_system.h"

namespace strata {

struct TreeEntry {
  enum class Kind : std::uint8_t { file, directory, link };
  std::string text;  ///< content of a file, what a link says
  Kind kind = Kind::file;
  bool operator==(const TreeEntry&) const = default;
};

/// A directory tree by path relative to the root ("a/b").
using FileTree = std::map<std::string, TreeEntry>;

/// Makes what lies under `directory`, which exists, equal to `tree`. Fast when little differs from
/// `last`, which was written there before.
void write_tree(const std::string& directory, const FileTree& tree, const FileTree& last = {});

struct CrashImage {
  FileTree tree;
  std::size_t operations = 0;      ///< of the record before the power went
  std::vector<std::string> marks;  ///< those among them, in order
  std::string description;         ///< "after 17 operations, without write of out/a at 0"
};

struct CrashOptions {
  std::uint64_t seed = 1;
  int random_images = 4;  ///< per crash point
  /// This fsync (of files and directories, counted from 0) is treated as if it was never called.
  /// Points before it, where it makes no difference, are left out.
  std::optional<int> ignored_sync;
};

/// Passes on to `inner` and records what succeeded. Paths begin with `root` + "/", where no links
/// lie yet.
class RecordingFileSystem final : public FileSystem {
 public:
  /// What lies under `root` now is taken to be on the disk. Both outlive this object.
  RecordingFileSystem(FileSystem& inner, std::string root);
  ~RecordingFileSystem() override;

  /// Notes that something has been promised ("first checkpoint committed").
  void mark(const std::string& text);
  [[nodiscard]] int syncs() const;
  /// "fsync of out/a": the `number`-th of the fsyncs, from 0.
  [[nodiscard]] std::string sync_name(int number) const;

  /// Calls `visit` with every image for every prefix of the record: all that was not synced
  /// dropped, all kept, each operation alone dropped, torn, zeroed or kept, random subsets. Images
  /// equal to one seen after the same marks are left out. Stops when `visit` says false; returns
  /// how many it has seen.
  int crash_images(const CrashOptions& options,
                   const std::function<bool(const CrashImage&)>& visit) const;

  std::unique_ptr<StorageFile> create(const std::string& path, Caching caching) override;
  std::unique_ptr<StorageFile> open_for_writing(const std::string& path, Caching caching) override;
  std::unique_ptr<StorageFile> open_for_reading(const std::string& path, Caching caching) override;
  void make_directory(const std::string& path) override;
  void make_link(const std::string& target, const std::string& path) override;
  void sync_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove_file(const std::string& path) override;
  void remove_directory(const std::string& path) override;
  std::vector<DirectoryEntry> list(const std::string& path) override;
  std::optional<std::int64_t> free_bytes(const std::string& path) override;

 private:
  friend class RecordingFile;
  friend struct CrashModel;
  struct Node {
    TreeEntry entry;
    std::map<std::string, int> names;  ///< of a directory
  };
  struct Operation {
    enum class Kind : std::uint8_t { name, rename, remove, write, reserve, sync, mark };
    Kind kind = Kind::mark;
    int node = -1;    ///< of name operations the directory, else the file (of a sync: either)
    int handle = -1;  ///< open file that wrote or synced; -1: names
    std::string name;
    std::string new_name;
    int target = -1;  ///< the node that the name leads to
    TreeEntry::Kind target_kind = TreeEntry::Kind::file;
    std::int64_t offset = 0;
    std::string data;  ///< written, or what the link says
    std::string path;  ///< for descriptions
  };

  int load(const std::string& path);
  [[nodiscard]] std::string relative(const std::string& path) const;
  [[nodiscard]] int find(const std::string& relative_path) const;
  int add_name(const std::string& path, TreeEntry::Kind kind, const std::string& link_text = "");
  void remove_name(const std::string& path);
  void record(Operation operation);

  FileSystem& inner_;
  std::string root_;
  mutable std::mutex mutex_;
  std::vector<Node> base_;   ///< [0]: the root, as it was at the beginning
  std::vector<Node> nodes_;  ///< names as they are now; no content
  std::vector<Operation> operations_;
  int handles_ = 0;
};

}  // namespace strata
