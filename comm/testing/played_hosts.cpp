#include "comm/testing/played_hosts.h"

#include <gtest/gtest.h>

#include "comm/testing/forked_ranks.h"

namespace strata::comm {

RankContext context_of(int rank, const HostLayout& layout, const TemporaryFolder& folder) {
  RankContext context;
  context.rank = rank;
  context.world = layout.world;
  context.node = layout.host_of(rank);
  context.local_rank = layout.local(rank);
  context.local_world = layout.ranks(context.node);
  context.first_ranks = layout.first_ranks;
  context.host = "played-" + std::to_string(context.node);
  context.host_address = "127.0.0.1";
  context.run_id = "test";
  context.started_by = "mlaunch";
  context.store = std::make_shared<PlayedHostStore>(folder.path(), context.node);
  return context;
}

void run_played_hosts(const HostLayout& layout,
                      const std::function<void(const RankContext& context)>& body) {
  const TemporaryFolder folder;
  const std::vector<int> statuses = run_forked(layout.world, [&](int rank) {
    body(context_of(rank, layout, folder));
    return testing::Test::HasFailure() ? 1 : 0;
  });
  for (int rank = 0; rank < layout.world; ++rank) EXPECT_EQ(statuses[rank], 0) << "rank " << rank;
}

}  // namespace strata::comm
