// The communicator of a single rank: it rounds and scales as others do, and waits for nobody.
#pragma once

#include <mutex>
#include <optional>

#include "comm/arena_table.h"
#include "comm/communicator.h"

namespace strata::comm {

class SingleCommunicator final : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] std::string_view backend() const override { return "single"; }
  void register_arena(const ArenaRegion& region) override;
  void unregister_arena(const std::byte* base) override;
  [[nodiscard]] Exchange exchange() const override { return Exchange::none; }
  void abort(const std::string& reason, ExitCode code) noexcept override;
  void close() override;

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  void require_alive();
  ArenaTable arenas_;
  std::mutex mutex_;
  std::optional<std::string> abort_reason_;  ///< guarded by mutex_
};

}  // namespace strata::comm
