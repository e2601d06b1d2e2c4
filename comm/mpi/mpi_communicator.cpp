#include "comm/mpi/mpi_communicator.h"

#include <fmt/core.h>
#include <cstdio>
#include <string>

#include "comm/first_cause.h"
#include "comm/mpi/mpi_calls.h"
#include "core/check.h"

namespace strata::comm {
namespace {

void initialize_mpi() {
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized != 0)
    throw HostError("MPI runs already in this process; there can be one MPI communicator only");
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  // The communication queue's thread calls MPI, and it need not be this one.
  if (provided < MPI_THREAD_SERIALIZED)
    throw HostError(
        fmt::format("this MPI library cannot be called from changing threads (thread level {}); "
                    "Strata needs MPI_THREAD_SERIALIZED",
                    provided));
}

}  // namespace

MpiCommunicator::MpiCommunicator(int rank, int world)
    : rank_(rank), world_(world), contributions_(static_cast<std::size_t>(world)) {
  initialize_mpi();
  int mpi_rank = -1;
  int mpi_world = -1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &mpi_world), "MPI_Comm_size");
  if (mpi_rank != rank || mpi_world != world) {
    MPI_Finalize();
    throw ConfigError(
        fmt::format("MPI says this is rank {} of {}, the launcher says rank {} of {}; start the "
                    "program with this Open MPI's mpirun",
                    mpi_rank, mpi_world, rank, world));
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

void MpiCommunicator::register_arena(const ArenaRegion& region) { arenas_.add(region); }

void MpiCommunicator::unregister_arena(const std::byte* base) { arenas_.remove(base); }

void MpiCommunicator::execute(kernels::Stream& /*stream*/, const Collective& collective,
                              const std::byte* input, std::byte* output,
                              std::span<std::byte> workspace) {
  const std::string_view what = describe_into(collective, text_);
  STRATA_CHECK(!closed_, "rank", rank_, "after close:", what);
  if (failed_ || aborted_) throw PeerError(fmt::format("'{}' after a communication error", what));
  validate(collective, rank_, world_);
  const OperandBytes bytes = operand_bytes(collective, rank_);
  static_cast<void>(arenas_.locate(output, bytes.output, what, "output"));
  const bool in_place =
      collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::broadcast;
  if (!in_place) static_cast<void>(arenas_.locate(input, bytes.input, what, "input"));
  STRATA_CHECK(static_cast<std::int64_t>(workspace.size()) >= workspace_bytes(collective), what,
               "workspace of", workspace.size(), "bytes; needs", workspace_bytes(collective));
  failed_ = true;  // set to false again after success
  requests_.belong_to(what);
  run_kind(collective, input, output, workspace);
  failed_ = false;
}

void MpiCommunicator::abort(const std::string& reason, ExitCode code) noexcept {
  if (aborted_.exchange(true)) return;
  std::fprintf(stderr, "%s\n", attributed(rank_, reason).c_str());
  std::fflush(stderr);
  // Held briefly: the queue's thread holds the mutex for one nonblocking call at a time.
  const std::lock_guard lock(mutex_);
  if (!closed_) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
}

void MpiCommunicator::close() {
  if (closed_ || failed_ || aborted_) return;
  requests_.belong_to("close");
  barrier();
  const std::lock_guard lock(mutex_);
  closed_ = true;
  check_mpi(MPI_Comm_free(&comm_), "MPI_Comm_free");
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace strata::comm

extern "C" __attribute__((visibility("default"))) strata::comm::Communicator*
strata_make_mpi_communicator(int rank, int world) {
  return new strata::comm::MpiCommunicator(rank, world);
}
