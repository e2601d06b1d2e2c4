// Runs a Graph without collectives on real kernels, as one rank.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/cpu/cpu_stream.h"
#include "runtime/execute/executor.h"
#include "runtime/program/persistent_layout.h"

namespace strata::runtime {

class LoneRank {
 public:
  /// Makes gradients of units persistent under their names ("d parameter/UNIT"), and `loss` under
  /// "loss". Fills the arena with 0xff (NaN), inputs with small numbers, parameters with random
  /// ones from `seed`.
  LoneRank(Graph graph, ValueId loss, std::uint64_t seed);
  ~LoneRank();

  /// Runs once and returns the loss.
  double run();
  /// Returns the elements of persistent storage.
  template <typename T>
  [[nodiscard]] std::span<T> storage(const std::string& name) const {
    const std::span<std::byte> raw = bytes(name);
    return {reinterpret_cast<T*>(raw.data()), raw.size() / sizeof(T)};
  }
  [[nodiscard]] const std::vector<ParameterUnit>& units() const { return units_; }
  [[nodiscard]] const Program& program() const { return executor_->program(0); }

 private:
  [[nodiscard]] std::span<std::byte> bytes(const std::string& name) const;
  void fill_inputs(std::uint64_t seed);

  std::vector<ParameterUnit> units_;
  kernels::CpuDevice device_{1};
  kernels::CpuStream stream_{device_};
  PersistentLayout layout_;
  Arena arena_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace strata::runtime
