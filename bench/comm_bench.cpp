// Reduce-scatter and all-gather: Strata's backends beside MPI's own collectives and plain copies,
// interleaved in one run.
//   mpirun -np 2 build/bin/comm_bench [LARGEST_MIB] [REPETITIONS]
// With ranks on several hosts (as many on each, with one TMPDIR that all see, and STRATA_INTERFACE)
// it is the backend of several hosts in place of shared memory (bench/beside_mpi.py).
// Sizes are bytes of the whole (a rank's contribution, or what a rank holds after a gather). Times
// are of the slowest rank, medians over the repetitions. "copying" is the time for the bytes that
// each rank reads and writes, at the rate at which all ranks together copy in the same run. It is a
// yardstick and no bound: a collective that finds its data in a cache is faster than copying.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/played_host_store.h"
#include "comm/testing/test_arena.h"
#include "core/error.h"

namespace {

using strata::comm::Collective;
using strata::comm::CollectiveKind;
using strata::comm::Communicator;
using strata::comm::TestArena;

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// One of the implementations that are compared, with the seconds of each repetition.
struct Candidate {
  std::string name;
  std::function<void()> work;
  std::function<void()> meet;  ///< a barrier of the same implementation
  std::vector<double> seconds = {};
};

/// Fills each candidate's seconds with those of the slowest rank. Ranks meet before and after each
/// repetition by the candidate's own barrier: one that waits in MPI polls, and would keep its core
/// from peers that still work and from their threads.
void measure(std::vector<Candidate>& candidates, int repetitions) {
  for (int repetition = -2; repetition < repetitions; ++repetition)
    for (Candidate& candidate : candidates) {
      candidate.meet();
      const auto start = std::chrono::steady_clock::now();
      candidate.work();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      candidate.meet();
      if (repetition >= 0) candidate.seconds.push_back(seconds.count());  // the others warm up
    }
  for (Candidate& candidate : candidates)
    MPI_Allreduce(MPI_IN_PLACE, candidate.seconds.data(), repetitions, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
}

class Bench {
 public:
  Bench(Communicator& shm, Communicator& mpi, int repetitions, std::int64_t largest_bytes)
      : shm_(shm),
        mpi_(mpi),
        repetitions_(repetitions),
        arena_(shm, static_cast<std::size_t>(largest_bytes) * 5),
        input_(arena_.take(largest_bytes)),
        output_(arena_.take(largest_bytes)),
        workspace_bytes_(largest_bytes * 3 - 128),
        workspace_(arena_.take(workspace_bytes_)) {
    mpi.register_arena({input_, largest_bytes * 5, -1});
    for (std::int64_t i = 0; i < largest_bytes / 4; ++i) {
      const float value = static_cast<float>(i % 1000) * 0.5f;
      std::memcpy(input_ + i * 4, &value, 4);
    }
    std::memset(output_, 0, static_cast<std::size_t>(largest_bytes));
    std::memset(workspace_, 0, static_cast<std::size_t>(workspace_bytes_));
  }

  void reduce_scatter(std::int64_t bytes, strata::DType type) {
    Collective collective = describe(CollectiveKind::reduce_scatter, bytes, type);
    std::vector<Candidate> candidates = of_strata(collective, input_, output_, bytes);
    if (type == strata::DType::f32)
      candidates.push_back({"MPI_Reduce_scatter_block",
                            [&] {
                              MPI_Reduce_scatter_block(
                                  input_, output_, static_cast<int>(collective.partition.count(0)),
                                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                            },
                            mpi_barrier});
    measure(candidates, repetitions_);
    const std::int64_t written = collective.partition.count(0) * 4;
    report("reduce_scatter", type, bytes, bytes + written, candidates);
  }

  void all_gather(std::int64_t bytes, strata::DType type) {
    Collective collective = describe(CollectiveKind::all_gather, bytes, type);
    const std::int64_t piece = bytes / shm_.size();
    std::byte* own = output_ + shm_.rank() * piece;
    std::vector<Candidate> candidates = of_strata(collective, own, output_, bytes);
    candidates.push_back({"MPI_Allgather",
                          [&] {
                            MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, output_,
                                          static_cast<int>(piece), MPI_BYTE, MPI_COMM_WORLD);
                          },
                          mpi_barrier});
    measure(candidates, repetitions_);
    report("all_gather", type, bytes, 2 * (bytes - piece), candidates);
  }

  void barrier() {
    std::vector<Candidate> candidates;
    for (Communicator* communicator : {&shm_, &mpi_})
      candidates.push_back({std::string(communicator->backend()), barrier_of(*communicator),
                            barrier_of(*communicator)});
    candidates.push_back({"MPI_Barrier", mpi_barrier, mpi_barrier});
    measure(candidates, repetitions_ * 20);
    if (shm_.rank() != 0) return;
    std::printf("barrier:");
    for (const Candidate& candidate : candidates)
      std::printf("  %s %.1f us", candidate.name.c_str(), median(candidate.seconds) * 1e6);
    std::printf("\n");
  }

  void close() { arena_.close(); }

 private:
  static void mpi_barrier() { MPI_Barrier(MPI_COMM_WORLD); }

  static std::function<void()> barrier_of(Communicator& communicator) {
    return [&communicator] {
      strata::comm::HostStream stream;
      communicator.run(stream, {}, nullptr, nullptr, {});
    };
  }

  Collective describe(CollectiveKind kind, std::int64_t bytes, strata::DType type) const {
    Collective collective{.kind = kind, .input_type = type, .wire_type = type};
    const std::int64_t count = bytes / strata::size_of(type) / shm_.size();
    for (int rank = 0; rank <= shm_.size(); ++rank)
      collective.partition.bounds.push_back(rank * count);
    return collective;
  }

  std::vector<Candidate> of_strata(const Collective& collective, const std::byte* input,
                                   std::byte* output, std::int64_t bytes) {
    const std::span<std::byte> workspace{workspace_, static_cast<std::size_t>(workspace_bytes_)};
    std::vector<Candidate> candidates;
    for (Communicator* communicator : {&shm_, &mpi_})
      candidates.push_back({std::string(communicator->backend()),
                            [=] {
                              strata::comm::HostStream stream;
                              communicator->run(stream, collective, input, output, workspace);
                            },
                            barrier_of(*communicator)});
    candidates.push_back(
        {"memcpy", [=, this] { std::memcpy(output_, input_, static_cast<std::size_t>(bytes)); },
         barrier_of(shm_)});
    return candidates;
  }

  void report(const char* what, strata::DType type, std::int64_t bytes, std::int64_t moved_bytes,
              const std::vector<Candidate>& candidates) const {
    if (shm_.rank() != 0) return;
    double copy_rate = 0;  // bytes read and written per second by each rank
    for (const Candidate& candidate : candidates)
      if (candidate.name == "memcpy")
        copy_rate = 2.0 * static_cast<double>(bytes) / median(candidate.seconds);
    const double copying = static_cast<double>(moved_bytes) / copy_rate;
    std::printf("%s %s %8.3f MiB  copying %9.1f us", what, std::string(name_of(type)).c_str(),
                static_cast<double>(bytes) / (1 << 20), copying * 1e6);
    const double shm = median(candidates[0].seconds);
    for (const Candidate& candidate : candidates) {
      if (candidate.name == "memcpy") continue;
      const double seconds = median(candidate.seconds);
      std::printf("  %s %9.1f us (%3.0f %% of copying's rate, %.2fx %s)", candidate.name.c_str(),
                  seconds * 1e6, 100 * copying / seconds, seconds / shm,
                  candidates[0].name.c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  Communicator& shm_;
  Communicator& mpi_;
  int repetitions_;
  TestArena arena_;
  std::byte* input_;
  std::byte* output_;
  std::int64_t workspace_bytes_;
  std::byte* workspace_;
};

/// Tells all ranks rank 0's folder, in which the shared-memory ranks meet.
std::string shared_folder(const strata::comm::TemporaryFolder* folder) {
  char path[4096] = "";
  if (folder != nullptr) std::snprintf(path, sizeof path, "%s", folder->path().c_str());
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  return path;
}

void run(std::int64_t largest_bytes, int repetitions) {
  strata::RankContext context;
  context.rank = number_from("OMPI_COMM_WORLD_RANK", 0);
  context.world = number_from("OMPI_COMM_WORLD_SIZE", 1);
  context.local_world = number_from("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
  context.local_rank = number_from("OMPI_COMM_WORLD_LOCAL_RANK", 0);
  const bool has_hosts = context.local_world < context.world;  // as many ranks on each
  if (has_hosts) {
    context.node = context.rank / context.local_world;
    for (int rank = 0; rank < context.world; rank += context.local_world)
      context.first_ranks.push_back(rank);
    if (const char* name = std::getenv("STRATA_INTERFACE")) context.network_interface = name;
  }
  if (context.world == 1) throw strata::InvalidArgument("start it with mpirun -np 2 or more");
  const auto mpi = strata::comm::make_communicator(context, "mpi");
  std::unique_ptr<strata::comm::TemporaryFolder> folder;
  if (context.rank == 0) folder = std::make_unique<strata::comm::TemporaryFolder>();
  context.store =
      std::make_shared<strata::comm::PlayedHostStore>(shared_folder(folder.get()), context.node);
  const auto shm = strata::comm::make_communicator(context, has_hosts ? "hosts" : "shm");

  Bench bench(*shm, *mpi, repetitions, largest_bytes);
  bench.barrier();
  for (std::int64_t bytes = 1 << 16; bytes <= largest_bytes; bytes *= 4) {
    for (const strata::DType type : {strata::DType::f32, strata::DType::bf16}) {
      bench.reduce_scatter(bytes, type);
      bench.all_gather(bytes, type);
    }
  }
  bench.close();
  shm->close();
  mpi->close();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::int64_t largest_mib = argc > 1 ? std::atoi(argv[1]) : 64;
    const int repetitions = argc > 2 ? std::atoi(argv[2]) : 15;
    if (largest_mib < 1 || repetitions < 1)
      throw strata::InvalidArgument("usage: comm_bench [LARGEST_MIB] [REPETITIONS]");
    run(largest_mib << 20, repetitions);
    return 0;
  } catch (const strata::Error& error) {
    std::fprintf(stderr, "comm_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
