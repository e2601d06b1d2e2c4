#include "launcher/report/evidence.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace strata::launcher {
namespace {

/// A child that does something until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& act) : pid_(::fork()) {
    while (pid_ == 0) act();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Waits until its first thread is in `state`.
  [[nodiscard]] std::vector<ThreadFacts> threads_in(char state) const {
    for (int tries = 0; tries < 500; ++tries) {
      const auto threads = threads_of(pid_);
      if (!threads.empty() && threads.front().state == state) return threads;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "no thread in state " << state;
    return threads_of(pid_);
  }

 private:
  pid_t pid_;
};

TEST(Evidence, OfAStoppedProcess) {
  const Child child([] { ::pause(); });
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  const auto threads = child.threads_in('T');
  EXPECT_EQ(what_holds(threads), "stopped by a signal (SIGSTOP, or its terminal)");
  EXPECT_NE(describe_threads(threads).find("is stopped"), std::string::npos)
      << describe_threads(threads);
}

TEST(Evidence, OfAProcessThatReads) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Child child([&] {
    char byte = 0;
    (void)!::read(ends[0], &byte, 1);
  });
  const auto threads = child.threads_in('S');
  EXPECT_NE(threads.front().call.find("read of pipe:"), std::string::npos) << threads.front().call;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Evidence, OfAProcessThatComputes) {
  volatile std::uint64_t x = 1;
  const Child child([&] {
    for (int i = 0; i < 1000; ++i) x = x * 3;
  });
  EXPECT_EQ(what_holds(child.threads_in('R')), "computing");
}

TEST(Evidence, OfAProcessThatIsGone) {
  EXPECT_EQ(what_holds(threads_of(0x3fffffff)), "its process is gone");
  EXPECT_EQ(describe_threads({}), "");
  EXPECT_EQ(stacks_of(0x3fffffff), "");
}

TEST(Evidence, ThreadsOfAFrozenProcessWaitForNoDevice) {
  const ThreadFacts worker{2, "worker", 'D', "futex_do_wait", ""};
  EXPECT_EQ(describe_threads({{1, "train", 'D', "__refrigerator", ""}, worker, worker}, true),
            "'train' is frozen in __refrigerator\n2 of 'worker' are frozen in futex_do_wait");
}

TEST(Evidence, CountsEqualThreads) {
  const ThreadFacts worker{2, "worker", 'S', "futex_do_wait", ""};
  EXPECT_EQ(describe_threads({{1, "train", 'D', "", "fsync of /data/x"}, worker, worker}),
            "'train' waits for a device, fsync of /data/x\n2 of 'worker' sleep in futex_do_wait");
  EXPECT_EQ(what_holds({{1, "train", 'S', "", ""}, {2, "writer", 'D', "", "fsync of /data/x"}}),
            "in fsync of /data/x");
}

}  // namespace
}  // namespace strata::launcher
