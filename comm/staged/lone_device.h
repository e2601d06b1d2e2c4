// The communicator of a single rank on a device: it enqueues copies and roundings on the stream.
#pragma once

#include "comm/arena_table.h"
#include "comm/communicator.h"
#include "kernels/device/device.h"

namespace strata::comm {

class LoneDeviceCommunicator final : public Communicator {
 public:
  /// `device` must outlive the communicator.
  explicit LoneDeviceCommunicator(kernels::Device& device);

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] std::string_view backend() const override { return "single"; }
  [[nodiscard]] bool runs_on_host() const override { return false; }
  void register_arena(const ArenaRegion& region) override { arenas_.add(region); }
  void unregister_arena(const std::byte* base) override { arenas_.remove(base); }
  [[nodiscard]] Exchange exchange() const override { return Exchange::own_rounding; }
  /// Nothing to do: no rank waits.
  void abort(const std::string&, ExitCode) noexcept override {}
  void close() override {}

 private:
  /// A reduce_scatter must have scale 1, the mean over one rank.
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  void convert(kernels::Stream& stream, DType from_type, const std::byte* from, DType to_type,
               std::byte* to, std::int64_t elements) const;

  kernels::Device& device_;
  kernels::Kernel convert_;
  ArenaTable arenas_;
};

}  // namespace strata::comm
