#include "train/engine/status_observer.h"

#include <gtest/gtest.h>

#include "comm/host_stream.h"
#include "comm/single.h"

namespace strata::train {
namespace {

TEST(StatusObserver, NumbersCollectivesAsTheCommunicatorDoes) {
  comm::SingleCommunicator communicator;
  comm::HostStream stream;
  const auto meet = [&] { communicator.run(stream, {}, nullptr, nullptr, {}); };
  meet();
  meet();  // before the first Program
  StatusPage page = StatusPage::create(0);
  StatusObserver observer(page, communicator);
  runtime::Program program;
  program.instructions.resize(1);
  program.instructions[0].queue = runtime::Queue::communication;
  program.instructions[0].label = "gather layer.0";
  observer.begin_program(program, 11);
  observer.begin(program, 0);
  meet();
  EXPECT_EQ(page.describe(), "step 12, starting, in collective 3 'gather layer.0'");
  observer.end(program, 0);
  EXPECT_EQ(page.describe(), "step 12, starting");
}

}  // namespace
}  // namespace strata::train
