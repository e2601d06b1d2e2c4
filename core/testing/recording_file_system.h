// A file system that records its operations and derives what a power loss may leave of them.
//
// The model is as hostile as POSIX allows. A write is on the disk only after a later fsync through
// the same open file (another open file may be another host's cache), a name only after its
// directory was synced. Until then each operation may be there or not, independent of earlier and
// later ones; a write may also be there in part, or as zeros. The target of a link is written with
// its first name: a later name may be there without it.
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
  std::string text;  ///< content of a file, or target of a link
  Kind kind = Kind::file;
  bool operator==(const TreeEntry&) const = default;
};

/// A directory tree by path relative to the root ("a/b").
using FileTree = std::map<std::string, TreeEntry>;

/// Makes the content of `directory`, which exists, equal to `tree`. Fast when `tree` differs little
/// from `last`, which was written there before.
void write_tree(const std::string& directory, const FileTree& tree, const FileTree& last = {});

struct CrashImage {
  FileTree tree;
  std::size_t operations = 0;      ///< recorded before the power loss
  std::vector<std::string> marks;  ///< marks among those operations, in order
  std::string description;         ///< "after 17 operations, without write of out/a at 0"
};

struct CrashOptions {
  std::uint64_t seed = 1;
  int random_images = 4;  ///< number per crash point
  /// The fsync (of files and directories, counted from 0) to treat as if it was never called. Crash
  /// points before it, where it makes no difference, are skipped.
  std::optional<int> ignored_sync;
};

/// Forwards to `inner` and records what succeeded. Paths begin with `root` + "/". The root must not
/// hold links at the start.
class RecordingFileSystem final : public FileSystem {
 public:
  /// Treats what lies under `root` now as durable. `inner` must outlive this object.
  RecordingFileSystem(FileSystem& inner, std::string root);
  ~RecordingFileSystem() override;

  /// Records that something has been promised ("first checkpoint committed").
  void mark(const std::string& text);
  [[nodiscard]] int syncs() const;
  /// Describes the `number`-th fsync, counted from 0: "fsync of out/a".
  [[nodiscard]] std::string sync_name(int number) const;

  /// Calls `visit` with images for every prefix of the record: all operations that were not synced
  /// dropped, or all kept; each one alone dropped, torn, zeroed or kept; random subsets. Skips
  /// images equal to one seen after the same marks. Stops when `visit` returns false. Returns the
  /// number of images visited.
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
    std::map<std::string, int> names;  ///< entries, if it is a directory
  };
  struct Operation {
    enum class Kind : std::uint8_t { name, rename, remove, write, reserve, sync, mark };
    Kind kind = Kind::mark;
    int node = -1;    ///< the directory of a name operation, else the file (of a sync: either)
    int handle = -1;  ///< the open file that wrote or synced; -1: a name operation
    std::string name;
    std::string new_name;
    int target = -1;  ///< the node that the name leads to
    TreeEntry::Kind target_kind = TreeEntry::Kind::file;
    std::int64_t offset = 0;
    std::string data;  ///< bytes written, or target of a link
    std::string path;  ///< path for descriptions
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
  std::vector<Node> base_;   ///< nodes at the beginning; element 0 is the root
  std::vector<Node> nodes_;  ///< nodes now: names, no content
  std::vector<Operation> operations_;
  int handles_ = 0;
};

}  // namespace strata
