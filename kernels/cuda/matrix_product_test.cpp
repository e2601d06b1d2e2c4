// Tests our own matrix products in cases that tests of operations do not have: every layout, mixed
// types, accumulation into 16-bit results, operands that are not aligned.
#include "kernels/cuda/matrix_product.h"

#include <gtest/gtest.h>

#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/testing/linear_reference.h"
#include "kernels/testing/product_test_support.h"

namespace strata::cuda {
namespace {

using kernels::Tensor;
using kernels::TensorType;
using kernels::testing::relative_error;
using kernels::testing::Storage;
namespace reference = kernels::reference;

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

struct Case {
  std::int64_t m = 70, n = 90, k = 37;
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  bool a_transposed = false, b_transposed = false, accumulate = false, bias = false;
  std::int64_t gap = 0;    ///< elements between rows of all operands
  std::int64_t shift = 0;  ///< elements between the start of the storage and A or B

  [[nodiscard]] std::string to_string() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " +
           std::string(name_of(a)) + (a_transposed ? " transposed" : "") + " by " +
           std::string(name_of(b)) + (b_transposed ? " transposed" : "") + " to " +
           std::string(name_of(c)) + (accumulate ? " accumulated" : "") + (bias ? " bias" : "") +
           " gap " + std::to_string(gap) + " shift " + std::to_string(shift);
  }
};

/// A matrix within wider storage, which begins `shift` elements after the storage does.
struct Shifted {
  Storage storage;
  TensorType type;
  std::int64_t shift;

  Shifted(DType dtype, std::int64_t rows, std::int64_t cols, const Case& c, unsigned seed)
      : storage({dtype, {rows, cols + c.shift}, cols + c.shift + c.gap}, seed),
        type(dtype, {rows, cols}, cols + c.shift + c.gap),
        shift(c.shift) {}
  Tensor tensor() { return {type, storage.tensor().data + shift * size_of(type.dtype)}; }
  reference::Values values() {
    const reference::Values all = storage.values();
    reference::Values mine;
    const std::int64_t cols = type.shape.cols();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (static_cast<std::int64_t>(i) % (cols + shift) >= shift) mine.push_back(all[i]);
    return mine;
  }
};

/// Returns the right C, computed in doubles.
reference::Values right(const Case& c, Shifted& a, Shifted& b, Storage& bias, Storage& result) {
  reference::Values sums =
      reference::matmul(a.values(), c.a_transposed, b.values(), c.b_transposed, c.m, c.n, c.k);
  const reference::Values added = bias.values(), before = result.values();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (c.bias) sums[i] += added[i % static_cast<std::size_t>(c.n)];
    if (c.accumulate) sums[i] += before[i];
  }
  return sums;
}

bool gaps_untouched(Storage& matrix) {
  const Tensor t = matrix.tensor();
  const std::int64_t size = size_of(t.dtype());
  for (std::int64_t row = 0; row + 1 < t.rows(); ++row)
    for (std::int64_t i = t.cols() * size; i < t.row_stride() * size; ++i)
      if (t.data[row * t.row_stride() * size + i] != std::byte{0xff}) return false;
  return true;
}

void expect_right(const Case& c) {
  SCOPED_TRACE(c.to_string());
  Shifted a(c.a, c.a_transposed ? c.k : c.m, c.a_transposed ? c.m : c.k, c, 1);
  Shifted b(c.b, c.b_transposed ? c.n : c.k, c.b_transposed ? c.k : c.n, c, 2);
  Storage bias(TensorType(c.b, {1, c.n}), 3);
  const TensorType type(c.c, {c.m, c.n}, c.n + c.gap);
  Storage before(type, 4);
  const reference::Values expected = right(c, a, b, bias, before);
  std::vector<std::byte> first;
  for (ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward, ThreadOrder::shuffled}) {
    Storage result(type, 4);
    Tensor bias_tensor = bias.tensor();
    SimulatedStream stream(order);
    tiled_product(stream, {.a = a.tensor(),
                           .b = b.tensor(),
                           .c = result.tensor(),
                           .a_transposed = c.a_transposed,
                           .b_transposed = c.b_transposed,
                           .bias = c.bias ? &bias_tensor : nullptr,
                           .accumulate = c.accumulate});
    EXPECT_LE(relative_error(result.values(), expected), kernels::testing::tolerance(c.c));
    EXPECT_TRUE(gaps_untouched(result));
    if (first.empty()) first = result.bytes();
    EXPECT_TRUE(first == result.bytes()) << "another order, other bits";
  }
}

TEST(MatrixProduct, TakesEveryLayoutAndMixOfTypes) {
  for (DType a : kTypes)
    for (DType b : kTypes)
      for (int layout = 0; layout < 4; ++layout)
        for (DType c : kTypes)
          expect_right({.m = 20,
                        .n = 24,
                        .k = 40,
                        .a = a,
                        .b = b,
                        .c = c,
                        .a_transposed = layout % 2 == 1,
                        .b_transposed = layout / 2 == 1});
}

TEST(MatrixProduct, AddsBiasAndWhatCHeld) {
  for (DType a : kTypes)
    for (DType c : kTypes)
      for (std::int64_t gap : {0, 5})
        for (bool bias : {false, true})
          expect_right({.a = a, .b = a, .c = c, .accumulate = true, .bias = bias, .gap = gap});
}

TEST(MatrixProduct, TakesShapesAndAlignmentsOfEveryKind) {
  for (DType type : kTypes)
    for (int layout = 0; layout < 4; ++layout)
      for (const Case& shape :
           {Case{.m = 1, .n = 1, .k = 1}, Case{.m = 3, .n = 200, .k = 16},
            Case{.m = 130, .n = 136, .k = 33}, Case{.m = 600, .n = 70, .k = 5},
            Case{.m = 136, .n = 264, .k = 200}, Case{.m = 1040, .n = 8, .k = 8},
            Case{.m = 67, .n = 63, .k = 104}, Case{.m = 40, .n = 48, .k = 32, .gap = 8},
            Case{.m = 64, .n = 64, .k = 48, .gap = 1}, Case{.m = 65, .n = 63, .k = 47, .gap = 8},
            Case{.m = 72, .n = 80, .k = 56, .shift = 1},
            Case{.m = 72, .n = 80, .k = 56, .gap = 4, .shift = 4}}) {
        Case c = shape;
        c.a = c.b = c.c = type;
        c.a_transposed = layout % 2 == 1;
        c.b_transposed = layout / 2 == 1;
        expect_right(c);
      }
}

}  // namespace
}  // namespace strata::cuda
