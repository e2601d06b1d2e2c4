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

namespace strata::comm {

/// The device of a rank, as NcclCommunicator needs it.
struct NcclDevice {
  std::string gpu;            ///< identity among all hosts: equal if two ranks share one
  std::byte* word = nullptr;  ///< 8 bytes of device memory, for barriers
  cudaStream_t (*stream_of)(kernels::Stream& stream) = nullptr;
  Reduction reduction = Reduction::ordered;
};

/// `run` enqueues and returns. Errors of enqueued work appear in `check`, so call it while waiting
/// for a stream. NCCL runs in its non-blocking mode: no call waits for a peer without asking the
/// host communicator whether one died or the rank must end. After an error the communicator is
/// dead, and NCCL's kernels are told to end.
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
    return device_.reduction == Reduction::native ? Exchange::native_messages : Exchange::messages;
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

  void all_gather(const Collective& collective, const std::byte* input, std::byte* output);
  void reduce_scatter(kernels::Stream& stream, const Collective& collective, const std::byte* input,
                      float* output, std::byte* workspace);
  void native_sums(const Partition& partition, DType wire, const std::byte* rounded,
                   std::byte* sum);
  void all_to_all(const Collective& collective, const std::byte* input, std::byte* output);
  void enqueue(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::byte* workspace);

  const NcclFunctions& nccl_;
  Communicator& host_;
  NcclDevice device_;
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
  std::vector<const std::byte*> contributions_;  ///< contributions of a reduce_scatter, by rank
};

}  // namespace strata::comm
