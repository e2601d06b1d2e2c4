// Trials of the library's algorithms for matrix products on the current device.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/product_trials.h"

namespace strata::cuda {

/// Allocates the operands of one product at a time (its result up to three times), so trials come
/// before the arena is allocated. Runs of an algorithm are first compared; its time is then the
/// median of several stretches of about a millisecond.
class DeviceTrials final : public ProductTrials {
 public:
  DeviceTrials();
  ~DeviceTrials() override;

  void prepare(const LibraryProduct& product) override;
  /// Waits for the device. Throws HostError when the algorithm fails while it runs.
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
