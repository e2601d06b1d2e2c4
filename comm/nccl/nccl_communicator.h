// Collectives between GPUs over NCCL: bytes travel by NCCL, sums are our own, so that bits equal
// those of every other backend. Tested with a stand-in for NCCL over host memory; between GPUs it
// has not been executed yet.
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

/// What a rank brings along besides NCCL.
struct NcclDevice {
  std::string gpu;            ///< names it among all hosts: equal where two ranks share one
  std::byte* word = nullptr;  ///< 8 bytes of device memory, for barriers
  cudaStream_t (*stream_of)(kernels::Stream& stream) = nullptr;
  Reduction reduction = Reduction::ordered;
};

/// `run` enqueues and returns: errors of what is enqueued show in `check`, which whoever waits for
/// a stream must call. No call waits for a peer without looking whether one died: NCCL is used in
/// its non-blocking mode. After an error the communicator is dead, and NCCL's kernels are told to
/// end.
class NcclCommunicator : public Communicator {
 public:
  /// Collective; the current device is the communicator's. All arguments are borrowed. Throws as
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
  /// Concerns this rank alone.
  void register_arena(const ArenaRegion& region) override { arenas_.add(region); }
  void unregister_arena(const std::byte* base) override { arenas_.remove(base); }
  [[nodiscard]] Exchange exchange() const override {
    return device_.reduction == Reduction::native ? Exchange::native_messages : Exchange::messages;
  }
  void check() override;
  void abort(const std::string& reason, ExitCode code) noexcept override;
  /// Collectives must have been waited for, and recordings that hold some be gone: NCCL
  /// waits for that. The host communicator is closed by its owner.
  void close() override;

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  /// One operation of NCCL made of the calls that `body` hands to its argument.
  template <typename Body>
  void group(const Body& body);
  void agree();
  void start();
  /// Throws unless NCCL took it; waits while it is not done.
  void require(ncclResult_t result, const char* call);
  void wait_until_taken(const char* call);
  void require_alive();
  /// `subject` is followed by the collective.
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
  cudaStream_t stream_ = nullptr;  ///< of the collective being enqueued
  std::atomic<bool> dead_{false};
  std::thread ending_;  ///< runs ncclCommAbort
  bool closed_ = false;
  std::string reason_;                          ///< why it is dead, where the host does not know
  std::array<char, kDescriptionBytes> text_{};  ///< describes the collective being enqueued
  std::string_view what_ = "start";
  std::vector<const std::byte*> contributions_;  ///< of a reduce_scatter, by rank
};

}  // namespace strata::comm
