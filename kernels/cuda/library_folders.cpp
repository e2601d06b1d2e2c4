#include "kernels/cuda/library_folders.h"

#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

namespace strata::cuda {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ':');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

/// A list of existing folders in order of search, each once.
class FolderList {
 public:
  /// Adds the folders `inside` each match of `pattern`, a pattern as in a shell. The match that is
  /// last in the alphabet comes first, since it is the newest version.
  void add(const std::string& pattern, std::initializer_list<const char*> inside = {""}) {
    glob_t found{};
    const std::unique_ptr<glob_t, decltype(&::globfree)> release(&found, ::globfree);
    if (::glob(pattern.c_str(), 0, nullptr, &found) != 0) return;
    for (std::size_t i = found.gl_pathc; i-- > 0;)
      for (const char* folder : inside) add_folder(std::string(found.gl_pathv[i]) + folder);
  }
  /// Adds the folders of wheels below `prefix`: lib/python3.11/site-packages/nvidia/cublas/lib.
  void add_python(const std::string& prefix) {
    for (const char* packages : {"site-packages", "dist-packages"})
      add(prefix + "/lib/python3*/" + packages + "/nvidia/*/lib");
  }
  std::vector<std::string> take() { return std::move(folders_); }

 private:
  void add_folder(const std::string& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return;
    if (std::find(folders_.begin(), folders_.end(), folder) == folders_.end())
      folders_.push_back(folder);
  }
  std::vector<std::string> folders_;
};

/// The prefixes of the first python3 on PATH: that of its folder on PATH (of a virtual environment,
/// if it is one), and that of the file to which its symbolic links lead.
std::vector<std::string> python_prefixes(const std::string& search_path) {
  for (const std::string& folder : split(search_path)) {
    const fs::path program = fs::path(folder) / "python3";
    std::error_code error;
    const fs::path real = fs::canonical(program, error);
    if (error) continue;
    return {program.parent_path().parent_path().string(),
            real.parent_path().parent_path().string()};
  }
  return {};
}

std::vector<std::string> folders_after_loader(const LibraryEnvironment& environment) {
  const std::string& root = environment.root;
  FolderList folders;
  for (const char* toolkit : {"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda"})
    folders.add(root + toolkit, {"/lib64", "/targets/x86_64-linux/lib"});
  for (const char* system : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"})
    folders.add(root + system);
  for (const std::string& prefix : python_prefixes(environment.path)) folders.add_python(prefix);
  if (!environment.virtual_env.empty()) folders.add_python(environment.virtual_env);
  if (!environment.home.empty()) folders.add_python(environment.home + "/.local");
  for (const char* prefix : {"/usr/local", "/usr"}) folders.add_python(root + prefix);
  return folders.take();
}

}  // namespace

LibraryEnvironment library_environment() {
  return {.cuda_path = variable("STRATA_CUDA_PATH"),
          .path = variable("PATH"),
          .virtual_env = variable("VIRTUAL_ENV"),
          .home = variable("HOME"),
          .root = {}};
}

LibrarySearch cuda_library_search(std::vector<std::string> names,
                                  const LibraryEnvironment& environment,
                                  const std::string& advice) {
  LibrarySearch search{.names = std::move(names),
                       .folders_before_loader = {},
                       .folders_after_loader = folders_after_loader(environment),
                       .advice = advice};
  for (const std::string& folder : split(environment.cuda_path))
    for (const char* inside : {"", "/lib", "/lib64"})
      search.folders_before_loader.push_back(folder + inside);
  return search;
}

}  // namespace strata::cuda
