#include "train/session/metrics_listener.h"

#include <gtest/gtest.h>

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

TEST(MetricsListener, NothingIsWrittenOfARunThatDidNotBegin) {
  const RunListeners listeners;
  MetricsListener metrics("/no/such/folder/m.jsonl", listeners);
  metrics(StepDone{});
  EXPECT_THROW(metrics(Began{}), IoError);
}

}  // namespace
}  // namespace strata::train
