#include "train/doctor/disk_facts.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

#include "offload/nvme/open_store.h"
#include "offload/nvme/probe.h"
#include "offload/nvme/space_file.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// True if `path` is `folder` or lies in it.
bool is_below(const std::string& path, const std::string& folder) {
  if (folder == "/" || path == folder) return true;
  return path.starts_with(folder) && path[folder.size()] == '/';
}

/// Type and source of the innermost mount that holds `path`.
std::string file_system_of(const std::string& path) {
  std::error_code error;
  const std::string whole = fs::canonical(path, error);
  if (error) return "";
  std::ifstream file("/proc/self/mountinfo");
  std::string found;
  std::size_t longest = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string word, folder, type, source;
    for (int i = 0; i < 4; ++i) before >> word;
    before >> folder;
    after >> type >> source;
    // The last of several mounts on one folder is the visible one.
    if (!is_below(whole, folder) || folder.size() < longest) continue;
    longest = folder.size();
    found = type + " on " + source;
  }
  return found;
}

std::unique_ptr<offload::NvmeStore> open(const std::vector<std::string>& paths,
                                         std::int64_t bytes) {
  offload::StoreRequest request;
  request.directories = paths;
  request.bytes = bytes;
  return offload::open_store(request);
}

}  // namespace

void require_folder(const std::string& path) { open({path}, 0); }

DiskFacts measure_disk(const std::string& path) {
  DiskFacts facts;
  facts.path = path;
  facts.file_system = file_system_of(path);
  facts.free_bytes = offload::free_bytes(path);
  const auto store = open({path}, offload::probe_bytes({path}));
  facts.direct = (::fcntl(store->file(0), F_GETFL) & O_DIRECT) != 0;
  facts.notes = store->notes();
  facts.speed = offload::probe(*store);
  return facts;
}

machine::Disk measure_striped(const std::vector<std::string>& paths) {
  return offload::probe(*open(paths, offload::probe_bytes(paths)));
}

}  // namespace strata::train
