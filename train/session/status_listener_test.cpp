#include "train/session/status_listener.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "comm/host_stream.h"
#include "comm/single.h"

namespace strata::train {
namespace {

TEST(StatusListener, KeepsPhasesAndNumbersCollectivesAsTheCommunicatorDoes) {
  comm::SingleCommunicator communicator;
  comm::HostStream stream;
  const auto meet = [&] { communicator.run(stream, {}, nullptr, nullptr, {}); };
  meet();
  meet();  // two collectives come before the first Program
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  status(Entered{Phase::loading});
  EXPECT_EQ(page.describe(), "loading");
  std::vector<runtime::Observer*> observers;
  status(Equipping{observers, communicator, communicator, machine::cpu_machine(1), 0, 1, 446});
  EXPECT_EQ(page.data().quiet_ns.load(), 0) << "each instruction beats";
  ASSERT_EQ(observers.size(), 1);
  runtime::Program program;
  program.instructions.resize(1);
  program.instructions[0].queue = runtime::Queue::communication;
  program.instructions[0].label = "gather layer.0";
  observers[0]->begin_program(program, 11);
  observers[0]->begin(program, 0);
  meet();
  EXPECT_EQ(page.describe(), "step 12, loading, in collective 3 'gather layer.0'");
  observers[0]->end(program, 0);
  EXPECT_EQ(page.describe(), "step 12, loading");
}

TEST(StatusListener, ShowsThePassOfTheInstructionThatComputes) {
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  runtime::Program program;
  program.name = "train.only";
  for (const auto& [pass, label] :
       {std::pair{runtime::Pass::forward, "linear"},
        std::pair{runtime::Pass::backward, "linear_backward"},
        std::pair{runtime::Pass::update, "adamw"}, std::pair{runtime::Pass::forward, "upload"}}) {
    runtime::Instruction& in = program.instructions.emplace_back();
    in.pass = pass;
    in.label = label;
  }
  program.instructions.back().queue = runtime::Queue::upload;
  const auto at = [&](int instruction) {
    status.begin(program, instruction);
    return page.describe();
  };
  EXPECT_EQ(at(0), "forward, instruction 0 'linear'");
  EXPECT_EQ(at(1), "backward, instruction 1 'linear_backward'");
  EXPECT_EQ(at(2), "update, instruction 2 'adamw'");
  EXPECT_EQ(at(3), "update, instruction 2 'adamw'") << "the page has one writer per field";
  const auto is_open = [&] { return page.data().events.last(1).back().ended_ns == 0; };
  status.end(program, 3);
  EXPECT_TRUE(is_open()) << "it is of another queue";
  status.end(program, 2);
  EXPECT_FALSE(is_open());
  program.name = "evaluate";
  EXPECT_EQ(at(0), "evaluate, instruction 0 'linear'");
}

TEST(StatusListener, ShowsWhatIsSeenOfARecording) {
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  runtime::Program program;
  program.name = "train.only";
  program.instructions.resize(2);
  program.instructions[0].label = "linear";
  program.instructions[1].queue = runtime::Queue::communication;
  program.instructions[1].collective = comm::integer_sum(1, 1);
  program.instructions[1].label = "gather layer.0";
  EXPECT_TRUE(status.wants_marks());
  status.seen_begin(program, 0, 0);
  EXPECT_EQ(page.describe(), "forward, instruction 0 'linear'");
  status.seen_begin(program, 1, 18);
  EXPECT_EQ(page.describe(), "forward, instruction 0 'linear', in collective 18 'gather layer.0'");
  EXPECT_EQ(page.data().collective.load(), 18);
  status.seen_end(program, 1);
  EXPECT_EQ(page.collective_name(), "");
}

TEST(StatusListener, TellsWhatIsCommitted) {
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  const auto told = [&] {
    return std::to_string(page.data().committed_step) + " " + page.data().checkpoint;
  };
  status(GoesOn{30, "/elsewhere/step-00000030", false});
  EXPECT_EQ(told(), "-1 ") << "it is no checkpoint of this output folder";
  status(GoesOn{40, "/out/step-00000040", true});
  EXPECT_EQ(told(), "40 /out/step-00000040");
  status(Saved{.step = 50, .directory = "/out/step-00000050"});
  EXPECT_EQ(told(), "50 /out/step-00000050");
  status(Saved{.step = 60, .directory = "/out/step-00000060", .not_finite = "loss of step 60"});
  EXPECT_EQ(told(), "50 /out/step-00000050") << "nobody goes on from step 60 unasked";
  status(Saved{.step = 70, .directory = "out/./step-00000070"});
  EXPECT_EQ(told(), "70 " + std::filesystem::current_path().string() + "/out/step-00000070");
}

TEST(StatusListener, ShowsLossRateAndMemory) {
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  StepDone done;
  done.metrics.loss = 2.5;
  done.smoothed_tokens_per_second = 123;
  done.arena_bytes = 1;
  done.pinned_arena_bytes = 2;
  done.pageable_arena_bytes = 3;
  done.disk_arena_bytes = 4;
  status(done);
  EXPECT_EQ(page.data().loss, 2.5);
  EXPECT_EQ(page.data().tokens_per_second, 123);
  for (int tier = 0; tier < 4; ++tier) EXPECT_EQ(page.data().tier_bytes[tier], tier + 1);
}

TEST(StatusListener, TokenizingAndEvaluatingAreProgress) {
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  const auto beats_of = [&](const RunEvent& event) {
    const std::uint64_t before = page.data().beats;
    status(event);
    return page.data().beats - before;
  };
  EXPECT_EQ(beats_of(Encoding{EncodingProgress{}}), 1U);
  EXPECT_EQ(beats_of(Evaluating{}), 1U);
  EXPECT_EQ(beats_of(Note{}), 0U);
}

// A device gets the next step while it runs one.
TEST(StatusListener, StaysAtTheStepThatADeviceRuns) {
  comm::SingleCommunicator communicator;
  StatusPage page = StatusPage::create(0);
  StatusListener status(page);
  std::vector<runtime::Observer*> observers;
  kernels::DeviceCapabilities gpu;
  gpu.backend = kernels::DeviceCapabilities::Backend::cuda;
  status(
      Equipping{observers, communicator, communicator, machine::typical_machine(gpu), 0, 1, 446});
  EXPECT_EQ(page.data().quiet_ns.load(), 446'000'000'000) << "instructions do not beat meanwhile";
  runtime::Program program;
  program.name = "train.only";
  program.instructions.resize(2);
  program.instructions[0].label = "linear";
  program.instructions[1].label = "gather layer.0";
  program.instructions[1].queue = runtime::Queue::communication;
  status.starting(program, 11);
  status.begin_program(program, 11);
  EXPECT_EQ(page.describe(), "step 12, running");
  status.begin(program, 0);
  EXPECT_EQ(page.describe(), "step 12, forward, instruction 0 'linear'");
  status.starting(program, 12);
  program.instructions[0].label = "linear of the next step";
  status.begin(program, 0);
  status.begin(program, 1);
  EXPECT_EQ(page.describe(), "step 12, forward, instruction 0 'linear'");
  status.begin_program(program, 12);
  EXPECT_EQ(page.describe(), "step 13, running");
  program.name = "evaluate";
  status.starting(program, 13);
  status.begin_program(program, 13);
  EXPECT_EQ(page.describe(), "step 14, evaluate");
}

}  // namespace
}  // namespace strata::train
