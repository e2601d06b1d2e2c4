// A stream whose kernels are simulated, for tests only.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cuda/matrix_product.h"
#include "kernels/device/stream.h"

namespace strata::cuda {

/// The order in which the simulation runs blocks, and threads between two synchronizations. A
/// kernel whose result depends on it lacks a barrier.
enum class ThreadOrder : std::uint8_t { forward, backward, shuffled };

class AttentionLibrary;

class SimulatedStream : public kernels::Stream {
 public:
  explicit SimulatedStream(ThreadOrder order) : order_(order) {}
  [[nodiscard]] ThreadOrder order() const { return order_; }
  /// Runs `work` at once. Streams of a SimulatedDevice queue it instead.
  virtual void enqueue(std::function<void()> work) { work(); }
  /// The largest dynamic shared memory of a launch so far, in bytes.
  [[nodiscard]] std::int64_t shared_bytes() const { return shared_bytes_; }
  void saw_shared_bytes(std::int64_t bytes) {
    if (bytes > shared_bytes_) shared_bytes_ = bytes;
  }
  /// Adds the products that operations ask for from now on to `products`, which must outlive this.
  void record_products(std::vector<MatrixProduct>& products) { products_ = &products; }
  void saw_product(const MatrixProduct& product) {
    if (products_ != nullptr) products_->push_back(product);
  }
  [[nodiscard]] AttentionLibrary* attention() const { return attention_; }
  void use_attention(AttentionLibrary* library) { attention_ = library; }

 private:
  ThreadOrder order_;
  std::int64_t shared_bytes_ = 0;
  std::vector<MatrixProduct>* products_ = nullptr;
  AttentionLibrary* attention_ = nullptr;
};

inline SimulatedStream& simulated(kernels::Stream& stream) {
  return static_cast<SimulatedStream&>(stream);
}

inline AttentionLibrary* attention_library(kernels::Stream& stream) {
  return simulated(stream).attention();
}

}  // namespace strata::cuda
