// Forked ranks on hosts that the test plays, connected over 127.0.0.1.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/gather_texts.h"
#include "comm/gloo/gloo_module.h"
#include "comm/host_stream.h"
#include "comm/hosts/hosts_communicator.h"
#include "comm/testing/conformance.h"
#include "comm/testing/forked_ranks.h"
#include "comm/testing/hosts_traffic.h"
#include "comm/testing/played_hosts.h"
#include "comm/testing/played_layouts.h"
#include "comm/testing/test_arena.h"
#include "comm/testing/test_watch.h"
#include "core/error.h"

namespace strata::comm {
namespace {

void run_ranks(const HostLayout& layout, const RankBody& body, bool closes) {
  run_played_hosts(layout, [&](const RankContext& context) {
    const auto communicator = make_communicator(context, "auto");
    EXPECT_EQ(communicator->backend(), "hosts");
    try {
      body(*communicator);
      if (closes) communicator->close();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << context.rank << ": " << error.what();
      communicator->abort(error.what());
    }
  });
}

std::vector<TestedBackend> backends(bool closes) {
  return backends_on_hosts({.name = "gloo"},
                           [closes](const HostLayout& layout, const RankBody& body) {
                             run_ranks(layout, body, closes);
                           });
}

INSTANTIATE_TEST_SUITE_P(Gloo, CommConformance, testing::ValuesIn(backends(true)), backend_name);
INSTANTIATE_TEST_SUITE_P(Gloo, CommFailure, testing::ValuesIn(backends(false)), backend_name);

/// Returns the inodes of the memfds that this process maps.
std::set<std::string> mapped_memory() {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::string addresses, rights, offset, device, inode, name;
    std::istringstream(line) >> addresses >> rights >> offset >> device >> inode >> name;
    if (name.starts_with("/memfd:")) inodes.insert(inode);
  }
  return inodes;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

TEST(GlooHosts, MapNothingOfOneAnother) {
  const HostLayout layout{{0, 2}, 5};
  run_ranks(
      layout,
      [&](Communicator& communicator) {
        TestArena arena(communicator, 4096);
        std::string mine;
        for (const std::string& inode : mapped_memory()) mine += inode + " ";
        const std::vector<std::string> all = gather_texts(communicator, mine);
        const std::set<std::string> own = words_of(mine);
        for (int peer = 0; peer < layout.world; ++peer) {
          std::set<std::string> common;
          for (const std::string& inode : words_of(all[peer]))
            if (own.contains(inode)) common.insert(inode);
          const bool here = layout.host_of(peer) == layout.host_of(communicator.rank());
          EXPECT_EQ(common.empty(), !here) << "rank " << communicator.rank() << " and " << peer;
        }
        arena.close();
      },
      true);
}

TEST(GlooHosts, SendEachByteToAHostOnce) {
  for (const NamedLayout& named : played_layouts())
    run_ranks(
        named.layout,
        [&](Communicator& communicator) {
          const HostsTraffic traffic = measure_traffic(communicator, named.layout, [&] {
            return dynamic_cast<HostsCommunicator&>(communicator).sent_to_hosts();
          });
          EXPECT_LE(static_cast<double>(traffic.sent), 1.03 * static_cast<double>(traffic.least));
          EXPECT_GE(traffic.sent, traffic.least);
        },
        true);
}

/// Runs `communicate` on all ranks until it throws; `killed` dies meanwhile. The others must soon
/// learn its number.
void expect_death_noticed(const HostLayout& layout, int killed,
                          const std::function<void(Communicator&, TestArena&)>& communicate) {
  const TemporaryFolder folder;
  const std::vector<int> statuses = run_forked(layout.world, [&](int rank) {
    const auto communicator = make_communicator(context_of(rank, layout, folder), "hosts");
    TestArena arena(*communicator, 96 << 20);
    const auto start = std::chrono::steady_clock::now();
    std::thread killer;
    if (rank == killed)
      killer = std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ::raise(SIGKILL);
      });
    try {
      for (;;) communicate(*communicator, arena);
    } catch (const PeerError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("rank " + std::to_string(killed) + " (process "), std::string::npos)
          << text;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2100));
    if (killer.joinable()) killer.join();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  for (int rank = 0; rank < layout.world; ++rank) {
    if (rank == killed)
      EXPECT_TRUE(WIFSIGNALED(statuses[rank]) && WTERMSIG(statuses[rank]) == SIGKILL);
    else
      EXPECT_EQ(statuses[rank], 0)
          << "rank " << rank << " of " << layout.world << ", killed " << killed;
  }
}

Collective large(CollectiveKind kind, int world) {
  Collective collective{.kind = kind, .input_type = DType::f32, .wire_type = DType::f32};
  for (int rank = 0; rank <= world; ++rank)
    collective.partition.bounds.push_back(std::int64_t{rank} << 20);
  return collective;
}

// Faults 2, 3.
TEST(GlooHosts, NameAKilledRankWhileBytesTravel) {
  // Of 1 + 2 ranks the first has nobody on its host who sees it die.
  for (const HostLayout& layout :
       {HostLayout{{0, 2}, 4}, HostLayout{{0, 2}, 5}, HostLayout{{0, 1}, 3}})
    for (const int killed : {0, 1, layout.world - 1})
      for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
        expect_death_noticed(layout, killed, [&](Communicator& communicator, TestArena& arena) {
          arena.reset();
          HostStream stream;
          const Collective collective = large(kind, layout.world);
          const std::int64_t scratch = communicator.workspace_bytes(collective);
          communicator.run(stream, collective, arena.take(21 << 20), arena.take(21 << 20),
                           {arena.take(scratch), static_cast<std::size_t>(scratch)});
        });
}

TEST(GlooHosts, NameAKilledRankThatOthersWaitFor) {
  for (const HostLayout& layout : {HostLayout{{0, 2}, 4}, HostLayout{{0, 1}, 3}})
    for (const int killed : {0, 1, layout.world - 1})
      expect_death_noticed(layout, killed, [&](Communicator& communicator, TestArena&) {
        HostStream stream;
        if (communicator.rank() == killed) std::this_thread::sleep_for(std::chrono::seconds(5));
        communicator.run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
      });
}

TEST(GlooHosts, NoticeADeathWhileTheyCompute) {
  expect_death_noticed({{0, 1}, 2}, 1, [](Communicator& communicator, TestArena&) {
    communicator.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
}

// Fault 2.
TEST(GlooHosts, EndAtTheLaunchersWordOnOneOfThem) {
  run_played_hosts({{0, 1}, 2}, [](const RankContext& context) {
    TestWatch watch("host b is lost");
    const auto communicator = make_communicator(context, "auto", &watch);
    if (context.rank == 0) watch.order_stop();
    HostStream stream;
    try {
      // Neither comes back: rank 1 waits for a message that rank 0 does not send.
      Collective wait{.kind = CollectiveKind::receive, .partition = {{0, 0, 0}}};
      wait.peer = 1 - context.rank;
      communicator->run(stream, wait, nullptr, nullptr, {});
      ADD_FAILURE() << "rank " << context.rank << " went on";
    } catch (const PeerError& error) {
      EXPECT_EQ(std::string(error.what()), "mlaunch: host b is lost");
    }
  });
}

std::string refusal(const GlooPlace& place) {
  try {
    make_gloo_link(place);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

GlooPlace place_of(const RankContext& context) {
  return {.rank = context.rank,
          .layout = {context.first_ranks, context.world},
          .host = context.host,
          .address = context.host_address,
          .run_id = context.run_id,
          .secret = "the same",
          .store = context.store};
}

// Fault 31.
TEST(GlooHosts, RefuseARankThatDoesNotKnowTheSecret) {
  run_played_hosts({{0, 1}, 2}, [](const RankContext& context) {
    GlooPlace place = place_of(context);
    if (context.rank == 1) place.secret = "another";
    const std::string text = refusal(place);
    EXPECT_EQ(text, "whoever connected as rank " + std::to_string(1 - context.rank) +
                        " has not proved that it belongs to run test, attempt 0: its key is "
                        "another one; do all ranks have this run's rendezvous, and does no other "
                        "run use these addresses?");
  });
}

TEST(GlooHosts, SayWhatToSetWhenTheAddressIsNotTheirs) {
  const TemporaryFolder folder;
  GlooPlace place = place_of(context_of(0, {{0, 1}, 2}, folder));
  place.address = "192.0.2.1";  // of documentation, nobody's
  const std::string text = refusal(place);
  EXPECT_NE(text.find("rank 0 cannot listen on 192.0.2.1"), std::string::npos) << text;
  EXPECT_NE(text.find("set STRATA_HOST_ADDRESS"), std::string::npos) << text;
}

}  // namespace
}  // namespace strata::comm
