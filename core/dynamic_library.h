// Shared libraries that a program opens when a run needs them, so that it starts without them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The places of a library, searched in this order; in each folder all names are tried in turn.
struct LibrarySearch {
  std::vector<std::string> names;  ///< file names, the preferred one first: "libnccl.so.2"
  std::vector<std::string> folders_before_loader;
  /// Searched last, after the loader's own places (LD_LIBRARY_PATH, ld.so.conf).
  std::vector<std::string> folders_after_loader;
  std::string advice;  ///< ends the message when nothing is found: what to install or to set
  /// Returns why a file (its path, symbolic links resolved) that loads is passed over, or "". None
  /// of its functions has been called by then.
  std::function<std::string(const std::string& path)> refuse = {};
};

/// An open library. Its code stays in memory when this object is destroyed: threads that the
/// library started may still run it.
class DynamicLibrary {
 public:
  /// Opens the first library that loads; its symbols stay invisible to others. Throws HostError
  /// that names the library, places searched, why the loader refused what was found, and advice.
  static DynamicLibrary open(const LibrarySearch& search);

  /// The library's file, with symbolic links resolved.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns nullptr when the library has no such symbol.
  [[nodiscard]] void* find(const char* symbol) const;

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  using Handle = std::unique_ptr<void, Close>;

  explicit DynamicLibrary(Handle handle);
  Handle handle_;
  std::string path_;
};

/// Fills a table of function pointers, and reports all missing ones in one error.
class SymbolReader {
 public:
  explicit SymbolReader(const DynamicLibrary& library) : library_(library) {}

  template <typename Function>
  void read(const char* name, Function*& to) {
    to = reinterpret_cast<Function*>(find(name));
  }
  /// Throws HostError that names the library's file, the symbols that it lacks, and `advice`.
  void require_all(std::string_view advice) const;

 private:
  void* find(const char* name);

  const DynamicLibrary& library_;
  std::vector<std::string> missing_;
};

}  // namespace strata
