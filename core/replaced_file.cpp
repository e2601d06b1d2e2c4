#include "core/replaced_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/link_target.h"
#include "core/system_call.h"

namespace strata {

namespace fs = std::filesystem;

ReplacedFile::ReplacedFile(std::string path) : path_(std::move(path)), target_(link_target(path_)) {
  std::error_code unknown;
  const bool is_device = fs::is_other(fs::status(path_, unknown));
  if (!is_device) aside_ = fmt::format("{}.tmp-{}", target_, ::getpid());
  const std::string& name = is_device ? path_ : aside_;
  const int flags = is_device ? O_WRONLY | O_NOCTTY : O_WRONLY | O_CREAT | O_TRUNC;
  int fd = -1;
  do {
    fd = ::open(name.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw IoError(path_, 0, "cannot open", errno);
  file_ = UniqueFd(fd);
}

ReplacedFile::ReplacedFile(ReplacedFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      aside_(std::exchange(other.aside_, {})),
      file_(std::move(other.file_)) {}

ReplacedFile::~ReplacedFile() {
  if (!aside_.empty()) ::unlink(aside_.c_str());  // the first error is the one to report
}

void ReplacedFile::append(std::string_view content) {
  while (!content.empty()) {
    const ssize_t n =
        ::write(file_.get(), content.data(), std::min(content.size(), kMaxTransferBytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw IoError(path_, 0, "write failed", n < 0 ? errno : 0);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

void ReplacedFile::sync() {
  if (!aside_.empty() && ::fsync(file_.get()) != 0) throw IoError(path_, 0, "fsync failed", errno);
}

void ReplacedFile::commit() {
  if (aside_.empty()) return;
  if (::rename(aside_.c_str(), target_.c_str()) != 0)
    throw IoError(path_, 0, "cannot rename " + aside_, errno);
  aside_.clear();
  const std::string parent = fs::path(target_).parent_path().string();
  sync_directory(parent.empty() ? "." : parent);
}

}  // namespace strata
