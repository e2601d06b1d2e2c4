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

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolderMode = 0700, kFileMode = 0600;
constexpr std::size_t kProbeBytes = 4096;

[[noreturn]] void refuse(const std::string& directory, const std::string& path,
                         const std::error_code& error) {
  throw HostError(fmt::format("--log-dir {}: the folder {} cannot be made: {}; name another one",
                              directory, path, std::strerror(error.value())));
}

/// Gives the name of a log a number where a file of that name is there. Returns 0 or an errno.
int number_if_taken(fs::path& log) {
  const std::string stem = log.stem().string(), first = stem.substr(0, stem.rfind(".again_"));
  struct stat there;
  for (int number = 1; ::lstat(log.c_str(), &there) == 0; ++number)
    log.replace_filename(fmt::format("{}.again_{}.log", first, number));
  return errno == ENOENT ? 0 : errno;
}

/// Moves the file `from` to `to`, or beside what has that name. Returns 0 or an errno.
int moved_beside(const fs::path& from, fs::path& to) {
  if (const int error = number_if_taken(to)) return error;  // NFS lacks renameat2's NOREPLACE
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void LogFolder::make_parent(const std::string& directory) {
  const fs::path probe = fs::absolute(directory) / fmt::format(".probe_{}", ::getpid());
  NewFolders made(kFolderMode);
  if (const std::error_code error = made.make(probe)) refuse(directory, probe, error);
  (void)::rmdir(probe.c_str());
  made.keep();
}

LogFolder::LogFolder(const std::string& directory, const std::string& run_id,
                     std::optional<int> host)
    : path_(std::filesystem::absolute(directory) / run_id), attempt_path_(path_) {
  NewFolders made(kFolderMode);
  begin(directory, host, made);
  if (lost_ && host) {  // host 0 may have moved the folder meanwhile, to the run that it takes up
    lost_ = false;
    complaint_.reset();
    begin(directory, host, made);
  }
  if (lost_)
    throw Error(ExitCode::io, fmt::format("--log-dir {}: {}; make room, or name another one",
                                          directory, failure_));
  made.keep();
}

void LogFolder::begin(const std::string& directory, std::optional<int> host, NewFolders& made) {
  std::error_code error = made.make_new(path_);
  is_own_ = !error;
  if (host && error == std::errc::file_exists) error.clear();
  if (error) refuse(directory, path_, error);
  // A full disk has room for folders, and for no byte in a file.
  const std::string own = host ? fmt::format(".{}", *host) : std::string();
  const std::string probe = path_ + "/.room" + own;
  keep(probe, std::string(kProbeBytes, ' '));
  (void)::unlink(probe.c_str());  // all that was written there
  // An agent that was started anew finds what the one before has kept.
  fs::path notes = path_ + "/mlaunch" + own + ".log";
  (void)number_if_taken(notes);  // to make it tells what is wrong
  notes_path_ = notes;
  notes_ = create(notes_path_);
}

bool LogFolder::move_to(const std::string& run_id) {
  if (lost_) return false;
  const fs::path to = fs::path(path_).parent_path() / run_id, notes(notes_path_);
  fs::path moved = to / notes.filename();
  int error = !is_own_ ? EEXIST : ::rename(path_.c_str(), to.c_str()) == 0 ? 0 : errno;
  if (error == EEXIST || error == ENOTEMPTY) {
    // Logs of another run stay under its name.
    is_own_ = ::mkdir(to.c_str(), kFolderMode) == 0;
    error = is_own_ || errno == EEXIST ? moved_beside(notes, moved) : errno;
    if (error == 0) (void)::rmdir(path_.c_str());  // unless logs of other hosts are left there
    if (error == ENOENT) moved = to / notes.filename();  // they were moved with the folder
  }
  if (error != 0 && error != ENOENT) {  // another host may have moved the folder
    complaint_ = fmt::format("--log-dir: the logs stay in {}: moving them to {} failed ({})", path_,
                             to.string(), std::strerror(error));
    return false;
  }
  path_ = attempt_path_ = to;
  notes_path_ = moved;
  return true;
}

void LogFolder::note(std::string_view text) {
  const std::string time = utc_text(std::chrono::system_clock::now());
  append(notes_, notes_path_, fmt::format("{} {}\n", time, text.substr(0, text.find('\n'))));
}

void LogFolder::begin_attempt(const Placement& placement, int node) {
  end_attempt();
  attempt_path_ = folder_of(placement.attempt);
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

std::string LogFolder::keep_of_attempt(int attempt, const std::string& name,
                                       std::string_view text) {
  const std::string folder = folder_of(attempt), file = folder + "/" + name;
  make_folder(folder);
  keep(file, text);
  return lost_ ? "" : file;
}

std::string LogFolder::folder_of(int attempt) const {
  return fmt::format("{}/attempt_{}", path_, attempt);
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
  (void)::unlink(part.c_str());  // of an mlaunch that was killed
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
