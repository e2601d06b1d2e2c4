#include "comm/threads/thread_host_link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/copy_bytes.h"
#include "core/check.h"

namespace strata::comm {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{200};

/// A send or receive whose other end has not come yet.
struct Waiting {
  int from;
  int to;
  std::uint64_t tag;
  bool is_send;
  Lane lane;
  std::byte* data;
  std::size_t bytes;
  std::uint64_t number = 0;  ///< among the messages of its rank and lane
};

enum class Presence { open, closed, gone };

/// Returns the rank at this end.
int rank_of(const Waiting& end) { return end.is_send ? end.from : end.to; }

constexpr int kNobody = -1;

struct LinkedRank {
  std::function<void(std::string_view)> hear;
  std::string told;                      ///< a reason that came before `hear`
  std::array<std::uint64_t, 2> begun{};  ///< sends and receives, by lane
  std::uint64_t wakes = 0;
  Presence presence = Presence::open;
};

}  // namespace

class ThreadHosts {
 public:
  explicit ThreadHosts(int world) : ranks(static_cast<std::size_t>(world)) {
    // No rank has more than a few messages with each other; so sending allocates nothing.
    waiting.reserve(8 * ranks.size() * ranks.size());
  }

  LinkedRank& of(int rank) { return ranks[static_cast<std::size_t>(rank)]; }

  /// Completes the message if its other end waits, else lets it wait.
  void begin(Waiting mine) {
    const std::lock_guard lock(mutex);
    const auto other = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& theirs) {
      return theirs.from == mine.from && theirs.to == mine.to && theirs.tag == mine.tag &&
             theirs.is_send != mine.is_send;
    });
    mine.number = of(rank_of(mine)).begun[static_cast<std::size_t>(mine.lane)]++;
    if (other == waiting.end()) {
      waiting.push_back(mine);
      return;
    }
    STRATA_CHECK(other->bytes == mine.bytes, "a message of", other->bytes, "bytes met one of",
                 mine.bytes);
    const auto [source, target] =
        mine.is_send ? std::pair{mine.data, other->data} : std::pair{other->data, mine.data};
    copy_bytes(target, source, static_cast<std::int64_t>(mine.bytes));
    waiting.erase(other);
    changed.notify_all();
  }

  /// Returns the rank at the other end of a message of `rank` that waits for it and whose number is
  /// below `end`; kNobody if there is none.
  [[nodiscard]] int awaited_by(int rank, Lane lane, std::uint64_t end) const {
    const auto found = std::ranges::find_if(waiting, [&](const Waiting& message) {
      return rank_of(message) == rank && message.lane == lane && message.number < end;
    });
    if (found == waiting.end()) return kNobody;
    return found->is_send ? found->to : found->from;
  }

  [[nodiscard]] std::string_view fate_of(int peer) {
    return of(peer).presence == Presence::gone ? "(a thread) has left without closing" : "";
  }

  /// Wakes all ranks, whose `finish` then checks.
  void wake() {
    for (LinkedRank& rank : ranks) ++rank.wakes;
    changed.notify_all();
  }

  std::mutex mutex;  ///< guards all that follows
  std::condition_variable changed;
  std::vector<LinkedRank> ranks;
  std::vector<Waiting> waiting;
};

namespace {

class ThreadHostLink final : public HostLink {
 public:
  ThreadHostLink(std::shared_ptr<ThreadHosts> hosts, int rank)
      : hosts_(std::move(hosts)), rank_(rank) {}

  ~ThreadHostLink() override {
    cancel();
    const std::lock_guard lock(hosts_->mutex);
    LinkedRank& mine = hosts_->of(rank_);
    mine.hear = nullptr;
    if (mine.presence == Presence::open) mine.presence = Presence::gone;
    hosts_->wake();
  }
  ThreadHostLink(const ThreadHostLink&) = delete;
  ThreadHostLink& operator=(const ThreadHostLink&) = delete;

  void listen(std::function<void(std::string_view)> hear) override {
    const std::lock_guard lock(hosts_->mutex);
    LinkedRank& mine = hosts_->of(rank_);
    mine.hear = std::move(hear);
    if (!mine.told.empty()) mine.hear(mine.told);
  }

  void send(Lane lane, int peer, std::uint64_t tag, std::span<const std::byte> bytes) override {
    // const_cast, since one type serves both ends.
    hosts_->begin(
        {rank_, peer, tag, true, lane, const_cast<std::byte*>(bytes.data()), bytes.size()});
  }

  void receive(Lane lane, int peer, std::uint64_t tag, std::span<std::byte> bytes) override {
    hosts_->begin({peer, rank_, tag, false, lane, bytes.data(), bytes.size()});
  }

  void finish(Lane lane, std::size_t count, const Check& check) override {
    std::unique_lock lock(hosts_->mutex);
    const LinkedRank& mine = hosts_->of(rank_);
    std::uint64_t& finished = finished_[static_cast<std::size_t>(lane)];
    const std::uint64_t begun = mine.begun[static_cast<std::size_t>(lane)];
    const std::uint64_t end = finished + std::min<std::uint64_t>(count, begun - finished);
    const auto awaited = [&] { return hosts_->awaited_by(rank_, lane, end); };
    for (int peer = awaited(); peer != kNobody; peer = awaited()) {
      const std::uint64_t seen = mine.wakes;
      const std::string_view fate = hosts_->fate_of(peer);
      lock.unlock();
      check(peer, fate);
      lock.lock();
      hosts_->changed.wait_for(lock, kCheckInterval,
                               [&] { return awaited() == kNobody || mine.wakes != seen; });
    }
    finished = end;
  }

  void cancel() noexcept override {
    const std::lock_guard lock(hosts_->mutex);
    std::erase_if(hosts_->waiting,
                  [this](const Waiting& message) { return rank_of(message) == rank_; });
    finished_ = hosts_->of(rank_).begun;
  }

  void give_up(std::string_view reason) noexcept override {
    const std::lock_guard lock(hosts_->mutex);
    if (std::exchange(gave_up_, true)) return;
    for (LinkedRank& rank : hosts_->ranks) {
      if (rank.hear)
        rank.hear(reason);
      else if (rank.told.empty())
        rank.told = reason;
    }
    hosts_->wake();
  }

  [[nodiscard]] std::string death_of(int peer) const override {
    const std::lock_guard lock(hosts_->mutex);
    return std::string(hosts_->fate_of(peer));
  }

  void close(const std::function<void()>& /*check*/) override {
    const std::lock_guard lock(hosts_->mutex);
    hosts_->of(rank_).presence = Presence::closed;
  }

 private:
  std::shared_ptr<ThreadHosts> hosts_;
  int rank_;
  std::array<std::uint64_t, 2> finished_{};  ///< messages, by lane
  bool gave_up_ = false;                     ///< guarded by the mutex of hosts_
};

}  // namespace

std::shared_ptr<ThreadHosts> make_thread_hosts(int world) {
  return std::make_shared<ThreadHosts>(world);
}

std::unique_ptr<HostLink> make_thread_host_link(std::shared_ptr<ThreadHosts> hosts, int rank) {
  return std::make_unique<ThreadHostLink>(std::move(hosts), rank);
}

}  // namespace strata::comm
