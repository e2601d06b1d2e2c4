#include "kernels/cuda/attention_library.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/ops/attention.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::KernelCall;
using kernels::Tensor;
using kernels::TensorType;

/// Counts the calls that it is asked to run, and takes all of them or none.
class CountingLibrary final : public AttentionLibrary {
 public:
  explicit CountingLibrary(bool takes) : takes_(takes) {}
  bool attention(kernels::Stream&, const KernelCall&) override {
    ++forward_;
    return takes_;
  }
  bool attention_backward(kernels::Stream&, const KernelCall&) override {
    ++backward_;
    return takes_;
  }
  [[nodiscard]] int forward() const { return forward_; }
  [[nodiscard]] int backward() const { return backward_; }

 private:
  bool takes_;
  int forward_ = 0, backward_ = 0;
};

/// Attention of one head and two positions, whose operands all hold `kBefore` at first.
class OneHead {
 public:
  static constexpr float kBefore = 3;

  void run(AttentionLibrary* library) {
    SimulatedStream stream(ThreadOrder::forward);
    stream.use_attention(library);
    const Tensor q = view(0), k = view(1), v = view(2), o = view(3), lse = lse_view();
    const Tensor forward_inputs[] = {q, k, v}, forward_outputs[] = {o, lse};
    cuda::attention(stream, {forward_inputs, forward_outputs, {}, attributes_});
    const Tensor backward_inputs[] = {view(4), q, k, v, o, lse};
    const Tensor backward_outputs[] = {view(5), view(6), view(7)};
    cuda::attention_backward(stream, {backward_inputs, backward_outputs,
                                      std::as_writable_bytes(std::span(delta_)), attributes_});
  }

  /// True if our own kernels wrote lse (0.125 * 16 * 9 + ln 2 at the second position), or dv.
  [[nodiscard]] bool forward_ran() const { return lse_[1] != kBefore; }
  [[nodiscard]] bool backward_ran() const { return operands_[7][0] != kBefore; }

 private:
  static constexpr int kHeadSize = 16;

  Tensor view(std::size_t i) {
    return {TensorType(DType::f32, {2, 1, kHeadSize}),
            reinterpret_cast<std::byte*>(operands_[i].data())};
  }
  Tensor lse_view() {
    return {TensorType(DType::f32, {1, 1, 2}), reinterpret_cast<std::byte*>(lse_.data())};
  }

  std::vector<std::vector<float>> operands_ =
      std::vector<std::vector<float>>(8, std::vector<float>(2 * kHeadSize, kBefore));
  std::vector<float> lse_ = std::vector<float>(2, kBefore), delta_ = std::vector<float>(2);
  Attributes attributes_{{"sequence", 2}, {"scale", 0.125}};
};

TEST(AttentionLibrary, OwnKernelsRunWhereThereIsNone) {
  OneHead head;
  head.run(nullptr);
  EXPECT_TRUE(head.forward_ran());
  EXPECT_TRUE(head.backward_ran());
}

TEST(AttentionLibrary, OwnKernelsRunWhatItDoesNotTake) {
  CountingLibrary library(false);
  OneHead head;
  head.run(&library);
  EXPECT_EQ(library.forward(), 1);
  EXPECT_EQ(library.backward(), 1);
  EXPECT_TRUE(head.forward_ran());
  EXPECT_TRUE(head.backward_ran());
}

TEST(AttentionLibrary, OwnKernelsLeaveAloneWhatItTakes) {
  CountingLibrary library(true);
  OneHead head;
  head.run(&library);
  EXPECT_EQ(library.forward(), 1);
  EXPECT_EQ(library.backward(), 1);
  EXPECT_FALSE(head.forward_ran());
  EXPECT_FALSE(head.backward_ran());
}

}  // namespace
}  // namespace strata::cuda
