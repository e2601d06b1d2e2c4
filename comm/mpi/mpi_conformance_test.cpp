// Every rank of an mpirun is one process of this test; without mpirun it is a world of one.
//   mpirun -np 4 comm_mpi_test            the conformance suite
//   mpirun -np 4 comm_mpi_test --abort    rank 1 gives up while the others wait
//   mpirun -np 2 comm_mpi_test --stop     the launcher has all ranks end while one waits
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/conformance.h"
#include "comm/testing/test_watch.h"
#include "core/error.h"

namespace strata::comm {
namespace {

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

RankContext context_from_mpirun() {
  RankContext context;
  context.rank = number_from("OMPI_COMM_WORLD_RANK", 0);
  context.world = number_from("OMPI_COMM_WORLD_SIZE", 1);
  context.started_by = "openmpi";
  return context;
}

/// MPI starts once per process, so all tests share one communicator.
class SharedCommunicator : public testing::Environment {
 public:
  void SetUp() override { communicator_ = make_communicator(context_from_mpirun(), "mpi"); }
  void TearDown() override { communicator_->close(); }

  void run(const RankBody& body) {
    try {
      body(*communicator_);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << communicator_->rank() << ": " << error.what();
      communicator_->abort(error.what());
    }
  }

 private:
  std::unique_ptr<Communicator> communicator_;
};

std::vector<TestedBackend> backend(SharedCommunicator* shared) {
  return {{"mpi", context_from_mpirun().world,
           [shared](int, const RankBody& body) { shared->run(body); }}};
}

// GoogleTest must be given environments before main, and then owns them; this registers the only
// one of the process.
SharedCommunicator* shared_communicator() {
  static auto* const shared =
      static_cast<SharedCommunicator*>(testing::AddGlobalTestEnvironment(new SharedCommunicator));
  return shared;
}

INSTANTIATE_TEST_SUITE_P(Mpirun, CommConformance, testing::ValuesIn(backend(shared_communicator())),
                         backend_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFailure);

/// Ends all ranks with the exit code given to abort.
int abort_from_rank_one() {
  const auto communicator = make_communicator(context_from_mpirun(), "mpi");
  if (communicator->rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the others wait by now
    communicator->abort("cannot read corpus.bin", ExitCode::data);
  }
  HostStream stream;
  communicator->run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
  return 0;
}

/// Rank 1 does not come, and the launcher has all ranks end; they exit with the code of a
/// PeerError.
int stop_by_the_launcher() {
  TestWatch watch("host b is lost");
  const auto communicator = make_communicator(context_from_mpirun(), "mpi", &watch);
  std::thread launcher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    watch.order_stop();
  });
  launcher.detach();
  HostStream stream;
  if (communicator->rank() == 1)
    for (;;) {
      communicator->check();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  communicator->run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
  return 0;
}

}  // namespace
}  // namespace strata::comm

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::strcmp(argv[1], "--abort") == 0)
      return strata::comm::abort_from_rank_one();
    if (argc == 2 && std::strcmp(argv[1], "--stop") == 0)
      return strata::comm::stop_by_the_launcher();
  } catch (const strata::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
  testing::InitGoogleTest(&argc, argv);
  if (strata::comm::context_from_mpirun().rank != 0) GTEST_FLAG_SET(brief, true);
  return RUN_ALL_TESTS();
}
