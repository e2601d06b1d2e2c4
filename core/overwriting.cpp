#include "core/overwriting.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// True if both names lead to one file, or would once it is made.
bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  if (fs::equivalent(one, other, error)) return true;
  if (fs::exists(one, error) || fs::exists(other, error)) return false;
  return fs::weakly_canonical(fs::absolute(one, error), error) ==
         fs::weakly_canonical(fs::absolute(other, error), error);
}

void refuse_if_same(const NamedFile& written, const NamedFile& kept) {
  if (written.path.empty() || kept.path.empty()) return;
  if (!is_same_file(written.path, kept.path)) return;
  if (!written.moved.empty())
    throw InvalidArgument(fmt::format(
        "an earlier file of {} {} is moved to {}, which is the file of {} {} and would be "
        "overwritten; name another",
        written.flag, written.moved, written.path, kept.flag, kept.path));
  throw InvalidArgument(
      fmt::format("{} {} is the file of {} {}, which would be overwritten; name another",
                  written.flag, written.path, kept.flag, kept.path));
}

}  // namespace

void refuse_overwriting(std::span<const NamedFile> written, std::span<const NamedFile> read) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    std::error_code unknown;
    const NamedFile& file = written[i];
    if (fs::exists(file.path, unknown) && !fs::is_regular_file(file.path, unknown)) continue;
    for (const NamedFile& kept : read) refuse_if_same(file, kept);
    for (const NamedFile& kept : written.first(i)) refuse_if_same(file, kept);
  }
}

}  // namespace strata
