#include "train/checkpoint/output_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace strata::train {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr off_t kOwnerByte = 0;
constexpr off_t kRanksByte = 1;
constexpr milliseconds kPoll{20};

std::string lock_path(const std::string& output) { return output + "/.strata-lock"; }

/// Returns what the owner wrote about itself, or a guess if it has not written yet.
std::string owner_text(int file) {
  std::array<char, 512> text{};
  const ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
  std::string owner(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  while (!owner.empty() && owner.back() == '\n') owner.pop_back();
  for (char& c : owner)
    if (c < ' ' || c > '~') c = '?';  // the text goes to a screen
  return owner.empty() ? "another process" : owner;
}

/// Tries to lock a byte; true on success. A lock that this file holds changes its kind atomically.
bool lock(const UniqueFd& file, const std::string& output, off_t byte, short kind) {
  struct flock wanted {};
  wanted.l_type = kind;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = byte;
  wanted.l_len = 1;
  int result = 0;
  do {
    result = ::fcntl(file.get(), F_OFD_SETLK, &wanted);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL)
    throw HostError(fmt::format(
        "{}: its file system has no locks ({}), without which two runs could write there at a "
        "time; mount it with locks (NFS: without 'nolock', with the lock service of server and "
        "client running), or choose an --output on another file system",
        output, std::strerror(errno)));
  throw IoError(lock_path(output), 0, "cannot lock", errno);
}

bool lock_until(const UniqueFd& file, const std::string& output, off_t byte, Clock::time_point end,
                const Beat& beat) {
  while (!lock(file, output, byte, F_WRLCK)) {
    if (Clock::now() >= end) return false;
    beat();
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace

OutputLock::OutputLock(const std::string& output, const LockOwner& owner, milliseconds wait,
                       const Beat& beat)
    : path_(lock_path(output)) {
  file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file_.valid()) throw IoError(path_, 0, "cannot create the lock file", errno);
  const Clock::time_point end = Clock::now() + wait;
  if (!lock_until(file_, output, kOwnerByte, end, beat))
    throw HostError(output + ": in use by " + owner_text(file_.get()) +
                    "; wait for it to end, or choose another output folder");
  if (!lock_until(file_, output, kRanksByte, end, beat))
    throw HostError(output + ": " + owner_text(file_.get()) +
                    ", has ended, but other ranks still live and may write there; wait for them "
                    "to end, or end them: fuser " +
                    path_ + " lists those of this host");
  const std::string text =
      fmt::format("run {} on host {}, process {}\n", owner.run_id, owner.host, owner.pid);
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw IoError(path_, 0, "cannot write the lock file", errno);
  (void)lock(file_, output, kRanksByte, F_RDLCK);  // exclusive to shared: always granted
}

OutputLock OutputLock::join(const std::string& output) {
  std::string path = lock_path(output);
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) throw IoError(path, 0, "cannot open the lock file", errno);
  if (!lock(file, output, kRanksByte, F_RDLCK))
    throw HostError(output + ": " + owner_text(file.get()) +
                    " has begun there meanwhile; start again with another output folder");
  return {std::move(path), std::move(file)};
}

bool OutputLock::is_in_place() const {
  struct stat mine {};
  if (::fstat(file_.get(), &mine) != 0) throw IoError(path_, 0, "cannot stat", errno);
  const auto found = find_status(path_);
  return found && found->device == mine.st_dev && found->number == mine.st_ino;
}

}  // namespace strata::train
