// Hosts that a test plays on one: groups of forked ranks that share no memory and talk over
// loopback.
#pragma once

#include <functional>
#include <vector>

#include "comm/host_layout.h"
#include "comm/testing/directory_store.h"

namespace strata::comm {

/// The store of a run on several hosts: descriptors and keys that begin with "host/" stay on their
/// host.
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

/// Returns the context of a rank as mlaunch's agents would start it, on a host at 127.0.0.1.
RankContext context_of(int rank, const HostLayout& layout, const TemporaryFolder& folder);

/// Forks the ranks of `layout` as run_forked does and expects all to end with 0.
void run_played_hosts(const HostLayout& layout,
                      const std::function<void(const RankContext& context)>& body);

}  // namespace strata::comm
