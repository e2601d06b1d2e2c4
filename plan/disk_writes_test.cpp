#include "plan/disk_writes.h"

#include <gtest/gtest.h>

#include "zero/micro_step.h"

namespace strata::plan {
namespace {

runtime::Instruction moving(machine::Resource resource, std::int64_t bytes) {
  runtime::Instruction in;
  in.demand.resource = resource;
  in.demand.moved_bytes = bytes;
  return in;
}

compile::StepPrograms writing() {
  using machine::Resource;
  compile::StepPrograms programs;
  programs.settings.plan.micro_steps = 4;
  const auto of = [&](const zero::MicroStepKind& kind) -> runtime::Program& {
    return programs.programs[{compile::ProgramKind::train, kind}];
  };
  of(zero::MicroStepKind::first).instructions = {moving(Resource::disk_read, 1000),
                                                 moving(Resource::disk_write, 10)};
  of(zero::MicroStepKind::middle).instructions = {moving(Resource::disk_write, 1),
                                                  moving(Resource::disk_write, 2),
                                                  moving(Resource::download, 1000)};
  of(zero::MicroStepKind::last).instructions = {moving(Resource::disk_write, 100)};
  programs.programs[{compile::ProgramKind::drain}].instructions = {
      moving(Resource::disk_write, 10000)};
  return programs;
}

TEST(DiskWrites, OfAStepAreThoseOfItsMicroStepsAsOftenAsTheyRun) {
  EXPECT_EQ(bytes_written_per_step(writing()), 10 + 2 * (1 + 2) + 100);
  EXPECT_EQ(bytes_written_per_step({}), 0);
}

TEST(DiskWrites, ADriveLastsAsLongAsItMayBeWritten) {
  machine::Disk disk;
  disk.tbw = machine::assumed(1.2e15);
  EXPECT_DOUBLE_EQ(days_until_written(disk, 1e11, 8.64), 1.2);
  EXPECT_EQ(days_until_written(disk, 0, 8.64), 0);
  EXPECT_EQ(days_until_written({}, 1e11, 8.64), 0);
}

}  // namespace
}  // namespace strata::plan
