#include "launcher/report/evidence.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "core/testing/test_directory.h"

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

}  // namespace

/// Has external linkage and is no inline function, so that stacks have its name.
[[gnu::noinline]] void wait_in_vain() {
  ::pause();
  [[maybe_unused]] volatile int after = 0;  // otherwise the call would be a jump
}

namespace {

TEST(Evidence, StacksNameFunctionsThatAProcessIsIn) {
  if (std::system("eu-stack --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no eu-stack";
  if (::geteuid() != 0) GTEST_SKIP() << "Yama may keep others from a process that is no child";
  const Child child(wait_in_vain);
  const auto threads = child.threads_in('S');
  const std::string stacks = stacks_of(child.pid(), std::chrono::seconds(30));
  EXPECT_NE(stacks.find("TID " + std::to_string(child.pid())), std::string::npos) << stacks;
  EXPECT_NE(stacks.find("wait_in_vain"), std::string::npos) << stacks;
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

/// Plays /proc of process 7, which has one thread, in a folder.
class PlayedThread {
 public:
  std::vector<ThreadFacts> read(char state, const std::string& in, const std::string& syscall) {
    const std::string thread = directory_ / "7/task/7";
    std::filesystem::create_directories(thread);
    directory_.file("7/task/7/comm", "train\n");
    directory_.file("7/task/7/stat", std::string("7 (train) ") + state + " 1 1\n");
    directory_.file("7/task/7/wchan", in);
    directory_.file("7/task/7/syscall", syscall);
    return threads_of(7, directory_.path());
  }

 private:
  TestDirectory directory_;
};

TEST(Evidence, OfAProcessWhoseMemoryIsReadBack) {
  PlayedThread thread;
  const std::string no_call = "-1 0x7ffc1f4975a8 0x55d0c0de", of_read = "0 0x3 0x7f 0x20000";
  for (const char* in : {"folio_wait_bit_common", "__lock_page_or_retry", "do_swap_page",
                         "swap_read_folio", "filemap_fault", "io_schedule"})
    EXPECT_EQ(what_holds(thread.read('D', in, no_call)),
              "paging (memory is read back from a disk or swap)")
        << in;
  EXPECT_EQ(describe_threads(thread.read('D', "do_swap_page", of_read)),
            "'train' waits for a device in do_swap_page (paging)");
  EXPECT_EQ(what_holds(thread.read('D', "nvme_submit", no_call)),
            "waiting for a device in nvme_submit");
  EXPECT_EQ(what_holds(thread.read('D', "folio_wait_bit_common", of_read)), "in read of a file");
  EXPECT_EQ(what_holds(thread.read('R', "do_swap_page", "running")), "computing");
  const ThreadFacts pages = thread.read('D', "do_swap_page", no_call).front();
  EXPECT_EQ(what_holds({{1, "train", 'D', "nvme_submit", ""}, pages}),
            "paging (memory is read back from a disk or swap)")
      << "as the advice says";
}

}  // namespace
}  // namespace strata::launcher
