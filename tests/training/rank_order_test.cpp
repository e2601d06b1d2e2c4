// Ranks wait for one another in collectives, so what all of them compute stands in one order on all
// of them, however else their Programs differ: by transfers and updates of their own parts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/factory.h"
#include "kernels/cpu/cpu_stream.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

/// Forward and backward work in the order of the list; each rank sums the squares of its own part.
std::vector<std::string> common_work(const runtime::Program& program) {
  std::vector<std::string> labels;
  for (const runtime::Instruction& in : program.instructions)
    if (in.queue == runtime::Queue::compute && in.pass != runtime::Pass::update &&
        in.operation->name != "norm_squares")
      labels.push_back(in.label);
  return labels;
}

TEST(OrderOfRanks, IsOneWhateverTheirTransfersTake) {
  constexpr int kWorld = 4;
  const auto communicators = comm::make_thread_communicators(kWorld);
  for (int stage : {1, 2, 3})
    for (double disk_rate : {1e6, 1e7, 1e8, 1e9}) {
      train::ProgramRequest request;
      request.model = tiny_gpt2();
      request.options = tiny_options(kWorld, kWorld, 1);
      request.options.zero.stage = stage;
      request.options.offload.optimizer = train::OffloadTarget::nvme;
      request.rates = runtime::MachineRates{};
      request.rates->disk_read_bytes = request.rates->disk_write_bytes = disk_rate;
      std::vector<std::string> first;
      for (const auto& communicator : communicators) {
        const train::ProgramSet programs =
            train::build_programs(request, *communicator, kernels::CpuDevice(1).capabilities());
        const std::vector<std::string> work = common_work(programs.train.begin()->second);
        if (first.empty()) first = work;
        EXPECT_EQ(work, first) << "stage " << stage << ", rank " << communicator->rank()
                               << ", bytes per second " << disk_rate;
      }
      EXPECT_GT(first.size(), 20U);
    }
}

}  // namespace
}  // namespace strata::tests
