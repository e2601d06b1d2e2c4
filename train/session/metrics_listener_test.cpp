#include "train/session/metrics_listener.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

TEST(SessionListeners, AllHearWhatTheFirstOneFailsAt) {
  SessionListeners listeners;
  int heard = 0;
  listeners.add([](const SessionEvent&) { throw DataError("cannot"); });
  listeners.add([&](const SessionEvent&) { ++heard; });
  EXPECT_THROW(listeners.tell(Began{}), DataError);
  EXPECT_EQ(heard, 1);
}

TEST(MetricsListener, AFullDiskIsSaidOnce) {
  const SessionListeners listeners;
  MetricsListener metrics("/dev/full", listeners);
  metrics(Began{});
  metrics(Note{});
  EXPECT_THROW(metrics(StepDone{}), IoError);
  metrics(StepDone{});
}

TEST(MetricsListener, NothingIsWrittenOfARunThatDidNotBegin) {
  const SessionListeners listeners;
  MetricsListener metrics("/no/such/folder/m.jsonl", listeners);
  metrics(StepDone{});
  EXPECT_THROW(metrics(Began{}), IoError);
}

}  // namespace
}  // namespace strata::train
