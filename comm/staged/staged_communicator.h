// Collectives on device memory through a communicator of the host, for ranks that share a GPU (NCCL
// refuses) and for hosts without NCCL. Correct but slow: every byte passes through the host twice.
#pragma once

#include <memory>

#include "comm/arena_table.h"
#include "comm/communicator.h"
#include "comm/mapped_file.h"
#include "core/unique_fd.h"
#include "kernels/device/device.h"

namespace strata::comm {

/// Wraps `host`, which others may use too, from the same thread and in the same order on all ranks.
/// Registered arenas are the device's. The host communicator sees a staging arena of this object;
/// it grows when a larger collective first runs, by the same amount on all ranks.
class StagedCommunicator final : public Communicator {
 public:
  /// Both arguments must outlive the communicator.
  StagedCommunicator(Communicator& host, kernels::Device& device);

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  [[nodiscard]] std::string_view backend() const override { return host_.backend(); }
  [[nodiscard]] bool runs_on_host() const override { return true; }
  void register_arena(const ArenaRegion& region) override { arenas_.add(region); }
  void unregister_arena(const std::byte* base) override { arenas_.remove(base); }
  /// Collectives need no scratch on the device.
  [[nodiscard]] Exchange exchange() const override { return Exchange::none; }
  void abort(const std::string& reason, ExitCode code) noexcept override {
    host_.abort(reason, code);
  }
  void check() override { host_.check(); }
  /// Collectives are counted by the host communicator.
  [[nodiscard]] std::int64_t begun() const override { return host_.begun(); }
  /// Leaves the host communicator open; its owner closes it.
  void close() override;

 private:
  /// Returns when the output is complete on the device.
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  void make_room(const Collective& collective);

  Communicator& host_;
  kernels::Device& device_;
  ArenaTable arenas_;
  UniqueFd staging_file_;
  MappedFile staging_;  ///< first half: input; second half: output
  std::vector<std::byte> workspace_;
};

}  // namespace strata::comm
