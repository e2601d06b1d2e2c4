#include "launcher/output/log_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "launcher/output/make_folders.h"

namespace strata::launcher {
namespace {

constexpr mode_t kFolderMode = 0700, kFileMode = 0600;
constexpr std::size_t kProbeBytes = 4096;

void remove_folders(const std::vector<std::string>& made) {
  for (auto folder = made.rbegin(); folder != made.rend(); ++folder) (void)::rmdir(folder->c_str());
}

}  // namespace

LogFolder::LogFolder(const std::string& directory, const std::string& run_id,
                     std::optional<int> host)
    : path_(std::filesystem::absolute(directory) / run_id), attempt_path_(path_) {
  std::vector<std::string> made;
  const bool has_parent = make_folders(directory, made);
  const bool is_made = has_parent && ::mkdir(path_.c_str(), kFolderMode) == 0;
  if (!is_made && !(has_parent && host && errno == EEXIST)) {
    const int error = errno;
    remove_folders(made);
    throw HostError(fmt::format("--log-dir {}: the folder {} cannot be made: {}; name another one",
                                directory, path_, std::strerror(error)));
  }
  // A full disk has room for folders, and for no byte in a file.
  const std::string own = host ? fmt::format(".{}", *host) : std::string();
  const std::string probe = path_ + "/.room" + own;
  keep(probe, std::string(kProbeBytes, ' '));
  (void)::unlink(probe.c_str());  // all that was written there
  notes_path_ = path_ + "/mlaunch" + own + ".log";
  if (!lost_) notes_ = create(notes_path_);
  if (!lost_) return;
  if (is_made) made.push_back(path_);
  remove_folders(made);
  throw Error(ExitCode::io,
              fmt::format("--log-dir {}: {}; make room, or name another one", directory, failure_));
}

void LogFolder::note(std::string_view text) {
  const std::string time = utc_text(std::chrono::system_clock::now());
  append(notes_, notes_path_, fmt::format("{} {}\n", time, text.substr(0, text.find('\n'))));
}

void LogFolder::begin_attempt(const Placement& placement, int node) {
  end_attempt();
  attempt_path_ = fmt::format("{}/attempt_{}", path_, placement.attempt);
  make_folder(attempt_path_);
  for (int rank = 0; rank < placement.ranks_of(node); ++rank) {
    const std::string folder =
        fmt::format("{}/rank_{}", attempt_path_, placement.first_rank(node) + rank);
    make_folder(folder);
    files_.push_back({create(folder + "/stdout.log"), create(folder + "/stderr.log")});
  }
}

void LogFolder::write(int local_rank, OutputKind kind, std::string_view bytes) {
  if (lost_ || files_.empty()) return;
  const auto& file =
      files_[static_cast<std::size_t>(local_rank)][kind == OutputKind::standard_output ? 0 : 1];
  append(file, fmt::format("logs of a rank in {}", attempt_path_), bytes);
}

void LogFolder::keep_of_attempt(const std::string& name, std::string_view text) {
  keep(attempt_path_ + "/" + name, text);
}

void LogFolder::keep_of_run(const std::string& name, std::string_view text) {
  keep(path_ + "/" + name, text);
}

void LogFolder::end_attempt() {
  for (std::array<UniqueFd, 2>& files : files_)
    for (UniqueFd& file : files) close(file, fmt::format("logs of a rank in {}", attempt_path_));
  files_.clear();
}

void LogFolder::keep(const std::string& file, std::string_view text) {
  const std::string part = file + ".part";
  UniqueFd opened = create(part);
  if (!opened.valid()) return;
  append(opened, file, text);
  close(opened, file);
  if (!lost_ && ::rename(part.c_str(), file.c_str()) != 0) give_up("renaming", part, errno);
  if (lost_) (void)::unlink(part.c_str());  // it told its failure
}

void LogFolder::close(UniqueFd& file, const std::string& name) {
  if (file.valid() && ::close(file.release()) != 0 && errno != EINTR)
    give_up("ending", name, errno);
}

std::optional<std::string> LogFolder::take_complaint() {
  return std::exchange(complaint_, std::nullopt);
}

UniqueFd LogFolder::create(const std::string& file) {
  if (lost_) return {};
  UniqueFd opened(::open(
      file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!opened.valid()) give_up("making", file, errno);
  return opened;
}

void LogFolder::make_folder(const std::string& folder) {
  // That of an attempt is common to all hosts.
  if (!lost_ && ::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST)
    give_up("making", folder, errno);
}

bool LogFolder::append(const UniqueFd& file, const std::string& name, std::string_view bytes) {
  while (!lost_ && !bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) give_up("writing", name, count < 0 ? errno : ENOSPC);
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return !lost_;
}

void LogFolder::give_up(const std::string& what, const std::string& name, int error) {
  if (std::exchange(lost_, true)) return;
  failure_ = fmt::format("{} {} failed ({})", what, name, std::strerror(error));
  complaint_ = fmt::format("--log-dir: {}; the run goes on without logs in files", failure_);
}

}  // namespace strata::launcher
