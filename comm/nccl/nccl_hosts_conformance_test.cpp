// Forked ranks on hosts that the test plays: the stand-in for NCCL beside the host communicator of
// a real run, which carries NCCL's id.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/testing/conformance.h"
#include "comm/testing/fake_nccl.h"
#include "comm/testing/played_hosts.h"
#include "comm/testing/played_layouts.h"
#include "comm/testing/simulated_nccl.h"

namespace strata::comm {
namespace {

void run_ranks(const HostLayout& layout, const RankBody& body) {
  static_cast<void>(fake_nccl());  // before the forks
  run_played_hosts(layout, [&](const RankContext& context) {
    const auto host = make_communicator(context, "auto");
    EXPECT_EQ(host->backend(), "hosts");
    try {
      SimulatedNccl nccl(*host, "GPU " + std::to_string(context.rank));
      body(nccl);
      nccl.close();
      host->close();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << context.rank << ": " << error.what();
      host->abort(error.what());
    }
    EXPECT_EQ(fake_nccl_alive(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    NcclHosts, CommConformance,
    testing::ValuesIn(backends_on_hosts({.name = "nccl", .simulates_kernels = true}, run_ranks)),
    backend_name);
// Collectives only enqueue here: errors appear in check.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFailure);

}  // namespace
}  // namespace strata::comm
