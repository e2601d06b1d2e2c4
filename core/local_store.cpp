// The KeyValueStore of ranks that are threads of one process, or of a single rank.
#include <fmt/core.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include <fcntl.h>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/system_call.h"

namespace strata {
namespace {

class LocalStore final : public KeyValueStore {
 public:
  void put(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(key, value);
    changed_.notify_all();
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    return wait_for(values_, key, timeout, lock);
  }

  void put_fd(const std::string& key, int fd) override {
    UniqueFd own = duplicate(fd);
    const std::lock_guard lock(mutex_);
    descriptors_.insert_or_assign(key, std::move(own));
    changed_.notify_all();
  }

  UniqueFd get_fd(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    return duplicate(wait_for(descriptors_, key, timeout, lock).get());
  }

  void drop_fd(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    descriptors_.erase(key);
  }

 private:
  static UniqueFd duplicate(int fd) {
    return UniqueFd(checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicating a file descriptor"));
  }

  template <typename Value>
  const Value& wait_for(const std::map<std::string, Value>& entries, const std::string& key,
                        std::chrono::milliseconds timeout, std::unique_lock<std::mutex>& lock) {
    if (!changed_.wait_for(lock, timeout, [&] { return entries.contains(key); }))
      throw PeerError(fmt::format("nobody put key '{}' into the store of this process within {} ms",
                                  key, timeout.count()));
    return entries.at(key);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, UniqueFd> descriptors_;
};

}  // namespace

std::shared_ptr<KeyValueStore> make_local_store() { return std::make_shared<LocalStore>(); }

}  // namespace strata
