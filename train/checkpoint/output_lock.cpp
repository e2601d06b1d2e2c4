#include "train/checkpoint/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.h"

namespace strata::train {
namespace {

/// What the owner wrote; a guess where it wrote nothing yet.
std::string owner_text(int file) {
  std::array<char, 512> text{};
  const ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
  std::string owner(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  while (!owner.empty() && owner.back() == '\n') owner.pop_back();
  for (char& c : owner)
    if (c < ' ' || c > '~') c = '?';  // it goes to a screen
  return owner.empty() ? "another process" : owner;
}

}  // namespace

OutputLock::OutputLock(const std::string& output, const LockOwner& owner) {
  const std::string path = output + "/.strata-lock";
  file_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_.valid()) throw IoError(path, 0, "cannot create the lock file", errno);
  int result = 0;
  do {
    result = ::flock(file_.get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK)
    throw HostError(output + ": in use by " + owner_text(file_.get()) +
                    "; wait for it to end, or choose another output folder");
  if (result != 0) throw IoError(path, 0, "cannot lock", errno);
  const std::string text = "run " + owner.run_id + " on host " + owner.host + ", process " +
                           std::to_string(owner.pid) + "\n";
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw IoError(path, 0, "cannot write the lock file", errno);
}

}  // namespace strata::train
