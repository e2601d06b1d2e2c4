#include "train/session/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

#include "core/file.h"
#include "core/link_target.h"
#include "core/name_aside.h"
#include "core/replaced_file.h"

namespace strata::train {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{1} << 20;

}  // namespace

bool require_earlier_file(const std::string& path, std::string_view beginning,
                          const std::string& what, const std::string& said_by) {
  struct stat status {};
  // A path that names no regular file (a pipe, /dev/null) stays as it is.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    return false;
  std::string first(std::min(beginning.size(), static_cast<std::size_t>(status.st_size)), '\0');
  File::open_for_reading(path).read(0, std::as_writable_bytes(std::span(first)));
  if (!beginning.starts_with(first))
    throw InvalidArgument(said_by + " " + path + ": the file holds something else than " + what +
                          "; name another");
  return true;
}

std::string put_earlier_file_aside(const std::string& path, std::string_view beginning,
                                   const std::string& what, const std::string& said_by) {
  if (!require_earlier_file(path, beginning, what, said_by)) return "";
  const std::string file = link_target(path);
  std::string aside = name_aside(file);
  if (::rename(file.c_str(), aside.c_str()) != 0)
    throw IoError(file, 0, "cannot rename it to " + aside, errno);
  return aside;
}

AppendedFile::AppendedFile(std::string path, std::string what, OnFailure on_failure)
    : path_(std::move(path)), what_(std::move(what)), on_failure_(std::move(on_failure)) {
  open();
}

void AppendedFile::open() {
  file_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666));
  if (!file_.valid()) throw IoError(path_, 0, "cannot create the file of " + what_, errno);
}

bool AppendedFile::is_regular() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode);
}

bool AppendedFile::is_empty() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 && status.st_size == 0;
}

void AppendedFile::clear() {
  if (is_regular() && ::ftruncate(file_.get(), 0) != 0)
    throw IoError(path_, 0, "cannot empty the file of " + what_, errno);
}

void AppendedFile::cut_lines_after(std::int64_t step, StepOf step_of) {
  if (!is_regular()) return;
  const File file = File::open_for_reading(path_);
  const std::int64_t size = file.size_bytes();
  std::string block, line, kept;
  std::int64_t line_begin = 0, cut = size;  // from `cut` on only what is kept is written again
  for (std::int64_t at = 0; at < size; at += std::ssize(block)) {
    block.resize(static_cast<std::size_t>(std::min(kReadBytes, size - at)));
    file.read(at, std::as_writable_bytes(std::span(block)));
    for (const char c : block) {
      line += c;
      if (c != '\n') continue;
      const bool goes = step_of(line) > step;
      if (goes && cut == size) cut = line_begin;
      if (!goes && cut < size) kept += line;
      line_begin += std::ssize(line);
      line.clear();
    }
  }
  if (!line.empty()) cut = std::min(cut, line_begin);
  if (cut == size) return;
  if (!kept.empty()) return replace_after(cut, kept);
  if (::ftruncate(file_.get(), cut) != 0)
    throw IoError(path_, static_cast<std::uint64_t>(cut), "cannot cut the file of " + what_, errno);
}

void AppendedFile::replace_after(std::int64_t end, std::string_view rest) {
  const File file = File::open_for_reading(path_);
  ReplacedFile whole(path_);
  std::string block;
  for (std::int64_t at = 0; at < end; at += std::ssize(block)) {
    block.resize(static_cast<std::size_t>(std::min(kReadBytes, end - at)));
    file.read(at, std::as_writable_bytes(std::span(block)));
    whole.append(block);
  }
  whole.append(rest);
  whole.sync();
  whole.commit();
  open();
}

bool AppendedFile::append(std::string_view records) {
  std::size_t done = 0;
  while (done < records.size()) {
    const ssize_t n = ::write(file_.get(), records.data() + done, records.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      done += static_cast<std::size_t>(n);
      continue;
    }
    const IoError error(path_, 0, "cannot write " + what_, n < 0 ? errno : 0);
    struct stat status {};
    // Half a record would spoil the next one. What follows is tried again: disks become free.
    if (done > 0 && is_regular() && ::fstat(file_.get(), &status) == 0)
      (void)!::ftruncate(file_.get(), status.st_size - static_cast<off_t>(done));
    if (on_failure_) std::exchange(on_failure_, nullptr)(error);
    return false;
  }
  return true;
}

}  // namespace strata::train
