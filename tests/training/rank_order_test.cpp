// Ranks wait for one another in collectives, so the work that all of them do stands in one order on
// all of them, however their transfers and updates of own parts differ. Sends stand early enough to
// run while others compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

/// Labels of forward and backward work, in order, without each rank's squares of its own part.
std::vector<std::string> common_work(const runtime::Program& program) {
  std::vector<std::string> labels;
  for (const runtime::Instruction& in : program.instructions)
    if (in.queue == runtime::Queue::compute && in.pass != runtime::Pass::update &&
        in.operation->name != "norm_squares")
      labels.push_back(in.label);
  return labels;
}

/// Calls each(Program of a step, name of the case) for each of four ranks, with the optimizer on
/// disks of four speeds. Layers' vectors are small enough to be kept whole.
template <typename Each>
void for_each_rank(int stage, const Each& each) {
  constexpr int kWorld = 4;
  const auto communicators = comm::make_thread_communicators(kWorld);
  for (double disk_rate : {1e6, 1e7, 1e8, 1e9}) {
    train::ProgramRequest request;
    request.model = tiny_gpt2();
    request.options = tiny_options(kWorld, kWorld, 1);
    request.options.zero.stage = stage;
    request.options.zero.param_persistence_threshold_elements = 5000;
    request.options.offload.optimizer = plan::Home::disk;
    machine::Machine machine = machine::cpu_machine(1);
    machine.disk.read_rate.value = machine.disk.write_rate.value = disk_rate;
    for (const auto& communicator : communicators) {
      const compile::StepPrograms programs =
          train::build_programs(request, communicator->seat(), machine);
      each(programs.programs.begin()->second,
           "stage " + std::to_string(stage) + ", rank " + std::to_string(communicator->rank()) +
               ", bytes per second " + std::to_string(disk_rate));
    }
  }
}

TEST(OrderOfRanks, IsOneWhateverTheirTransfersTake) {
  for (int stage : {1, 2, 3}) {
    std::vector<std::string> first;
    for_each_rank(stage, [&](const runtime::Program& program, const std::string& what) {
      const std::vector<std::string> work = common_work(program);
      if (first.empty()) first = work;
      EXPECT_EQ(work, first) << what;
    });
    EXPECT_GT(first.size(), 20U);
  }
}

/// Returns the index of the first (or last) instruction whose label begins like this, or -1.
int find_first(const runtime::Program& program, const std::string& label) {
  const auto at = std::ranges::find_if(program.instructions, [&](const runtime::Instruction& in) {
    return in.label.starts_with(label);
  });
  return at == program.instructions.end() ? -1
                                          : static_cast<int>(at - program.instructions.begin());
}
int find_last(const runtime::Program& program, const std::string& label) {
  int last = -1;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i)
    if (program.instructions[static_cast<std::size_t>(i)].label.starts_with(label)) last = i;
  return last;
}

TEST(OrderOfRanks, UpdatesALayerBeforeTheOneInFrontOfItComputes) {
  for_each_rank(3, [](const runtime::Program& program, const std::string& what) {
    for (int layer : {1, 2}) {
      const std::string name = "layer." + std::to_string(layer) + ".";
      const std::string before = "layer." + std::to_string(layer - 1) + ".";
      const int computes = find_first(program, before + "1.linear");
      ASSERT_GE(computes, 0);
      EXPECT_LT(find_last(program, "update " + name), computes) << what << ", " << name;
      // The gather for the layer before it must not wait until all ranks have made this update.
      const int publishes = find_first(program, "publish " + name + "vectors");
      ASSERT_GE(publishes, 0);
      EXPECT_LT(find_first(program, "gather " + before + "matrices"), publishes)
          << what << ", " << name;
    }
  });
}

}  // namespace
}  // namespace strata::tests
