// The number of records read ahead is chosen by how long the step then takes.
#include <gtest/gtest.h>

#include <cstdint>

#include "comm/factory.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

/// A run of GPT-2 124M with 2 x 256 tokens per rank and the optimizer on the disk.
train::ProgramRequest offloading() {
  train::ProgramRequest request;
  request.model = gpt2_124m();
  request.options = tiny_options(2, 4, 1);
  request.options.sequence_length = 256;
  request.options.zero.param_persistence_threshold_elements = 100'000;
  request.options.zero.stage = 3;
  request.options.offload.optimizer = plan::Home::disk;
  return request;
}

/// Probing the same disk gives other rates each time. A higher rate must not make steps slower
/// because reading ahead as many records as fit leaves too few windows for the rest.
TEST(ReadAhead, MakesNoStepSlowerWhenTheDiskIsFaster) {
  const auto communicators = comm::make_thread_communicators(2);
  std::int64_t before_ns = 0;
  for (const double rate : {1.1e9, 1.2e9, 1.3e9, 1.4e9, 1.5e9, 1.6e9, 1.7e9}) {
    machine::Machine machine = machine::cpu_machine(1);
    machine.disk.read_rate.value = rate;
    machine.disk.write_rate.value = 1.5 * rate;
    const compile::StepPrograms set =
        train::build_programs(offloading(), communicators[1]->seat(), machine);
    ASSERT_TRUE(set.find(compile::ProgramKind::read_ahead));
    const std::int64_t ns = set.scheduled_ns();
    EXPECT_GT(ns, 0);
    EXPECT_TRUE(before_ns == 0 || ns <= before_ns + before_ns / 100) << rate << ": " << ns;
    before_ns = ns;
  }
}

}  // namespace
}  // namespace strata::tests
