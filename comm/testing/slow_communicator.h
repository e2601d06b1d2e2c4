// A communicator as slow as a network would be, for ranks that are threads: steps of a cluster on
// one machine.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace strata::comm {

/// The rates of a ring: a collective of n ranks takes n - 1 latencies, and the time in which the
/// rank that sends most sends its bytes.
struct SlowNetwork {
  double bytes_per_second = 0;
  double latency_seconds = 0;  ///< of one hop

  [[nodiscard]] std::int64_t collective_ns(int ranks, const Collective& collective) const;
};

/// The time at which the last rank came to each collective; shared by the ranks of one world.
class LastArrivals {
 public:
  /// Collective `number` is one that no rank leaves before all have come to it.
  void arrive(std::int64_t number, std::int64_t now_ns);
  /// Returns the time once all have arrived at collective `number`, and until any arrives at the
  /// one after the next.
  [[nodiscard]] std::int64_t last_ns(std::int64_t number) const { return of(number).load(); }

 private:
  [[nodiscard]] std::atomic<std::int64_t>& of(std::int64_t number) {
    return last_ns_[static_cast<std::size_t>(number % 2)];
  }
  [[nodiscard]] const std::atomic<std::int64_t>& of(std::int64_t number) const {
    return last_ns_[static_cast<std::size_t>(number % 2)];
  }
  std::array<std::atomic<std::int64_t>, 2> last_ns_{};  // rises, so nobody has to reset it
};

/// Runs each collective through `inner`, then sleeps until the network would have ended it, counted
/// from when the last rank came: all ranks end together. Sends and receives are not delayed.
class SlowCommunicator final : public Communicator {
 public:
  /// `inner` and `arrivals` must outlive the communicator.
  SlowCommunicator(Communicator& inner, LastArrivals& arrivals, const SlowNetwork& network)
      : inner_(inner), arrivals_(arrivals), network_(network) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] std::string_view backend() const override { return inner_.backend(); }
  void register_arena(const ArenaRegion& region) override { inner_.register_arena(region); }
  void unregister_arena(const std::byte* base) override { inner_.unregister_arena(base); }
  [[nodiscard]] Exchange exchange() const override { return inner_.exchange(); }
  [[nodiscard]] Seat seat() const override { return inner_.seat(); }
  void abort(const std::string& reason, ExitCode code) noexcept override {
    inner_.abort(reason, code);
  }
  void check() override { inner_.check(); }
  [[nodiscard]] std::int64_t begun() const override { return inner_.begun(); }
  void close() override { inner_.close(); }

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  Communicator& inner_;
  LastArrivals& arrivals_;
  SlowNetwork network_;
  std::int64_t meetings_ = 0;
};

}  // namespace strata::comm
