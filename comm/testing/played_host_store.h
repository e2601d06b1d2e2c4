// The store of a run on several hosts, for tests and benchmarks that play hosts without a launcher.
#pragma once

#include "comm/testing/directory_store.h"

namespace strata::comm {

/// Keeps descriptors and keys that begin with "host/" on their host.
class PlayedHostStore final : public KeyValueStore {
 public:
  /// Makes folders of its own below `folder`.
  PlayedHostStore(const std::filesystem::path& folder, int host);
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  void put_fd(const std::string& key, int fd) override { own_.put_fd(key, fd); }
  UniqueFd get_fd(const std::string& key, std::chrono::milliseconds timeout) override {
    return own_.get_fd(key, timeout);
  }
  void drop_fd(const std::string& key) override { own_.drop_fd(key); }

 private:
  DirectoryStore& store_of(const std::string& key);
  DirectoryStore shared_;
  DirectoryStore own_;
};

}  // namespace strata::comm
