// Trials of products on the current device.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/product_trials.h"

namespace strata::cuda {

/// Allocates what a product reads and writes (its result up to three times) and frees it for the
/// next: before an arena takes the memory. An algorithm is timed after it was compared: the median
/// of several stretches of about a millisecond, everything warm.
class DeviceTrials final : public ProductTrials {
 public:
  DeviceTrials();
  ~DeviceTrials() override;

  void prepare(const LibraryProduct& product) override;
  /// Waits. Throws HostError when the algorithm fails while it runs.
  TrialOutcome run(const Enqueue& enqueue) override;

  static constexpr int kComparedRuns = 5;
  static constexpr int kTimedStretches = 5;

 private:
  struct Buffers;

  bool run_once(const Enqueue& enqueue);
  [[nodiscard]] bool same_again(const Enqueue& enqueue);
  [[nodiscard]] double microseconds(const Enqueue& enqueue, int products);

  CudaStream stream_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace strata::cuda
