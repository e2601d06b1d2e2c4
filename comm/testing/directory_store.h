// A key-value store of processes that share a folder, for tests and benchmarks that fork their
// ranks without a launcher.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/rank_context.h"

namespace strata::comm {

/// Keys are files in `folder`, which the caller makes, empties and removes. Descriptors are opened
/// through /proc/PID/fd, so both processes belong to one user and the one that put it must live.
class DirectoryStore final : public KeyValueStore {
 public:
  explicit DirectoryStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  void put_fd(const std::string& key, int fd) override;
  UniqueFd get_fd(const std::string& key, std::chrono::milliseconds timeout) override;
  void drop_fd(const std::string& key) override;

 private:
  [[nodiscard]] std::filesystem::path file_of(std::string key) const;
  std::filesystem::path folder_;
  std::map<std::string, UniqueFd> kept_;  ///< descriptors that others may still ask for
};

/// A new folder in the system's temporary folder, removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace strata::comm
