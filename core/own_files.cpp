#include "core/own_files.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"

namespace strata {
namespace fs = std::filesystem;

namespace {
constexpr std::string_view kModulePrefix = "libstrata_";

/// The folders in which modules may lie, the preferred one first.
std::array<fs::path, 2> module_folders() {
  const fs::path programs = own_directory();
  return {programs / ".." / "lib", programs};
}
}  // namespace

static fs::path find_module(const ModuleSearch& search) {
  std::string looked;
  for (const fs::path& folder : module_folders()) {
    const fs::path candidate = (folder / search.file).lexically_normal();
    std::error_code error;
    if (fs::exists(candidate, error)) return candidate;
    looked += (looked.empty() ? "" : ", ") + candidate.string();
    if (error) looked += " (" + error.message() + ")";
  }
  throw HostError(search.purpose + " needs " + search.file + ", which is not at " + looked + "; " +
                  search.if_missing);
}

std::string own_directory() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw HostError("reading /proc/self/exe: " + error.message() + "; is /proc mounted?");
  return self.parent_path();
}

static std::uint64_t hash_of_file(const std::string& path) {
  const File file = File::open_for_reading(path);
  std::vector<std::byte> piece(std::size_t{1} << 20);
  std::vector<std::uint64_t> hashes;
  for (std::int64_t at = 0, end = file.size_bytes(); at < end; at += std::ssize(piece)) {
    const std::span<std::byte> bytes =
        std::span(piece).first(static_cast<std::size_t>(std::min(std::ssize(piece), end - at)));
    file.read(at, bytes);
    hashes.push_back(hash_64(bytes));
  }
  return hash_64(std::as_bytes(std::span(hashes)));
}

std::uint64_t hash_of_program() { return hash_of_file("/proc/self/exe"); }

std::map<std::string, std::uint64_t> hashes_of_installed(const std::vector<std::string>& programs) {
  std::map<std::string, std::uint64_t> hashes;
  const fs::path folder_of_programs = own_directory();
  for (const std::string& name : programs) {
    const fs::path path = folder_of_programs / name;
    std::error_code error;
    if (fs::exists(path, error)) hashes.emplace(name, hash_of_file(path));
    if (error) throw HostError("cannot look at " + path.string() + ": " + error.message());
  }
  for (const fs::path& folder : module_folders()) {
    std::error_code none;  // there may be no such folder
    for (fs::directory_iterator it(folder, none), end; it != end; it.increment(none)) {
      const std::string name = it->path().filename();
      if (name.starts_with(kModulePrefix) && name.ends_with(".so") && !hashes.contains(name))
        hashes.emplace(name, hash_of_file(it->path()));
    }
  }
  return hashes;
}

std::vector<OpenedModule> opened_modules() {
  std::vector<fs::path> paths;
  const auto collect = [](dl_phdr_info* object, std::size_t, void* found) {
    const fs::path path(object->dlpi_name);
    if (path.filename().string().starts_with(kModulePrefix))
      static_cast<std::vector<fs::path>*>(found)->push_back(path);
    return 0;
  };
  ::dl_iterate_phdr(collect, &paths);
  std::vector<OpenedModule> modules;
  for (const fs::path& path : paths)
    modules.push_back(
        {path.filename().string(), path.parent_path().string(), hash_of_file(path.string())});
  std::ranges::sort(modules, {}, &OpenedModule::file);
  return modules;
}

void* module_entry(const ModuleSearch& search) {
  const fs::path path = find_module(search);
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw HostError("cannot load " + path.string() + ": " + ::dlerror() + "; " + search.if_refused);
  void* entry = ::dlsym(module, search.entry.c_str());
  if (entry == nullptr)
    throw HostError(path.string() + " is no module of this Strata: " + ::dlerror());
  return entry;
}

}  // namespace strata
