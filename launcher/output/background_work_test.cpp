#include "launcher/output/background_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kAtLast{180};

TEST(BackgroundWork, IsDoneInOrder) {
  std::string done;
  {
    BackgroundWork work(kAtLast);
    EXPECT_TRUE(work.wait(milliseconds(0))) << "there is nothing to do";
    for (const char* one : {"a", "b", "c"}) work.add([&done, one] { done += one; });
    EXPECT_TRUE(work.wait(kAtLast));
    EXPECT_EQ(done, "abc");
    work.add([&done] { done += "d"; });
  }
  EXPECT_EQ(done, "abcd") << "its end waits for the rest";
}

TEST(BackgroundWork, SaysWhatFailedAndGoesOn) {
  BackgroundWork work(kAtLast);
  bool is_done = false;
  work.add([] { throw std::runtime_error("the disk is full"); });
  work.add([] { throw std::runtime_error("a later failure"); });
  work.add([&] { is_done = true; });
  EXPECT_TRUE(work.wait(kAtLast));
  EXPECT_TRUE(is_done);
  EXPECT_EQ(work.take_complaint(), "the disk is full");
  EXPECT_EQ(work.take_complaint(), std::nullopt);
}

TEST(BackgroundWork, ThatHangsIsLeftBehind) {
  struct Shared {
    std::promise<void> release, released;
    std::atomic<bool> more = false;
  };
  const auto shared = std::make_shared<Shared>();
  {
    BackgroundWork work(milliseconds(20));
    work.add([shared] {
      shared->release.get_future().wait();
      shared->released.set_value();
    });
    work.add([shared] { shared->more = true; });
    EXPECT_FALSE(work.wait(milliseconds(20)));
  }
  shared->release.set_value();
  EXPECT_EQ(shared->released.get_future().wait_for(kAtLast), std::future_status::ready);
  EXPECT_FALSE(shared->more) << "nothing begins after its end";
}

}  // namespace
}  // namespace strata::launcher
