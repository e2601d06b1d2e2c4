#include "comm/testing/played_host_store.h"

namespace strata::comm {
namespace {

std::filesystem::path made(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

PlayedHostStore::PlayedHostStore(const std::filesystem::path& folder, int host)
    : shared_(made(folder / "all")), own_(made(folder / std::to_string(host))) {}

DirectoryStore& PlayedHostStore::store_of(const std::string& key) {
  return key.starts_with("host/") ? own_ : shared_;
}

void PlayedHostStore::put(const std::string& key, const std::string& value) {
  store_of(key).put(key, value);
}

std::string PlayedHostStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  return store_of(key).get(key, timeout);
}

}  // namespace strata::comm
