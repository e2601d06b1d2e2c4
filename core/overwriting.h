// Refuses to write over files that a program reads, or that it writes for another flag.
#pragma once

#include <span>
#include <string>

namespace strata {

struct NamedFile {
  std::string flag;        ///< that names it, as in messages: "--data"
  std::string path;        ///< "": the flag is not given
  std::string moved = {};  ///< an earlier file, which is moved to `path`; "": `path` is written
};

/// Throws InvalidArgument naming both flags if a file of `written` is one of `read`, or one that
/// comes before it in `written`: by whatever name or link, and before it exists by its name. What
/// is no regular file, such as /dev/null, may be named again.
void refuse_overwriting(std::span<const NamedFile> written, std::span<const NamedFile> read);

}  // namespace strata
