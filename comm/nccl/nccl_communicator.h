// Collectives between GPUs over NCCL: NCCL moves bytes, Strata adds them, so that bits equal those
// of every other backend. Tested with a stand-in for NCCL over host memory; between GPUs it has not
// been executed yet.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/arena_table.h"
#include "comm/communicator.h"
#include "comm/nccl/nccl_library.h"
#include "comm/nccl/two_levels.h"

namespace strata::comm {

/// The device of a rank, as NcclCommunicator needs it.
struct NcclDevice {
  std::string gpu;            ///< identity among all hosts: equal if two ranks share one
  std::byte* word = nullptr;  ///< 8 bytes of device memory, for barriers
  cudaStream_t (*stream_of)(kernels::Stream& stream) = nullptr;
  Reduction reduction = Reduction::ordered;
  std::string host{};     ///< name of this rank's host, for people
  std::string library{};  ///< the file of NCCL, for people
};

/// `run` enqueues and returns. Errors of enqueued work appear in `check`, so call it while waiting
/// for a stream. NCCL runs in its non-blocking mode: no call waits for a peer without asking the
/// host communicator whether one died or the rank must end. After an error the communicator is
/// dead, and NCCL's kernels are told to end. Where the host communicator's seat says that ranks are
/// on several hosts, sums and gathers have two levels (two_levels.h).
class NcclCommunicator : public Communicator {
 public:
  /// Collective. The current device is the communicator's. Borrows all arguments. Throws as
  /// make_nccl_communicator does.
  NcclCommunicator(const NcclFunctions& nccl, Communicator& host, NcclDevice device);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  [[nodiscard]] std::string_view backend() const override { return "nccl"; }
  [[nodiscard]] bool runs_on_host() const override { return false; }
  [[nodiscard]] bool all_have_recorded(bool mine) override;
  /// Affects this rank alone.
  void register_arena(const ArenaRegion& region) override { arenas_.add(region); }
  void unregister_arena(const std::byte* base) override { arenas_.remove(base); }
  [[nodiscard]] Exchange exchange() const override {
    if (device_.reduction == Reduction::native) return Exchange::native_messages;
    return levels_.needed() ? Exchange::host_messages : Exchange::messages;
  }
  [[nodiscard]] Seat seat() const override {
    return {rank(), size(), exchange(), levels_.layout.first_ranks};
  }
  void check() override;
  void abort(const std::string& reason, ExitCode code) noexcept override;
  /// Call it after collectives have been waited for and recordings of them are gone: NCCL waits for
  /// that. The owner of the host communicator closes that one.
  void close() override;

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  /// Makes one NCCL operation of the calls that `body` passes to its argument.
  template <typename Body>
  void group(const Body& body);
  void agree();
  void start();
  /// Throws unless NCCL accepted the call; waits while it is in progress.
  void require(ncclResult_t result, const char* call);
  void wait_until_taken(const char* call);
  void require_alive();
  /// Ends the communicator and throws a message that begins with `subject` and the collective.
  [[noreturn]] void fail(ncclResult_t result, const std::string& subject);
  void end_nccl() noexcept;

  // The collectives (nccl_collectives.cpp).
  void enqueue(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace);
  void all_gather(const Collective& collective, const std::byte* input, std::byte* output);
  void reduce_scatter(kernels::Stream& stream, const Collective& collective, const std::byte* input,
                      float* output, std::span<std::byte> free);
  void ordered_sums(kernels::Stream& stream, const Collective& collective, const std::byte* rounded,
                    float* output, std::span<std::byte> free);
  void native_sums(const Partition& partition, DType wire, const std::byte* rounded,
                   std::byte* sum);
  void all_to_all(const Collective& collective, const std::byte* input, std::byte* output);

  // The same over hosts (nccl_over_hosts.cpp); `rounded` is this rank's contribution.
  void gather_over_hosts(const Collective& collective, const std::byte* input, std::byte* output);
  void sum_over_hosts(kernels::Stream& stream, const Collective& collective,
                      const std::byte* rounded, float* output, std::span<std::byte> free);
  void fetch_contributions(const Collective& collective, const std::byte* rounded,
                           std::span<std::byte>& free);
  void add_for_host(kernels::Stream& stream, const Collective& collective,
                    std::span<std::byte>& free);
  void exchange_sums(const Collective& collective, const std::byte* rounded,
                     std::span<std::byte>& free);
  void finish_sum(kernels::Stream& stream, const Collective& collective, float* output,
                  std::span<std::byte> free);
  /// The place of the contribution of a rank of this host to the piece at `index` of those that
  /// this rank adds up, and of a sum that it makes of it.
  const std::byte*& contribution(std::size_t index, int peer);
  std::byte*& made(std::size_t index, std::size_t sum);

  const NcclFunctions& nccl_;
  Communicator& host_;
  NcclDevice device_;
  const TwoLevels levels_;
  ArenaTable arenas_;
  std::mutex mutex_;  ///< held during calls of NCCL
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;  ///< stream of the collective being enqueued
  std::atomic<bool> dead_{false};
  std::thread ending_;  ///< runs ncclCommAbort
  bool closed_ = false;
  std::string reason_;                          ///< why it is dead, if the host does not know
  std::array<char, kDescriptionBytes> text_{};  ///< describes the collective being enqueued
  std::string_view what_ = "start";
  // Operands of the reduce_scatter being enqueued.
  std::vector<const std::byte*> contributions_;  ///< by rank; over hosts: see contribution()
  std::vector<std::byte*> made_;                 ///< see made()
  std::vector<const std::byte*> operands_;       ///< parts and slots of sum_steps
  std::vector<const std::byte*> addends_;        ///< those of one step
};

template <typename Body>
void NcclCommunicator::group(const Body& body) {
  require(nccl_.group_start(), "ncclGroupStart");
  ncclResult_t first = ncclSuccess;
  body([&](ncclResult_t result) {
    if (result != ncclInProgress && first == ncclSuccess) first = result;
  });
  // Ends the group after an error, too: an open group would swallow later calls.
  const ncclResult_t end = nccl_.group_end();
  if (first != ncclSuccess) fail(first, "a call of NCCL for");
  require(end, "ncclGroupEnd");
}

}  // namespace strata::comm
