// The contract of every KeyValueStore, tested for the store inside one process, mlaunch's, and the
// one that ranks of a host share without mlaunch.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/host_meeting.h"
#include "core/rank_context.h"
#include "core/rendezvous_server.h"
#include "core/socket_store.h"
#include "core/store_message.h"
#include "core/testing/meeting_testing.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A rendezvous server with its loop in a thread, as mlaunch runs it.
class ServerThread {
 public:
  /// `shares`: values are kept by a dictionary of all hosts, of which this is one.
  explicit ServerThread(bool shares = false) : wake_(::eventfd(0, EFD_CLOEXEC)) {
    if (shares) server_.share_values();
    thread_ = std::thread([this] { loop(); });
  }
  ~ServerThread() {
    stop_ = true;
    wake();
    thread_.join();
  }

  UniqueFd connect(int rank) {
    const std::lock_guard lock(mutex_);
    return server_.add_client(rank);
  }
  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    server_.fail(reason);
  }
  int shared_requests() {
    const std::lock_guard lock(mutex_);
    return shared_requests_;
  }
  std::vector<std::string> complaints() {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

 private:
  void wake() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(wake_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  void loop() {
    while (!stop_) {
      pollfd entries[2] = {{server_.poll_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ::poll(entries, 2, 10);
      const std::lock_guard lock(mutex_);
      for (std::string& text : server_.process(std::chrono::steady_clock::now()))
        complaints_.push_back(std::move(text));
      answer_requests();
    }
  }
  void answer_requests() {
    const auto now = std::chrono::steady_clock::now();
    std::vector<SharedValues::Answered> answers = values_.expire(now);
    for (const ValueRequest& request : server_.take_requests()) {
      ++shared_requests_;
      for (auto& answer : values_.ask(now, "host", request)) answers.push_back(std::move(answer));
    }
    for (const auto& [host, answer] : answers) server_.answer(answer);
  }

  std::mutex mutex_;
  RendezvousServer server_;
  SharedValues values_;
  int shared_requests_ = 0;
  std::vector<std::string> complaints_;
  UniqueFd wake_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// Two views of one store: each rank gets what the other puts.
class Stores {
 public:
  virtual ~Stores() = default;
  virtual KeyValueStore& of(int rank) = 0;
};

class LocalStores : public Stores {
 public:
  KeyValueStore& of(int) override { return *store_; }

 private:
  std::shared_ptr<KeyValueStore> store_ = make_local_store();
};

class SocketStores : public Stores {
 public:
  KeyValueStore& of(int rank) override { return stores_[rank]; }

 private:
  ServerThread server_;
  SocketStore stores_[2] = {{server_.connect(0), "run/0/"}, {server_.connect(1), "run/0/"}};
};

class SharedStores : public Stores {
 public:
  KeyValueStore& of(int rank) override { return stores_[rank]; }

 private:
  ServerThread server_{true};
  SocketStore stores_[2] = {{server_.connect(0), "run/0/"}, {server_.connect(1), "run/0/"}};
};

class MeetingStores : public Stores {
 public:
  KeyValueStore& of(int rank) override { return *stores_[rank]; }

 private:
  std::shared_ptr<KeyValueStore> stores_[2] = {meet_on_host(meeting(0)), meet_on_host(meeting(1))};
};

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Stores>()> make;
};

class KeyValueStoreConformance : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Stores> stores_ = GetParam().make();
};

TEST_P(KeyValueStoreConformance, GetReturnsWhatAnotherRankPut) {
  stores_->of(0).put("key", std::string("a\0b", 3));
  EXPECT_EQ(stores_->of(1).get("key", seconds(5)), std::string("a\0b", 3));
  EXPECT_EQ(stores_->of(0).get("key", milliseconds(0)), std::string("a\0b", 3));
}

TEST_P(KeyValueStoreConformance, EmptyKeysAndValuesAreValues) {
  stores_->of(0).put("", "");
  EXPECT_EQ(stores_->of(1).get("", seconds(5)), "");
}

TEST_P(KeyValueStoreConformance, TheLastPutCounts) {
  stores_->of(0).put("key", "old");
  stores_->of(1).put("key", "new");
  EXPECT_EQ(stores_->of(0).get("key", seconds(5)), "new");
}

TEST_P(KeyValueStoreConformance, GetWaitsForThePut) {
  std::thread late([this] {
    std::this_thread::sleep_for(milliseconds(50));
    stores_->of(1).put("late", "value");
  });
  EXPECT_EQ(stores_->of(0).get("late", seconds(5)), "value");
  late.join();
}

TEST_P(KeyValueStoreConformance, AMissingKeyTimesOutByName) {
  const auto start = std::chrono::steady_clock::now();
  try {
    stores_->of(0).get("the key", milliseconds(100));
    FAIL() << "no exception";
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("'the key'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("100 ms"), std::string::npos) << error.what();
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(99));
  EXPECT_THROW(stores_->of(0).get("the key", milliseconds(-5)), PeerError);
}

TEST_P(KeyValueStoreConformance, DescriptorsArriveAsTheSameFileManyTimes) {
  const UniqueFd file(::memfd_create("shared", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 123), 0);
  stores_->of(0).put_fd("file", file.get());
  for (int rank = 0; rank < 2; ++rank) {
    const UniqueFd copy = stores_->of(rank).get_fd("file", seconds(5));
    struct stat info {};
    ASSERT_EQ(::fstat(copy.get(), &info), 0);
    EXPECT_EQ(info.st_size, 123);
    EXPECT_NE(::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_THROW(stores_->of(1).get_fd("no file", milliseconds(20)), PeerError);
  EXPECT_THROW(stores_->of(1).put_fd("closed", -1), HostError);
}

TEST_P(KeyValueStoreConformance, DroppedDescriptorsAreGoneAndLeaveRoom) {
  const UniqueFd file(::memfd_create("shared", MFD_CLOEXEC));
  for (std::size_t i = 0; i < RendezvousServer::kMaxStoredFds + 10; ++i) {
    const std::string key = "file " + std::to_string(i);
    stores_->of(1).put_fd(key, file.get());
    stores_->of(1).drop_fd(key);
  }
  EXPECT_THROW(stores_->of(0).get_fd("file 0", milliseconds(20)), PeerError);
  stores_->of(0).drop_fd("never put");
  stores_->of(1).put_fd("file 0", file.get());
  EXPECT_TRUE(stores_->of(0).get_fd("file 0", seconds(5)).valid());
}

TEST_P(KeyValueStoreConformance, GetFdWaitsForThePut) {
  const UniqueFd file(::memfd_create("shared", MFD_CLOEXEC));
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stores_->of(1).put_fd("late", file.get());
  });
  EXPECT_TRUE(stores_->of(0).get_fd("late", seconds(5)).valid());
  late.join();
}

TEST_P(KeyValueStoreConformance, ValuesAndDescriptorsHaveSeparateKeys) {
  const UniqueFd file(::memfd_create("shared", MFD_CLOEXEC));
  stores_->of(0).put_fd("key", file.get());
  EXPECT_THROW(stores_->of(0).get("key", milliseconds(10)), PeerError);
  stores_->of(0).put("key", "value");
  EXPECT_EQ(stores_->of(1).get("key", seconds(5)), "value");
  EXPECT_TRUE(stores_->of(1).get_fd("key", seconds(5)).valid());
}

TEST_P(KeyValueStoreConformance, AWaitingThreadDelaysNoOther) {
  KeyValueStore& store = stores_->of(0);
  std::thread waiting([&] { EXPECT_EQ(store.get("answer", seconds(5)), "42"); });
  std::this_thread::sleep_for(milliseconds(30));
  for (int i = 0; i < 100; ++i) store.put("k" + std::to_string(i), "v" + std::to_string(i));
  EXPECT_EQ(store.get("k57", seconds(5)), "v57");
  store.put("answer", "42");
  waiting.join();
}

TEST_P(KeyValueStoreConformance, ManyThreadsGetTheirOwnAnswers) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([this, t] {
      KeyValueStore& store = stores_->of(t % 2);
      for (int i = 0; i < 50; ++i) {
        const std::string mine = std::to_string(t) + "/" + std::to_string(i);
        const std::string next = std::to_string((t + 1) % 8) + "/" + std::to_string(i);
        store.put(mine, "value " + mine);
        EXPECT_EQ(store.get(next, seconds(10)), "value " + next);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(KeyValueStoreConformance, TakesSixtyFourKibibytes) {
  const std::string big(64 * 1024, 'x');
  stores_->of(0).put("big", big);
  EXPECT_EQ(stores_->of(1).get("big", seconds(5)), big);
}

INSTANTIATE_TEST_SUITE_P(
    All, KeyValueStoreConformance,
    ::testing::Values(Kind{"Local", [] { return std::make_unique<LocalStores>(); }},
                      Kind{"Socket", [] { return std::make_unique<SocketStores>(); }},
                      Kind{"Shared", [] { return std::make_unique<SharedStores>(); }},
                      Kind{"Meeting", [] { return std::make_unique<MeetingStores>(); }}),
    [](const auto& kind) { return kind.param.name; });

TEST(SocketStore, RefusesWhatTheServerCannotHold) {
  ServerThread server;
  SocketStore store(server.connect(0), "p/");
  EXPECT_THROW(store.put("k", std::string(64 * 1024 + 1, 'x')), InvalidArgument);
  EXPECT_THROW(store.put(std::string(1023, 'k'), ""), InvalidArgument);
  store.put(std::string(1022, 'k'), "");
}

// Fault 31.
TEST(SocketStore, PrefixesKeepRunsApart) {
  ServerThread server;
  SocketStore first(server.connect(0), "run/0/");
  SocketStore second(server.connect(1), "run/1/");
  first.put("key", "stale");
  EXPECT_THROW(second.get("key", milliseconds(20)), PeerError);
}

TEST(SocketStore, KeysOfAHostStayThere) {
  ServerThread first(true);
  SocketStore at_first(first.connect(0), "run/0/"), also(first.connect(1), "run/0/");
  at_first.put("host/board", "here");
  EXPECT_EQ(also.get("host/board", seconds(5)), "here");
  EXPECT_EQ(first.shared_requests(), 0);
  at_first.put("board", "everywhere");
  EXPECT_EQ(first.shared_requests(), 1);
}

TEST(SocketStore, AFailureWakesWhoWaitsForSharedValues) {
  ServerThread server(true);
  SocketStore store(server.connect(0), "");
  std::thread failing([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.fail("rank 1 fell");
  });
  try {
    (void)store.get("key", seconds(5));
    ADD_FAILURE();
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 fell"), std::string::npos);
  }
  failing.join();
  EXPECT_THROW(store.put("key", "value"), PeerError);
}

TEST(SocketStore, AFailureWakesWaitingRanksWithItsReason) {
  ServerThread server;
  SocketStore store(server.connect(0), "");
  std::thread failure([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.fail("rank 1 was killed");
  });
  try {
    store.get("never", seconds(30));
    FAIL() << "no exception";
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 was killed"), std::string::npos);
  }
  failure.join();
  EXPECT_THROW(store.get("still not", seconds(30)), PeerError);
  store.put("key", "value");
  EXPECT_EQ(store.get("key", seconds(5)), "value");
}

TEST(SocketStore, ALauncherThatIsGoneIsAPeerError) {
  auto server = std::make_unique<ServerThread>();
  SocketStore store(server->connect(0), "");
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.reset();
  });
  EXPECT_THROW(store.get("never", seconds(30)), PeerError);
  end.join();
  EXPECT_THROW(store.put("k", "v"), PeerError);
}

/// True if the server closes this connection within two seconds.
bool was_disconnected(const UniqueFd& socket) {
  pollfd entry{socket.get(), POLLIN, 0};
  if (::poll(&entry, 1, 2000) != 1) return false;
  char byte = 0;
  return ::read(socket.get(), &byte, 1) == 0;
}

TEST(RendezvousServer, MalformedMessagesCloseThatClientOnly) {
  ServerThread server;
  SocketStore good(server.connect(0), "");
  std::string header(32, '\0');
  header.replace(0, 4, "VKTS");  // the magic number, little-endian
  std::string reply_kind = header;
  reply_kind[4] = 16;
  std::string fd_missing = header;
  fd_missing[4] = 3;
  std::string long_key = header;
  long_key[4] = 2;
  long_key[25] = 127;
  std::string false_length = header;
  false_length[4] = 1;
  false_length[28] = 5;
  int rank = 1;
  for (const std::string& bytes : {std::string("x"), std::string(32, 'x'), header, reply_kind,
                                   fd_missing, long_key, false_length, std::string(100'000, 'y')}) {
    const UniqueFd bad = server.connect(rank);
    ASSERT_EQ(::write(bad.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(was_disconnected(bad)) << rank;
    ASSERT_EQ(server.complaints().size(), static_cast<std::size_t>(rank));
    EXPECT_NE(server.complaints().back().find("rank " + std::to_string(rank)), std::string::npos);
    ++rank;
  }
  good.put("still", "here");
  EXPECT_EQ(good.get("still", seconds(5)), "here");
}

TEST(RendezvousServer, AnUnexpectedDescriptorClosesTheClient) {
  ServerThread server;
  const UniqueFd bad = server.connect(0);
  StoreMessage message;
  message.kind = StoreMessage::Kind::get;
  message.fd = UniqueFd(::memfd_create("extra", MFD_CLOEXEC));
  ASSERT_TRUE(send_message(bad.get(), message));
  EXPECT_TRUE(was_disconnected(bad));
}

TEST(RendezvousServer, AClientThatNeverReadsItsRepliesIsDisconnected) {
  ServerThread server;
  const UniqueFd bad = server.connect(0);
  StoreMessage message;
  message.kind = StoreMessage::Kind::put;
  message.key = "k";
  message.value = std::string(60'000, 'x');
  ASSERT_TRUE(send_message(bad.get(), message));
  message.kind = StoreMessage::Kind::get;
  message.value.clear();
  bool open = true;
  for (int i = 0; i < 5000 && open; ++i) open = send_message(bad.get(), message);
  for (int i = 0; i < 200 && server.complaints().empty(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  ASSERT_EQ(server.complaints().size(), 1u);
  EXPECT_NE(server.complaints()[0].find("does not read"), std::string::npos);
}

TEST(RendezvousServer, StoresAtMostSixtyFourMebibytes) {
  ServerThread server;
  SocketStore store(server.connect(0), "");
  const std::string big(64 * 1024, 'x');
  int stored = 0;
  EXPECT_THROW(
      {
        for (; stored < 2000; ++stored) store.put(std::to_string(stored), big);
      },
      HostError);
  EXPECT_GT(stored, 1000);
  store.put("0", "small");  // the smaller value frees room for the next put
  store.put("more", big.substr(100));
}

}  // namespace
}  // namespace strata
