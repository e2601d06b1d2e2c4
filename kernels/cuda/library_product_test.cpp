#include "kernels/cuda/library_product.h"

#include <gtest/gtest.h>

#include "kernels/cuda/testing/simulated/column_major.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/testing/product_test_support.h"

namespace strata::cuda {
namespace {

using kernels::Tensor;
using kernels::TensorType;
using kernels::testing::Storage;

struct Case {
  std::int64_t m, n, k;
  std::int64_t gap = 0;  ///< elements between rows
};

TensorType matrix(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t gap) {
  return {dtype, {rows, cols}, cols + gap};
}

/// Expects the same result of our own kernels and of the product as a library sees it.
void expect_same(const Case& c, DType operands, DType result, int form) {
  const bool a_transposed = (form & 1) != 0, b_transposed = (form & 2) != 0;
  const bool with_bias = (form & 4) != 0, accumulate = (form & 8) != 0;
  Storage a(matrix(operands, a_transposed ? c.k : c.m, a_transposed ? c.m : c.k, c.gap), 1);
  Storage b(matrix(operands, b_transposed ? c.n : c.k, b_transposed ? c.k : c.n, c.gap + 1), 2);
  Storage bias(TensorType(operands, {1, c.n}), 3);
  const TensorType type = matrix(result, c.m, c.n, 2 * c.gap);
  Storage own(type, 4), seen(type, 4);
  const Tensor bias_tensor = bias.tensor();
  MatrixProduct product{.a = a.tensor(),
                        .b = b.tensor(),
                        .c = own.tensor(),
                        .a_transposed = a_transposed,
                        .b_transposed = b_transposed,
                        .bias = with_bias ? &bias_tensor : nullptr,
                        .accumulate = accumulate};
  const auto library = library_product(product);
  ASSERT_TRUE(library);
  SCOPED_TRACE(library->to_string());
  SimulatedStream stream(ThreadOrder::forward);
  tiled_product(stream, product);
  column_major_product(*library, {.first = b.tensor().data,
                                  .second = a.tensor().data,
                                  .result = seen.tensor().data,
                                  .bias = bias_tensor.data});
  EXPECT_LE(kernels::testing::relative_error(seen.values(), own.values()),
            kernels::testing::tolerance(result));
}

TEST(LibraryProduct, IsTheSameProductForEveryLayoutAndType) {
  for (const auto& [operands, result] :
       {std::pair{DType::f32, DType::f32}, std::pair{DType::bf16, DType::bf16},
        std::pair{DType::bf16, DType::f32}, std::pair{DType::f16, DType::f16},
        std::pair{DType::f16, DType::f32}})
    for (const Case& c :
         {Case{5, 7, 3}, Case{9, 4, 6, 3}, Case{1, 6, 5, 2}, Case{6, 1, 5}, Case{4, 3, 1, 1}})
      for (int form = 0; form < 16; ++form) expect_same(c, operands, result, form);
}

TEST(LibraryProduct, LeavesTypesThatNoLibraryOffers) {
  const auto offered = [](DType a, DType b, DType c) {
    Storage left(matrix(a, 2, 2, 0)), right(matrix(b, 2, 2, 0)), result(matrix(c, 2, 2, 0));
    return library_product({.a = left.tensor(), .b = right.tensor(), .c = result.tensor()})
        .has_value();
  };
  EXPECT_TRUE(offered(DType::bf16, DType::bf16, DType::f32));
  EXPECT_FALSE(offered(DType::bf16, DType::f32, DType::f32));
  EXPECT_FALSE(offered(DType::f32, DType::bf16, DType::f32));
  EXPECT_FALSE(offered(DType::bf16, DType::bf16, DType::f16));
  EXPECT_FALSE(offered(DType::f32, DType::f32, DType::bf16));
}

TEST(LibraryProduct, TellsAlignmentsApartUpTo16Bytes) {
  Storage storage(matrix(DType::f32, 8, 64, 0));
  const auto alignment = [&](std::int64_t bytes) {
    const Tensor at{matrix(DType::f32, 4, 4, 0), storage.tensor().data + bytes};
    return library_product({.a = storage.tensor(), .b = at, .c = storage.tensor()})
        ->first_alignment;
  };
  EXPECT_EQ(alignment(0), 16);
  EXPECT_EQ(alignment(4), 4);
  EXPECT_EQ(alignment(8), 8);
  EXPECT_EQ(alignment(48), 16);
}

TEST(LibraryProduct, TheStrideOfASingleRowDoesNotCount) {
  Storage a(matrix(DType::f32, 1, 8, 0)), b(matrix(DType::f32, 8, 8, 0));
  Storage c(matrix(DType::f32, 1, 8, 0));
  Tensor apart = a.tensor();
  apart.type.row_stride = 100;
  EXPECT_EQ(library_product({.a = a.tensor(), .b = b.tensor(), .c = c.tensor()}),
            library_product({.a = apart, .b = b.tensor(), .c = c.tensor()}));
}

}  // namespace
}  // namespace strata::cuda
