// NCCL's communicator over the stand-in, with kernels on the simulated device.
#pragma once

#include <cstdint>
#include <string>

#include "comm/nccl/nccl_communicator.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/device/device.h"

namespace strata::comm {

/// A rank's NcclCommunicator that does its work on a simulated stream of its own, at once.
class SimulatedNccl final : public Communicator {
 public:
  /// Borrows all arguments. Collectives wait for their stream of `device`, where there is one.
  SimulatedNccl(Communicator& host, const std::string& gpu,
                Reduction reduction = Reduction::ordered, kernels::Device* device = nullptr);

  [[nodiscard]] int rank() const override { return nccl_.rank(); }
  [[nodiscard]] int size() const override { return nccl_.size(); }
  [[nodiscard]] std::string_view backend() const override { return nccl_.backend(); }
  void register_arena(const ArenaRegion& region) override { nccl_.register_arena(region); }
  void unregister_arena(const std::byte* base) override { nccl_.unregister_arena(base); }
  [[nodiscard]] Exchange exchange() const override { return nccl_.exchange(); }
  [[nodiscard]] Seat seat() const override { return nccl_.seat(); }
  void check() override { nccl_.check(); }
  void abort(const std::string& reason, ExitCode code) noexcept override {
    nccl_.abort(reason, code);
  }
  void close() override { nccl_.close(); }
  bool all_have_recorded(bool mine) override { return nccl_.all_have_recorded(mine); }

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  std::uint64_t word_ = 0;
  kernels::Device* device_;
  cuda::SimulatedStream stream_{cuda::ThreadOrder::backward};
  NcclCommunicator nccl_;
};

}  // namespace strata::comm
