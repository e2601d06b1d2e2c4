#include "launcher/views/control_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/run_id.h"
#include "core/system_call.h"
#include "launcher/views/run_record.h"

namespace strata::launcher {
namespace {

constexpr std::string_view kUnfinished = ".new";  ///< a socket that does not listen yet
constexpr int kMostWaiting = 128;                 ///< connections that are not accepted yet
constexpr timeval kConnectTime{5, 0};

bool is_folder_of(const char* path, uid_t user) {
  struct stat info {};
  return ::stat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == user;
}

std::string name_of_user(uid_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

/// The address of a socket in an open folder: short, however long the folder's own name is.
sockaddr_un address_in(const UniqueFd& folder, std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.*s", folder.get(),
                static_cast<int>(name.size()), name.data());
  return address;
}

UniqueFd make_socket(int flags) {
  return UniqueFd(checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket"));
}

void check(const UniqueFd& folder, const std::string& path) {
  struct stat info {};
  checked(::fstat(folder.get(), &info), ("examining " + path).c_str());
  if (info.st_uid != ::geteuid())
    throw HostError(path + " belongs to user " + name_of_user(info.st_uid) +
                    "; remove it, or set XDG_RUNTIME_DIR to a folder of your own");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw HostError(fmt::format("{} is open to other users (mode {:o}); chmod 700 {}", path,
                                info.st_mode & 07777, path));
}

}  // namespace

std::vector<std::string> ControlFolder::places() {
  return places({std::getenv("STRATA_RUNS_DIR"), std::getenv("XDG_RUNTIME_DIR")}, ::geteuid());
}

std::vector<std::string> ControlFolder::places(const Environment& environment, uid_t user) {
  if (environment.chosen != nullptr && environment.chosen[0] != '\0') return {environment.chosen};
  const char* runtime_directory = environment.runtime_directory;
  std::vector<std::string> found;
  if (runtime_directory != nullptr && runtime_directory[0] == '/' &&
      is_folder_of(runtime_directory, user))
    found.push_back(std::string(runtime_directory) + "/strata");
  found.push_back("/tmp/strata-" + std::to_string(user));
  return found;
}

ControlFolder ControlFolder::make(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw_system_error("making the folder " + path);
  if (auto folder = find(path)) return std::move(*folder);
  throw HostError("the folder " + path + " was removed while it was opened");
}

std::optional<ControlFolder> ControlFolder::find(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ENOTDIR || errno == ELOOP)
      throw HostError(path + " is a link or no folder; remove it");
    throw_system_error("opening the folder " + path);
  }
  check(folder, path);
  return ControlFolder(std::move(folder), path);
}

/// Removes a socket that refuses connections, unless its run may go on all the same.
void ControlFolder::remove_if_dead(const std::string& run_id) const {
  const auto record = read_record(record_of(run_id));
  if (!record || record->was_killed()) remove(run_id);
}

/// Removes sockets of runs that were killed.
void ControlFolder::remove_dead() const {
  for (const std::string& id : run_ids()) {
    const UniqueFd socket = make_socket(SOCK_NONBLOCK);
    const sockaddr_un address = address_in(folder_, id + std::string(kSocket));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED)
      remove_if_dead(id);
  }
}

UniqueFd ControlFolder::listen(const std::string& run_id) const {
  remove_dead();
  UniqueFd socket = make_socket(SOCK_NONBLOCK);
  // It gets its name once it listens: who finds that it refuses connections may remove it.
  const std::string unfinished = run_id + std::string(kUnfinished);
  const sockaddr_un address = address_in(folder_, unfinished);
  const std::string what = "making a socket in " + path_;
  checked(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          what.c_str());
  if (::listen(socket.get(), kMostWaiting) != 0 ||
      ::renameat(folder_.get(), unfinished.c_str(), folder_.get(),
                 (run_id + std::string(kSocket)).c_str()) != 0) {
    const int error = errno;
    (void)::unlinkat(folder_.get(), unfinished.c_str(), 0);
    errno = error;
    throw_system_error(what);
  }
  return socket;
}

bool ControlFolder::has(const std::string& run_id) const {
  return ::faccessat(folder_.get(), (run_id + std::string(kSocket)).c_str(), F_OK,
                     AT_SYMLINK_NOFOLLOW) == 0;
}

void ControlFolder::remove(const std::string& run_id) const {
  (void)::unlinkat(folder_.get(), (run_id + std::string(kSocket)).c_str(), 0);
}

/// Removes the oldest files of runs that do not go on, so that one more may come.
void ControlFolder::make_room(std::string_view ending) const {
  std::vector<std::string> ids;
  try {
    ids = ids_of(ending);
  } catch (const HostError&) {
    return;  // somebody has removed the folder, or descriptors ran out
  }
  std::vector<std::pair<timespec, std::string>> kept;
  for (const std::string& id : ids) {
    struct stat info {};
    const std::string name = id + std::string(ending);
    if (!has(id) && ::fstatat(folder_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
      kept.emplace_back(info.st_mtim, name);
  }
  std::ranges::sort(kept, [](const auto& a, const auto& b) {
    return std::pair(a.first.tv_sec, a.first.tv_nsec) < std::pair(b.first.tv_sec, b.first.tv_nsec);
  });
  for (std::size_t i = 0; i + kMostEnds <= kept.size(); ++i)
    (void)::unlinkat(folder_.get(), kept[i].second.c_str(), 0);
}

void ControlFolder::keep_end(const std::string& run_id, const std::string& line) const {
  make_room(kEnded);
  const UniqueFd file(::openat(folder_.get(), (run_id + std::string(kEnded)).c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                               S_IRUSR | S_IWUSR));
  if (file.valid()) (void)!::write(file.get(), line.data(), line.size());
}

void ControlFolder::keep_record(const std::string& run_id, const std::string& line) const {
  const std::string name = run_id + std::string(kRecord), unfinished = name + ".new";
  if (record_of(run_id).empty()) make_room(kRecord);
  const UniqueFd file(::openat(folder_.get(), unfinished.c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                               S_IRUSR | S_IWUSR));
  const bool is_whole = file.valid() && ::write(file.get(), line.data(), line.size()) ==
                                            static_cast<ssize_t>(line.size());
  if (!is_whole || ::renameat(folder_.get(), unfinished.c_str(), folder_.get(), name.c_str()) != 0)
    (void)::unlinkat(folder_.get(), unfinished.c_str(), 0);
}

void ControlFolder::remove_record(const std::string& run_id) const {
  (void)::unlinkat(folder_.get(), (run_id + std::string(kRecord)).c_str(), 0);
}

std::string ControlFolder::read(const std::string& run_id, std::string_view ending) const {
  const UniqueFd file(::openat(folder_.get(), (run_id + std::string(ending)).c_str(),
                               O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 65536> bytes;
  const ssize_t count = file.valid() ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

std::vector<std::string> ControlFolder::ids_of(std::string_view ending) const {
  std::vector<std::string> found;
  UniqueFd copy(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* listing = copy.valid() ? ::fdopendir(copy.get()) : nullptr;
  if (listing == nullptr) throw_system_error("listing " + path_);
  (void)copy.release();  // closedir closes it
  const std::unique_ptr<DIR, void (*)(DIR*)> closer(listing, [](DIR* open) { ::closedir(open); });
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(ending) && is_run_id(name.substr(0, name.size() - ending.size())))
      found.emplace_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<UniqueFd> ControlFolder::connect(const std::string& run_id) const {
  UniqueFd socket = make_socket(0);
  checked(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTime, sizeof kConnectTime),
          "setsockopt");
  const sockaddr_un address = address_in(folder_, run_id + std::string(kSocket));
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) throw HostError("run " + run_id + " does not answer");
    if (errno != ENOENT && errno != ECONNREFUSED) throw_system_error("connecting to run " + run_id);
    remove_if_dead(run_id);
    return std::nullopt;
  }
  return socket;
}

}  // namespace strata::launcher
