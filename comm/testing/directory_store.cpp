#include "comm/testing/directory_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/error.h"
#include "core/system_call.h"

namespace strata::comm {

std::filesystem::path DirectoryStore::file_of(std::string key) const {
  std::replace(key.begin(), key.end(), '/', '.');
  return folder_ / key;
}

void DirectoryStore::put(const std::string& key, const std::string& value) {
  const std::filesystem::path file = file_of(key);
  const std::filesystem::path draft = file.string() + ".draft";
  std::ofstream(draft) << value;
  std::filesystem::rename(draft, file);  // a reader sees all or nothing
}

std::string DirectoryStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!std::filesystem::exists(file_of(key))) {
    if (std::chrono::steady_clock::now() > end)
      throw PeerError("nobody put key '" + key + "' into " + folder_.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::ifstream file(file_of(key));
  return {std::istreambuf_iterator<char>(file), {}};
}

void DirectoryStore::put_fd(const std::string& key, int fd) {
  UniqueFd& kept = kept_[key];
  kept = UniqueFd(checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicating a file descriptor"));
  put(key, "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(kept.get()));
}

void DirectoryStore::drop_fd(const std::string& key) {
  if (kept_.erase(key) > 0) std::filesystem::remove(file_of(key));
}

UniqueFd DirectoryStore::get_fd(const std::string& key, std::chrono::milliseconds timeout) {
  const std::string path = get(key, timeout);
  return UniqueFd(checked(::open(path.c_str(), O_RDWR | O_CLOEXEC), path.c_str()));
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "strata-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw_system_error("mkdtemp " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace strata::comm
