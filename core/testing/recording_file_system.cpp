#include "core/testing/recording_file_system.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <unordered_set>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"

namespace strata {
namespace {

constexpr std::int64_t kContentLimitBytes = std::int64_t{1} << 30;

void put(std::string& content, std::int64_t offset, std::string_view data) {
  const auto begin = static_cast<std::size_t>(offset);
  if (content.size() < begin + data.size()) content.resize(begin + data.size(), '\0');
  content.replace(begin, data.size(), data);
}

}  // namespace

/// The effect of a power loss on an operation that no fsync covered.
enum class Fate : std::uint8_t { kept, dropped, torn, zeroed };

/// A record of operations, and the images that a power loss may leave of it.
struct CrashModel {
  using Node = RecordingFileSystem::Node;
  using Operation = RecordingFileSystem::Operation;
  using Kind = Operation::Kind;

  const std::vector<Node>& base;
  const std::vector<Operation>& operations;
  const CrashOptions& options;
  const std::function<bool(const CrashImage&)>& visit;
  std::vector<std::size_t> durable_at;  ///< per operation: length of the record that has it synced
  std::vector<std::string> marks;
  std::unordered_set<std::string> seen;
  std::size_t first_point = 0;
  int images = 0;
  bool stopped = false;

  void find_syncs() {
    durable_at.assign(operations.size(), std::numeric_limits<std::size_t>::max());
    int number = 0;
    for (std::size_t s = 0; s < operations.size(); ++s) {
      const Operation& sync = operations[s];
      if (sync.kind != Kind::sync) continue;
      if (number++ == options.ignored_sync) {
        first_point = s + 1;
        continue;
      }
      for (std::size_t i = 0; i < s; ++i)
        if (operations[i].node == sync.node && operations[i].handle == sync.handle)
          durable_at[i] = std::min(durable_at[i], s + 1);
    }
  }

  static bool is_data(const Operation& operation) { return operation.kind == Kind::write; }
  static bool changes_disk(const Operation& operation) {
    return operation.kind != Kind::sync && operation.kind != Kind::mark;
  }

  /// Gives `pending` these `fates`; keeps everything else before `point`.
  FileTree image_of(std::size_t point, const std::vector<std::size_t>& pending,
                    const std::vector<Fate>& fates) const {
    std::vector<Node> nodes = base;
    std::size_t next = 0;
    for (std::size_t i = 0; i < point; ++i) {
      Fate fate = Fate::kept;
      if (next < pending.size() && pending[next] == i) fate = fates[next++];
      if (fate != Fate::dropped) apply(operations[i], fate, nodes);
    }
    FileTree tree;
    collect(nodes, 0, "", tree);
    return tree;
  }

  static void apply(const Operation& operation, Fate fate, std::vector<Node>& nodes) {
    const auto need = static_cast<std::size_t>(std::max(operation.node, operation.target)) + 1;
    if (nodes.size() < need) nodes.resize(need);
    Node& node = nodes[static_cast<std::size_t>(std::max(operation.node, 0))];
    switch (operation.kind) {
      case Kind::name: {
        node.names[operation.name] = operation.target;
        TreeEntry& target = nodes[static_cast<std::size_t>(operation.target)].entry;
        target.kind = operation.target_kind;
        if (target.kind == TreeEntry::Kind::link) target.text = operation.data;
        break;
      }
      case Kind::rename:
        // The new name may be on the disk although the node's first name, with its content, never
        // was: a link is then an empty file.
        node.names.erase(operation.name);
        node.names[operation.new_name] = operation.target;
        if (operation.target_kind == TreeEntry::Kind::directory)
          nodes[static_cast<std::size_t>(operation.target)].entry.kind = operation.target_kind;
        break;
      case Kind::remove:
        node.names.erase(operation.name);
        break;
      case Kind::write: {
        std::string_view data = operation.data;
        if (fate == Fate::torn) data = data.substr(0, data.size() / 2);
        const std::string zeros(fate == Fate::zeroed ? data.size() : 0, '\0');
        put(node.entry.text, operation.offset, fate == Fate::zeroed ? zeros : data);
        break;
      }
      case Kind::reserve:
        node.entry.text.resize(static_cast<std::size_t>(operation.offset), '\0');
        break;
      case Kind::sync:
      case Kind::mark:
        break;
    }
  }

  static void collect(const std::vector<Node>& nodes, int at, const std::string& prefix,
                      FileTree& tree) {
    for (const auto& [name, target] : nodes[static_cast<std::size_t>(at)].names) {
      const Node& node = nodes[static_cast<std::size_t>(target)];
      tree[prefix + name] = node.entry;
      if (node.entry.kind == TreeEntry::Kind::directory)
        collect(nodes, target, prefix + name + "/", tree);
    }
  }

  void show(std::size_t point, const std::vector<std::size_t>& pending,
            const std::vector<Fate>& fates, const std::string& how) {
    if (stopped) return;
    CrashImage image{image_of(point, pending, fates), point, marks,
                     "after " + std::to_string(point) + " operations, " + how};
    std::string key = std::to_string(marks.size());
    for (const auto& [path, entry] : image.tree)
      key += '\n' + path + "=/@"[static_cast<int>(entry.kind)] +
             hash_128(std::as_bytes(std::span(entry.text))).hex();
    if (!seen.insert(std::move(key)).second) return;
    ++images;
    stopped = !visit(image);
  }

  static std::string describe(const Operation& operation) {
    switch (operation.kind) {
      case Kind::name:
        return "creation of " + operation.path;
      case Kind::rename:
        return "rename of " + operation.path + " to " + operation.new_name;
      case Kind::remove:
        return "removal of " + operation.path;
      case Kind::write:
        return "write of " + operation.path + " at " + std::to_string(operation.offset);
      case Kind::reserve:
        return "size of " + operation.path;
      default:
        return operation.path;
    }
  }

  void show_point(std::size_t point) {
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; i < point; ++i)
      if (changes_disk(operations[i]) && durable_at[i] > point) pending.push_back(i);
    const std::vector<Fate> kept(pending.size(), Fate::kept);
    const std::vector<Fate> dropped(pending.size(), Fate::dropped);
    show(point, pending, kept, "with all that was asked for");
    show(point, pending, dropped, "without all that was not synced");
    for (std::size_t k = 0; k < pending.size() && !stopped; ++k) {
      const Operation& operation = operations[pending[k]];
      const auto with = [&](std::vector<Fate> fates, Fate fate, const std::string& how) {
        fates[k] = fate;
        show(point, pending, fates, how + describe(operation));
      };
      with(kept, Fate::dropped, "without ");
      with(dropped, Fate::kept, "of what was not synced only with ");
      if (!is_data(operation)) continue;
      with(kept, Fate::torn, "with half of ");
      with(kept, Fate::zeroed, "with zeros for ");
    }
    std::mt19937_64 random(options.seed * 1'000'003 + point);
    for (int r = 0; r < options.random_images && pending.size() > 1 && !stopped; ++r) {
      std::vector<Fate> fates;
      for (const std::size_t i : pending)
        fates.push_back(static_cast<Fate>(random() % (is_data(operations[i]) ? 4 : 2)));
      show(point, pending, fates, "random subset " + std::to_string(r));
    }
  }

  int run() {
    find_syncs();
    for (std::size_t point = 0; point <= operations.size() && !stopped; ++point) {
      if (point > 0 && operations[point - 1].kind == Kind::mark)
        marks.push_back(operations[point - 1].path);
      if (point >= first_point) show_point(point);
    }
    return images;
  }
};

class RecordingFile final : public StorageFile {
 public:
  RecordingFile(std::unique_ptr<StorageFile> inner, RecordingFileSystem& files, int node,
                int handle, std::string name)
      : inner_(std::move(inner)),
        files_(files),
        node_(node),
        handle_(handle),
        name_(std::move(name)) {}

  [[nodiscard]] const std::string& path() const override { return inner_->path(); }
  [[nodiscard]] std::int64_t size_bytes() const override { return inner_->size_bytes(); }
  void reserve(std::int64_t size_bytes) override {
    inner_->reserve(size_bytes);
    record({.kind = Kind::reserve, .offset = size_bytes});
  }
  void write(std::int64_t offset_bytes, std::span<const std::byte> data) override {
    inner_->write(offset_bytes, data);
    record({.kind = Kind::write,
            .offset = offset_bytes,
            .data = std::string(reinterpret_cast<const char*>(data.data()), data.size())});
  }
  void read(std::int64_t offset_bytes, std::span<std::byte> out) const override {
    inner_->read(offset_bytes, out);
  }
  void sync() override {
    inner_->sync();
    record({.kind = Kind::sync});
  }

 private:
  using Kind = RecordingFileSystem::Operation::Kind;
  void record(RecordingFileSystem::Operation operation) {
    operation.node = node_;
    operation.handle = handle_;
    operation.path = name_;
    files_.record(std::move(operation));
  }

  std::unique_ptr<StorageFile> inner_;
  RecordingFileSystem& files_;
  int node_;
  int handle_;
  std::string name_;
};

RecordingFileSystem::RecordingFileSystem(FileSystem& inner, std::string root)
    : inner_(inner), root_(std::move(root)) {
  load(root_);
  nodes_ = base_;
}
RecordingFileSystem::~RecordingFileSystem() = default;

int RecordingFileSystem::load(const std::string& path) {
  const auto index = static_cast<int>(base_.size());
  base_.push_back({{.kind = TreeEntry::Kind::directory}, {}});
  for (const DirectoryEntry& entry : inner_.list(path)) {
    const std::string inside = path + "/" + entry.name;
    int child = static_cast<int>(base_.size());
    if (entry.kind == DirectoryEntry::Kind::directory) {
      load(inside);
    } else {
      base_.push_back({{.text = read_whole_file(inside, kContentLimitBytes)}, {}});
    }
    base_[static_cast<std::size_t>(index)].names[entry.name] = child;
  }
  return index;
}

std::string RecordingFileSystem::relative(const std::string& path) const {
  if (path == root_) return "";
  STRATA_CHECK(path.starts_with(root_ + "/"), path, "is not in", root_);
  return path.substr(root_.size() + 1);
}

int RecordingFileSystem::find(const std::string& relative_path) const {
  int at = 0;
  for (std::size_t begin = 0; begin < relative_path.size();) {
    const std::size_t end = std::min(relative_path.find('/', begin), relative_path.size());
    const auto& names = nodes_[static_cast<std::size_t>(at)].names;
    const auto found = names.find(relative_path.substr(begin, end - begin));
    STRATA_CHECK(found != names.end(), relative_path);
    at = found->second;
    begin = end + 1;
  }
  return at;
}

void RecordingFileSystem::record(Operation operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
}

int RecordingFileSystem::add_name(const std::string& path, TreeEntry::Kind kind,
                                  const std::string& link_text) {
  const std::lock_guard lock(mutex_);
  const int parent = find(relative(parent_directory(path)));
  const std::string name = path.substr(path.rfind('/') + 1);
  const int target = static_cast<int>(nodes_.size());
  nodes_.push_back({{.kind = kind}, {}});
  nodes_[static_cast<std::size_t>(parent)].names[name] = target;
  operations_.push_back({.kind = Operation::Kind::name,
                         .node = parent,
                         .name = name,
                         .target = target,
                         .target_kind = kind,
                         .data = link_text,
                         .path = relative(path)});
  return target;
}

void RecordingFileSystem::remove_name(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const int parent = find(relative(parent_directory(path)));
  const std::string name = path.substr(path.rfind('/') + 1);
  nodes_[static_cast<std::size_t>(parent)].names.erase(name);
  operations_.push_back(
      {.kind = Operation::Kind::remove, .node = parent, .name = name, .path = relative(path)});
}

void RecordingFileSystem::mark(const std::string& text) {
  record({.kind = Operation::Kind::mark, .path = text});
}

int RecordingFileSystem::syncs() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(
      operations_.begin(), operations_.end(),
      [](const Operation& operation) { return operation.kind == Operation::Kind::sync; }));
}

std::string RecordingFileSystem::sync_name(int number) const {
  const std::lock_guard lock(mutex_);
  for (const Operation& operation : operations_)
    if (operation.kind == Operation::Kind::sync && number-- == 0)
      return "fsync of " + operation.path;
  return "no fsync";
}

int RecordingFileSystem::crash_images(const CrashOptions& options,
                                      const std::function<bool(const CrashImage&)>& visit) const {
  const std::lock_guard lock(mutex_);
  CrashModel model{base_, operations_, options, visit, {}, {}, {}};
  return model.run();
}

std::unique_ptr<StorageFile> RecordingFileSystem::create(const std::string& path, Caching caching) {
  auto file = inner_.create(path, caching);
  const int node = add_name(path, TreeEntry::Kind::file);
  const std::lock_guard lock(mutex_);
  return std::make_unique<RecordingFile>(std::move(file), *this, node, handles_++, relative(path));
}

std::unique_ptr<StorageFile> RecordingFileSystem::open_for_writing(const std::string& path,
                                                                   Caching caching) {
  auto file = inner_.open_for_writing(path, caching);
  const std::lock_guard lock(mutex_);
  return std::make_unique<RecordingFile>(std::move(file), *this, find(relative(path)), handles_++,
                                         relative(path));
}

std::unique_ptr<StorageFile> RecordingFileSystem::open_for_reading(const std::string& path,
                                                                   Caching caching) {
  return inner_.open_for_reading(path, caching);
}

void RecordingFileSystem::make_directory(const std::string& path) {
  inner_.make_directory(path);
  add_name(path, TreeEntry::Kind::directory);
}

void RecordingFileSystem::make_link(const std::string& target, const std::string& path) {
  inner_.make_link(target, path);
  add_name(path, TreeEntry::Kind::link, target);
}

void RecordingFileSystem::sync_directory(const std::string& path) {
  inner_.sync_directory(path);
  const std::lock_guard lock(mutex_);
  operations_.push_back({.kind = Operation::Kind::sync,
                         .node = find(relative(path)),
                         .path = "directory " + relative(path)});
}

void RecordingFileSystem::rename(const std::string& from, const std::string& to) {
  inner_.rename(from, to);
  const std::lock_guard lock(mutex_);
  const std::string parent = parent_directory(from);
  STRATA_CHECK(parent == parent_directory(to), from, to);
  const int directory = find(relative(parent));
  const int target = find(relative(from));
  const std::string name = from.substr(from.rfind('/') + 1);
  const std::string new_name = to.substr(to.rfind('/') + 1);
  auto& names = nodes_[static_cast<std::size_t>(directory)].names;
  names.erase(name);
  names[new_name] = target;
  operations_.push_back({.kind = Operation::Kind::rename,
                         .node = directory,
                         .name = name,
                         .new_name = new_name,
                         .target = target,
                         .target_kind = nodes_[static_cast<std::size_t>(target)].entry.kind,
                         .path = relative(from)});
}

void RecordingFileSystem::remove_file(const std::string& path) {
  inner_.remove_file(path);
  remove_name(path);
}

void RecordingFileSystem::remove_directory(const std::string& path) {
  inner_.remove_directory(path);
  remove_name(path);
}

std::vector<DirectoryEntry> RecordingFileSystem::list(const std::string& path) {
  return inner_.list(path);
}

std::optional<std::int64_t> RecordingFileSystem::free_bytes(const std::string& path) {
  return inner_.free_bytes(path);
}

void write_tree(const std::string& directory, const FileTree& tree, const FileTree& last) {
  namespace fs = std::filesystem;
  for (auto it = last.rbegin(); it != last.rend(); ++it) {  // content before its directory
    const auto found = tree.find(it->first);
    if (found == tree.end() || found->second.kind != it->second.kind ||
        (found->second.kind == TreeEntry::Kind::link && found->second != it->second))
      fs::remove_all(directory + "/" + it->first);
  }
  for (const auto& [path, entry] : tree) {
    const auto found = last.find(path);
    if (found != last.end() && found->second == entry) continue;
    const std::string target = directory + "/" + path;
    switch (entry.kind) {
      case TreeEntry::Kind::directory:
        fs::create_directories(target);
        break;
      case TreeEntry::Kind::link:
        fs::create_symlink(entry.text, target);
        break;
      case TreeEntry::Kind::file: {
        std::ofstream file(target, std::ios::binary | std::ios::trunc);
        file << entry.text;
        STRATA_CHECK(file.flush(), path);
      }
    }
  }
}

}  // namespace strata
