#include "core/spawn_settings.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "core/error.h"

namespace strata {
namespace {

void require(int error) {
  if (error != 0)
    throw HostError(std::string("posix_spawn settings failed: ") + std::strerror(error));
}

}  // namespace

SpawnSettings::SpawnSettings() {
  require(::posix_spawn_file_actions_init(&actions_));
  require(::posix_spawnattr_init(&attributes_));
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  require(::posix_spawnattr_setsigmask(&attributes_, &none));
  require(::posix_spawnattr_setsigdefault(&attributes_, &all));
  require(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

SpawnSettings::~SpawnSettings() {
  ::posix_spawn_file_actions_destroy(&actions_);
  ::posix_spawnattr_destroy(&attributes_);
}

void SpawnSettings::connect(int fd, int as) {
  require(::posix_spawn_file_actions_adddup2(&actions_, fd, as));
}

void SpawnSettings::open(const char* path, int flags, int as) {
  require(::posix_spawn_file_actions_addopen(&actions_, as, path, flags, 0));
}

int SpawnSettings::start(const std::vector<std::string>& command, pid_t& pid) const {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return ::posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
}

}  // namespace strata
