// Sends signals to this process while a save is tried again.
#include "train/run/save_retry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

namespace strata::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

const StopRequest::TooLate kNever = [](const std::string& why) { ADD_FAILURE() << why; };

class SaveRetryTest : public testing::Test {
 protected:
  SaveRetryTest() {
    listeners_.add([this](const RunEvent& event) {
      const auto* note = std::get_if<Note>(&event);
      ASSERT_NE(note, nullptr);
      EXPECT_EQ(note->level, Note::Level::warning);
      said_.push_back(note->text);
    });
  }
  static void ask(const StopRequest& stop, int signal) {
    ASSERT_EQ(::kill(::getpid(), signal), 0);
    const Clock::time_point end = Clock::now() + seconds(10);
    while (!stop.requested() && Clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(stop.requested());
  }

  std::vector<std::string> said_;
  RunListeners listeners_;
};

constexpr const char* kLost = "steps 1 to 7 are lost: out has no checkpoint";

TEST_F(SaveRetryTest, TheFirstFailureSaysAllAndOthersAreShort) {
  SaveRetry retry(7, seconds(600), nullptr, listeners_);
  retry.failed("out: needs 9 bytes of 5", kLost);
  retry.failed("out: needs 9 bytes of 4", kLost);
  retry.failed("out: is gone", kLost);
  retry.failed("out: is gone", kLost);
  ASSERT_EQ(said_.size(), 4U);
  EXPECT_EQ(said_[0],
            "the checkpoint of step 7 could not be written: out: needs 9 bytes of 5; trying again "
            "for 600 s (--save-retry): make room, or mend what is named; if the run ends before, "
            "steps 1 to 7 are lost: out has no checkpoint");
  EXPECT_EQ(said_[1],
            "the checkpoint of step 7 still cannot be written, for the same cause; trying again "
            "for 600 s (--save-retry)");
  EXPECT_EQ(said_[2],
            "the checkpoint of step 7 cannot be written: out: is gone; trying again for 600 s "
            "(--save-retry)");
  EXPECT_EQ(said_[3], said_[1]);
}

TEST_F(SaveRetryTest, ItEndsWithItsTime) {
  SaveRetry retry(7, seconds(1), nullptr, listeners_);
  EXPECT_FALSE(retry.is_over());
  const Clock::time_point begin = Clock::now();
  retry.wait();
  EXPECT_TRUE(retry.is_over());
  EXPECT_GE(Clock::now() - begin, milliseconds(900));
}

TEST_F(SaveRetryTest, ASignalIsAnsweredOnceAndAtOnce) {
  StopRequest stop({}, kNever);
  SaveRetry retry(7, seconds(600), &stop, listeners_);
  retry.failed("out: is full", kLost);
  Clock::time_point asked;
  std::thread user([&] {
    std::this_thread::sleep_for(milliseconds(200));
    asked = Clock::now();
    ask(stop, SIGTERM);
  });
  Clock::time_point answered;
  listeners_.add([&](const RunEvent&) { answered = Clock::now(); });
  retry.wait();
  retry.wait();
  user.join();
  ASSERT_EQ(said_.size(), 2U);
  EXPECT_EQ(said_[1],
            "SIGTERM: the run ends once the checkpoint of step 7 is written, which is tried for "
            "600 s (--save-retry); if it ends before, steps 1 to 7 are lost: out has no "
            "checkpoint; a second signal ends it at once, --grace S would end it S seconds after "
            "the first");
  EXPECT_LT(answered - asked, milliseconds(700)) << "the pause is a second";
}

TEST_F(SaveRetryTest, ASignalThatCameBeforeIsAnsweredByTheFirstFailure) {
  StopRequest stop({seconds(30), milliseconds(0)}, kNever);
  ask(stop, SIGTERM);
  SaveRetry retry(7, seconds(600), &stop, listeners_);
  retry.failed("out: is full", kLost);
  retry.wait();
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_TRUE(
      said_[0].ends_with("trying again for 30 s, which SIGTERM leaves: make room, or mend "
                         "what is named; if the run ends before, steps 1 to 7 are lost: "
                         "out has no checkpoint; a second signal ends it at once"))
      << said_[0];
}

}  // namespace
}  // namespace strata::train
