#include "train/session/metrics_listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <vector>

#include "core/file.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

TEST(RunListeners, AllHearWhatTheFirstOneFailsAt) {
  RunListeners listeners;
  int heard = 0;
  listeners.add([](const RunEvent&) { throw DataError("cannot"); });
  listeners.add([&](const RunEvent&) { ++heard; });
  EXPECT_THROW(listeners.tell(Began{}), DataError);
  EXPECT_EQ(heard, 1);
}

TEST(MetricsListener, AFullDiskIsSaidOnce) {
  const RunListeners listeners;
  MetricsListener metrics("/dev/full", listeners);
  metrics(Began{});
  metrics(Note{});
  EXPECT_THROW(metrics(StepDone{}), IoError);
  metrics(StepDone{});
}

TEST(MetricsListener, StepsThatAreMissingAreCounted) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const TestDirectory home;
  RunListeners listeners;
  std::vector<std::string> said;
  listeners.add([&](const RunEvent& event) {
    if (const auto* note = std::get_if<Note>(&event)) said.push_back(note->text);
  });
  MetricsListener metrics(home / "m", listeners);
  const auto step = [&](std::int64_t number) {
    StepDone done;
    done.step = number;
    metrics(done);
  };
  metrics(Began{});
  step(1);
  const rlimit small{read_whole_file(home / "m", 1 << 20).size() + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(step(2), IoError);
  for (int number = 3; number < 6; ++number) step(number);
  metrics(Evaluated{5, 9, 2});  // no step
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(said.empty());
  step(6);
  const std::string missing = "4 steps are missing: 2 to 5";
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0], home / "m" + ": written again from step 6 on; " + missing);
  metrics(Refused{ExitCode::try_again, "SIGTERM: 30 s are over"});
  EXPECT_EQ(said.size(), 1U) << "these are the last words";
  metrics.tell_missing();
  metrics.tell_missing();  // as after Closing
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[1], home / "m" + ": " + missing);
}

TEST(MetricsListener, NothingIsWrittenOfARunThatDidNotBegin) {
  const RunListeners listeners;
  MetricsListener metrics("/no/such/folder/m.jsonl", listeners);
  metrics(StepDone{});
  EXPECT_THROW(metrics(Began{}), IoError);
}

}  // namespace
}  // namespace strata::train
