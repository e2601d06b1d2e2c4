#include "kernels/cpu/matmul.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include "kernels/cpu/columns.h"
#include "kernels/testing/linear_reference.h"
#include "kernels/testing/product_test_support.h"

namespace strata::kernels {
namespace {

using testing::relative_error;
using testing::Storage;

MatmulTypes types_of(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
  return {ta ? TensorType(DType::f32, {k, m}) : TensorType(DType::f32, {m, k}),
          tb ? TensorType(DType::f32, {n, k}) : TensorType(DType::f32, {k, n}),
          TensorType(DType::f32, {m, n}), ta, tb};
}

TEST(Matmul, TilesCoverTheResultOnceAndKeepThreadsBusy) {
  for (std::int64_t m : {1, 5, 256, 1000, 1024, 4096})
    for (std::int64_t n : {1, 100, 768, 896, 2304, 50304})
      for (std::int64_t k : {1, 64, 768, 3072})
        for (bool tb : {false, true}) {
          const MatmulTypes types = types_of(m, n, k, false, tb);
          for (const Tiling& t : {choose_library_tiling(types), choose_block_tiling(types, 1),
                                  choose_block_tiling(types, 8)}) {
            EXPECT_TRUE(t.m >= 1 && t.n >= 1);
            EXPECT_TRUE((t.rows - 1) * t.m < m && t.rows * t.m >= m);
            EXPECT_TRUE((t.cols - 1) * t.n < n && t.cols * t.n >= n);
            EXPECT_TRUE(m * n * k < 64 * 1000 * 1000 || t.rows * t.cols >= 4);
          }
          const Tiling many = choose_block_tiling(types, 8);
          EXPECT_TRUE(m * n * k < 256 * 1000 * 1000 || many.rows * many.cols >= 16);
        }
}

TEST(Matmul, EndsAtTheSmallestTilesOfLongSums) {
  const MatmulTypes types = types_of(16, 32, 16000, false, false);
  for (const Tiling& tiling : {choose_library_tiling(types), choose_block_tiling(types, 2)}) {
    EXPECT_EQ(tiling.m, 16);
    EXPECT_EQ(tiling.n, 16);
  }
}

/// Returns this machine's features twice: with fp32 products by the library, and by our own tiles.
std::vector<CpuFeatures> with_and_without_the_library() {
  CpuFeatures library = detect_cpu_features();
  limit_libraries(library);
  CpuFeatures own = library;
  library.avx512 = true;
  own.avx512 = own.avx512_bf16 = own.amx_bf16 = false;
  return {library, own};
}

/// Expects the right C = A B with A, B of the given types and C fp32, added to C if `accumulate`.
void expect_product(const CpuFeatures& features, DType a_type, DType b_type, bool ta, bool tb,
                    bool accumulate) {
  const std::int64_t m = 70, n = 90, k = 2100;  // k is many times the depth that is packed at once
  Storage a(ta ? TensorType(a_type, {k, m}) : TensorType(a_type, {m, k}), 1);
  Storage b(tb ? TensorType(b_type, {n, k}, k + 3) : TensorType(b_type, {k, n}, n + 3), 2);
  Storage c({DType::f32, {m, n}, n + 1});
  if (accumulate) c = Storage({DType::f32, {m, n}, n + 1}, 3);
  auto right = reference::matmul(a.values(), ta, b.values(), tb, m, n, k);
  if (accumulate) {
    const std::vector<double> before = c.values();
    for (std::size_t i = 0; i < right.size(); ++i) right[i] += before[i];
  }
  ThreadPool pool(2, be_single_threaded);
  MatmulEngine engine(pool, features);
  EXPECT_EQ(engine.tiles().by_library(DType::f32, DType::f32), features.avx512);
  Matmul product{.a = a.tensor(),
                 .b = b.tensor(),
                 .c = c.tensor(),
                 .a_transposed = ta,
                 .b_transposed = tb,
                 .accumulate = accumulate};
  Storage scratch(
      TensorType(DType::u8, {1 + MatmulEngine::scratch_bytes(product.types(), pool.threads())}));
  engine.run(product,
             {scratch.tensor().data, static_cast<std::size_t>(scratch.type().span_bytes() - 1)});
  EXPECT_LE(relative_error(c.values(), right), 2e-6)
      << name_of(a_type) << (ta ? " transposed" : "") << " by " << name_of(b_type)
      << (tb ? " transposed" : "");
}

TEST(Matmul, MixesTypesFormsAndSums) {
  for (const CpuFeatures& features : with_and_without_the_library())
    for (DType a : {DType::f32, DType::bf16, DType::f16})
      for (DType b : {DType::f32, DType::bf16, DType::f16})
        for (bool ta : {false, true})
          for (bool tb : {false, true})
            for (bool accumulate : {false, true})
              expect_product(features, a, b, ta, tb, accumulate);
}

TEST(Matmul, WithoutBf16ProductsOperandsAreWidened) {
  CpuFeatures features = detect_cpu_features();
  features.avx512_bf16 = features.amx_bf16 = false;
  const TileShape shape{.m = 33,
                        .n = 21,
                        .k = 40,
                        .a_dtype = DType::bf16,
                        .b_dtype = DType::bf16,
                        .a_stride = 40,
                        .b_stride = 21,
                        .c_stride = 21};
  Storage a(TensorType(DType::bf16, {33, 40}), 1), b(TensorType(DType::bf16, {40, 21}), 2);
  Storage c(TensorType(DType::f32, {33, 21}));
  Storage scratch(TensorType(DType::u8, {tile_scratch_bytes(shape)}));
  TileProducts tiles(1, features);
  EXPECT_FALSE(tiles.by_library(DType::bf16, DType::bf16));
  tiles.run(tiles.prepare(shape), 0, a.tensor().data, b.tensor().data, c.tensor().row<float>(),
            {scratch.tensor().data, static_cast<std::size_t>(tile_scratch_bytes(shape))});
  EXPECT_LE(relative_error(c.values(),
                           reference::matmul(a.values(), false, b.values(), false, 33, 21, 40)),
            2e-6);
}

int threads_of_this_process() {
  DIR* tasks = opendir("/proc/self/task");
  EXPECT_NE(tasks, nullptr);
  int count = -2;  // . and ..
  while (readdir(tasks) != nullptr) ++count;
  closedir(tasks);
  return count;
}

TEST(Matmul, TheLibraryStartsNoThreadsOfItsOwn) {
  const int before = threads_of_this_process();
  ThreadPool pool(3, be_single_threaded);
  MatmulEngine engine(pool, with_and_without_the_library()[0]);
  for (DType dtype : {DType::f32, DType::bf16}) {
    Storage a(TensorType(dtype, {600, 400}), 1), b(TensorType(dtype, {400, 900}), 2);
    Storage c(TensorType(DType::f32, {600, 900}));
    Matmul product{.a = a.tensor(), .b = b.tensor(), .c = c.tensor()};
    Storage scratch(TensorType(DType::u8, {1 + MatmulEngine::scratch_bytes(product.types(), 3)}));
    engine.run(product,
               {scratch.tensor().data, static_cast<std::size_t>(scratch.type().span_bytes() - 1)});
  }
  EXPECT_EQ(threads_of_this_process(), before + 2);
}

TEST(Columns, SumsAgreeWithDoubles) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t rows : {1, 31, 32, 33, 1000}) {
      Storage matrix({dtype, {rows, 300}, 310}, 1);
      std::vector<float> sums(100);
      sum_columns(matrix.tensor(), 120, 100, sums.data());
      const auto right = reference::linear_backward_bias(matrix.values(), rows, 300);
      for (std::size_t i = 0; i < sums.size(); ++i)
        EXPECT_NEAR(sums[i], right[120 + i], 1e-5 * std::sqrt(static_cast<double>(rows)));
    }
}

}  // namespace
}  // namespace strata::kernels
