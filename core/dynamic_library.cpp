#include "core/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>

#include "core/error.h"

namespace strata {
namespace {

/// RTLD_NODELETE keeps the code in memory after dlclose: see DynamicLibrary.
void* open_library(const std::string& file) {
  return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
    throw HostError(std::string("dlinfo failed: ") + ::dlerror());
  std::error_code error;
  const auto path = std::filesystem::canonical(map->l_name, error);
  return error ? map->l_name : path.string();
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

/// One attempt to find a library; remembers where it looked and which files did not load.
class Attempt {
 public:
  explicit Attempt(const LibrarySearch& search) : search_(search) {}

  void* run() {
    void* handle = in_folders(search_.folders_before_loader);
    if (handle == nullptr) handle = by_loader();
    if (handle == nullptr) handle = in_folders(search_.folders_after_loader);
    return handle;
  }

  [[nodiscard]] std::string message() const {
    std::string text = "cannot open " + joined(search_.names, " or ") + "; looked in ";
    text += joined(places_, ", ");
    if (!refused_.empty()) text += "; found but refused: " + joined(refused_, "; ");
    return search_.advice.empty() ? text : text + "; " + search_.advice;
  }

 private:
  void* in_folders(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders) {
      places_.push_back(folder);
      for (const std::string& name : search_.names) {
        const std::filesystem::path file = std::filesystem::path(folder) / name;
        std::error_code error;
        if (!std::filesystem::exists(file, error)) continue;
        if (void* handle = open(file.string())) return handle;
      }
    }
    return nullptr;
  }

  void* by_loader() {
    places_.emplace_back("the loader's own places (LD_LIBRARY_PATH, ld.so.conf)");
    for (const std::string& name : search_.names)
      if (void* handle = open(name, Missing::expected)) return handle;
    return nullptr;
  }

  enum class Missing : bool { expected, reported };

  /// Opens a file that the search does not refuse; where it returns nullptr it notes why.
  void* open(const std::string& file, Missing missing = Missing::reported) {
    constexpr auto close = [](void* handle) { (void)::dlclose(handle); };
    const std::unique_ptr<void, decltype(close)> seen(
        ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (seen == nullptr) {
      const char* why = ::dlerror();
      if (missing == Missing::reported) refused_.emplace_back(why);
      return nullptr;
    }
    const std::string path = search_.refuse ? path_of(seen.get()) : "";
    const std::string why = search_.refuse ? search_.refuse(path) : "";
    if (why.empty()) return open_library(file);  // the same file, since it is open
    refused_.push_back(path + ": " + why);
    return nullptr;
  }

  const LibrarySearch& search_;
  std::vector<std::string> places_;
  std::vector<std::string> refused_;
};

}  // namespace

void DynamicLibrary::Close::operator()(void* handle) const noexcept { (void)::dlclose(handle); }

DynamicLibrary::DynamicLibrary(Handle handle)
    : handle_(std::move(handle)), path_(path_of(handle_.get())) {}

DynamicLibrary DynamicLibrary::open(const LibrarySearch& search) {
  Attempt attempt(search);
  void* handle = attempt.run();
  if (handle == nullptr) throw HostError(attempt.message());
  return DynamicLibrary(Handle(handle));
}

void* DynamicLibrary::find(const char* symbol) const { return ::dlsym(handle_.get(), symbol); }

void* SymbolReader::find(const char* name) {
  void* symbol = library_.find(name);
  if (symbol == nullptr) missing_.emplace_back(name);
  return symbol;
}

void SymbolReader::require_all(std::string_view advice) const {
  if (missing_.empty()) return;
  throw HostError(library_.path() + " lacks " + joined(missing_, ", ") + "; " +
                  std::string(advice));
}

}  // namespace strata
