// A file that takes the place of an earlier one as a whole, or leaves it as it was.
#pragma once

#include <string>
#include <string_view>

#include "core/unique_fd.h"

namespace strata {

/// Writes beside `path` under another name, which commit() replaces: readers see the old content or
/// the new one, and without commit() nothing is left of the new. Follows links. Devices and pipes
/// are written directly. Errors name `path`.
class ReplacedFile {
 public:
  /// Throws IoError.
  explicit ReplacedFile(std::string path);
  ReplacedFile(ReplacedFile&& other) noexcept;
  ReplacedFile& operator=(ReplacedFile&&) = delete;
  /// Removes what was not committed.
  ~ReplacedFile();

  /// Writes behind what was written so far. Throws IoError.
  void append(std::string_view content);
  /// Returns once the content is on the disk, so that there is room for it. Throws IoError.
  void sync();
  /// Gives the file its name. Call sync() before, and nothing afterwards. Throws IoError.
  void commit();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string target_;  ///< where a link leads
  std::string aside_;   ///< the other name; "": there is none, or not any more
  UniqueFd file_;
};

}  // namespace strata
